/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FULLY_CONNECTED and CONV_2D of int8 for cores without SIMD, without scratch memory: one row or pixel at a time, of
 * which dot_1x4_thumb.h multiplies four output channels. Convolutions use it if packing pixels would enlarge the arena.
 */
#ifndef MLF_FULLY_CONNECTED_THUMB_H_
#define MLF_FULLY_CONNECTED_THUMB_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_1x4_thumb.h"
#include "matmul_thumb.h"
#include "thumb.h"
#include "window.h"

/* An initialisation of the array would call memset. */
MLF_KERNEL void mlf_clear4_thumb(uint32_t sums[4])
{
    sums[3] = 0;
    sums[2] = 0;
    sums[1] = 0;
    sums[0] = 0;
}

MLF_SHARED void mlf_fully_connected_int8_thumb(const struct mlf_matmul_thumb *matmul, const int8_t *input,
                                               const int32_t *filter, int8_t *output)
{
    int8_t *to = output;
    for (int32_t row = 0; row < matmul->rows; row++, input += matmul->inputs, to += matmul->outputs) {
        const int32_t inputs = mlf_add_inputs_thumb(input, matmul->inputs, 0);
        const int32_t *group = filter;
        for (int32_t c = 0; c < matmul->outputs; c += 4) {
            const int32_t channel = c + 4 <= matmul->outputs ? c : matmul->outputs - 4;
            uint32_t sums[4];
            mlf_clear4_thumb(sums);
            const int32_t *const end = mlf_dot_1x4_thumb(input, group + MLF_GROUP_WORDS_THUMB, matmul->inputs, sums);
            mlf_store4_thumb(group, sums, inputs, matmul->rounding, to + channel);
            group = end;
        }
    }
    mlf_activate_thumb(matmul, output);
}

/* The taps of a pixel of a convolution. */
struct mlf_pixel_thumb {
    const struct mlf_window *window;
    struct mlf_taps rows;
    struct mlf_taps columns;
    const int8_t *input;
    const int8_t *padding; /* one pixel of the input's zero point */
};

MLF_KERNEL const int8_t *mlf_tap_thumb(const struct mlf_pixel_thumb *pixel, int32_t row, int32_t column)
{
    const int inside = row >= pixel->rows.first && row < pixel->rows.end && column >= pixel->columns.first &&
                       column < pixel->columns.end;
    return inside ? pixel->input + mlf_pixel(pixel->window, &pixel->rows, &pixel->columns, row, column)
                  : pixel->padding;
}

/* Four channels of a pixel, whose inputs add up to `inputs`; adjacent taps are multiplied together. */
MLF_SHARED const int32_t *mlf_pixel_group_thumb(const struct mlf_pixel_thumb *pixel, const int32_t *filter,
                                                int32_t inputs, int32_t rounding, int8_t *output)
{
    const struct mlf_window *const window = pixel->window;
    const int32_t depth = window->input_channels;
    const int whole = window->dilation.width == 1 && pixel->columns.end - pixel->columns.first == window->filter.width;
    const int32_t *weights = filter + MLF_GROUP_WORDS_THUMB;
    uint32_t sums[4];
    mlf_clear4_thumb(sums);
    for (int32_t row = 0; row < window->filter.height; row++) {
        if (whole && row >= pixel->rows.first && row < pixel->rows.end) {
            weights = mlf_dot_1x4_thumb(mlf_tap_thumb(pixel, row, 0), weights, window->filter.width * depth, sums);
            continue;
        }
        for (int32_t column = 0; column < window->filter.width; column++) {
            weights = mlf_dot_1x4_thumb(mlf_tap_thumb(pixel, row, column), weights, depth, sums);
        }
    }
    mlf_store4_thumb(filter, sums, inputs, rounding, output);
    return weights;
}

MLF_SHARED void mlf_conv2d_direct_int8_thumb(const struct mlf_window *window, const struct mlf_matmul_thumb *matmul,
                                             const int8_t *input, const int32_t *filter, const int8_t *padding,
                                             int8_t *output)
{
    struct mlf_pixel_thumb pixel = {window, {0, 0, 0}, {0, 0, 0}, input, padding};
    int8_t *to = output;
    for (int32_t row = 0; row < window->batches * window->output.height; row++) {
        const int32_t batch = row / window->output.height;
        pixel.input = input + batch * (window->input.height * window->input.width * window->input_channels);
        pixel.rows = mlf_rows(window, row - batch * window->output.height);
        for (int32_t x = 0; x < window->output.width; x++, to += matmul->outputs) {
            int32_t inputs = 0;
            pixel.columns = mlf_columns(window, x);
            for (int32_t tap = 0; tap < window->filter.height * window->filter.width; tap++) {
                const int32_t at = tap / window->filter.width;
                const int8_t *const from = mlf_tap_thumb(&pixel, at, tap - at * window->filter.width);
                inputs = mlf_add_inputs_thumb(from, window->input_channels, inputs);
            }
            const int32_t *group = filter;
            for (int32_t c = 0; c < matmul->outputs; c += 4) {
                const int32_t channel = c + 4 <= matmul->outputs ? c : matmul->outputs - 4;
                group = mlf_pixel_group_thumb(&pixel, group, inputs, matmul->rounding, to + channel);
            }
        }
    }
    mlf_activate_thumb(matmul, output);
}

#endif /* MLF_FULLY_CONNECTED_THUMB_H_ */
