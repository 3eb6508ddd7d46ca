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

/* A weight as a factor modulo 2**64; if none is negative, a product is one multiplication of 32 bits by 32. */
MLF_KERNEL uint64_t mlf_weight(int16_t weight, int32_t negative)
{
    return negative ? (uint64_t)(int64_t)weight : (uint32_t)(uint16_t)weight;
}

/* `negative` is whether any weight is. */
MLF_KERNEL void mlf_signal_filter_bank(const struct mlf_filter_bank *bank, int32_t negative, const uint32_t *input,
                                       uint64_t *output)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i <= bank->channels; i++) {
        const uint32_t *energies = input + bank->starts[i];
        const int16_t *weights = bank->weights + bank->firsts[i];
        const int16_t *others = bank->others + bank->firsts[i];
        uint64_t next = 0;
        for (int32_t j = bank->widths[i]; j > 0; j--) {
            const uint64_t energy = *energies++;
            sum += mlf_weight(*weights++, negative) * energy;
            next += mlf_weight(*others++, negative) * energy;
        }
        if (i > 0) {
            output[i - 1] = sum;
        }
        sum = next;
    }
}

/* The number of bits of a value. */
MLF_KERNEL int32_t mlf_bits(uint32_t value)
{
#if defined(__GNUC__)
    return value == 0 ? 0 : 32 - __builtin_clz(value);
#else
    int32_t bits = 0;
    for (; value != 0; value >>= 1) {
        bits++;
    }
    return bits;
#endif
}

/*
 * The root of a value of 31 or 32 bits, rounded down. The upper half of its bits is the root of the upper half. Half of
 * what is left, divided by it, is the lower half, or 1 more, as in "Karatsuba Square Root" by Zimmermann.
 */
MLF_KERNEL uint32_t mlf_root_of_word(uint32_t value)
{
    uint32_t rest = value >> 16;
    uint32_t root = 0;
    for (uint32_t bit = 1u << 14; bit != 0; bit >>= 2) {
        const uint32_t next = root + bit;
        root >>= 1;
        if (rest >= next) {
            rest -= next;
            root += bit;
        }
    }
    const uint32_t low = (rest << 7 | (value >> 9 & 0x7Fu)) / root;
    root = (root << 8) + (low < UINT8_MAX ? low : UINT8_MAX);
    return root * root > value ? root - 1 : root;
}

/* The nearest root that 16 bits hold, or 32 if the value has more than 32 bits: see mlf_root_of_word. */
MLF_KERNEL uint32_t mlf_square_root(uint64_t value)
{
    if (value >> 32 == 0) {
        const uint32_t word = (uint32_t)value;
        if (word == 0) {
            return 0;
        }
        const int32_t shift = (32 - mlf_bits(word)) & 30;
        const uint32_t root = mlf_root_of_word(word << shift) >> shift / 2;
        return root + (uint32_t)(word - root * root > root && root != UINT16_MAX);
    }
    const int32_t shift = (32 - mlf_bits((uint32_t)(value >> 32))) & 30;
    const uint64_t shifted = value << shift;
    const uint32_t upper = (uint32_t)(shifted >> 32);
    const uint32_t high = mlf_root_of_word(upper);
    const uint32_t low = ((upper - high * high) << 15 | (uint32_t)(shifted >> 17 & 0x7FFFu)) / high;
    uint64_t root = ((uint64_t)high << 16) + (low < UINT16_MAX ? low : UINT16_MAX);
    if (root * root > shifted) {
        root--;
    }
    root >>= shift / 2;
    return (uint32_t)root + (uint32_t)(value - root * root > root && root != UINT32_MAX);
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

/* Interpolate a gain with a polynomial of degree 2 for each number of bits, and 10 fraction bits in between. */
MLF_KERNEL int16_t mlf_gain(uint32_t level, const int16_t *gains)
{
    if (level <= 2) {
        return gains[level];
    }
    const int32_t bits = mlf_bits(level);
    const int16_t *factors = gains + 4 * bits - 6;
    const int32_t fraction = (int32_t)((bits < 11 ? level << (11 - bits) : level >> (bits - 11)) & 0x3FFu);
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
