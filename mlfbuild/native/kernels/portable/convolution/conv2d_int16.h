/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D of int16 activations. Input [N, H, W, I], filter [O, filter height, filter width, I] of int8, output
 * [N, H', W', O]. int16 has no zero point, so that taps in the padding add nothing.
 *
 * The order is that of conv2d.h: pixel by pixel, four output channels at a time, which share the loads of the input.
 * wide_sums.h has their inner product in C, and dot_1x4.h the one that 1x1 filters use, with its cost on each core.
 * There is a kernel for each way in which sums become outputs, which wide_sums.h describes. The filter stays as in the
 * model, and no scratch memory is used.
 */
#ifndef MLF_CONV2D_INT16_H_
#define MLF_CONV2D_INT16_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_1x4.h"
#include "each_pixel.h"
#include "wide_sums.h"
#include "window.h"

/* Four output channels of one pixel; filter points at the first of them, input at the image. */
MLF_KERNEL struct mlf_int64x4 mlf_conv2d_sum4_int16(const struct mlf_window *window, const struct mlf_taps *rows,
                                                    const struct mlf_taps *columns, const int16_t *input,
                                                    const int8_t *filter)
{
    const int32_t depth = window->input_channels;
    const int32_t line = window->filter.width * depth;
    const int32_t pitch = window->filter.height * line;
    struct mlf_int64x4 sum = {0, 0, 0, 0};
    if (pitch == depth) { /* 1x1 */
        return mlf_dot_1x4_row_int16(sum, input + mlf_pixel(window, rows, columns, 0, 0), filter, depth);
    }
    for (int32_t row = rows->first; row < rows->end; row++) {
        const int8_t *const weights = filter + row * line;
        if (window->dilation.width == 1) {
            const int32_t at = mlf_pixel(window, rows, columns, row, columns->first);
            sum = mlf_dot_1x4_int16(sum, input + at, weights + columns->first * depth, pitch,
                                    (columns->end - columns->first) * depth);
        } else {
            for (int32_t column = columns->first; column < columns->end; column++) {
                const int32_t at = mlf_pixel(window, rows, columns, row, column);
                sum = mlf_dot_1x4_int16(sum, input + at, weights + column * depth, pitch, depth);
            }
        }
    }
    return sum;
}

/* As mlf_conv2d_sum4_int16 for one output channel. */
MLF_KERNEL int64_t mlf_conv2d_sum_int16(const struct mlf_window *window, const struct mlf_taps *rows,
                                        const struct mlf_taps *columns, const int16_t *input, const int8_t *filter)
{
    const int32_t depth = window->input_channels;
    int64_t sum = 0;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int8_t *const weights = filter + (row * window->filter.width + column) * depth;
            sum = mlf_dot_int16(sum, input + mlf_pixel(window, rows, columns, row, column), weights, depth);
        }
    }
    return sum;
}

/* Defines mlf_conv2d_int16_<way>; wide_sums.h describes how sums become outputs. */
#define MLF_CONV2D_INT16(way, channel_type)                                                                            \
    /* All output channels of one pixel. */                                                                            \
    MLF_KERNEL void mlf_conv2d_pixel_int16_##way(const struct mlf_window *window, const struct mlf_taps *rows,         \
                                                 const struct mlf_taps *columns, struct mlf_int16_range range,         \
                                                 const int16_t *input, const int8_t *filter,                           \
                                                 const struct channel_type *channels, int16_t *output)                 \
    {                                                                                                                  \
        const int32_t pitch = window->filter.height * window->filter.width * window->input_channels;                   \
        int32_t c = 0;                                                                                                 \
        for (; c + 4 <= window->output_channels; c += 4) {                                                             \
            const struct mlf_int64x4 sum = mlf_conv2d_sum4_int16(window, rows, columns, input, filter + c * pitch);    \
            output[c] = mlf_finish_##way(sum.v0, &channels[c], range);                                                 \
            output[c + 1] = mlf_finish_##way(sum.v1, &channels[c + 1], range);                                         \
            output[c + 2] = mlf_finish_##way(sum.v2, &channels[c + 2], range);                                         \
            output[c + 3] = mlf_finish_##way(sum.v3, &channels[c + 3], range);                                         \
        }                                                                                                              \
        for (; c < window->output_channels; c++) {                                                                     \
            const int64_t sum = mlf_conv2d_sum_int16(window, rows, columns, input, filter + c * pitch);                \
            output[c] = mlf_finish_##way(sum, &channels[c], range);                                                    \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_conv2d_int16_##way(const struct mlf_window *window, struct mlf_int16_range range,              \
                                           const int16_t *input, const int8_t *filter,                                 \
                                           const struct channel_type *channels, int16_t *output)                       \
    {                                                                                                                  \
        MLF_EACH_PIXEL(window, input, output,                                                                          \
                       mlf_conv2d_pixel_int16_##way(window, &rows, &columns, range, input, filter, channels,           \
                                                    output));                                                          \
    }

MLF_CONV2D_INT16(wide, mlf_wide_channel)
MLF_CONV2D_INT16(narrow, mlf_channel)
MLF_CONV2D_INT16(fine, mlf_fine_channel)

#endif /* MLF_CONV2D_INT16_H_ */
