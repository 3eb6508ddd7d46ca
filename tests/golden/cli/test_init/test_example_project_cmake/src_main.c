/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Runs `tones` on the case in sample.h and prints the outputs.
 * Exit status 0: all outputs are as expected.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sample.h"
#include "tvmgen_tones.h"

#define SHOWN 8 /* the number of elements of an output to print */

/* Print an output; return the number of elements that differ from `expected`, or 0 if `expected` is NULL. */
static unsigned show_int8(const char *name, const int8_t *values, const int8_t *expected, unsigned count)
{
    unsigned wrong = 0;
    printf("%s:", name);
    for (unsigned i = 0; i < count; i++) {
        if (i < SHOWN) {
            printf(" %ld", (long)values[i]);
        }
        wrong += expected != NULL && values[i] != expected[i];
    }
    printf("%s\n", count > SHOWN ? " ..." : "");
    return wrong;
}

static unsigned run_tones(void)
{
    static int8_t in_samples[MLF_TONES_SAMPLES_ELEMENTS];
    static int8_t out_probabilities[MLF_TONES_PROBABILITIES_ELEMENTS];
    struct tvmgen_tones_inputs inputs = {.samples = in_samples};
    struct tvmgen_tones_outputs outputs = {.probabilities = out_probabilities};
    unsigned wrong = 0;
    _Static_assert(sizeof in_samples == TVMGEN_TONES_SAMPLES_SIZE, "samples has another size");
    _Static_assert(sizeof in_samples == sizeof sample_in_samples, "sample.h is for another model");
    _Static_assert(sizeof out_probabilities == TVMGEN_TONES_PROBABILITIES_SIZE, "probabilities has another size");
    _Static_assert(sizeof out_probabilities == sizeof sample_out_probabilities, "sample.h is for another model");

    /* The sample; put your own data there. */
    memcpy(in_samples, sample_in_samples, sizeof in_samples);
    if (tvmgen_tones_run(&inputs, &outputs) != 0) {
        printf("tones: the network did not run\n");
        return 1;
    }
    wrong += show_int8("tones probabilities", out_probabilities, sample_out_probabilities, MLF_TONES_PROBABILITIES_ELEMENTS);
    return wrong;
}

int main(void)
{
    unsigned wrong = 0;
    wrong += run_tones();
    printf("%s\n", wrong == 0 ? "PASS" : "FAIL");
    return wrong == 0 ? 0 : 1;
}
