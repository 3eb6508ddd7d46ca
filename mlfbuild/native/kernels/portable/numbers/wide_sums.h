/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Layers of int16 activations and int8 weights: sums of products, and their rescaling to int16 with the output's scale.
 *
 * Sums are exact in 64 bits. A product has at most 23 bits, so partial sums of up to MLF_PRODUCTS_INT16 products are
 * added in 32 bits. A sum is rescaled in one of three ways; TensorFlow Lite Micro chooses wide or narrow by the type of
 * the bias:
 *
 *   wide     bias and sum have 64 bits, the factor's multiplier has 15, and the product is rounded once
 *   fine     of ONNX networks: sum and bias fit into 32 bits, the factor has 32 bits after the point, and the product is
 *            rounded once
 *   narrow   the sum and an int32 bias are taken modulo 2^32 and rescaled as in layers of int8
 */
#ifndef MLF_WIDE_SUMS_H_
#define MLF_WIDE_SUMS_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

#define MLF_PRODUCTS_INT16 511

/* A rescaling by multiplier / 2^right_shift; the multiplier has 15 bits, the shift is 8 to 46. */
struct mlf_wide_rescale {
    int16_t multiplier;
    int16_t right_shift;
};

/* The bias of one output channel, in two words so that 4-byte alignment suffices, and the rescaling of its sum. */
struct mlf_wide_channel {
    uint32_t bias_low;
    int32_t bias_high;
    struct mlf_wide_rescale rescale;
};

/* The bias of one output channel, and the factor of its sum times 2^32, less than 2^31. */
struct mlf_fine_channel {
    int32_t bias;
    int32_t multiplier;
};

/* The clamp of a fused activation on stored values. */
struct mlf_int16_range {
    int32_t minimum;
    int32_t maximum;
};

/* Sums of four output channels. */
struct mlf_int64x4 {
    int64_t v0, v1, v2, v3;
};

/* Return sum, which is less than 2^47, times the factor of rescale, rounded to nearest, ties upward. */
MLF_KERNEL int32_t mlf_rescale_wide(int64_t sum, const struct mlf_wide_rescale *rescale)
{
    const int64_t half = INT64_C(1) << (rescale->right_shift - 1);
    return (int32_t)((sum * rescale->multiplier + half) >> rescale->right_shift);
}

/* Convert the sum of an output channel to the stored output. */
MLF_KERNEL int16_t mlf_finish_wide(int64_t sum, const struct mlf_wide_channel *channel, struct mlf_int16_range range)
{
    const int64_t bias = (int64_t)((uint64_t)(uint32_t)channel->bias_high << 32 | channel->bias_low);
    return (int16_t)mlf_clamp(mlf_rescale_wide(sum + bias, &channel->rescale), range.minimum, range.maximum);
}

MLF_KERNEL int16_t mlf_finish_fine(int64_t sum, const struct mlf_fine_channel *channel, struct mlf_int16_range range)
{
    const int32_t total = (int32_t)sum + channel->bias;
    const int32_t value = (int32_t)(((int64_t)total * channel->multiplier + (INT64_C(1) << 31)) >> 32);
    return (int16_t)mlf_clamp(value, range.minimum, range.maximum);
}

MLF_KERNEL int16_t mlf_finish_narrow(int64_t sum, const struct mlf_channel *channel, struct mlf_int16_range range)
{
    const uint32_t total = (uint32_t)sum + (uint32_t)channel->bias;
    return (int16_t)mlf_clamp(mlf_rescale_value(total, &channel->rescale), range.minimum, range.maximum);
}

/* Add the inner product of contiguous memory to sum. */
MLF_KERNEL int64_t mlf_dot_int16(int64_t sum, const int16_t *input, const int8_t *weights, int32_t count)
{
    for (int32_t start = 0; start < count; start += MLF_PRODUCTS_INT16) {
        const int32_t end = count - start > MLF_PRODUCTS_INT16 ? start + MLF_PRODUCTS_INT16 : count;
        int32_t part = 0;
        for (int32_t i = start; i < end; i++) {
            part += input[i] * weights[i];
        }
        sum += part;
    }
    return sum;
}

/* As mlf_dot_int16 for four output channels; the weights of channel c start at weights + c * pitch. */
MLF_KERNEL struct mlf_int64x4 mlf_dot_1x4_int16(struct mlf_int64x4 sum, const int16_t *input, const int8_t *weights,
                                                int32_t pitch, int32_t count)
{
    for (int32_t start = 0; start < count; start += MLF_PRODUCTS_INT16) {
        const int32_t end = count - start > MLF_PRODUCTS_INT16 ? start + MLF_PRODUCTS_INT16 : count;
        int32_t v0 = 0;
        int32_t v1 = 0;
        int32_t v2 = 0;
        int32_t v3 = 0;
        for (int32_t i = start; i < end; i++) {
            const int32_t value = input[i];
            v0 += value * weights[i];
            v1 += value * weights[i + pitch];
            v2 += value * weights[i + 2 * pitch];
            v3 += value * weights[i + 3 * pitch];
        }
        sum.v0 += v0;
        sum.v1 += v1;
        sum.v2 += v2;
        sum.v3 += v3;
    }
    return sum;
}

#endif /* MLF_WIDE_SUMS_H_ */
