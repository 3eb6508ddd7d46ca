/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Start-up code of Cortex-A with Armv7-A: exception vectors, memory map, FPU and Neon, and the handling of faults. Only
 * startup.c includes it. The program runs in System mode with interrupts disabled.
 */
#ifndef MLF_STARTUP_CORTEX_A_H_
#define MLF_STARTUP_CORTEX_A_H_

/* ---- Exception vectors ----------------------------------------------------------------------------------------- */

/* To replace a handler, define a function with its name, which is that of CMSIS. */
#define REPLACEABLE __attribute__((weak, naked))
NO_CANARY void Undef_Handler(void) REPLACEABLE;
NO_CANARY void SVC_Handler(void) REPLACEABLE;
NO_CANARY void PAbt_Handler(void) REPLACEABLE;
NO_CANARY void DAbt_Handler(void) REPLACEABLE;
NO_CANARY void IRQ_Handler(void) REPLACEABLE;
NO_CANARY void FIQ_Handler(void) REPLACEABLE;

struct vector_table {
    uint32_t instructions[8];
    handler targets[8];
};

#define LOAD_PC 0xE59FF018u /* ldr pc, [pc, #24]: the target of the same exception, as pc is two instructions ahead */

extern const struct vector_table mlf_board_vectors;
__attribute__((section(".vectors"), used, aligned(32))) const struct vector_table mlf_board_vectors = {
    {LOAD_PC, LOAD_PC, LOAD_PC, LOAD_PC, LOAD_PC, LOAD_PC, LOAD_PC, LOAD_PC},
    {Reset_Handler, Undef_Handler, SVC_Handler, PAbt_Handler, DAbt_Handler, Undef_Handler, IRQ_Handler, FIQ_Handler},
};

/* ---- Reset --------------------------------------------------------------------------------------------------- */

#define MIB_SHIFT 20

/* The translation table. start() must not clear it, because it is in use then. */
static uint32_t sections[4096] __attribute__((aligned(16384), section(".bss.noinit.mlf_board_sections")));

/* Bits of a section descriptor, which maps one MiB to the same address. */
enum {
    SECTION = 2,
    DEVICE = SECTION | 1 << 2 | 3 << 10 | 1 << 4,                 /* read, write, never executed */
    READ_ONLY = SECTION | 1 << 12 | 3 << 2 | 1 << 10 | 1 << 15,   /* normal memory with caches */
    READ_WRITE = SECTION | 1 << 12 | 3 << 2 | 3 << 10
};

static uint32_t mapping(uint32_t mib)
{
    extern char __flash_start[], __flash_end[], __ram_start[], __ram_end[], __others_start[], __others_end[];
    const uintptr_t address = (uintptr_t)mib << MIB_SHIFT;
    if (address >= (uintptr_t)__flash_start && address < (uintptr_t)__flash_end) {
        return (uint32_t)address | READ_ONLY;
    }
    if ((address >= (uintptr_t)__ram_start && address < (uintptr_t)__ram_end) ||
        (address >= (uintptr_t)__others_start && address < (uintptr_t)__others_end)) {
        return (uint32_t)address | READ_WRITE;
    }
    return address >= 0x10000000u && address < 0x20000000u ? (uint32_t)address | DEVICE : 0; /* 0: a fault */
}

/* Without it all memory is of type Device, in which an unaligned access is a fault. The megabytes below the stack, the
   lowest part of RAM, are not mapped, so that an overflow is a fault. */
static void enable_memory_map(void)
{
    for (uint32_t mib = 0; mib < sizeof sections / sizeof sections[0]; mib++) {
        sections[mib] = mapping(mib);
    }
    uint32_t control;
    __asm__ volatile("dsb\n\t"
                     "mcr p15, 0, %1, c2, c0, 2\n\t" /* TTBCR: the table of TTBR0 for all addresses */
                     "mcr p15, 0, %2, c2, c0, 0\n\t" /* TTBR0 */
                     "mcr p15, 0, %3, c3, c0, 0\n\t" /* DACR: domain 0 checks permissions */
                     "mcr p15, 0, %1, c8, c7, 0\n\t" /* TLBIALL */
                     "mcr p15, 0, %1, c7, c5, 0\n\t" /* ICIALLU */
                     "dsb\n\tisb\n\t"
                     "mrc p15, 0, %0, c1, c0, 0\n\t" /* SCTLR */
                     : "=r"(control)
                     : "r"(0), "r"(sections), "r"(1)
                     : "memory");
    control |= 1u << 0 | 1u << 2 | 1u << 11 | 1u << 12; /* MMU, caches, branch prediction */
    control &= ~(1u << 1);                              /* unaligned accesses are no faults */
    __asm__ volatile("mcr p15, 0, %0, c1, c0, 0\n\tisb" ::"r"(control) : "memory");
}

static void enable_floating_point(void)
{
#if defined(__ARM_FP)
    uint32_t access;
    __asm__ volatile("mrc p15, 0, %0, c1, c0, 2" : "=r"(access));
    access |= 0xFu << 20; /* full access to coprocessors 10 and 11: FPU and Neon */
    __asm__ volatile("mcr p15, 0, %0, c1, c0, 2\n\tisb\n\t"
                     "vmsr fpexc, %1" ::"r"(access), "r"(1u << 30)
                     : "memory");
#endif
}

NO_CANARY __attribute__((used, noreturn)) static void set_up(void)
{
    __asm__ volatile("mcr p15, 0, %0, c12, c0, 0" ::"r"(&mlf_board_vectors)); /* VBAR */
    enable_floating_point();
    enable_memory_map();
    start();
}

NO_CANARY __attribute__((naked)) void Reset_Handler(void)
{
    __asm__ volatile("cpsid if, #0x1f\n\t" /* System mode */
                     "ldr   sp, =__stack_top\n\t"
                     "ldr   r0, =set_up\n\t"
                     "bx    r0\n\t"
                     ".ltorg");
}

/* ---- Faults -------------------------------------------------------------------------------------------------- */

enum fault { UNDEFINED_INSTRUCTION, SUPERVISOR_CALL, PREFETCH_ABORT, DATA_ABORT, INTERRUPT, FAST_INTERRUPT };

struct fault_frame {
    uint32_t cpsr, sp, lr, padding, r0, r1, r2, r3, r12, link;
};

/* The return address of the exception is behind the instruction. */
static uint32_t faulting_instruction(const struct fault_frame *frame, enum fault fault)
{
    const uint32_t thumb = frame->cpsr & 1u << 5;
    if (fault == UNDEFINED_INSTRUCTION || fault == SUPERVISOR_CALL) {
        return frame->link - (thumb ? 2 : 4);
    }
    return frame->link - (fault == DATA_ABORT ? 8 : 4);
}

/* Print the fault and stop. */
__attribute__((used, noreturn)) static void report_fault(const struct fault_frame *frame, enum fault fault)
{
    static const char *const names[] = {"undefined instruction", "SVC", "prefetch abort", "data abort", "IRQ", "FIQ"};
    const uint32_t limit = (uint32_t)(uintptr_t)__stack_limit, top = (uint32_t)(uintptr_t)__stack_top;
    uint32_t dfsr, dfar, ifsr, ifar;
    __asm__ volatile("mrc p15, 0, %0, c5, c0, 0\n\t"
                     "mrc p15, 0, %1, c6, c0, 0\n\t"
                     "mrc p15, 0, %2, c5, c0, 1\n\t"
                     "mrc p15, 0, %3, c6, c0, 2"
                     : "=r"(dfsr), "=r"(dfar), "=r"(ifsr), "=r"(ifar));
    semihosting_print("\nmlf_board: stopped by ");
    semihosting_print(names[fault]);
    semihosting_print(fault == DATA_ABORT && limit - dfar <= 1u << MIB_SHIFT ? ": stack overflow\n" : "\n");
    print_register("  pc ", faulting_instruction(frame, fault));
    print_register("  lr ", frame->lr);
    print_register("  cpsr", frame->cpsr);
    print_register("\n  r0 ", frame->r0);
    print_register("  r1 ", frame->r1);
    print_register("  r2  ", frame->r2);
    print_register("\n  r3 ", frame->r3);
    print_register("  r12", frame->r12);
    print_register("  sp  ", frame->sp);
    if (frame->sp < limit || frame->sp > top) {
        semihosting_print("\n  the stack pointer is outside the stack, which may be too small");
    }
    print_register("\n  DFSR", dfsr);
    print_register("  DFAR", dfar);
    print_register("  IFSR", ifsr);
    print_register("  IFAR", ifar);
    semihosting_print("\n");
    mlf_board_exit(MLF_BOARD_FAULT_STATUS);
}

/* The stack may be full or its pointer invalid, so the report uses a separate stack. */
#define REPORT(fault, mode)                                                                                            \
    __asm__ volatile("ldr  sp, =__fault_stack_top\n\t"                                                                 \
                     "push {r0-r3, r12, lr}\n\t"                                                                       \
                     "mrs  r0, spsr\n\t"                                                                               \
                     "cps  #0x1f\n\t" /* System mode has the program's registers */                                    \
                     "mov  r1, sp\n\t"                                                                                 \
                     "mov  r2, lr\n\t"                                                                                 \
                     "cps  #" mode "\n\t"                                                                              \
                     "push {r0-r3}\n\t"                                                                                \
                     "mov  r0, sp\n\t"                                                                                 \
                     "movs r1, %0\n\t"                                                                                 \
                     "ldr  r2, =report_fault\n\t"                                                                      \
                     "bx   r2\n\t"                                                                                     \
                     ".ltorg" ::"i"(fault))

void Undef_Handler(void)
{
    REPORT(UNDEFINED_INSTRUCTION, "0x1b");
}

void SVC_Handler(void)
{
    REPORT(SUPERVISOR_CALL, "0x13");
}

void PAbt_Handler(void)
{
    REPORT(PREFETCH_ABORT, "0x17");
}

void DAbt_Handler(void)
{
    REPORT(DATA_ABORT, "0x17");
}

void IRQ_Handler(void)
{
    REPORT(INTERRUPT, "0x12");
}

void FIQ_Handler(void)
{
    REPORT(FAST_INTERRUPT, "0x11");
}

#endif /* MLF_STARTUP_CORTEX_A_H_ */
