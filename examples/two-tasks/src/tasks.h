/*
 * Tasks that take turns at every tick, on Cortex-M3 and later: as little of an RTOS as shows what one does to a network.
 *
 * main() becomes a task itself, on the stack it has. A task that returns from its function is over.
 */
#ifndef TASKS_H
#define TASKS_H

#include <stddef.h>
#include <stdint.h>

struct task {
    uint32_t *stack_pointer; /* of a task that waits: where its registers are */
    uint32_t *stack_limit;   /* the lowest word it may use; checked by cores of Armv8-M */
    struct task *next;       /* all tasks stand in a ring */
    volatile unsigned turns; /* how often the core came back to it */
    volatile int over;
};

/* Turn the caller into the first task and start the tick: one every `cycles` of the processor clock, below 2^24. */
void tasks_start(uint32_t cycles);

/* Add a task that calls function(argument); `size` is that of its stack in bytes, `stack` is aligned to 8. */
void task_start(struct task *task, void (*function)(void *), void *argument, void *stack, size_t size);

/* Give the rest of the turn to the next task. */
void task_yield(void);

#endif /* TASKS_H */
