/*
 * Receives blobs of parameters over the serial port. A request is a kind, a number of 32 bits, and for W so many bytes;
 * each is answered with 32 bits.
 *
 *   B size   erase a slot            W size   write a piece        E   check, test and use the blob
 *   V        version in use          S        slot in use, or -1   Z        start again, as after a reset
 *   R        the digit in the image that follows (64 bytes)        X   end with the exit status 0
 */
#include <stdint.h>

#include "slots.h"
#include "tvmgen_digits.h"
#include "uart.h"

enum { PIECE = 1024 };

static int32_t classify(const uint8_t *image)
{
    static int8_t stored[MLF_DIGITS_IMAGE_ELEMENTS];
    static int8_t probabilities[MLF_DIGITS_PROBABILITIES_ELEMENTS];
    struct tvmgen_digits_inputs inputs = {.image = stored};
    struct tvmgen_digits_outputs outputs = {.probabilities = probabilities};
    int32_t best = 0;
    for (unsigned i = 0; i < MLF_DIGITS_IMAGE_ELEMENTS; i++) {
        stored[i] = mlf_digits_quantize_image((float)image[i]);
    }
    if (tvmgen_digits_run(&inputs, &outputs) != 0) {
        return -1;
    }
    for (int32_t i = 1; i < MLF_DIGITS_PROBABILITIES_ELEMENTS; i++) {
        best = probabilities[i] > probabilities[best] ? i : best;
    }
    return best;
}

int main(void)
{
    static _Alignas(4) uint8_t piece[PIECE];
    (void)slots_start();
    uart_start();
    for (;;) {
        uint8_t kind;
        uint32_t number;
        int32_t answer = -1;
        uart_read(&kind, 1);
        uart_read(&number, sizeof number);
        if (kind == 'X') {
            return 0;
        }
        if (kind == 'B') {
            answer = slots_begin(number);
        } else if (kind == 'W' && number <= PIECE) {
            uart_read(piece, number);
            answer = slots_write(piece, number);
        } else if (kind == 'E') {
            answer = slots_end();
        } else if (kind == 'V') {
            answer = (int32_t)mlf_digits_parameters_version();
        } else if (kind == 'S') {
            answer = slots_used();
        } else if (kind == 'Z') {
            answer = slots_start();
        } else if (kind == 'R') {
            uart_read(piece, MLF_DIGITS_IMAGE_ELEMENTS);
            answer = classify(piece);
        }
        uart_write(&answer, sizeof answer);
    }
}
