/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D of int16 activations. Input [N, H, W, I], filter [O, filter height, filter width, I] of int8, output
 * [N, H', W', O]. int16 has no zero point, so that taps in the padding add nothing.
 *
 * The order is that of conv2d.h: pixel by pixel, four output channels at a time, which share the loads of the input.
 * wide_sums.h has their inner product in C, and dot_1x4.h the one that 1x1 filters use, with its cost on each core.
 * The filter stays as in the model, and no scratch memory is used.
 */
#ifndef MLF_CONV2D_INT16_H_
#define MLF_CONV2D_INT16_H_

#include <stdint.h>

#include "compiler.h"
#include "convolution_int16.h"
#include "dot_1x4.h"
#include "wide_sums.h"
#include "window.h"

/* The output channels c to c + 3 of one pixel; input points at the image. */
MLF_KERNEL struct mlf_int64x4 mlf_conv2d_sum4_int16(const struct mlf_window *window, const struct mlf_taps *rows,
                                                    const struct mlf_taps *columns, const int16_t *input,
                                                    const int8_t *filter, int32_t c)
{
    const int32_t depth = window->input_channels;
    const int32_t line = window->filter.width * depth;
    const int32_t pitch = window->filter.height * line;
    struct mlf_int64x4 sum = {0, 0, 0, 0};
    filter += c * pitch;
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

/* The output channel c of one pixel. */
MLF_KERNEL int64_t mlf_conv2d_sum_int16(const struct mlf_window *window, const struct mlf_taps *rows,
                                        const struct mlf_taps *columns, const int16_t *input, const int8_t *filter,
                                        int32_t c)
{
    const int32_t depth = window->input_channels;
    int64_t sum = 0;
    filter += c * window->filter.height * window->filter.width * depth;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int8_t *const weights = filter + (row * window->filter.width + column) * depth;
            sum = mlf_dot_int16(sum, input + mlf_pixel(window, rows, columns, row, column), weights, depth);
        }
    }
    return sum;
}

MLF_CONVOLUTION_INT16(conv2d, 1, wide, mlf_wide_channel)
MLF_CONVOLUTION_INT16(conv2d, 1, narrow, mlf_channel)
MLF_CONVOLUTION_INT16(conv2d, 1, fine, mlf_fine_channel)

#endif /* MLF_CONV2D_INT16_H_ */
