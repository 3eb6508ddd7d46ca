/*
 * Tasks that are switched at every tick, on Cortex-M3 and later: the minimum of an RTOS that shows its effect on a
 * network.
 *
 * main() becomes a task itself and keeps its stack. When the function of a task returns, the task has finished.
 */
#ifndef TASKS_H
#define TASKS_H

#include <stddef.h>
#include <stdint.h>

struct task {
    uint32_t *stack_pointer; /* of a waiting task: its saved registers */
    uint32_t *stack_limit;   /* the lowest word it may use; Armv8-M cores check it */
    struct task *next;       /* all tasks form a ring */
    volatile unsigned turns; /* how often the task was resumed */
    volatile int over;
};

/* Turns the caller into the first task and starts the tick, with a period of `cycles` (below 2^24) processor clocks. */
void tasks_start(uint32_t cycles);

/* Adds a task that calls function(argument); `size` is its stack size in bytes, and `stack` is aligned to 8. */
void task_start(struct task *task, void (*function)(void *), void *argument, void *stack, size_t size);

/* Lets the next task run for the rest of the tick. */
void task_yield(void);

#endif /* TASKS_H */
