/* Draw a digit, and print the class that the quantised network finds. */
#include <stdio.h>

#include "tvmgen_digits.h"

int main(void)
{
    static int8_t image[TVMGEN_DIGITS_IMAGE_SIZE], probabilities[TVMGEN_DIGITS_PROBABILITIES_SIZE];
    for (unsigned i = 0; i < TVMGEN_DIGITS_IMAGE_SIZE; i++) {
        const unsigned column = i % 8; /* a vertical line */
        image[i] = mlf_digits_quantize_image(column == 3 || column == 4 ? 16.0f : 0.0f);
    }
    struct tvmgen_digits_inputs inputs = {image};
    struct tvmgen_digits_outputs outputs = {probabilities};
    if (tvmgen_digits_run(&inputs, &outputs) != 0) {
        return 1;
    }
    unsigned best = 0;
    for (unsigned i = 1; i < TVMGEN_DIGITS_PROBABILITIES_SIZE; i++) {
        best = probabilities[i] > probabilities[best] ? i : best;
    }
    printf("this is a %u\n", best);
    return 0;
}
