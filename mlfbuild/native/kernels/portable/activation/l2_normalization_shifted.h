/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * L2_NORMALIZATION as in l2_normalization.h with the rounding of uint8 networks, which shift elements left by the
 * output's 7 fraction bits before they multiply them.
 */
#ifndef MLF_L2_NORMALIZATION_SHIFTED_H_
#define MLF_L2_NORMALIZATION_SHIFTED_H_

#include <stdint.h>

#include "compiler.h"
#include "fixed_point.h"
#include "requantize.h"

MLF_KERNEL void mlf_l2_normalization_shifted_int8(int32_t rows, int32_t depth, int32_t zero_point,
                                                  const int8_t *input, int8_t *output)
{
    for (int32_t row = 0; row < rows; row++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < depth; i++) {
            sum += (input[i] - zero_point) * (input[i] - zero_point);
        }
        const struct mlf_rescale rescale = mlf_inverse_square_root(sum, 0);
        for (int32_t i = 0; i < depth; i++) {
            const int32_t value = mlf_rescale_value((uint32_t)((input[i] - zero_point) * 128), &rescale);
            output[i] = (int8_t)mlf_clamp(value, INT8_MIN, INT8_MAX);
        }
        input += depth;
        output += depth;
    }
}

#endif /* MLF_L2_NORMALIZATION_SHIFTED_H_ */
