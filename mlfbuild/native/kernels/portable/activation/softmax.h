/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * SOFTMAX over the last dimension: exp(beta * (x - max)) divided by the sum over the row. Input and output
 * [rows, depth]; the output may overwrite the input.
 */
#ifndef MLF_SOFTMAX_H_
#define MLF_SOFTMAX_H_

#include <stdint.h>

#include "compiler.h"
#include "fixed_point.h"
#include "float_math.h"
#include "requantize.h"
#include "unary.h"

/* The difference from the maximum, times rescale, is Q5.26; below least_difference its exponential counts as 0. */
struct mlf_softmax_quantization {
    struct mlf_rescale rescale;
    int32_t least_difference;
};

/* Return exp of the difference of a stored value from the row's maximum, as Q0.31. */
MLF_KERNEL int32_t mlf_softmax_exp(const struct mlf_softmax_quantization *quantization, int32_t difference)
{
    return mlf_exp_q31(mlf_rescale_value((uint32_t)difference, &quantization->rescale));
}

MLF_KERNEL int32_t mlf_softmax_greatest_int8(const int8_t *input, int32_t depth)
{
    int32_t greatest = INT8_MIN;
    for (int32_t i = 0; i < depth; i++) {
        greatest = input[i] > greatest ? input[i] : greatest;
    }
    return greatest;
}

/* Return the sum of the exponentials of a row minus its greatest value, as Q12.19. */
MLF_KERNEL uint32_t mlf_softmax_sum(int32_t depth, const struct mlf_softmax_quantization *quantization,
                                    const int8_t *input, int32_t greatest)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i < depth; i++) {
        const int32_t difference = input[i] - greatest;
        if (difference >= quantization->least_difference) {
            sum += (uint32_t)mlf_shift_right(mlf_softmax_exp(quantization, difference), 12);
        }
    }
    return sum;
}

/*
 * The first pass over a row sums its exponentials, the second one computes them again. They are one loop, because the
 * exponential is 300 bytes of code. It rounds from 31 fraction bits to those of the output's type.
 */
#define MLF_SOFTMAX_INT8(name, type, bits, minimum, maximum)                                                           \
    MLF_KERNEL void name(int32_t rows, int32_t depth, const struct mlf_softmax_quantization *quantization,             \
                         const int8_t *input, type *output)                                                            \
    {                                                                                                                  \
        for (int32_t row = 0; row < rows; row++) {                                                                     \
            const int32_t greatest = mlf_softmax_greatest_int8(input, depth);                                          \
            uint32_t sum = 0;                                                                                          \
            int32_t scale = 0, exponent = 32;                                                                          \
            for (int32_t i = -depth; i < depth; i++) {                                                                 \
                const int32_t place = i < 0 ? i + depth : i;                                                           \
                const int32_t difference = input[place] - greatest;                                                    \
                int32_t power = 0;                                                                                     \
                if (difference >= quantization->least_difference) {                                                    \
                    power = mlf_softmax_exp(quantization, difference);                                                 \
                }                                                                                                      \
                if (i < 0) {                                                                                           \
                    sum += (uint32_t)mlf_shift_right(power, 12);                                                       \
                    continue;                                                                                          \
                }                                                                                                      \
                if (i == 0) {                                                                                          \
                    const int32_t leading = mlf_leading_zeros(sum);                                                    \
                    scale = mlf_reciprocal_q31((int32_t)((sum << leading) - (UINT32_C(1) << 31)));                     \
                    exponent = 43 - (bits) - leading;                                                                  \
                }                                                                                                      \
                power = exponent <= 31 ? mlf_shift_right(mlf_multiply_high(power, scale), exponent) : 0;               \
                output[i] = (type)mlf_clamp(power + (minimum), minimum, maximum);                                      \
            }                                                                                                          \
            input += depth;                                                                                            \
            output += depth;                                                                                           \
        }                                                                                                              \
    }

MLF_SOFTMAX_INT8(mlf_softmax_int8, int8_t, 8, INT8_MIN, INT8_MAX)
MLF_SOFTMAX_INT8(mlf_softmax_int8_int16, int16_t, 16, INT16_MIN, INT16_MAX)

/* A row of int16: the output holds the exponentials, with 15 fraction bits, until their sum is known. */
MLF_KERNEL void mlf_softmax_row_int16(int32_t depth, const struct mlf_rescale *rescale, const int16_t *exponentials,
                                      const int16_t *reciprocals, const int16_t *input, int16_t *output)
{
    int32_t greatest = INT16_MIN;
    for (int32_t i = 0; i < depth; i++) {
        greatest = input[i] > greatest ? input[i] : greatest;
    }
    uint32_t sum = 0;
    for (int32_t i = 0; i < depth; i++) {
        const int32_t place = mlf_rescale_value((uint32_t)(input[i] - greatest), rescale) + INT16_MAX;
        const int32_t power = mlf_lookup_value_int16(exponentials, mlf_clamp(place, INT16_MIN, INT16_MAX));
        output[i] = (int16_t)power;
        sum += (uint32_t)power;
    }
    const int32_t shift = 31 - mlf_leading_zeros(sum);
    const int32_t one = (int32_t)((((uint64_t)sum << (30 - shift)) + (1 << 13)) >> 14) - (3 << 15);
    const int32_t reciprocal = mlf_lookup_value_int16(reciprocals, mlf_clamp(one, INT16_MIN, INT16_MAX));
    for (int32_t i = 0; i < depth; i++) {
        const int32_t share = (int32_t)(((int64_t)output[i] * reciprocal + (INT64_C(1) << (shift - 1))) >> shift);
        output[i] = (int16_t)mlf_clamp(share, 0, INT16_MAX);
    }
}

/* The tables hold e^x for x from -10 to 0, and 1 / (1 + x) for x from 0 to 1. */
MLF_KERNEL void mlf_softmax_int16(int32_t rows, int32_t depth, const struct mlf_rescale *rescale,
                                  const int16_t *exponentials, const int16_t *reciprocals, const int16_t *input,
                                  int16_t *output)
{
    for (int32_t row = 0; row < rows; row++) {
        mlf_softmax_row_int16(depth, rescale, exponentials, reciprocals, input + row * depth, output + row * depth);
    }
}

/* LOG_SOFTMAX, whose output has 4 fraction bits: back rescales a Q5.26 difference to one of stored values. */
MLF_KERNEL void mlf_log_softmax_int8(int32_t rows, int32_t depth, const struct mlf_softmax_quantization *quantization,
                                     const struct mlf_rescale *back, const int8_t *input, int8_t *output)
{
    for (int32_t row = 0; row < rows; row++) {
        const int32_t greatest = mlf_softmax_greatest_int8(input, depth);
        const int32_t logarithm = mlf_log_q26((int32_t)mlf_softmax_sum(depth, quantization, input, greatest));
        const int32_t bound = mlf_rescale_value((uint32_t)logarithm + (UINT32_C(1) << 31), back);
        const int32_t least = quantization->least_difference - 1 > bound ? quantization->least_difference - 1 : bound;
        for (int32_t i = 0; i < depth; i++) {
            const int32_t difference = input[i] - greatest;
            int32_t value = INT8_MIN;
            if (difference > least) {
                const int32_t scaled = mlf_rescale_value((uint32_t)difference, &quantization->rescale);
                value = mlf_clamp(mlf_shift_right(scaled - logarithm, 22) + INT8_MAX, INT8_MIN, INT8_MAX);
            }
            output[i] = (int8_t)value;
        }
        input += depth;
        output += depth;
    }
}

MLF_KERNEL void mlf_softmax_row_float(int32_t depth, float beta, const float *input, float *output)
{
    float greatest = input[0];
    for (int32_t i = 1; i < depth; i++) {
        greatest = input[i] > greatest ? input[i] : greatest;
    }
    float sum = 0.0f;
    for (int32_t i = 0; i < depth; i++) {
        output[i] = mlf_float_exp_negative((input[i] - greatest) * beta);
        sum += output[i];
    }
    for (int32_t i = 0; i < depth; i++) {
        output[i] /= sum;
    }
}

MLF_KERNEL void mlf_softmax_float(int32_t rows, int32_t depth, float beta, const float *input, float *output)
{
    for (int32_t row = 0; row < rows; row++) {
        mlf_softmax_row_float(depth, beta, input + row * depth, output + row * depth);
    }
}

/* LOG_SOFTMAX: x - max - ln(sum of exp(x - max)). */
MLF_KERNEL void mlf_log_softmax_float(int32_t rows, int32_t depth, const float *input, float *output)
{
    for (int32_t row = 0; row < rows; row++) {
        float greatest = input[0];
        for (int32_t i = 1; i < depth; i++) {
            greatest = input[i] > greatest ? input[i] : greatest;
        }
        float sum = 0.0f;
        for (int32_t i = 0; i < depth; i++) {
            sum += mlf_float_exp_negative(input[i] - greatest);
        }
        const float logarithm = mlf_float_log(sum);
        for (int32_t i = 0; i < depth; i++) {
            output[i] = input[i] - greatest - logarithm;
        }
        input += depth;
        output += depth;
    }
}

#endif /* MLF_SOFTMAX_H_ */
