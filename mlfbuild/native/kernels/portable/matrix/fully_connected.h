/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FULLY_CONNECTED. Input [rows, I], weights [O, I], output [rows, O].
 *
 *   output(o) = requantize(bias(o) + sum over i of input(i) * weights(o, i))
 *
 * The int8 kernel expects the input's zero point folded into the bias: bias(o) - zero point * sum of weights(o).
 */
#ifndef MLF_FULLY_CONNECTED_H_
#define MLF_FULLY_CONNECTED_H_

#include <stdint.h>

#include "compiler.h"
#include "dot.h"
#include "requantize.h"

struct mlf_matrix {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
};

MLF_KERNEL void mlf_fully_connected_row_int8(const struct mlf_matrix *matrix,
                                             const struct mlf_quantization *quantization, const int8_t *input,
                                             const int8_t *weights, const struct mlf_channel *channels,
                                             int8_t *output)
{
    const int32_t depth = matrix->inputs;
    int32_t c = 0;
    for (; c + 4 <= matrix->outputs; c += 4) {
        struct mlf_int32x4 sum = mlf_biases4(&channels[c]);
        sum = mlf_dot_1x4_int8(sum, input, weights + c * depth, depth, depth);
        mlf_requantize4(sum, &channels[c], quantization, &output[c]);
    }
    for (; c < matrix->outputs; c++) {
        const uint32_t sum = mlf_dot_int8((uint32_t)channels[c].bias, input, weights + c * depth, depth);
        output[c] = mlf_requantize(sum, &channels[c].rescale, quantization);
    }
}

MLF_KERNEL void mlf_fully_connected_int8(const struct mlf_matrix *matrix,
                                         const struct mlf_quantization *quantization, const int8_t *input,
                                         const int8_t *weights, const struct mlf_channel *channels, int8_t *output)
{
    for (int32_t row = 0; row < matrix->rows; row++) {
        mlf_fully_connected_row_int8(matrix, quantization, input, weights, channels, output);
        input += matrix->inputs;
        output += matrix->outputs;
    }
}

MLF_KERNEL void mlf_fully_connected_row_float(const struct mlf_matrix *matrix, struct mlf_float_range range,
                                              const float *input, const float *weights, const float *bias,
                                              float *output)
{
    const int32_t depth = matrix->inputs;
    int32_t c = 0;
    for (; c + 4 <= matrix->outputs; c += 4) {
        struct mlf_float32x4 sum = {bias[c], bias[c + 1], bias[c + 2], bias[c + 3]};
        sum = mlf_dot_1x4_float(sum, input, weights + c * depth, depth, depth);
        mlf_clamp4_float(sum, range, &output[c]);
    }
    for (; c < matrix->outputs; c++) {
        output[c] = mlf_clamp_float(mlf_dot_float(bias[c], input, weights + c * depth, depth), range);
    }
}

MLF_KERNEL void mlf_fully_connected_float(const struct mlf_matrix *matrix, struct mlf_float_range range,
                                          const float *input, const float *weights, const float *bias, float *output)
{
    for (int32_t row = 0; row < matrix->rows; row++) {
        mlf_fully_connected_row_float(matrix, range, input, weights, bias, output);
        input += matrix->inputs;
        output += matrix->outputs;
    }
}

#endif /* MLF_FULLY_CONNECTED_H_ */
