/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
#include "mlf_cycles.h"

enum { SPIN = 1000, MOST_POLLS = 1000000 };

#define DEMCR MLF_REGISTER(0xE000EDFC)
#define TRCENA (1u << 24)

void mlf_cycles_spin(uint32_t rounds)
{
#if defined(__arm__)
    __asm__ volatile(".syntax unified\n"
                     ".p2align 2\n"
                     "1:\n\t"
                     "subs %0, %0, #1\n\t"
                     "bne 1b"
                     : "+l"(rounds)
                     :
                     : "cc");
#else
    while (rounds > 0) {
        __asm__ volatile("" : "+r"(rounds));
        rounds--;
    }
#endif
}

#if defined(MLF_COUNTER_SYSTICK)
#define SYST_CSR MLF_REGISTER(0xE000E010)
#define SYST_RVR MLF_REGISTER(0xE000E014)
#define SYST_CVR MLF_REGISTER(0xE000E018)
#define RUN_WITH_CORE_CLOCK 7u /* ENABLE, TICKINT, CLKSOURCE */

volatile uint32_t mlf_cycles_wraps;

void SysTick_Handler(void);

void SysTick_Handler(void)
{
    mlf_cycles_wraps++;
}

static enum mlf_cycles_refusal enable(void)
{
    SYST_RVR = 0xFFFFFFu;
    SYST_CVR = 0; /* any write clears it */
    SYST_CSR = RUN_WITH_CORE_CLOCK;
    for (uint32_t i = 0; i < MOST_POLLS && SYST_CVR == 0; i++) {
        /* It is loaded in the next cycle; QEMU does that when its other thread runs. */
    }
    if (SYST_RVR != 0xFFFFFFu) {
        return MLF_CYCLES_ABSENT;
    }
    return (SYST_CSR & RUN_WITH_CORE_CLOCK) == RUN_WITH_CORE_CLOCK ? MLF_CYCLES_COUNT : MLF_CYCLES_DISABLED;
}

/* Without waiting for the exception, which never occurs if the counter stands. */
static uint32_t raw(void)
{
    return SYST_CVR;
}
#elif defined(MLF_COUNTER_PMU)
#define PMU_CNTENSET MLF_REGISTER(0xE0003C00)
#define PMU_TYPE MLF_REGISTER(0xE0003E00)
#define PMU_CTRL MLF_REGISTER(0xE0003E04)
#define CYCLE_COUNTER (1u << 31)
#define RUN 1u

static enum mlf_cycles_refusal enable(void)
{
    if (PMU_TYPE == 0) {
        return MLF_CYCLES_ABSENT;
    }
    PMU_CNTENSET = CYCLE_COUNTER;
    PMU_CTRL |= RUN;
    return (PMU_CTRL & RUN) != 0 && (PMU_CNTENSET & CYCLE_COUNTER) != 0 ? MLF_CYCLES_COUNT : MLF_CYCLES_DISABLED;
}

static uint32_t raw(void)
{
    return mlf_cycles_now();
}
#else
#define DWT_CTRL MLF_REGISTER(0xE0001000)
#define DWT_LAR MLF_REGISTER(0xE0001FB0)
#define NOCYCCNT (1u << 25)
#define CYCCNTENA 1u

static enum mlf_cycles_refusal enable(void)
{
    DWT_LAR = 0xC5ACCE55u; /* the Cortex-M7 locks the unit for software; other cores ignore this */
    if ((DWT_CTRL & NOCYCCNT) != 0) {
        return MLF_CYCLES_ABSENT;
    }
    DWT_CTRL |= CYCCNTENA;
    return (DWT_CTRL & CYCCNTENA) != 0 ? MLF_CYCLES_COUNT : MLF_CYCLES_DISABLED;
}

static uint32_t raw(void)
{
    return mlf_cycles_now();
}
#endif

enum mlf_cycles_refusal mlf_cycles_start(void)
{
#if !defined(MLF_COUNTER_SYSTICK)
    DEMCR |= TRCENA;
    if ((DEMCR & TRCENA) == 0) {
        return MLF_CYCLES_NO_TRACE;
    }
#endif
    const enum mlf_cycles_refusal refusal = enable();
    if (refusal != MLF_CYCLES_COUNT) {
        return refusal;
    }
    const uint32_t first = raw();
    mlf_cycles_spin(SPIN);
    const uint32_t second = raw();
    mlf_cycles_spin(SPIN);
    const uint32_t third = raw();
    return first != second && second != third ? MLF_CYCLES_COUNT : MLF_CYCLES_STANDS;
}
