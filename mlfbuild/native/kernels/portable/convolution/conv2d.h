/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D. Input [N, H, W, I], filter [O, filter height, filter width, I], output [N, H', W', O].
 *
 *   output(o) = requantize(bias(o) + sum over taps and i of input(i) * filter(o, tap, i))
 *
 * The int8 kernel expects the input's zero point folded into the bias: bias(o) - zero point * sum of filter(o). Taps in
 * the padding are therefore read as the zero point, which represents 0. The float32 kernel leaves them out.
 *
 * Pixel by pixel, four output channels at a time: they share the loads of the input and the loops over the window. On
 * an Armv7-M core, GCC compiles the inner loop of int8 to 11 instructions for four products, 5 for the single product
 * of the channels that are left. The filter stays as in the model, and no scratch memory is used. Unless dilation
 * separates the columns of a window, four channels take the part of a row inside the image as one run of inputs.
 */
#ifndef MLF_CONV2D_H_
#define MLF_CONV2D_H_

#include <stdint.h>

#include "compiler.h"
#include "dot.h"
#include "each_pixel.h"
#include "requantize.h"
#include "window.h"

/* Four output channels of one pixel; filter points at the first of them, input at the image. */
MLF_KERNEL struct mlf_int32x4 mlf_conv2d_sum4_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                                   const struct mlf_taps *columns, int32_t zero_point,
                                                   const int8_t *input, const int8_t *filter,
                                                   struct mlf_int32x4 sum)
{
    const int32_t depth = window->input_channels;
    const int32_t line = window->filter.width * depth;
    const int32_t pitch = window->filter.height * line;
    for (int32_t row = 0; row < window->filter.height; row++, filter += line) {
        if (row < rows->first || row >= rows->end) {
            sum = mlf_fill_1x4_int8(sum, zero_point, filter, pitch, line);
            continue;
        }
        const int32_t left = columns->first * depth;
        const int32_t right = columns->end * depth;
        sum = mlf_fill_1x4_int8(sum, zero_point, filter, pitch, left);
        if (window->dilation.width == 1) {
            const int32_t at = mlf_pixel(window, rows, columns, row, columns->first);
            sum = mlf_dot_1x4_int8(sum, input + at, filter + left, pitch, right - left);
        } else {
            for (int32_t column = columns->first; column < columns->end; column++) {
                const int32_t at = mlf_pixel(window, rows, columns, row, column);
                sum = mlf_dot_1x4_int8(sum, input + at, filter + column * depth, pitch, depth);
            }
        }
        sum = mlf_fill_1x4_int8(sum, zero_point, filter + right, pitch, line - right);
    }
    return sum;
}

/* As mlf_conv2d_sum4_int8 for one output channel. */
MLF_KERNEL uint32_t mlf_conv2d_sum_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                        const struct mlf_taps *columns, int32_t zero_point, const int8_t *input,
                                        const int8_t *filter, uint32_t sum)
{
    const int32_t depth = window->input_channels;
    for (int32_t row = 0; row < window->filter.height; row++) {
        for (int32_t column = 0; column < window->filter.width; column++, filter += depth) {
            if (row < rows->first || row >= rows->end || column < columns->first || column >= columns->end) {
                sum = mlf_fill_int8(sum, zero_point, filter, depth);
            } else {
                sum = mlf_dot_int8(sum, input + mlf_pixel(window, rows, columns, row, column), filter, depth);
            }
        }
    }
    return sum;
}

/* All output channels of one pixel. */
MLF_KERNEL void mlf_conv2d_pixel_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                      const struct mlf_taps *columns, const struct mlf_quantization *quantization,
                                      const int8_t *input, const int8_t *filter, const struct mlf_channel *channels,
                                      int8_t *output)
{
    const int32_t pitch = window->filter.height * window->filter.width * window->input_channels;
    const int32_t zero_point = quantization->input_zero_point;
    int32_t c = 0;
    for (; c + 4 <= window->output_channels; c += 4) {
        struct mlf_int32x4 sum = mlf_biases4(&channels[c]);
        sum = mlf_conv2d_sum4_int8(window, rows, columns, zero_point, input, filter + c * pitch, sum);
        mlf_requantize4(sum, &channels[c], quantization, &output[c]);
    }
    for (; c < window->output_channels; c++) {
        const uint32_t sum = mlf_conv2d_sum_int8(window, rows, columns, zero_point, input, filter + c * pitch,
                                                 (uint32_t)channels[c].bias);
        output[c] = mlf_requantize(sum, &channels[c].rescale, quantization);
    }
}

MLF_KERNEL void mlf_conv2d_int8(const struct mlf_window *window, const struct mlf_quantization *quantization,
                                const int8_t *input, const int8_t *filter, const struct mlf_channel *channels,
                                int8_t *output)
{
    MLF_EACH_PIXEL(window, input, output,
                   mlf_conv2d_pixel_int8(window, &rows, &columns, quantization, input, filter, channels, output));
}

/* Four output channels of one pixel; filter points at the first of them, input at the image. */
MLF_KERNEL struct mlf_float32x4 mlf_conv2d_sum4_float(const struct mlf_window *window, const struct mlf_taps *rows,
                                                      const struct mlf_taps *columns, const float *input,
                                                      const float *filter, struct mlf_float32x4 sum)
{
    const int32_t depth = window->input_channels;
    const int32_t line = window->filter.width * depth;
    const int32_t pitch = window->filter.height * line;
    for (int32_t row = rows->first; row < rows->end; row++) {
        const float *const weights = filter + row * line;
        if (window->dilation.width == 1) {
            const int32_t at = mlf_pixel(window, rows, columns, row, columns->first);
            sum = mlf_dot_1x4_float(sum, input + at, weights + columns->first * depth, pitch,
                                    (columns->end - columns->first) * depth);
        } else {
            for (int32_t column = columns->first; column < columns->end; column++) {
                const int32_t at = mlf_pixel(window, rows, columns, row, column);
                sum = mlf_dot_1x4_float(sum, input + at, weights + column * depth, pitch, depth);
            }
        }
    }
    return sum;
}

/* As mlf_conv2d_sum4_float for one output channel. */
MLF_KERNEL float mlf_conv2d_sum_float(const struct mlf_window *window, const struct mlf_taps *rows,
                                      const struct mlf_taps *columns, const float *input, const float *filter,
                                      float sum)
{
    const int32_t depth = window->input_channels;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const float *const weights = filter + (row * window->filter.width + column) * depth;
            sum = mlf_dot_float(sum, input + mlf_pixel(window, rows, columns, row, column), weights, depth);
        }
    }
    return sum;
}

/* All output channels of one pixel. */
MLF_KERNEL void mlf_conv2d_pixel_float(const struct mlf_window *window, const struct mlf_taps *rows,
                                       const struct mlf_taps *columns, struct mlf_float_range range,
                                       const float *input, const float *filter, const float *bias, float *output)
{
    const int32_t pitch = window->filter.height * window->filter.width * window->input_channels;
    int32_t c = 0;
    for (; c + 4 <= window->output_channels; c += 4) {
        struct mlf_float32x4 sum = {bias[c], bias[c + 1], bias[c + 2], bias[c + 3]};
        sum = mlf_conv2d_sum4_float(window, rows, columns, input, filter + c * pitch, sum);
        mlf_clamp4_float(sum, range, &output[c]);
    }
    for (; c < window->output_channels; c++) {
        output[c] = mlf_clamp_float(
            mlf_conv2d_sum_float(window, rows, columns, input, filter + c * pitch, bias[c]), range);
    }
}

MLF_KERNEL void mlf_conv2d_float(const struct mlf_window *window, struct mlf_float_range range, const float *input,
                                 const float *filter, const float *bias, float *output)
{
    MLF_EACH_PIXEL(window, input, output,
                   mlf_conv2d_pixel_float(window, &rows, &columns, range, input, filter, bias, output));
}

#endif /* MLF_CONV2D_H_ */
