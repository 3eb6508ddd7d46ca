/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D. Input [N, H, W, C], filter [filter height, filter width, C * m], output [N, H', W', C * m], with m
 * the depth multiplier: input channel c gives the output channels c * m .. c * m + m - 1.
 *
 * The int8 kernel expects the input's zero point folded into the bias, and reads taps in the padding as the zero point
 * (see conv2d.h).
 *
 * If m is 1, four adjacent channels are computed together and share the loops over the window; otherwise each output
 * channel has loops of its own. An input belongs to one channel, so that, unlike in conv2d.h, channels share no loads:
 * a product costs a load of the input, one of the weight and a multiplication.
 */
#ifndef MLF_DEPTHWISE_CONV2D_H_
#define MLF_DEPTHWISE_CONV2D_H_

#include <stdint.h>

#include "compiler.h"
#include "each_pixel.h"
#include "requantize.h"
#include "window.h"

/* Add value * weight of four adjacent channels. */
MLF_KERNEL struct mlf_int32x4 mlf_depthwise_fill4_int8(struct mlf_int32x4 sum, int32_t value, const int8_t *filter)
{
    sum.v0 += (uint32_t)(value * filter[0]);
    sum.v1 += (uint32_t)(value * filter[1]);
    sum.v2 += (uint32_t)(value * filter[2]);
    sum.v3 += (uint32_t)(value * filter[3]);
    return sum;
}

MLF_KERNEL struct mlf_int32x4 mlf_depthwise_tap4_int8(struct mlf_int32x4 sum, const int8_t *input,
                                                      const int8_t *filter)
{
    sum.v0 += (uint32_t)(input[0] * filter[0]);
    sum.v1 += (uint32_t)(input[1] * filter[1]);
    sum.v2 += (uint32_t)(input[2] * filter[2]);
    sum.v3 += (uint32_t)(input[3] * filter[3]);
    return sum;
}

/* Four channels of one pixel for m = 1; input and filter point at the first of them. */
MLF_KERNEL struct mlf_int32x4 mlf_depthwise_sum4_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                                      const struct mlf_taps *columns, int32_t zero_point,
                                                      const int8_t *input, const int8_t *filter,
                                                      struct mlf_int32x4 sum)
{
    const int32_t pitch = window->output_channels;
    for (int32_t row = 0; row < window->filter.height; row++) {
        const int inside = row >= rows->first && row < rows->end;
        const int32_t first = inside ? columns->first : window->filter.width;
        const int32_t end = inside ? columns->end : window->filter.width;
        int32_t column = 0;
        for (; column < first; column++, filter += pitch) {
            sum = mlf_depthwise_fill4_int8(sum, zero_point, filter);
        }
        for (; column < end; column++, filter += pitch) {
            sum = mlf_depthwise_tap4_int8(sum, input + mlf_pixel(window, rows, columns, row, column), filter);
        }
        for (; column < window->filter.width; column++, filter += pitch) {
            sum = mlf_depthwise_fill4_int8(sum, zero_point, filter);
        }
    }
    return sum;
}

MLF_DEPTHWISE_SUM(mlf_depthwise_sum_int8, int8_t)

/* All output channels of one pixel. */
MLF_KERNEL void mlf_depthwise_pixel_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                         const struct mlf_taps *columns, const struct mlf_quantization *quantization,
                                         const int8_t *input, const int8_t *filter,
                                         const struct mlf_channel *channels, int8_t *output)
{
    const int32_t multiplier = window->output_channels / window->input_channels;
    const int32_t zero_point = quantization->input_zero_point;
    int32_t c = 0;
    for (; multiplier == 1 && c + 4 <= window->output_channels; c += 4) {
        struct mlf_int32x4 sum = mlf_biases4(&channels[c]);
        sum = mlf_depthwise_sum4_int8(window, rows, columns, zero_point, input + c, filter + c, sum);
        mlf_requantize4(sum, &channels[c], quantization, &output[c]);
    }
    for (; c < window->output_channels; c++) {
        const uint32_t sum = mlf_depthwise_sum_int8(window, rows, columns, zero_point, input + c / multiplier,
                                                    filter + c, (uint32_t)channels[c].bias);
        output[c] = mlf_requantize(sum, &channels[c].rescale, quantization);
    }
}

MLF_KERNEL void mlf_depthwise_conv2d_int8(const struct mlf_window *window,
                                          const struct mlf_quantization *quantization, const int8_t *input,
                                          const int8_t *filter, const struct mlf_channel *channels, int8_t *output)
{
    MLF_EACH_PIXEL(window, input, output,
                   mlf_depthwise_pixel_int8(window, &rows, &columns, quantization, input, filter, channels, output));
}

/* Four channels of one pixel for m = 1; input and filter point at the first of them. */
MLF_KERNEL struct mlf_float32x4 mlf_depthwise_sum4_float(const struct mlf_window *window,
                                                         const struct mlf_taps *rows, const struct mlf_taps *columns,
                                                         const float *input, const float *filter,
                                                         struct mlf_float32x4 sum)
{
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const float *const value = input + mlf_pixel(window, rows, columns, row, column);
            const float *const weight = filter + (row * window->filter.width + column) * window->output_channels;
            sum.v0 += value[0] * weight[0];
            sum.v1 += value[1] * weight[1];
            sum.v2 += value[2] * weight[2];
            sum.v3 += value[3] * weight[3];
        }
    }
    return sum;
}

/* One output channel of one pixel; input and filter point at its channel. */
MLF_KERNEL float mlf_depthwise_sum_float(const struct mlf_window *window, const struct mlf_taps *rows,
                                         const struct mlf_taps *columns, const float *input, const float *filter,
                                         float sum)
{
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int32_t tap = row * window->filter.width + column;
            sum += input[mlf_pixel(window, rows, columns, row, column)] * filter[tap * window->output_channels];
        }
    }
    return sum;
}

/* All output channels of one pixel. */
MLF_KERNEL void mlf_depthwise_pixel_float(const struct mlf_window *window, const struct mlf_taps *rows,
                                          const struct mlf_taps *columns, struct mlf_float_range range,
                                          const float *input, const float *filter, const float *bias, float *output)
{
    const int32_t multiplier = window->output_channels / window->input_channels;
    int32_t c = 0;
    for (; multiplier == 1 && c + 4 <= window->output_channels; c += 4) {
        struct mlf_float32x4 sum = {bias[c], bias[c + 1], bias[c + 2], bias[c + 3]};
        sum = mlf_depthwise_sum4_float(window, rows, columns, input + c, filter + c, sum);
        mlf_clamp4_float(sum, range, &output[c]);
    }
    for (; c < window->output_channels; c++) {
        output[c] = mlf_clamp_float(
            mlf_depthwise_sum_float(window, rows, columns, input + c / multiplier, filter + c, bias[c]), range);
    }
}

MLF_KERNEL void mlf_depthwise_conv2d_float(const struct mlf_window *window, struct mlf_float_range range,
                                           const float *input, const float *filter, const float *bias, float *output)
{
    MLF_EACH_PIXEL(window, input, output,
                   mlf_depthwise_pixel_float(window, &rows, &columns, range, input, filter, bias, output));
}

#endif /* MLF_DEPTHWISE_CONV2D_H_ */
