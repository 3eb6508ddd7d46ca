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
#include "convolution_int16.h"
#include "wide_sums.h"
#include "window.h"

/* The channels c to c + 3 of one pixel for m = 1. */
MLF_KERNEL struct mlf_int64x4 mlf_depthwise_conv2d_sum4_int16(const struct mlf_window *window,
                                                              const struct mlf_taps *rows,
                                                              const struct mlf_taps *columns, const int16_t *input,
                                                              const int8_t *filter, int32_t c)
{
    struct mlf_int64x4 sum = {0, 0, 0, 0};
    input += c;
    filter += c;
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

/* The output channel c of one pixel. */
MLF_KERNEL int64_t mlf_depthwise_conv2d_sum_int16(const struct mlf_window *window, const struct mlf_taps *rows,
                                                  const struct mlf_taps *columns, const int16_t *input,
                                                  const int8_t *filter, int32_t c)
{
    int64_t sum = 0;
    input += c / (window->output_channels / window->input_channels);
    filter += c;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int32_t tap = row * window->filter.width + column;
            sum += input[mlf_pixel(window, rows, columns, row, column)] * filter[tap * window->output_channels];
        }
    }
    return sum;
}

MLF_CONVOLUTION_INT16(depthwise_conv2d, window->output_channels == window->input_channels, wide, mlf_wide_channel)
MLF_CONVOLUTION_INT16(depthwise_conv2d, window->output_channels == window->input_channels, fine, mlf_fine_channel)

#endif /* MLF_DEPTHWISE_CONV2D_INT16_H_ */
