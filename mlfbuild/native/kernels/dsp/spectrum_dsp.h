/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Windows, scaling and energies of spectrum.h, two int16 numbers at a time, on cores with the DSP extension. */
#ifndef MLF_SPECTRUM_DSP_H_
#define MLF_SPECTRUM_DSP_H_

#include <stdint.h>
#include <string.h>

#include "dsp.h"
#include "spectrum.h"

/* A number of 16 bits in the lower half; the upper one has its sign. */
MLF_KERNEL uint32_t mlf_saturated_dsp(int32_t value)
{
#if MLF_DSP_ASM
    uint32_t result;
    __asm__("ssat %0, #16, %1" : "=r"(result) : "r"(value));
    return result;
#else
    return (uint32_t)mlf_saturated_int16(value);
#endif
}

/* Input and output [count, size], weights [size]. */
MLF_KERNEL void mlf_signal_window_dsp(int32_t count, int32_t size, int32_t shift, const int16_t *input,
                                      const int16_t *weights, int16_t *output)
{
    for (; count > 0; count--) {
        const int16_t *weight = weights;
        for (int32_t j = size / 2; j > 0; j--) {
            uint32_t samples, factors;
            memcpy(&samples, input, sizeof samples);
            memcpy(&factors, weight, sizeof factors);
            const int32_t low = (int16_t)(uint16_t)samples * (int16_t)(uint16_t)factors;
            const int32_t high = (int16_t)(uint16_t)(samples >> 16) * (int16_t)(uint16_t)(factors >> 16);
            const uint32_t pair =
                (mlf_saturated_dsp(low >> shift) & 0xFFFFu) | mlf_saturated_dsp(high >> shift) << 16;
            memcpy(output, &pair, sizeof pair);
            input += 2;
            weight += 2;
            output += 2;
        }
        if (size % 2 != 0) {
            *output++ = (int16_t)mlf_saturated_int16(*input++ * *weight >> shift);
        }
    }
}

/* Make `greatest` and `least` those of their halves and of `pair`. */
MLF_KERNEL void mlf_extremes_dsp(uint32_t pair, uint32_t *greatest, uint32_t *least)
{
#if MLF_DSP_ASM
    uint32_t difference;
    __asm__("ssub16 %[difference], %[pair], %[greatest]\n\t"
            "sel %[greatest], %[pair], %[greatest]\n\t"
            "ssub16 %[difference], %[least], %[pair]\n\t"
            "sel %[least], %[pair], %[least]\n\t"
            : [greatest] "+&r"(*greatest), [least] "+&r"(*least), [difference] "=&r"(difference)
            : [pair] "r"(pair)
            : "cc");
#else
    for (int32_t shift = 0; shift <= 16; shift += 16) {
        const int16_t value = (int16_t)(uint16_t)(pair >> shift);
        const uint32_t others = shift == 0 ? 0xFFFF0000u : 0xFFFFu;
        if (value > (int16_t)(uint16_t)(*greatest >> shift)) {
            *greatest = (*greatest & others) | (pair & ~others);
        }
        if (value < (int16_t)(uint16_t)(*least >> shift)) {
            *least = (*least & others) | (pair & ~others);
        }
    }
#endif
}

MLF_KERNEL void mlf_signal_fft_auto_scale_dsp(int32_t count, const int16_t *input, int16_t *output, int32_t *exponent)
{
    const int32_t whole = count & ~1;
    const int32_t last = count % 2 != 0 ? input[whole] : 0;
    uint32_t high = (uint16_t)(last > 0 ? last : 0);
    uint32_t low = (uint16_t)(last < 0 ? last : 0);
    for (int32_t i = 0; i < whole; i += 2) {
        uint32_t pair;
        memcpy(&pair, input + i, sizeof pair);
        mlf_extremes_dsp(pair, &high, &low);
    }
    int32_t greatest = 0;
    for (int32_t shift = 0; shift <= 16; shift += 16) {
        const int32_t positive = (int16_t)(uint16_t)(high >> shift);
        const int32_t negative = -(int16_t)(uint16_t)(low >> shift);
        greatest = positive > greatest ? positive : greatest;
        greatest = negative > greatest ? negative : greatest;
    }
    const int32_t bits = mlf_spare_bits(greatest > INT16_MAX ? mlf_greatest_magnitude(count, input) : greatest);
    for (int32_t i = 0; i < whole; i += 2) {
        uint32_t pair;
        memcpy(&pair, input + i, sizeof pair);
        pair = (pair << bits & 0xFFFFu) | (pair & 0xFFFF0000u) << bits;
        memcpy(output + i, &pair, sizeof pair);
    }
    if (whole != count) {
        output[whole] = (int16_t)(uint16_t)((uint32_t)last << bits);
    }
    *exponent = bits;
}

/* The sum of the squares of both halves. */
MLF_KERNEL uint32_t mlf_squares_dsp(uint32_t halves)
{
#if MLF_DSP_ASM
    uint32_t result;
    __asm__("smuad %0, %1, %1" : "=r"(result) : "r"(halves));
    return result;
#else
    const int32_t real = (int16_t)(uint16_t)halves;
    const int32_t imaginary = (int16_t)(uint16_t)(halves >> 16);
    return (uint32_t)(real * real) + (uint32_t)(imaginary * imaginary);
#endif
}

/* Input [.., 2], the real and the imaginary part; output [count], 0 outside start to end. */
MLF_KERNEL void mlf_signal_energy_dsp(int32_t start, int32_t end, int32_t count, const int16_t *input, uint32_t *output)
{
    memset(output, 0, (size_t)start * sizeof *output);
    memset(output + end, 0, (size_t)(count - end) * sizeof *output);
    for (int32_t i = start; i < end; i++) {
        uint32_t parts;
        memcpy(&parts, input + 2 * i, sizeof parts);
        output[i] = mlf_squares_dsp(parts);
    }
}

#endif /* MLF_SPECTRUM_DSP_H_ */
