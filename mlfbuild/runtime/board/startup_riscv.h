/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Start-up code of 32-bit RISC-V in machine mode: reset, thread-local storage, memory protection, and the handling of
 * faults. Only startup.c includes it.
 */
#ifndef MLF_STARTUP_RISCV_H_
#define MLF_STARTUP_RISCV_H_

/* The extension of the registers for control and status, which -march=rv32imc leaves out. */
#define WITH_CSR(instructions) ".option push\n\t.option arch, +zicsr\n\t" instructions "\n\t.option pop"

/* ---- Reset --------------------------------------------------------------------------------------------------- */

/* The processor starts at its first word. The size is that of the other architectures' vector tables. */
struct vector_table {
    uint32_t instructions[4];
    handler reset;
    uint32_t unused[11];
};

extern const struct vector_table mlf_board_vectors;
__attribute__((section(".vectors"), used)) const struct vector_table mlf_board_vectors = {
    {
        0x00000297u, /* auipc t0, 0 */
        0x0102A283u, /* lw t0, 16(t0) */
        0x00028067u, /* jr t0 */
        0,
    },
    Reset_Handler,
    {0},
};

/* The variables of the only thread, such as picolibc's errno; virt.ld checks the size. */
__attribute__((aligned(16), used, section(".bss.noinit.mlf_board_thread"))) static char mlf_board_thread[256];

static void set_up_thread_local_storage(void)
{
    extern char __tls_data_start[], __tls_data_end[];
    memset(mlf_board_thread, 0, sizeof mlf_board_thread);
    memcpy(mlf_board_thread, __tls_data_start, (size_t)(__tls_data_end - __tls_data_start));
}

/* Deny writes to code and constants, also to machine mode. They are below the stack, the lowest part of RAM, so that an
   overflow is a fault. */
static void protect_memory(void)
{
    extern char __flash_start[], __flash_end[];
    const uint32_t first = (uint32_t)(uintptr_t)__flash_start >> 2, behind = (uint32_t)(uintptr_t)__flash_end >> 2;
    const uint32_t read = 1, execute = 4, from_the_address_before = 1u << 3, locked = 1u << 7;
    const uint32_t entry = read | execute | from_the_address_before | locked;
    __asm__ volatile(WITH_CSR("csrw pmpaddr0, %0\n\t"
                              "csrw pmpaddr1, %1\n\t"
                              "csrw pmpcfg0, %2") ::"r"(first),
                     "r"(behind), "r"(entry << 8)
                     : "memory");
}

NO_CANARY __attribute__((used, noreturn)) static void set_up(void)
{
    protect_memory();
    set_up_thread_local_storage();
    start();
}

NO_CANARY __attribute__((naked)) void Reset_Handler(void)
{
    __asm__ volatile(".option push\n\t"
                     ".option norelax\n\t"
                     "la   gp, __global_pointer$\n\t"
                     ".option pop\n\t"
                     "la   sp, __stack_top\n\t"
                     "la   tp, mlf_board_thread\n\t"
                     "la   t0, mlf_board_trap\n\t"
                     WITH_CSR("csrw mtvec, t0") "\n\t"
                     "tail set_up");
}

/* ---- Faults -------------------------------------------------------------------------------------------------- */

struct trap_frame {
    uint32_t ra, a0, a1, a2, a3, a4, a5, sp;
};

static const char *trap_name(uint32_t cause)
{
    static const char *const names[] = {
        "instruction address misaligned", "instruction access fault", "illegal instruction", "breakpoint",
        "load address misaligned", "load access fault", "store address misaligned", "store access fault",
    };
    if (cause >> 31 != 0) {
        return "an interrupt without a handler";
    }
    return cause < sizeof names / sizeof names[0] ? names[cause] : "environment call";
}

/* Print the fault and stop. */
__attribute__((used, noreturn)) static void report_fault(const struct trap_frame *frame)
{
    const uint32_t limit = (uint32_t)(uintptr_t)__stack_limit, top = (uint32_t)(uintptr_t)__stack_top;
    const uint32_t store_access_fault = 7, mib = 1u << 20;
    uint32_t cause, pc, value;
    __asm__ volatile(WITH_CSR("csrr %0, mcause\n\t"
                              "csrr %1, mepc\n\t"
                              "csrr %2, mtval")
                     : "=r"(cause), "=r"(pc), "=r"(value));
    semihosting_print("\nmlf_board: stopped by ");
    semihosting_print(trap_name(cause));
    semihosting_print(cause == store_access_fault && limit - value <= mib ? ": stack overflow\n" : "\n");
    print_register("  pc ", pc);
    print_register("  ra ", frame->ra);
    print_register("  sp  ", frame->sp);
    print_register("\n  a0 ", frame->a0);
    print_register("  a1 ", frame->a1);
    print_register("  a2  ", frame->a2);
    print_register("\n  a3 ", frame->a3);
    print_register("  a4 ", frame->a4);
    print_register("  a5  ", frame->a5);
    if (frame->sp < limit || frame->sp > top) {
        semihosting_print("\n  the stack pointer is outside the stack, which may be too small");
    }
    print_register("\n  mcause", cause);
    print_register("  mtval", value);
    semihosting_print("\n");
    mlf_board_exit(MLF_BOARD_FAULT_STATUS);
}

/* To replace the handler, define a function with this name, aligned to four bytes. The stack may be full or its pointer
   invalid, so the report uses a separate stack. */
NO_CANARY __attribute__((weak, naked, aligned(4))) void mlf_board_trap(void)
{
    __asm__ volatile(WITH_CSR("csrw mscratch, sp") "\n\t"
                     "la   sp, __fault_stack_top\n\t"
                     "addi sp, sp, -32\n\t"
                     "sw   ra, 0(sp)\n\t"
                     "sw   a0, 4(sp)\n\t"
                     "sw   a1, 8(sp)\n\t"
                     "sw   a2, 12(sp)\n\t"
                     "sw   a3, 16(sp)\n\t"
                     "sw   a4, 20(sp)\n\t"
                     "sw   a5, 24(sp)\n\t"
                     WITH_CSR("csrr a0, mscratch") "\n\t"
                     "sw   a0, 28(sp)\n\t"
                     "mv   a0, sp\n\t"
                     "tail report_fault");
}

#endif /* MLF_STARTUP_RISCV_H_ */
