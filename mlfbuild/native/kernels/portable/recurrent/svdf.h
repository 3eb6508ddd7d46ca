/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * SVDF. Input [batches, inputs], feature weights [filters, inputs], time weights [filters, memory], output
 * [batches, units]; filters = units * rank. The state [batches, filters, memory] keeps the last features of each
 * filter, the latest last, and is updated in place:
 *
 *   row(f) = row(f)[1:], feature(f) . input
 *   output(u) = bias(u) + sum over the filters f of u: time(f) . row(f)
 *
 * A new feature first replaces the oldest one of its row. Then one pass shifts the row by one element and adds up its
 * product.
 *
 * The int8 kernels expect zero points folded in: that of the input in the bias of the filters, that of the state in
 * the bias of the units.
 */
#ifndef MLF_SVDF_H_
#define MLF_SVDF_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dot.h"
#include "dot_1x4.h"
#include "dsp.h"
#include "requantize.h"

struct mlf_svdf_shape {
    int32_t batches;
    int32_t inputs;
    int32_t units;
    int32_t rank;
    int32_t memory;
};

struct mlf_svdf {
    struct mlf_rescale feature;
    struct mlf_rescale output;
    int32_t state_zero_point;
    int32_t output_zero_point;
};

#if defined(MLF_MVE)

/*
 * Shift a row by one element, its first feature to the end, and add its product with the weights. Rounds of 4
 * instructions process 16 bytes: features are read and stored one element before.
 */
#define MLF_SVDF_ROW(name, type, bits, size)                                                                           \
    MLF_KERNEL uint32_t mlf_svdf_row_##name(uint32_t sum, type *row, const type *weights, int32_t memory)              \
    {                                                                                                                  \
        const type latest = row[0];                                                                                    \
        if (memory > 1) {                                                                                              \
            const type *from = row + 1;                                                                                \
            type *to = row;                                                                                            \
            const type *factors = weights;                                                                             \
            __asm__ volatile("dlstp." bits " lr, %[count]\n"                                                           \
                             "1:\n vldr" size ".u" bits " q0, [%[from]], #16\n"                                        \
                             " vldr" size ".u" bits " q1, [%[factors]], #16\n"                                         \
                             " vstr" size "." bits " q0, [%[to]], #16\n"                                               \
                             " vmladava.s" bits " %[sum], q0, q1\n"                                                    \
                             "letp lr, 1b\n"                                                                           \
                             : [sum] "+Te"(sum), [from] "+r"(from), [to] "+r"(to), [factors] "+r"(factors)             \
                             : [count] "r"(memory - 1)                                                                 \
                             : "lr", "q0", "q1", "memory");                                                            \
        }                                                                                                              \
        row[memory - 1] = latest;                                                                                      \
        return sum + (uint32_t)((int32_t)latest * weights[memory - 1]);                                                \
    }

MLF_SVDF_ROW(int8, int8_t, "8", "b")
MLF_SVDF_ROW(int16, int16_t, "16", "h")

#else

#if MLF_DSP_ASM

/* Add the products of the four or two features in a word, by which a row is shifted. */
MLF_KERNEL uint32_t mlf_svdf_products_int8(uint32_t sum, uint32_t word, const int8_t *weights)
{
    uint32_t even;
    uint32_t odd;
    __asm__("sxtb16 %0, %2\n\t"
            "sxtb16 %1, %2, ror #8"
            : "=&r"(even), "=r"(odd)
            : "r"(word));
    return mlf_four_products_dsp(even, odd, weights, sum);
}

MLF_KERNEL uint32_t mlf_svdf_products_int16(uint32_t sum, uint32_t word, const int16_t *weights)
{
    uint32_t factors;
    memcpy(&factors, weights, sizeof factors);
    __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(word), "r"(factors));
    return sum;
}

#define MLF_SVDF_WORDS(name, type)                                                                                     \
    for (; i + (int32_t)(4 / sizeof(type)) < memory; i += (int32_t)(4 / sizeof(type))) {                               \
        uint32_t word;                                                                                                 \
        memcpy(&word, row + i + 1, sizeof word);                                                                       \
        memcpy(row + i, &word, sizeof word);                                                                           \
        sum = mlf_svdf_products_##name(sum, word, weights + i);                                                        \
    }

#else

#define MLF_SVDF_WORDS(name, type)

#endif

/* Shift a row by one element, its first feature to the end, and add its product with the weights. */
#define MLF_SVDF_ROW(name, type)                                                                                       \
    MLF_KERNEL uint32_t mlf_svdf_row_##name(uint32_t sum, type *row, const type *weights, int32_t memory)              \
    {                                                                                                                  \
        const type latest = row[0];                                                                                    \
        int32_t i = 0;                                                                                                 \
        MLF_SVDF_WORDS(name, type)                                                                                     \
        for (; i < memory - 1; i++) {                                                                                  \
            row[i] = row[i + 1];                                                                                       \
            sum += (uint32_t)((int32_t)row[i] * weights[i]);                                                           \
        }                                                                                                              \
        row[memory - 1] = latest;                                                                                      \
        return sum + (uint32_t)((int32_t)latest * weights[memory - 1]);                                                \
    }

MLF_SVDF_ROW(int8, int8_t)
MLF_SVDF_ROW(int16, int16_t)

#endif

/* Define mlf_svdf_<name> with a state and time weights of `type`, whose limits are given. */
#define MLF_SVDF(name, type, least, greatest)                                                                          \
    MLF_KERNEL type mlf_svdf_feature_##name(uint32_t sum, const struct mlf_svdf *svdf)                                 \
    {                                                                                                                  \
        const uint32_t value = (uint32_t)mlf_rescale_value(sum, &svdf->feature) + (uint32_t)svdf->state_zero_point;    \
        return (type)mlf_clamp((int32_t)value, least, greatest);                                                       \
    }                                                                                                                  \
                                                                                                                       \
    /* Write the feature of each filter to the start of its row. */                                                    \
    MLF_KERNEL void mlf_svdf_features_##name(const struct mlf_svdf_shape *shape, const struct mlf_svdf *svdf,          \
                                             const int8_t *input, const int8_t *feature, const int32_t *bias,          \
                                             type *rows)                                                               \
    {                                                                                                                  \
        const int32_t inputs = shape->inputs;                                                                          \
        const int32_t memory = shape->memory;                                                                          \
        const int32_t filters = shape->units * shape->rank;                                                            \
        int32_t f = 0;                                                                                                 \
        for (; f + 4 <= filters; f += 4) {                                                                             \
            struct mlf_int32x4 sum = {(uint32_t)bias[f], (uint32_t)bias[f + 1], (uint32_t)bias[f + 2],                 \
                                      (uint32_t)bias[f + 3]};                                                          \
            sum = mlf_dot_1x4_row_int8(sum, input, feature + f * inputs, inputs);                                      \
            rows[f * memory] = mlf_svdf_feature_##name(sum.v0, svdf);                                                  \
            rows[(f + 1) * memory] = mlf_svdf_feature_##name(sum.v1, svdf);                                            \
            rows[(f + 2) * memory] = mlf_svdf_feature_##name(sum.v2, svdf);                                            \
            rows[(f + 3) * memory] = mlf_svdf_feature_##name(sum.v3, svdf);                                            \
        }                                                                                                              \
        for (; f < filters; f++) {                                                                                     \
            const uint32_t sum = mlf_dot_int8((uint32_t)bias[f], input, feature + f * inputs, inputs);                 \
            rows[f * memory] = mlf_svdf_feature_##name(sum, svdf);                                                     \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_svdf_##name(const struct mlf_svdf_shape *shape, const struct mlf_svdf *svdf,                   \
                                    const int8_t *input, const int8_t *feature, const int32_t *feature_bias,           \
                                    const type *time, const int32_t *bias, type *state, int8_t *output)                \
    {                                                                                                                  \
        for (int32_t batch = 0; batch < shape->batches; batch++) {                                                     \
            const type *weights = time;                                                                                \
            mlf_svdf_features_##name(shape, svdf, input, feature, feature_bias, state);                                \
            for (int32_t unit = 0; unit < shape->units; unit++) {                                                      \
                uint32_t sum = (uint32_t)bias[unit];                                                                   \
                for (int32_t i = 0; i < shape->rank; i++) {                                                            \
                    sum = mlf_svdf_row_##name(sum, state, weights, shape->memory);                                     \
                    state += shape->memory;                                                                            \
                    weights += shape->memory;                                                                          \
                }                                                                                                      \
                sum = (uint32_t)mlf_rescale_value(sum, &svdf->output) + (uint32_t)svdf->output_zero_point;             \
                *output++ = (int8_t)mlf_saturate_int8((int32_t)sum);                                                   \
            }                                                                                                          \
            input += shape->inputs;                                                                                    \
        }                                                                                                              \
    }

MLF_SVDF(int8, int8_t, INT8_MIN, INT8_MAX)
MLF_SVDF(int16, int16_t, INT16_MIN, INT16_MAX)

/* As mlf_svdf_features_int8. */
MLF_KERNEL void mlf_svdf_features_float(const struct mlf_svdf_shape *shape, const float *input, const float *feature,
                                        float *rows)
{
    const int32_t inputs = shape->inputs;
    const int32_t memory = shape->memory;
    const int32_t filters = shape->units * shape->rank;
    int32_t f = 0;
    for (; f + 4 <= filters; f += 4) {
        struct mlf_float32x4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
        sum = mlf_dot_1x4_row_float(sum, input, feature + f * inputs, inputs);
        rows[f * memory] = sum.v0;
        rows[(f + 1) * memory] = sum.v1;
        rows[(f + 2) * memory] = sum.v2;
        rows[(f + 3) * memory] = sum.v3;
    }
    for (; f < filters; f++) {
        rows[f * memory] = mlf_dot_float(0.0f, input, feature + f * inputs, inputs);
    }
}

/* As mlf_svdf_row_int8. */
MLF_KERNEL float mlf_svdf_row_float(float sum, float *row, const float *weights, int32_t memory)
{
    const float latest = row[0];
    for (int32_t i = 0; i < memory - 1; i++) {
        row[i] = row[i + 1];
        sum += row[i] * weights[i];
    }
    row[memory - 1] = latest;
    return sum + latest * weights[memory - 1];
}

MLF_KERNEL void mlf_svdf_float(const struct mlf_svdf_shape *shape, struct mlf_float_range range, const float *input,
                               const float *feature, const float *time, const float *bias, float *state, float *output)
{
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const float *weights = time;
        mlf_svdf_features_float(shape, input, feature, state);
        for (int32_t unit = 0; unit < shape->units; unit++) {
            float sum = bias[unit];
            for (int32_t i = 0; i < shape->rank; i++) {
                sum = mlf_svdf_row_float(sum, state, weights, shape->memory);
                state += shape->memory;
                weights += shape->memory;
            }
            *output++ = mlf_clamp_float(sum, range);
        }
        input += shape->inputs;
    }
}

#endif /* MLF_SVDF_H_ */
