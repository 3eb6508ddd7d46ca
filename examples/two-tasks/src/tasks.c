#include "tasks.h"

#if !defined(__ARM_ARCH_7M__) && !defined(__ARM_ARCH_7EM__) && !defined(__ARM_ARCH_8M_MAIN__) && \
    !defined(__ARM_ARCH_8_1M_MAIN__)
#error "Cortex-M3 and later: smaller cores save registers with other instructions"
#endif
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
#define HAS_STACK_LIMITS 1
#else
#define HAS_STACK_LIMITS 0
#endif

/* ---- Peripherals of the core --------------------------------------------------------------------------------- */

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define SYSTICK_CONTROL REGISTER(0xE000E010u)
#define SYSTICK_RELOAD REGISTER(0xE000E014u)
#define SYSTICK_VALUE REGISTER(0xE000E018u)
#define SYSTICK_ON 7u /* processor clock, interrupt, counter */
#define INTERRUPT_CONTROL REGISTER(0xE000ED04u)
#define PENDSV_SET (1u << 28)
#define PRIORITIES_12_TO_15 REGISTER(0xE000ED20u)
#define PENDSV_AND_SYSTICK_LOWEST 0xFFFF0000u

/* LR on entry to a handler: the handler interrupted a thread that uses the process stack */
#define RETURN_TO_THREAD 0xFFFFFFFDu /* and has used no floating-point register */
#define THUMB 0x01000000u            /* the bit of xPSR for Thumb code */

/* ---- Switching ----------------------------------------------------------------------------------------------- */

static struct task first;             /* main() */
static struct task *running = &first; /* only PendSV changes it */
static _Alignas(8) uint32_t handler_stack[256];

/* PendSV_Handler calls this on the stack of handlers, after it has saved the registers of the old task. */
__attribute__((used)) static uint32_t *next_task(uint32_t *stack_pointer)
{
    running->stack_pointer = stack_pointer;
    do {
        running = running->next;
    } while (running->over); /* main() never finishes */
    running->turns++;
#if HAS_STACK_LIMITS
    __asm__ volatile("msr psplim, %0" ::"r"(running->stack_limit));
#endif
    return running->stack_pointer;
}

/*
 * When the core enters this handler, it pushes r0-r3, r12, lr, pc and xPSR to the task's stack. If the task has used
 * the FPU (bit 4 of the handler's LR is 0), the core also reserves space for s0-s15 and FPSCR (and VPR, the mask of
 * vector instructions), but stores them only when the handler uses the FPU: lazy stacking. The vstm triggers this and
 * then saves s16-s31, the other half. For a task without floating point, none of this costs anything.
 */
__attribute__((naked)) void PendSV_Handler(void)
{
    __asm__ volatile(
        "mrs      r0, psp\n\t"
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
        "tst      lr, #0x10\n\t"
        "it       eq\n\t"
        "vstmdbeq r0!, {s16-s31}\n\t"
#endif
        "stmdb    r0!, {r4-r11, lr}\n\t" /* LR, too: its bit 4 belongs to this task */
        "bl       next_task\n\t"
        "ldmia    r0!, {r4-r11, lr}\n\t"
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
        "tst      lr, #0x10\n\t"
        "it       eq\n\t"
        "vldmiaeq r0!, {s16-s31}\n\t"
#endif
        "msr      psp, r0\n\t"
        "bx       lr");
}

void SysTick_Handler(void)
{
    task_yield();
}

/* PendSV has the lowest priority, so the switch happens after all other handlers have finished. */
void task_yield(void)
{
    INTERRUPT_CONTROL = PENDSV_SET;
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

/* ---- Starting ------------------------------------------------------------------------------------------------ */

void tasks_start(uint32_t cycles)
{
    first.next = &first;
    PRIORITIES_12_TO_15 |= PENDSV_AND_SYSTICK_LOWEST;
#if HAS_STACK_LIMITS
    __asm__ volatile("mrs %0, msplim" : "=r"(first.stack_limit));
    __asm__ volatile("msr psplim, %0" ::"r"(first.stack_limit));
#endif
    /* From here on the caller's stack is the process stack; handlers get a separate stack. */
    __asm__ volatile("mrs r0, msp\n\t"
                     "msr psp, r0\n\t"
                     "mrs r0, control\n\t"
                     "orr r0, r0, #2\n\t"
                     "msr control, r0\n\t"
                     "isb\n\t"
                     "msr msp, %0" ::"r"(handler_stack + sizeof handler_stack / sizeof handler_stack[0])
                     : "r0", "memory");
#if HAS_STACK_LIMITS
    __asm__ volatile("msr msplim, %0" ::"r"(handler_stack));
#endif
    SYSTICK_RELOAD = cycles - 1;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = SYSTICK_ON;
}

/* The function of a task returns to this one. */
static void end_task(void)
{
    running->over = 1;
    for (;;) {
        task_yield();
    }
}

void task_start(struct task *task, void (*function)(void *), void *argument, void *stack, size_t size)
{
    uint32_t *top = (uint32_t *)stack + size / 8 * 2;

    /* The values that the core pops when it switches to the task, */
    *--top = THUMB;
    *--top = (uint32_t)(uintptr_t)function & ~1u; /* pc */
    *--top = (uint32_t)(uintptr_t)end_task;       /* lr */
    top -= 4;                                     /* r12, r3, r2, r1 */
    *--top = (uint32_t)(uintptr_t)argument;       /* r0 */
    /* and those that PendSV_Handler pops before that. */
    *--top = RETURN_TO_THREAD;
    top -= 8; /* r11 to r4 */

    task->stack_pointer = top;
    task->stack_limit = stack;
    task->turns = 0;
    task->over = 0;
    __asm__ volatile("cpsid i" ::: "memory");
    task->next = first.next;
    first.next = task;
    __asm__ volatile("cpsie i" ::: "memory");
}
