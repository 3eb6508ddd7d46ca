/*
 * Classifies one image of each digit and prints the answers over the serial port. It ends with the number of wrong
 * answers, so that `mlfbuild run-firmware` knows the result; a product would go on.
 */
#include <stdint.h>

#include "board.h"
#include "samples.h"
#include "tvmgen_digits.h"

_Static_assert(MLF_DIGITS_IMAGE_ELEMENTS == SAMPLE_PIXELS, "the network reads another image size");

static void print(const char *text)
{
    while (*text != '\0') {
        board_put(*text++);
    }
}

static void print_digit(unsigned digit)
{
    board_put(digit < 10 ? (char)('0' + digit) : '?');
}

static unsigned index_of_largest(const int8_t *values, unsigned count)
{
    unsigned best = 0;
    for (unsigned i = 1; i < count; ++i) {
        if (values[i] > values[best]) {
            best = i;
        }
    }
    return best;
}

/* Return the digit that the network recognises, or a value greater than 9 if the network failed. */
static unsigned classify(const uint8_t *pixels)
{
    static int8_t image[MLF_DIGITS_IMAGE_ELEMENTS];
    static int8_t probabilities[MLF_DIGITS_PROBABILITIES_ELEMENTS];
    struct tvmgen_digits_inputs inputs = {.image = image};
    struct tvmgen_digits_outputs outputs = {.probabilities = probabilities};

    for (unsigned i = 0; i < SAMPLE_PIXELS; ++i) {
        image[i] = mlf_digits_quantize_image((float)pixels[i]);
    }
    if (tvmgen_digits_run(&inputs, &outputs) != 0) {
        return UINT8_MAX;
    }
    return index_of_largest(probabilities, MLF_DIGITS_PROBABILITIES_ELEMENTS);
}

int main(void)
{
    unsigned wrong = 0;

    board_init();
    print("answers ");
    for (unsigned i = 0; i < SAMPLES; ++i) {
        const unsigned answer = classify(samples[i].pixels);
        print_digit(answer);
        wrong += answer != samples[i].label;
    }
    print(wrong == 0 ? "\r\nall right\r\n" : "\r\nwrong\r\n");
    return (int)wrong;
}
