/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Int16 samples before a Fourier transform, and its spectrum. */
#ifndef MLF_SPECTRUM_H_
#define MLF_SPECTRUM_H_

#include <stdint.h>

#include "compiler.h"

/* Input and output [count, size]; state [count, length], the samples that were read and not yet written. */
MLF_KERNEL void mlf_signal_delay(int32_t count, int32_t size, int32_t length, const int16_t *input, int16_t *state,
                                 int16_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = 0; j < size; j++) {
            output[j] = j < length ? state[j] : input[j - length];
        }
        for (int32_t j = 0; j < length; j++) {
            state[j] = j + size < length ? state[j + size] : input[j + size - length];
        }
        input += size;
        output += size;
        state += length;
    }
}

MLF_KERNEL int32_t mlf_saturated_int16(int32_t value)
{
    return value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value;
}

/* Input and output [count, size], weights [size]. */
MLF_KERNEL void mlf_signal_window(int32_t count, int32_t size, int32_t shift, const int16_t *input,
                                  const int16_t *weights, int16_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = 0; j < size; j++) {
            *output++ = (int16_t)mlf_saturated_int16((int32_t)*input++ * weights[j] >> shift);
        }
    }
}

/* The number of bits by which a magnitude can be shifted left. */
MLF_KERNEL int32_t mlf_spare_bits(int32_t greatest)
{
    int32_t bits = 0;
    if (greatest > 0) {
        while (greatest < 1 << 14) {
            greatest *= 2;
            bits++;
        }
    }
    return bits;
}

/*
 * The greatest magnitude. That of -32768 is not an int16: it becomes a maximum of -32768, which is below every element
 * after it, as in TensorFlow Lite Micro.
 */
MLF_KERNEL int32_t mlf_greatest_magnitude(int32_t count, const int16_t *input)
{
    int32_t greatest = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = input[i];
        if (value > greatest) {
            greatest = value;
        } else if (-value > greatest) {
            greatest = value == INT16_MIN ? value : -value;
        }
    }
    return greatest;
}

MLF_KERNEL void mlf_signal_fft_auto_scale(int32_t count, const int16_t *input, int16_t *output, int32_t *exponent)
{
    const int32_t bits = mlf_spare_bits(mlf_greatest_magnitude(count, input));
    for (int32_t i = 0; i < count; i++) {
        output[i] = (int16_t)(uint16_t)((uint32_t)input[i] << bits);
    }
    *exponent = bits;
}

/* Input [.., 2], the real and the imaginary part; output [count], 0 outside start to end. */
MLF_KERNEL void mlf_signal_energy(int32_t start, int32_t end, int32_t count, const int16_t *input, uint32_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        output[i] = 0;
    }
    for (int32_t i = start; i < end; i++) {
        const int32_t real = input[2 * i];
        const int32_t imaginary = input[2 * i + 1];
        output[i] = (uint32_t)(real * real) + (uint32_t)(imaginary * imaginary);
    }
}

#endif /* MLF_SPECTRUM_H_ */
