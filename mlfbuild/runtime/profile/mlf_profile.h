/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Cycles of the runs of verify.c on a device: part of verify.c if verify_module.h defines MODULE_OPERATORS.
 *
 *   MODULE_OPERATORS                         number of the operators; 0 if the module calls no hook
 *   MODULE_RUN_HOOKED(inputs, outputs, pools, hook) call the module with a hook, if it has operators
 *
 * Runs alternate: one is timed as a whole, in the next one a hook notes the time before each operator. After the
 * outputs of each run, `cycles` is written to the file; the host subtracts what taking a time costs. Inputs are read
 * again before each run.
 */
#ifndef MLF_PROFILE_H_
#define MLF_PROFILE_H_

#include <stdint.h>

#include "mlf_cycles.h"

enum { EXIT_COUNTER = 16 /* and the reason, as mlf_cycles_refusal */, SAMPLES = 8, PACE_ROUNDS = 10000 };

static struct {
    uint32_t operators; /* of the module in a run with hooks, otherwise 0 */
    uint32_t pace;      /* cycles of PACE_ROUNDS rounds of mlf_cycles_spin */
    uint32_t reads[SAMPLES + 1]; /* times that were taken one after the other */
    uint32_t hooks[SAMPLES + 1]; /* times that a hook took, called like before operators that do nothing */
    uint32_t began, ended;
    uint32_t times[MODULE_OPERATORS > SAMPLES ? MODULE_OPERATORS : SAMPLES + 1]; /* before each operator */
} cycles;

static int32_t note_time(void *context, uint32_t operator_index)
{
    (void)context;
    cycles.times[operator_index] = mlf_cycles_now();
    return 0;
}

typedef int32_t time_hook(void *context, uint32_t operator_index);
static time_hook *volatile any_hook = note_time; /* volatile: the compiler must not know which function is called */

/* Call the hook as generated code does. */
#define ASK(index)                                       \
    if (hook != 0) {                                     \
        const int32_t code = hook(context, (index));     \
        if (code != 0) {                                 \
            return code;                                 \
        }                                                \
    }

__attribute__((noinline)) static int32_t run_nothing(time_hook *hook, void *context)
{
    ASK(0) ASK(1) ASK(2) ASK(3) ASK(4) ASK(5) ASK(6) ASK(7) ASK(8)
    return 0;
}

static void measure_overhead(void)
{
    for (uint32_t i = 0; i <= SAMPLES; i++) {
        cycles.reads[i] = mlf_cycles_now();
    }
    (void)run_nothing(any_hook, 0);
    for (uint32_t i = 0; i <= SAMPLES; i++) {
        cycles.hooks[i] = cycles.times[i];
    }
    const uint32_t began = mlf_cycles_now();
    mlf_cycles_spin(PACE_ROUNDS);
    cycles.pace = mlf_cycles_now() - began;
}

#endif /* MLF_PROFILE_H_ */
