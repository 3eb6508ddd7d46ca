/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D of int16 activations. Input [N, H, W, C], filter [filter height, filter width, C * m] of int8,
 * output [N, H', W', C * m]. int16 has no zero point, so that taps in the padding add nothing.
 */
#ifndef MLF_DEPTHWISE_CONV2D_INT16_H_
#define MLF_DEPTHWISE_CONV2D_INT16_H_

#include <stdint.h>

#include "compiler.h"
#include "each_pixel.h"
#include "wide_sums.h"
#include "window.h"

/* Four channels of one pixel for m = 1; input and filter point at the first of them. */
MLF_KERNEL struct mlf_int64x4 mlf_depthwise_sum4_int16(const struct mlf_window *window, const struct mlf_taps *rows,
                                                       const struct mlf_taps *columns, const int16_t *input,
                                                       const int8_t *filter)
{
    struct mlf_int64x4 sum = {0, 0, 0, 0};
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int16_t *const value = input + mlf_pixel(window, rows, columns, row, column);
            const int8_t *const weight = filter + (row * window->filter.width + column) * window->output_channels;
            sum.v0 += value[0] * weight[0];
            sum.v1 += value[1] * weight[1];
            sum.v2 += value[2] * weight[2];
            sum.v3 += value[3] * weight[3];
        }
    }
    return sum;
}

/* One output channel of one pixel; input and filter point at its channel. */
MLF_KERNEL int64_t mlf_depthwise_sum_int16(const struct mlf_window *window, const struct mlf_taps *rows,
                                           const struct mlf_taps *columns, const int16_t *input, const int8_t *filter)
{
    int64_t sum = 0;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int32_t tap = row * window->filter.width + column;
            sum += input[mlf_pixel(window, rows, columns, row, column)] * filter[tap * window->output_channels];
        }
    }
    return sum;
}

/* Defines mlf_depthwise_conv2d_int16_<way>; wide_sums.h describes how sums become outputs. */
#define MLF_DEPTHWISE_CONV2D_INT16(way, channel_type)                                                                  \
    /* All output channels of one pixel. */                                                                            \
    MLF_KERNEL void mlf_depthwise_pixel_int16_##way(const struct mlf_window *window, const struct mlf_taps *rows,      \
                                                    const struct mlf_taps *columns, struct mlf_int16_range range,      \
                                                    const int16_t *input, const int8_t *filter,                        \
                                                    const struct channel_type *channels, int16_t *output)              \
    {                                                                                                                  \
        const int32_t multiplier = window->output_channels / window->input_channels;                                   \
        int32_t c = 0;                                                                                                 \
        for (; multiplier == 1 && c + 4 <= window->output_channels; c += 4) {                                          \
            const struct mlf_int64x4 sum = mlf_depthwise_sum4_int16(window, rows, columns, input + c, filter + c);     \
            output[c] = mlf_finish_##way(sum.v0, &channels[c], range);                                                 \
            output[c + 1] = mlf_finish_##way(sum.v1, &channels[c + 1], range);                                         \
            output[c + 2] = mlf_finish_##way(sum.v2, &channels[c + 2], range);                                         \
            output[c + 3] = mlf_finish_##way(sum.v3, &channels[c + 3], range);                                         \
        }                                                                                                              \
        for (; c < window->output_channels; c++) {                                                                     \
            const int64_t sum = mlf_depthwise_sum_int16(window, rows, columns, input + c / multiplier, filter + c);    \
            output[c] = mlf_finish_##way(sum, &channels[c], range);                                                    \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_depthwise_conv2d_int16_##way(const struct mlf_window *window, struct mlf_int16_range range,    \
                                                     const int16_t *input, const int8_t *filter,                       \
                                                     const struct channel_type *channels, int16_t *output)             \
    {                                                                                                                  \
        MLF_EACH_PIXEL(window, input, output,                                                                          \
                       mlf_depthwise_pixel_int16_##way(window, &rows, &columns, range, input, filter, channels,        \
                                                       output));                                                       \
    }

MLF_DEPTHWISE_CONV2D_INT16(wide, mlf_wide_channel)
MLF_DEPTHWISE_CONV2D_INT16(fine, mlf_fine_channel)

#endif /* MLF_DEPTHWISE_CONV2D_INT16_H_ */
