/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Start-up code of Cortex-M: vector table, floating point, and the handling of faults. Only startup.c includes it.
 */
#ifndef MLF_STARTUP_CORTEX_M_H_
#define MLF_STARTUP_CORTEX_M_H_

/* ---- Vector table -------------------------------------------------------------------------------------------- */

void mlf_board_fault(void);

/* To replace a handler, define a function with its name. Device interrupts require a vector table of your own. */
#define REPLACEABLE __attribute__((weak, alias("mlf_board_fault")))
void NMI_Handler(void) REPLACEABLE;
void HardFault_Handler(void) REPLACEABLE;
void MemManage_Handler(void) REPLACEABLE;
void BusFault_Handler(void) REPLACEABLE;
void UsageFault_Handler(void) REPLACEABLE;
void SecureFault_Handler(void) REPLACEABLE;
void SVC_Handler(void) REPLACEABLE;
void DebugMon_Handler(void) REPLACEABLE;
void PendSV_Handler(void) REPLACEABLE;
void SysTick_Handler(void) REPLACEABLE;

struct vector_table {
    uint32_t *initial_stack_pointer;
    handler exceptions[15]; /* exception numbers 1 to 15 */
};

extern const struct vector_table mlf_board_vectors;
__attribute__((section(".vectors"), used)) const struct vector_table mlf_board_vectors = {
    __stack_top,
    {Reset_Handler, NMI_Handler, HardFault_Handler, MemManage_Handler, BusFault_Handler, UsageFault_Handler,
     SecureFault_Handler, NULL, NULL, NULL, SVC_Handler, DebugMon_Handler, NULL, PendSV_Handler, SysTick_Handler},
};

/* ---- Reset --------------------------------------------------------------------------------------------------- */

static void enable_floating_point(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    volatile uint32_t *const cpacr = (volatile uint32_t *)0xE000ED88u;
    *cpacr |= 0xFu << 20; /* full access to coprocessors 10 and 11: FPU and MVE */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
}

/* Make a stack overflow fault at once. The stack is the lowest part of RAM. */
static void guard_stack(void)
{
#if __ARM_ARCH >= 8
    __asm__ volatile("msr msplim, %0" ::"r"(__stack_limit));
#else
    struct {
        uint32_t type, ctrl, rnr, rbar, rasr;
    } volatile *const mpu = (void *)0xE000ED90u;
#ifdef MLF_HOST_LINK
    /* The memory protection unit denies access to the 256 bytes that the linker script keeps free below the stack. */
    const uint32_t below = 256, size = 7u << 1;
#else
    /* It denies access to the 256 MiB below RAM; the default map applies elsewhere. */
    const uint32_t below = 0x10000000u, size = 27u << 1;
#endif
    const uint32_t valid = 1u << 4, execute_never = 1u << 28, enable = 1, default_map = 1u << 2;
    mpu->rbar = ((uint32_t)(uintptr_t)__stack_limit - below) | valid;
    mpu->rasr = execute_never | size | enable;
    mpu->ctrl = default_map | enable;
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
}

/* A device may have started from elsewhere: with code in RAM, behind a boot loader or a boot ROM. */
static void use_own_vectors(void)
{
#ifdef MLF_HOST_LINK
    volatile uint32_t *const vtor = (volatile uint32_t *)0xE000ED08u;
    *vtor = (uint32_t)(uintptr_t)&mlf_board_vectors;
#endif
}

/* Cores with the small instruction set (Armv6-M, Armv8-M Baseline) fault at unaligned accesses, and larger cores, which
   run their code on QEMU, only if they are told to. */
static void trap_unaligned_accesses(void)
{
#if __ARM_ARCH_ISA_THUMB == 1
    volatile uint32_t *const ccr = (volatile uint32_t *)0xE000ED14u;
    *ccr |= 1u << 3; /* UNALIGN_TRP */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
}

void Reset_Handler(void)
{
    use_own_vectors();
    enable_floating_point();
    trap_unaligned_accesses();
    guard_stack();
    start();
}

/* ---- Faults -------------------------------------------------------------------------------------------------- */

struct exception_frame {
    uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

/* Fault status and address registers of the System Control Block. */
enum { CFSR = 0x28, HFSR = 0x2C, MMFAR = 0x34, BFAR = 0x38 };
#define CFSR_STKOF (1u << 20) /* Armv8-M only */

static uint32_t system_register(uintptr_t offset)
{
    return *(const volatile uint32_t *)(0xE000ED00u + offset);
}

static const char *exception_name(void)
{
    static const char *const names[16] = {
        "thread mode", "reset", "NMI", "HardFault", "MemManage fault", "BusFault", "UsageFault", "SecureFault",
        "exception 8", "exception 9", "exception 10", "SVCall", "DebugMonitor", "exception 13", "PendSV", "SysTick",
    };
    uint32_t ipsr;
    __asm__ volatile("mrs %0, ipsr" : "=r"(ipsr));
    return (ipsr & 0x1FFu) < 16 ? names[ipsr & 0x1FFu] : "an interrupt without a handler";
}

/* Print the fault and stop. `frame` is the stack pointer at the fault, which may itself be invalid. */
__attribute__((used, noreturn)) static void report_fault(const struct exception_frame *frame)
{
    semihosting_print("\nmlf_board: stopped by ");
    semihosting_print(exception_name());
    semihosting_print((system_register(CFSR) & CFSR_STKOF) != 0 ? ": stack overflow\n" : "\n");
    if ((const uint32_t *)frame >= __stack_limit && (const uint32_t *)(frame + 1) <= __stack_top) {
        print_register("  pc ", frame->pc);
        print_register("  lr ", frame->lr);
        print_register("  xpsr", frame->xpsr);
        print_register("\n  r0 ", frame->r0);
        print_register("  r1 ", frame->r1);
        print_register("  r2  ", frame->r2);
        print_register("\n  r3 ", frame->r3);
        print_register("  r12", frame->r12);
        print_register("  sp  ", (uint32_t)(uintptr_t)frame);
    } else {
        print_register("  the stack pointer is outside the stack, which may be too small: sp", (uint32_t)(uintptr_t)frame);
    }
    print_register("\n  CFSR", system_register(CFSR));
    print_register("  HFSR", system_register(HFSR));
    print_register("  MMFAR", system_register(MMFAR));
    print_register("  BFAR", system_register(BFAR));
    semihosting_print("\n");
    mlf_board_exit(MLF_BOARD_FAULT_STATUS);
}

/* The stack may be full or its pointer invalid, so the report uses a separate stack. */
NO_CANARY __attribute__((naked)) void mlf_board_fault(void)
{
#if __ARM_ARCH_ISA_THUMB == 1
    __asm__ volatile(".syntax unified\n\t"
                     "mov   r0, lr\n\t"
                     "lsrs  r0, r0, #3\n\t" /* bit 2: the stack of the exception frame */
                     "mrs   r0, psp\n\t"
                     "bcs   1f\n\t"
                     "mrs   r0, msp\n"
                     "1:\n\t"
                     "ldr   r1, =__fault_stack_top\n\t"
                     "mov   sp, r1\n\t"
                     "ldr   r1, =report_fault\n\t"
                     "bx    r1\n\t"
                     ".ltorg");
#else
    __asm__ volatile("tst   lr, #4\n\t" /* the stack of the exception frame */
                     "ite   eq\n\t"
                     "mrseq r0, msp\n\t"
                     "mrsne r0, psp\n\t"
                     "ldr   r1, =__fault_stack_top\n\t"
                     "mov   sp, r1\n\t"
                     "b     report_fault\n\t"
                     ".ltorg");
#endif
}

#endif /* MLF_STARTUP_CORTEX_M_H_ */
