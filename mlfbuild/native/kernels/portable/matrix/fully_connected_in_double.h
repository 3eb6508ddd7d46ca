/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FULLY_CONNECTED of uint8 networks, whose values are stored lower by 128. Shapes as in fully_connected.h.
 *
 *   output(o) = round(scale * (bias(o) + sum of input * weights(o) - weight zero point * sum of input))
 *
 * The scale is a double, of which integers hold all 53 bits, and a product is rounded once, half away from zero. The
 * bias contains the product of the input's zero point and the weights without their zero point.
 */
#ifndef MLF_FULLY_CONNECTED_IN_DOUBLE_H_
#define MLF_FULLY_CONNECTED_IN_DOUBLE_H_

#include <stdint.h>

#include "compiler.h"
#include "dot.h"
#include "dot_1x4.h"
#include "fully_connected.h"
#include "requantize.h"

/* (high * 2^27 + low) / 2^(shift + 27); shift is at least 1 and at most 63. */
struct mlf_double_scale {
    uint32_t high; /* 26 bits */
    uint32_t low;  /* 27 bits */
    int32_t shift;
};

/* Return the stored output of a sum, whose product with the scale fits in 32 bits. */
MLF_KERNEL int8_t mlf_scale_once(uint32_t sum, const struct mlf_double_scale *scale,
                                 const struct mlf_quantization *quantization)
{
    const int negative = (int32_t)sum < 0;
    const uint32_t magnitude = negative ? 0U - sum : sum;
    const uint64_t product = (uint64_t)magnitude * scale->high + ((uint64_t)magnitude * scale->low >> 27);
    const int32_t rounded = (int32_t)((product + (UINT64_C(1) << (scale->shift - 1))) >> scale->shift);
    const int32_t value = (negative ? -rounded : rounded) + quantization->output_zero_point;
    return (int8_t)mlf_clamp(value, quantization->minimum, quantization->maximum);
}

MLF_KERNEL void mlf_fully_connected_row_in_double_int8(const struct mlf_matrix *matrix,
                                                       const struct mlf_double_scale *scale,
                                                       const struct mlf_quantization *quantization,
                                                       int32_t weight_zero_point, const int8_t *input,
                                                       const int8_t *weights, const int32_t *bias, int8_t *output)
{
    const int32_t depth = matrix->inputs;
    int32_t inputs = 0;
    for (int32_t i = 0; i < depth; i++) {
        inputs += input[i];
    }
    const uint32_t offset = (uint32_t)(weight_zero_point * inputs);
    int32_t c = 0;
    for (; c + 4 <= matrix->outputs; c += 4) {
        struct mlf_int32x4 sum = {(uint32_t)bias[c] - offset, (uint32_t)bias[c + 1] - offset,
                                  (uint32_t)bias[c + 2] - offset, (uint32_t)bias[c + 3] - offset};
        sum = mlf_dot_1x4_row_int8(sum, input, weights + c * depth, depth);
        output[c] = mlf_scale_once(sum.v0, scale, quantization);
        output[c + 1] = mlf_scale_once(sum.v1, scale, quantization);
        output[c + 2] = mlf_scale_once(sum.v2, scale, quantization);
        output[c + 3] = mlf_scale_once(sum.v3, scale, quantization);
    }
    for (; c < matrix->outputs; c++) {
        const uint32_t sum = mlf_dot_int8((uint32_t)bias[c] - offset, input, weights + c * depth, depth);
        output[c] = mlf_scale_once(sum, scale, quantization);
    }
}

MLF_KERNEL void mlf_fully_connected_in_double_int8(const struct mlf_matrix *matrix,
                                                   const struct mlf_double_scale *scale,
                                                   const struct mlf_quantization *quantization,
                                                   int32_t weight_zero_point, const int8_t *input,
                                                   const int8_t *weights, const int32_t *bias, int8_t *output)
{
    for (int32_t row = 0; row < matrix->rows; row++) {
        mlf_fully_connected_row_in_double_int8(matrix, scale, quantization, weight_zero_point, input, weights, bias,
                                               output);
        input += matrix->inputs;
        output += matrix->outputs;
    }
}

#endif /* MLF_FULLY_CONNECTED_IN_DOUBLE_H_ */
