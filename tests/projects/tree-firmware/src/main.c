/* Runs two models on inputs that are a pattern and prints what comes out. */
#include <stdint.h>
#include <stdio.h>

#include "tvmgen_alpha.h"
#include "tvmgen_beta.h"

enum { CASES = 3, INPUTS = 8, OUTPUTS = 4 };

static void print(const char *model, const int8_t *values)
{
    printf("%s:", model);
    for (int i = 0; i < OUTPUTS; i++) {
        printf(" %d", values[i]);
    }
    printf("\n");
}

int main(void)
{
    for (int n = 0; n < CASES; n++) {
        int8_t input[INPUTS], output[OUTPUTS];
        for (int i = 0; i < INPUTS; i++) {
            input[i] = (int8_t)(37 * n + 11 * i);
        }
        struct tvmgen_alpha_inputs alpha_inputs = {input};
        struct tvmgen_alpha_outputs alpha_outputs = {output};
        if (tvmgen_alpha_run(&alpha_inputs, &alpha_outputs) != 0) {
            return 1;
        }
        print("alpha", output);
        struct tvmgen_beta_inputs beta_inputs = {input};
        struct tvmgen_beta_outputs beta_outputs = {output};
        if (tvmgen_beta_run(&beta_inputs, &beta_outputs) != 0) {
            return 1;
        }
        print("beta", output);
    }
    return 0;
}
