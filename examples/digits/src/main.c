/*
 * Classifies handwritten digits that were not used for training, and prints the score beside that of TensorFlow Lite
 * Micro on the computer that trained the network. The exit status is 0 if all answers are the same.
 */
#include <stdint.h>
#include <stdio.h>

#include "test_split.h"
#include "tvmgen_digits.h"

_Static_assert(MLF_DIGITS_IMAGE_ELEMENTS == TEST_SPLIT_PIXELS, "the network reads another image size");

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

/* Returns the digit that the network recognises, or a value greater than 9 if the network failed. */
static unsigned classify(const uint8_t *pixels)
{
    static int8_t image[MLF_DIGITS_IMAGE_ELEMENTS];
    static int8_t probabilities[MLF_DIGITS_PROBABILITIES_ELEMENTS];
    struct tvmgen_digits_inputs inputs = {.image = image};
    struct tvmgen_digits_outputs outputs = {.probabilities = probabilities};

    for (unsigned i = 0; i < TEST_SPLIT_PIXELS; ++i) {
        image[i] = mlf_digits_quantize_image((float)pixels[i]);
    }
    if (tvmgen_digits_run(&inputs, &outputs) != 0) {
        return UINT8_MAX;
    }
    return index_of_largest(probabilities, MLF_DIGITS_PROBABILITIES_ELEMENTS);
}

static void print_score(const char *who, unsigned right)
{
    const unsigned hundredths = (right * 10000u + TEST_SPLIT_SIZE / 2u) / TEST_SPLIT_SIZE;
    printf("%-8s %u of %u right, %u.%02u %%\n", who, right, TEST_SPLIT_SIZE, hundredths / 100, hundredths % 100);
}

int main(void)
{
    unsigned device_right = 0;
    unsigned host_right = 0;
    unsigned same = 0;

    for (unsigned i = 0; i < TEST_SPLIT_SIZE; ++i) {
        const struct test_image *test = &test_split[i];
        const unsigned answer = classify(test->pixels);
        device_right += answer == test->label;
        host_right += test->host == test->label;
        same += answer == test->host;
    }

    printf("%u images that training never saw, arena of %u bytes\n", TEST_SPLIT_SIZE,
           (unsigned)TVMGEN_DIGITS_WORKSPACE_SIZE);
    print_score("device", device_right);
    print_score("host", host_right);
    printf("Test_result: %s\n", same == TEST_SPLIT_SIZE ? "PASS" : "FAIL");
    return same == TEST_SPLIT_SIZE ? 0 : 1;
}
