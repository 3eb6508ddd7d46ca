/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The filter banks of signal processing: SignalFilterBank and the operators after it, on the energies of channels.
 *
 * Integers are rounded and wrap around as in TensorFlow Lite Micro.
 */
#ifndef MLF_FILTER_BANK_H_
#define MLF_FILTER_BANK_H_

#include <stdint.h>

#include "compiler.h"

/* Arrays of channels + 1 bands; the band i weighs inputs with `weights`, and the next one the same with `others`. */
struct mlf_filter_bank {
    int32_t channels;
    const int16_t *weights;
    const int16_t *others;
    const int16_t *starts;
    const int16_t *firsts;
    const int16_t *widths;
};

MLF_KERNEL void mlf_signal_filter_bank(const struct mlf_filter_bank *bank, const uint32_t *input, uint64_t *output)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i <= bank->channels; i++) {
        uint64_t next = 0;
        for (int32_t j = 0; j < bank->widths[i]; j++) {
            const uint64_t energy = input[bank->starts[i] + j];
            sum += (uint64_t)(int64_t)bank->weights[bank->firsts[i] + j] * energy;
            next += (uint64_t)(int64_t)bank->others[bank->firsts[i] + j] * energy;
        }
        if (i > 0) {
            output[i - 1] = sum;
        }
        sum = next;
    }
}

/* The nearest root that 16 bits hold, or 32 if the value has more than 32 bits. */
MLF_KERNEL uint32_t mlf_square_root(uint64_t value)
{
    const uint32_t greatest = value >> 32 != 0 ? UINT32_MAX : UINT16_MAX;
    uint64_t root = 0;
    uint64_t bit = value >> 32 != 0 ? (uint64_t)1 << 62 : (uint64_t)1 << 30;
    while (bit > value) {
        bit >>= 2;
    }
    for (; bit != 0; bit >>= 2) {
        if (value >= root + bit) {
            value -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return (uint32_t)root + (uint32_t)(value > root && root != greatest);
}

/* A shift by more than 31 bits, or by a negative number, gives 0. */
MLF_KERNEL void mlf_signal_filter_bank_square_root(int32_t count, const uint64_t *input, const int32_t *bits,
                                                   uint32_t *output)
{
    const uint32_t shift = (uint32_t)*bits;
    for (int32_t i = 0; i < count; i++) {
        output[i] = shift > 31 ? 0 : mlf_square_root(input[i]) >> shift;
    }
}

/* Factors of channels with even and with odd numbers. */
struct mlf_spectral_subtraction {
    uint32_t smoothing[2];
    uint32_t rest[2];
    uint32_t floor;
    int32_t smoothing_bits;
    int32_t bits;
    int32_t clamping;
};

MLF_KERNEL void mlf_signal_filter_bank_spectral_subtraction(const struct mlf_spectral_subtraction *subtraction,
                                                            int32_t count, const uint32_t *input, uint32_t *state,
                                                            uint32_t *noise, uint32_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        const uint32_t value = input[i];
        const uint32_t scaled = value << subtraction->smoothing_bits;
        const uint64_t sum = (uint64_t)scaled * subtraction->smoothing[i % 2] +
                             (uint64_t)state[i] * subtraction->rest[i % 2];
        const uint32_t estimate = (uint32_t)(sum >> subtraction->bits);
        const uint32_t part = estimate < scaled ? estimate : scaled;
        const uint32_t left = (scaled - part) >> subtraction->smoothing_bits;
        const uint32_t floor = (uint32_t)((uint64_t)value * subtraction->floor >> subtraction->bits);
        state[i] = subtraction->clamping ? part : estimate;
        noise[i] = state[i];
        output[i] = left > floor ? left : floor;
    }
}

/* The number of bits of a positive value. */
MLF_KERNEL int32_t mlf_bits(uint32_t value)
{
    int32_t bits = 0;
    for (; value != 0; value >>= 1) {
        bits++;
    }
    return bits;
}

/* Interpolate a gain with a polynomial of degree 2 for each number of bits, and 10 fraction bits in between. */
MLF_KERNEL int16_t mlf_gain(uint32_t level, const int16_t *gains)
{
    if (level <= 2) {
        return gains[level];
    }
    const int32_t bits = mlf_bits(level);
    const int16_t *factors = gains + 4 * bits - 6;
    const int32_t fraction = (int32_t)((bits < 11 ? level << (11 - bits) : level >> (bits - 11)) & 0x3FF);
    int32_t value = (factors[2] * fraction >> 5) + factors[1] * 32;
    value = (value * fraction + (1 << 14)) >> 15;
    return (int16_t)(uint16_t)(uint32_t)(value + factors[0]);
}

/* Square ratios below 2 of energy and noise, which have 12 fraction bits; the output has 6. */
MLF_KERNEL void mlf_signal_pcan(int32_t count, int32_t shift, const uint32_t *input, const uint32_t *noise,
                                const int16_t *gains, uint32_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        const uint32_t gain = (uint32_t)(int32_t)mlf_gain(noise[i], gains);
        const uint32_t ratio = (uint32_t)((uint64_t)input[i] * gain >> shift);
        output[i] = ratio < (uint32_t)2 << 12 ? ratio * ratio >> 20 : (ratio >> 6) - (1u << 6);
    }
}

/* table[i] is log2(1 + x) - x for x = i / 128, with 16 fraction bits. */
MLF_KERNEL uint32_t mlf_natural_logarithm(uint32_t value, const uint16_t *table)
{
    const int32_t bits = mlf_bits(value) - 1;
    const uint32_t rest = value - ((uint32_t)1 << bits);
    const int32_t fraction = (int32_t)(bits < 16 ? rest << (16 - bits) : rest >> (bits - 16));
    const int32_t at = fraction >> 9;
    const int32_t step = (int32_t)table[at + 1] - table[at];
    const int32_t binary = (bits << 16) + fraction + table[at] + (step * (fraction & 511) >> 16);
    return (uint32_t)((UINT64_C(45426) * (uint32_t)binary + (1u << 15)) >> 16);
}

MLF_KERNEL void mlf_signal_filter_bank_log(int32_t count, int32_t correction, uint32_t scale, const uint16_t *table,
                                           const uint32_t *input, int16_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        const uint32_t value = input[i] << correction;
        uint32_t result = 0;
        if (value > 1) {
            result = (scale * mlf_natural_logarithm(value, table) + (1u << 15)) >> 16;
        }
        output[i] = (int16_t)(result < INT16_MAX ? result : INT16_MAX);
    }
}

#endif /* MLF_FILTER_BANK_H_ */
