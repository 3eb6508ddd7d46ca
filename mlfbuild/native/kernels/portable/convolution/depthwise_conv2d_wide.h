/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D with weights of 9 bits, stored in 16: those of uint8 networks without their zero point. Shapes and
 * bias as in depthwise_conv2d.h.
 */
#ifndef MLF_DEPTHWISE_CONV2D_WIDE_H_
#define MLF_DEPTHWISE_CONV2D_WIDE_H_

#include <stdint.h>

#include "compiler.h"
#include "each_pixel.h"
#include "requantize.h"
#include "window.h"

MLF_DEPTHWISE_SUM(mlf_depthwise_sum_wide_int8, int16_t)

/* Four channels of one pixel for a depth multiplier of 1 and a window inside the image. */
MLF_KERNEL struct mlf_int32x4 mlf_depthwise_sum4_wide_int8(const struct mlf_window *window,
                                                           const struct mlf_taps *rows,
                                                           const struct mlf_taps *columns, const int8_t *input,
                                                           const int16_t *filter, struct mlf_int32x4 sum)
{
    for (int32_t row = 0; row < window->filter.height; row++) {
        for (int32_t column = 0; column < window->filter.width; column++, filter += window->output_channels) {
            const int8_t *const value = input + mlf_pixel(window, rows, columns, row, column);
            sum.v0 += (uint32_t)(value[0] * filter[0]);
            sum.v1 += (uint32_t)(value[1] * filter[1]);
            sum.v2 += (uint32_t)(value[2] * filter[2]);
            sum.v3 += (uint32_t)(value[3] * filter[3]);
        }
    }
    return sum;
}

/* All output channels of one pixel. */
MLF_KERNEL void mlf_depthwise_pixel_wide_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                              const struct mlf_taps *columns,
                                              const struct mlf_quantization *quantization, const int8_t *input,
                                              const int16_t *filter, const struct mlf_channel *channels,
                                              int8_t *output)
{
    const int32_t multiplier = window->output_channels / window->input_channels;
    const int inside = rows->first == 0 && rows->end == window->filter.height && columns->first == 0 &&
                       columns->end == window->filter.width;
    int32_t c = 0;
    for (; multiplier == 1 && inside && c + 4 <= window->output_channels; c += 4) {
        struct mlf_int32x4 sum = mlf_biases4(&channels[c]);
        sum = mlf_depthwise_sum4_wide_int8(window, rows, columns, input + c, filter + c, sum);
        mlf_requantize4(sum, &channels[c], quantization, &output[c]);
    }
    for (; c < window->output_channels; c++) {
        const uint32_t sum =
            mlf_depthwise_sum_wide_int8(window, rows, columns, quantization->input_zero_point, input + c / multiplier,
                                        filter + c, (uint32_t)channels[c].bias);
        output[c] = mlf_requantize(sum, &channels[c].rescale, quantization);
    }
}

MLF_KERNEL void mlf_depthwise_conv2d_wide_int8(const struct mlf_window *window,
                                               const struct mlf_quantization *quantization, const int8_t *input,
                                               const int16_t *filter, const struct mlf_channel *channels,
                                               int8_t *output)
{
    MLF_EACH_PIXEL(window, input, output,
                   mlf_depthwise_pixel_wide_int8(window, &rows, &columns, quantization, input, filter, channels,
                                                 output));
}

#endif /* MLF_DEPTHWISE_CONV2D_WIDE_H_ */
