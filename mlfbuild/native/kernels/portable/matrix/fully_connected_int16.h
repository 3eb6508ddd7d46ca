/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FULLY_CONNECTED of int16 activations with sums of any size. Input [rows, I], weights [O, I] of int8, output
 * [rows, O].
 */
#ifndef MLF_FULLY_CONNECTED_INT16_H_
#define MLF_FULLY_CONNECTED_INT16_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_1x4.h"
#include "fully_connected.h"
#include "wide_sums.h"

/* Defines mlf_fully_connected_int16_<way>; wide_sums.h describes how sums become outputs. */
#define MLF_FULLY_CONNECTED_INT16(way, channel_type)                                                                   \
    MLF_KERNEL void mlf_fully_connected_int16_##way(const struct mlf_matrix *matrix, struct mlf_int16_range range,     \
                                                    const int16_t *input, const int8_t *weights,                       \
                                                    const struct channel_type *channels, int16_t *output)              \
    {                                                                                                                  \
        const int32_t depth = matrix->inputs;                                                                          \
        for (int32_t row = 0; row < matrix->rows; row++) {                                                             \
            int32_t c = 0;                                                                                             \
            for (; c + 4 <= matrix->outputs; c += 4) {                                                                 \
                struct mlf_int64x4 sum = {0, 0, 0, 0};                                                                 \
                sum = mlf_dot_1x4_row_int16(sum, input, weights + c * depth, depth);                                   \
                output[c] = mlf_finish_##way(sum.v0, &channels[c], range);                                             \
                output[c + 1] = mlf_finish_##way(sum.v1, &channels[c + 1], range);                                     \
                output[c + 2] = mlf_finish_##way(sum.v2, &channels[c + 2], range);                                     \
                output[c + 3] = mlf_finish_##way(sum.v3, &channels[c + 3], range);                                     \
            }                                                                                                          \
            for (; c < matrix->outputs; c++) {                                                                         \
                const int64_t sum = mlf_dot_int16(0, input, weights + c * depth, depth);                               \
                output[c] = mlf_finish_##way(sum, &channels[c], range);                                                \
            }                                                                                                          \
            input += depth;                                                                                            \
            output += matrix->outputs;                                                                                 \
        }                                                                                                              \
    }

MLF_FULLY_CONNECTED_INT16(wide, mlf_wide_channel)
MLF_FULLY_CONNECTED_INT16(narrow, mlf_channel)
MLF_FULLY_CONNECTED_INT16(fine, mlf_fine_channel)

#endif /* MLF_FULLY_CONNECTED_INT16_H_ */
