/*
 * From reset to main() on any Cortex-M: the vector table, the FPU, .data and .bss. Interrupts are not used; a device
 * with interrupts has the rest of its table here, from the vendor's start-up file.
 *
 * Symbols with two leading underscores come from cortex-m.ld.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uint32_t __stack_top[];
extern char __data_start[], __data_end[], __data_load[], __bss_start[], __bss_end[];

int main(void);
void Reset_Handler(void) __attribute__((noreturn));
void HardFault_Handler(void) __attribute__((noreturn));
void _exit(int status) __attribute__((noreturn));

struct vectors {
    uint32_t *initial_stack_pointer;
    void (*exceptions[15])(void);
};

extern const struct vectors vectors;
__attribute__((section(".vectors"), used)) const struct vectors vectors = {
    __stack_top,
    {Reset_Handler, HardFault_Handler, HardFault_Handler, HardFault_Handler, HardFault_Handler, HardFault_Handler, 0, 0,
     0, 0, HardFault_Handler, HardFault_Handler, 0, HardFault_Handler, HardFault_Handler},
};

/* Not inlined: before Reset_Handler has enabled them, no floating-point instruction may run. */
__attribute__((noinline, noreturn)) static void start(void)
{
    if (&__data_start[0] != &__data_load[0]) { /* an image in flash */
        memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
    }
    memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
    _exit(main());
}

void Reset_Handler(void)
{
    *(volatile uint32_t *)0xE000ED08u = (uint32_t)(uintptr_t)&vectors; /* VTOR: the image may be in RAM */
#if defined(__ARM_FP)
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: full access to the FPU */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
    start();
}

/* A debugger stops here; `mlfbuild` then reads the registers. */
void HardFault_Handler(void)
{
    for (;;) {
    }
}

/* The end of the program. `mlfbuild run-firmware` stops here and reads the status. */
__attribute__((noinline, used)) void _exit(int status)
{
    for (;;) {
        __asm__ volatile("" ::"r"(status) : "memory");
    }
}
