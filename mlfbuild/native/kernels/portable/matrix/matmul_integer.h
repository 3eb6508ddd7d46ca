/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * MATMUL_INTEGER. Input [rows, I], weights [O, I], output int32 [rows, O]; the zero point is computed in each run.
 *
 *   output(o) = sum over i of (input(i) - zero point) * (weights(o, i) - offsets(o))
 *             = sum of input(i) * weights(o, i) - offsets(o) * sum of input(i) - zero point * sums(o)
 *
 * sums(o) is the sum of weights(o, i) - offsets(o), which the compiler knows. Sums wrap at 32 bits.
 */
#ifndef MLF_MATMUL_INTEGER_H_
#define MLF_MATMUL_INTEGER_H_

#include <stdint.h>

#include "compiler.h"
#include "dot.h"
#include "dot_1x4.h"
#include "fully_connected.h"

MLF_KERNEL void mlf_matmul_integer(const struct mlf_matrix *matrix, const int8_t *input, int32_t zero_point,
                                   const int8_t *weights, const int32_t *sums, int32_t *output)
{
    const int32_t depth = matrix->inputs;
    const uint32_t factor = 0U - (uint32_t)zero_point;
    for (int32_t row = 0; row < matrix->rows; row++) {
        int32_t c = 0;
        for (; c + 4 <= matrix->outputs; c += 4) {
            struct mlf_int32x4 sum = {factor * (uint32_t)sums[c], factor * (uint32_t)sums[c + 1],
                                      factor * (uint32_t)sums[c + 2], factor * (uint32_t)sums[c + 3]};
            sum = mlf_dot_1x4_row_int8(sum, input, weights + c * depth, depth);
            output[c] = (int32_t)sum.v0;
            output[c + 1] = (int32_t)sum.v1;
            output[c + 2] = (int32_t)sum.v2;
            output[c + 3] = (int32_t)sum.v3;
        }
        for (; c < matrix->outputs; c++) {
            output[c] = (int32_t)mlf_dot_int8(factor * (uint32_t)sums[c], input, weights + c * depth, depth);
        }
        input += depth;
        output += matrix->outputs;
    }
}

MLF_KERNEL void mlf_matmul_integer_offset(const struct mlf_matrix *matrix, const int8_t *input, int32_t zero_point,
                                          const int8_t *weights, const int32_t *sums, const int32_t *offsets,
                                          int32_t *output)
{
    mlf_matmul_integer(matrix, input, zero_point, weights, sums, output);
    for (int32_t row = 0; row < matrix->rows; row++) {
        int32_t total = 0;
        for (int32_t i = 0; i < matrix->inputs; i++) {
            total += input[i];
        }
        for (int32_t c = 0; c < matrix->outputs; c++) {
            output[c] = (int32_t)((uint32_t)output[c] - (uint32_t)offsets[c] * (uint32_t)total);
        }
        input += matrix->inputs;
        output += matrix->outputs;
    }
}

#endif /* MLF_MATMUL_INTEGER_H_ */
