/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * L2_NORMALIZATION: input and output [rows, depth], each row divided by its length. The output may overwrite the input.
 */
#ifndef MLF_L2_NORMALIZATION_H_
#define MLF_L2_NORMALIZATION_H_

#include <stdint.h>

#include "compiler.h"
#include "fixed_point.h"
#include "float_math.h"
#include "requantize.h"

/* The output has 7 fraction bits. */
MLF_KERNEL void mlf_l2_normalization_int8(int32_t rows, int32_t depth, int32_t zero_point, const int8_t *input,
                                          int8_t *output)
{
    for (int32_t row = 0; row < rows; row++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < depth; i++) {
            sum += (input[i] - zero_point) * (input[i] - zero_point);
        }
        const struct mlf_rescale rescale = mlf_inverse_square_root(sum, 7);
        for (int32_t i = 0; i < depth; i++) {
            const int32_t value = mlf_rescale_value((uint32_t)(input[i] - zero_point), &rescale);
            output[i] = (int8_t)mlf_clamp(value, INT8_MIN, INT8_MAX);
        }
        input += depth;
        output += depth;
    }
}

MLF_KERNEL void mlf_l2_normalization_float(int32_t rows, int32_t depth, const float *input, float *output)
{
    for (int32_t row = 0; row < rows; row++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < depth; i++) {
            sum += input[i] * input[i];
        }
        const float length = mlf_float_sqrt(sum);
        const float divisor = length > 1e-6f ? length : 1e-6f;
        for (int32_t i = 0; i < depth; i++) {
            output[i] = input[i] / divisor;
        }
        input += depth;
        output += depth;
    }
}

#endif /* MLF_L2_NORMALIZATION_H_ */
