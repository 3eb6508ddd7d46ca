/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Layers of int8 weights over float32. A row of the input, an image or a vector, is brought to int8 with a scale, and
 * perhaps a zero point, that are computed in each run. The layer adds products of integers and multiplies the sums:
 *
 *   output(o) = sum over i of (input(i) - zero point) * weights(o, i) * (scale of o * scale of the row) + bias(o)
 *
 * Every step in float32 is rounded as by LiteRT's reference kernels. A multiplication must therefore not be fused with
 * the addition after it, which compilers do on cores with fused multiply-add.
 *
 * CONV_2D copies the numbers under a window to scratch memory, with the zero point in the padding, so that the inner
 * products of dot_1x4.h add all of them. A filter of one element reads the image itself.
 */
#ifndef MLF_HYBRID_H_
#define MLF_HYBRID_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "depthwise_conv2d.h"
#include "dot.h"
#include "dot_1x4.h"
#include "fully_connected.h"
#include "requantize.h"
#include "window.h"

/* The numbers by which sums of integers become outputs. */
struct mlf_hybrid {
    const float *scales;          /* of rows */
    const int32_t *zero_points;   /* of rows; NULL without */
    const float *weight_scales;   /* of output channels, or of all weights */
    int32_t step;                 /* 1 if every channel has a scale, 0 otherwise */
    const int32_t *weight_sums;   /* of output channels; NULL without zero points */
    const float *bias;
    int32_t channel_first;        /* whether the scale of the channel is multiplied first */
    struct mlf_float_range range;
};

/* Return x; the compiler cannot fuse the operation that made it with the next one. */
MLF_KERNEL float mlf_unfused(float x)
{
#if MLF_VFP_ASM
    __asm__("" : "+t"(x));
    return x;
#else
    volatile float rounded = x;
    return rounded;
#endif
}

/*
 * Return x rounded half away from zero, clamped to 512 in magnitude; NaN is 0. The greatest number below 0.5 is added,
 * because 0.5 would also round up the number before 0.5.
 */
MLF_KERNEL int32_t mlf_nearest_hybrid(float x)
{
    if (!(x > -512.0f)) {
        return x <= -512.0f ? -512 : 0;
    }
    if (x > 512.0f) {
        return 512;
    }
    return (int32_t)(x + (x < 0.0f ? -0.49999997f : 0.49999997f));
}

MLF_KERNEL void mlf_quantize_rows(int32_t rows, int32_t size, const float *input, int8_t *output, float *scales)
{
    for (int32_t row = 0; row < rows; row++, input += size, output += size) {
        float largest = 0.0f;
        for (int32_t i = 0; i < size; i++) {
            const float magnitude = input[i] < 0.0f ? -input[i] : input[i];
            largest = magnitude > largest ? magnitude : largest;
        }
        const float factor = largest > 0.0f ? 127.0f / largest : 0.0f;
        scales[row] = largest > 0.0f ? largest / 127.0f : 1.0f;
        for (int32_t i = 0; i < size; i++) {
            output[i] = (int8_t)mlf_clamp(mlf_nearest_hybrid(mlf_unfused(input[i] * factor)), -127, 127);
        }
    }
}

/* Return the zero point with which `least` to `greatest`, which contain 0, become -128 to 127. */
MLF_KERNEL int32_t mlf_zero_point_hybrid(float least, float greatest, double step)
{
    const double below = (double)least / step;
    const double above = (double)greatest / step;
    const double point = 128.0 - below < 127.0 + above ? -128.0 - below : 127.0 - above;
    if (!(point > -128.0)) {
        return point <= -128.0 ? -128 : 0;
    }
    if (point >= 127.0) {
        return 127;
    }
    int32_t whole = (int32_t)point;
    const double rest = point - (double)whole;
    whole += rest >= 0.5 ? 1 : 0;
    whole -= rest <= -0.5 ? 1 : 0;
    return whole;
}

MLF_KERNEL void mlf_quantize_rows_asymmetric(int32_t rows, int32_t size, const float *input, int8_t *output,
                                             float *scales, int32_t *zero_points)
{
    for (int32_t row = 0; row < rows; row++, input += size, output += size) {
        float least = 0.0f;
        float greatest = 0.0f;
        for (int32_t i = 0; i < size; i++) {
            least = input[i] < least ? input[i] : least;
            greatest = input[i] > greatest ? input[i] : greatest;
        }
        float scale = 1.0f;
        int32_t zero_point = 0;
        if (least < greatest) {
            const double step = (double)mlf_unfused(greatest - least) / 255.0;
            scale = (float)step;
            zero_point = mlf_zero_point_hybrid(least, greatest, step);
        }
        const float factor = 1.0f / scale;
        for (int32_t i = 0; i < size; i++) {
            const int32_t whole = mlf_nearest_hybrid(mlf_unfused(input[i] * factor));
            output[i] = (int8_t)mlf_clamp(whole + zero_point, INT8_MIN, INT8_MAX);
        }
        scales[row] = scale;
        zero_points[row] = zero_point;
    }
}

MLF_KERNEL int32_t mlf_zero_point_of_row(const struct mlf_hybrid *hybrid, int32_t row)
{
    return hybrid->zero_points ? hybrid->zero_points[row] : 0;
}

/* Return the sum with which channel c begins: with it, a kernel multiplies inputs instead of their differences. */
MLF_KERNEL uint32_t mlf_first_sum_hybrid(const struct mlf_hybrid *hybrid, int32_t row, int32_t c)
{
    return hybrid->zero_points ? 0U - (uint32_t)hybrid->zero_points[row] * (uint32_t)hybrid->weight_sums[c] : 0U;
}

MLF_KERNEL float mlf_scaled_hybrid(const struct mlf_hybrid *hybrid, int32_t row, int32_t c, uint32_t sum)
{
    const float number = (float)(int32_t)sum;
    const float channel = hybrid->weight_scales[c * hybrid->step];
    const float product = hybrid->channel_first ? mlf_unfused(number * channel) * hybrid->scales[row]
                                                : number * mlf_unfused(channel * hybrid->scales[row]);
    return mlf_clamp_float(mlf_unfused(product) + hybrid->bias[c], hybrid->range);
}

/* All output channels of one row, or of one window. */
MLF_KERNEL void mlf_row_hybrid(const struct mlf_hybrid *hybrid, int32_t row, int32_t inputs, int32_t outputs,
                               const int8_t *input, const int8_t *weights, float *output)
{
    int32_t c = 0;
    for (; c + 4 <= outputs; c += 4) {
        struct mlf_int32x4 sum = {
            mlf_first_sum_hybrid(hybrid, row, c), mlf_first_sum_hybrid(hybrid, row, c + 1),
            mlf_first_sum_hybrid(hybrid, row, c + 2), mlf_first_sum_hybrid(hybrid, row, c + 3)};
        sum = mlf_dot_1x4_row_int8(sum, input, weights + c * inputs, inputs);
        output[c] = mlf_scaled_hybrid(hybrid, row, c, sum.v0);
        output[c + 1] = mlf_scaled_hybrid(hybrid, row, c + 1, sum.v1);
        output[c + 2] = mlf_scaled_hybrid(hybrid, row, c + 2, sum.v2);
        output[c + 3] = mlf_scaled_hybrid(hybrid, row, c + 3, sum.v3);
    }
    for (; c < outputs; c++) {
        const uint32_t first = mlf_first_sum_hybrid(hybrid, row, c);
        output[c] = mlf_scaled_hybrid(hybrid, row, c, mlf_dot_int8(first, input, weights + c * inputs, inputs));
    }
}

MLF_KERNEL void mlf_fully_connected_hybrid(const struct mlf_matrix *matrix, const struct mlf_hybrid *hybrid,
                                           const int8_t *input, const int8_t *weights, float *output)
{
    for (int32_t row = 0; row < matrix->rows; row++) {
        mlf_row_hybrid(hybrid, row, matrix->inputs, matrix->outputs, input, weights, output);
        input += matrix->inputs;
        output += matrix->outputs;
    }
}

/* Copy the numbers under a window. */
MLF_KERNEL void mlf_copy_patch_hybrid(const struct mlf_window *window, const struct mlf_taps *rows,
                                      const struct mlf_taps *columns, int32_t zero_point, const int8_t *input,
                                      int8_t *patch)
{
    const uint32_t depth = (uint32_t)window->input_channels;
    for (int32_t row = 0; row < window->filter.height; row++) {
        for (int32_t column = 0; column < window->filter.width; column++, patch += depth) {
            if (row < rows->first || row >= rows->end || column < columns->first || column >= columns->end) {
                memset(patch, zero_point, depth);
            } else {
                memcpy(patch, input + mlf_pixel(window, rows, columns, row, column), depth);
            }
        }
    }
}

/* Return the numbers under a window: in the image if the filter is 1x1, otherwise a copy in `scratch`. */
MLF_KERNEL const int8_t *mlf_patch_hybrid(const struct mlf_window *window, const struct mlf_taps *rows,
                                          const struct mlf_taps *columns, int32_t zero_point, const int8_t *input,
                                          int8_t *scratch)
{
    if (window->filter.height * window->filter.width == 1) {
        return input + mlf_pixel(window, rows, columns, 0, 0);
    }
    mlf_copy_patch_hybrid(window, rows, columns, zero_point, input, scratch);
    return scratch;
}

MLF_KERNEL void mlf_conv2d_hybrid(const struct mlf_window *window, const struct mlf_hybrid *hybrid,
                                  const int8_t *input, const int8_t *filter, int8_t *scratch, float *output)
{
    const int32_t taps = window->filter.height * window->filter.width;
    for (int32_t batch = 0; batch < window->batches; batch++) {
        const int32_t zero_point = mlf_zero_point_of_row(hybrid, batch);
        for (int32_t y = 0; y < window->output.height; y++) {
            const struct mlf_taps rows = mlf_rows(window, y);
            for (int32_t x = 0; x < window->output.width; x++) {
                const struct mlf_taps columns = mlf_columns(window, x);
                const int8_t *const patch = mlf_patch_hybrid(window, &rows, &columns, zero_point, input, scratch);
                mlf_row_hybrid(hybrid, batch, taps * window->input_channels, window->output_channels, patch, filter,
                               output);
                output += window->output_channels;
            }
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
}

MLF_KERNEL void mlf_depthwise_conv2d_hybrid(const struct mlf_window *window, const struct mlf_hybrid *hybrid,
                                            const int8_t *input, const int8_t *filter, float *output)
{
    const int32_t multiplier = window->output_channels / window->input_channels;
    for (int32_t batch = 0; batch < window->batches; batch++) {
        const int32_t zero_point = mlf_zero_point_of_row(hybrid, batch);
        for (int32_t y = 0; y < window->output.height; y++) {
            const struct mlf_taps rows = mlf_rows(window, y);
            for (int32_t x = 0; x < window->output.width; x++) {
                const struct mlf_taps columns = mlf_columns(window, x);
                for (int32_t c = 0; c < window->output_channels; c++) {
                    const uint32_t sum =
                        mlf_depthwise_sum_int8(window, &rows, &columns, zero_point, input + c / multiplier, filter + c,
                                               mlf_first_sum_hybrid(hybrid, batch, c));
                    output[c] = mlf_scaled_hybrid(hybrid, batch, c, sum);
                }
                output += window->output_channels;
            }
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
}

/*
 * Each block of the weights of an output has a scale; the sums of blocks are added in float32. real_sums has the sum of
 * the real weights of each output.
 */
struct mlf_blockwise {
    int32_t blocks;
    const float *scales;
    const int32_t *zero_points;
    const float *block_scales;
    const float *real_sums;
    const float *bias;
};

MLF_KERNEL float mlf_finished_blockwise(const struct mlf_blockwise *layer, int32_t row, int32_t c, float sum)
{
    const float shift = mlf_unfused((float)layer->zero_points[row] * layer->real_sums[c]);
    return mlf_unfused((sum - shift) * layer->scales[row]) + layer->bias[c];
}

MLF_KERNEL float mlf_block_sum(float total, uint32_t sum, float scale)
{
    return total + mlf_unfused((float)(int32_t)sum * scale);
}

MLF_KERNEL void mlf_fully_connected_blockwise(const struct mlf_matrix *matrix, const struct mlf_blockwise *layer,
                                              const int8_t *input, const int8_t *weights, float *output)
{
    const int32_t size = matrix->inputs / layer->blocks;
    for (int32_t row = 0; row < matrix->rows; row++, input += matrix->inputs, output += matrix->outputs) {
        for (int32_t c = 0; c < matrix->outputs; c++) {
            const int8_t *part = weights + c * matrix->inputs;
            const float *const scales = layer->block_scales + c * layer->blocks;
            float total = 0.0f;
            for (int32_t block = 0; block < layer->blocks; block++, part += size) {
                total = mlf_block_sum(total, mlf_dot_int8(0U, input + block * size, part, size), scales[block]);
            }
            output[c] = mlf_finished_blockwise(layer, row, c, total);
        }
    }
}

#endif /* MLF_HYBRID_H_ */
