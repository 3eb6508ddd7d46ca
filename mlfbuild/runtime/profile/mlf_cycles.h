/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The cycle counter of a Cortex-M core, which one of these macros chooses:
 *
 *   MLF_COUNTER_DWT      CYCCNT of the Data Watchpoint and Trace unit: Cortex-M3, M4, M7, M33
 *   MLF_COUNTER_PMU      the cycle counter of the Performance Monitoring Unit: Cortex-M55, M85
 *   MLF_COUNTER_SYSTICK  the system timer with the clock of the core: every Cortex-M
 *
 * All count modulo 2^32. SysTick has 24 bits; its exception, once in 16.8 million cycles, counts the rest. No other
 * interrupt is enabled. Addresses and bits are those of the Armv7-M and Armv8-M architecture reference manuals.
 */
#ifndef MLF_CYCLES_H_
#define MLF_CYCLES_H_

#include <stdint.h>

#if !defined(MLF_COUNTER_DWT) && !defined(MLF_COUNTER_PMU) && !defined(MLF_COUNTER_SYSTICK)
#error "define MLF_COUNTER_DWT, MLF_COUNTER_PMU or MLF_COUNTER_SYSTICK"
#endif

#ifndef MLF_REGISTER /* tests define it */
#define MLF_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#endif

/* Why the counter cannot be used. */
enum mlf_cycles_refusal {
    MLF_CYCLES_COUNT = 0, /* it can */
    MLF_CYCLES_NO_TRACE,  /* DEMCR.TRCENA stays 0 */
    MLF_CYCLES_ABSENT,    /* the core states that it has no such counter */
    MLF_CYCLES_DISABLED,  /* the enable bit of the counter stays 0 */
    MLF_CYCLES_STANDS     /* the counter is enabled, but does not advance */
};

/* Start the counter. */
enum mlf_cycles_refusal mlf_cycles_start(void);

/* Execute `rounds` rounds of a subtraction and a branch that depends on it: at least one cycle each on every core. */
void mlf_cycles_spin(uint32_t rounds);

#if defined(MLF_COUNTER_SYSTICK)
extern volatile uint32_t mlf_cycles_wraps;

/* SysTick counts down to 0, and its exception occurs then. */
static inline uint32_t mlf_cycles_now(void)
{
    uint32_t wraps, value;
    do {
        wraps = mlf_cycles_wraps;
        value = MLF_REGISTER(0xE000E018);
    } while (value == 0 || (MLF_REGISTER(0xE000ED04) & 1u << 26) != 0 || wraps != mlf_cycles_wraps);
    return (wraps << 24) + (0xFFFFFFu - value);
}
#elif defined(MLF_COUNTER_PMU)
static inline uint32_t mlf_cycles_now(void)
{
    return MLF_REGISTER(0xE000307C); /* PMU_CCNTR */
}
#else
static inline uint32_t mlf_cycles_now(void)
{
    return MLF_REGISTER(0xE0001004); /* DWT_CYCCNT */
}
#endif

#endif /* MLF_CYCLES_H_ */
