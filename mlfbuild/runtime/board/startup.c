/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * From reset to main(): vector table, floating point, memory, and the handling of faults.
 *
 * Symbols with two leading underscores come from mlf_board.ld.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mlf_board.h"
#include "semihosting.h"

typedef void (*handler)(void);

/* For functions that begin before the C library has chosen the canary of -fstack-protector, and for assembly. */
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define NO_CANARY __attribute__((no_stack_protector))
#endif
#endif
#if !defined(NO_CANARY)
#define NO_CANARY
#endif

extern uint32_t __stack_limit[], __stack_top[], __fault_stack_top[];
extern char __data_start[], __data_end[], __data_load[];
extern char __bss_start[], __bss_end[], __dtcm_start[], __dtcm_end[];
extern const handler __init_array_start[], __init_array_end[];

int main(int argc, char **argv);

/* ---- Vector table -------------------------------------------------------------------------------------------- */

NO_CANARY void Reset_Handler(void) __attribute__((noreturn));
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

static char command_line[256];
static char *arguments[16];

/* Split the command line at spaces (QEMU does not quote words) and return the number of words. */
static int read_arguments(void)
{
    const int most = (int)(sizeof arguments / sizeof arguments[0]) - 1; /* argv ends with a null pointer */
    int count = 0;
    if (semihosting_command_line(command_line, sizeof command_line) != 0) {
        return 0;
    }
    for (char *at = command_line; *at != '\0' && count < most; at++) {
        if (*at == ' ') {
            *at = '\0';
        } else if (at == command_line || at[-1] == '\0') {
            arguments[count++] = at;
        }
    }
    return count;
}

#ifdef MLF_HOST_LINK
/* Replace it to set up clocks, wait states and caches of a device: the key `setup` of a runner. */
void mlf_board_setup(void);
__attribute__((weak)) void mlf_board_setup(void)
{
}
#endif

/* Not inlined: before Reset_Handler has enabled them, no floating-point or vector instruction may run. */
NO_CANARY __attribute__((noinline, noreturn)) static void start(void)
{
    memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
    memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
    memset(__dtcm_start, 0, (size_t)(__dtcm_end - __dtcm_start));
    for (const handler *constructor = __init_array_start; constructor != __init_array_end; constructor++) {
        (*constructor)();
    }
#ifdef MLF_HOST_LINK
    mlf_board_setup();
#endif
    exit(main(read_arguments(), arguments));
}

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
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
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

void Reset_Handler(void)
{
    use_own_vectors();
    enable_floating_point();
    guard_stack();
    start();
}

/* C++ objects with static storage identify their image by the address of this variable. */
void *__dso_handle;

/* ---- Faults -------------------------------------------------------------------------------------------------- */

struct exception_frame {
    uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

static void print_register(const char *name, uint32_t value)
{
    char text[] = " 0x00000000";
    for (int digit = 0; digit < 8; digit++) {
        text[10 - digit] = "0123456789abcdef"[(value >> (4 * digit)) & 0xF];
    }
    semihosting_print(name);
    semihosting_print(text);
}

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
