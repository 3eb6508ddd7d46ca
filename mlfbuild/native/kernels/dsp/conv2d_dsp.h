/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D of int8 for cores with the DSP extension: the windows of a block of pixels, expanded to 16 bits, times the
 * filter of matmul_dsp.h. Inputs of a window are in the order of its rows, columns and channels, padded to whole groups
 * of four with weights of 0. The padding is read as the input's zero point, which represents 0.
 *
 * If the number of input channels is a multiple of four, windows are expanded directly from the image, a row of the
 * filter at a time if no tap is outside. Other inputs, usually those of a network's first layer, are gathered first, by
 * code that is specialised for the sizes. The last block of an image may overlap the one before.
 *
 * Layout of scratch memory: the block, 2 bytes for each input of three or two windows, in groups of four inputs: words
 * of the inputs (0, 2) of each pixel, then of (1, 3). Then gathered windows as bytes, then copied pairs of the filter.
 *
 * Expanding three pixels takes 10 instructions for 12 inputs on cores that issue one at a time, once for all output
 * channels. Weights stay bytes in flash: dot_3x2_dsp.h spends one SXTB16 on those of 12 products. Blocks of two need a
 * third less memory and take 6 % more instructions.
 */
#ifndef MLF_CONV2D_DSP_H_
#define MLF_CONV2D_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "matmul_dsp.h"
#include "window.h"

/* The position of a pixel's window, which may be outside the image. */
struct mlf_corner_dsp {
    const int8_t *image;
    int32_t y;
    int32_t x;
};

MLF_KERNEL struct mlf_corner_dsp mlf_corner_dsp(const struct mlf_window *window, const int8_t *input, int32_t pixel)
{
    const int32_t row = pixel / window->output.width;
    const int32_t batch = row / window->output.height;
    const struct mlf_corner_dsp corner = {
        input + batch * (window->input.height * window->input.width * window->input_channels),
        (row - batch * window->output.height) * window->stride.height - window->padding.height,
        (pixel - row * window->output.width) * window->stride.width - window->padding.width,
    };
    return corner;
}

MLF_KERNEL int mlf_inside_dsp(int32_t at, int32_t size)
{
    return (uint32_t)at < (uint32_t)size;
}

MLF_KERNEL const int8_t *mlf_tap_dsp(const struct mlf_window *window, const struct mlf_corner_dsp *corner, int32_t row,
                                     int32_t column, const int8_t *padding)
{
    const int32_t y = corner->y + row * window->dilation.height;
    const int32_t x = corner->x + column * window->dilation.width;
    if (!mlf_inside_dsp(y, window->input.height) || !mlf_inside_dsp(x, window->input.width)) {
        return padding;
    }
    return corner->image + (y * window->input.width + x) * window->input_channels;
}

/* Whether no column of the window, whose columns are adjacent, is outside. */
MLF_KERNEL int mlf_columns_inside_dsp(const struct mlf_window *window, const struct mlf_corner_dsp *corner)
{
    return corner->x >= 0 && corner->x + window->filter.width <= window->input.width && window->dilation.width == 1;
}

/* The parameters of a convolution in addition to its window. */
struct mlf_conv2d_dsp {
    struct mlf_window window;
    struct mlf_matmul_dsp matmul; /* rows: pixels of the output; inputs: those of a window */
};

/*
 * Expand a run of `groups` of four bytes of a block of two or three pixels. The size of a block is a literal of each
 * call of a network, so that the code for a size that no call has is dropped.
 */
MLF_KERNEL int16_t *mlf_expand_block_dsp(int32_t pixels, int16_t *rows, const int8_t *const taps[3], int32_t groups)
{
    return pixels == 3 ? mlf_expand3_dsp(rows, taps[0], taps[1], taps[2], groups)
                       : mlf_expand2_dsp(rows, taps[0], taps[1], groups);
}

/* Expand the row of the filter at `row` of each window, tap by tap. */
MLF_SHARED int16_t *mlf_expand_taps_dsp(const struct mlf_conv2d_dsp *conv2d, int32_t pixels,
                                        const struct mlf_corner_dsp corners[3], int32_t row, const int8_t *padding,
                                        int16_t *rows)
{
    const struct mlf_window *const window = &conv2d->window;
    for (int32_t column = 0; column < window->filter.width; column++) {
        const int8_t *taps[3];
        for (int32_t p = 0; p < 3; p++) {
            taps[p] = mlf_tap_dsp(window, &corners[p], row, column, padding);
        }
        rows = mlf_expand_block_dsp(pixels, rows, taps, window->input_channels >> 2);
    }
    return rows;
}

/* Expand the windows of a block; `padding` is one pixel of the input's zero point. */
MLF_SHARED void mlf_expand_windows_dsp(const struct mlf_conv2d_dsp *conv2d, int32_t pixels,
                                       const struct mlf_corner_dsp corners[3], const int8_t *padding, int16_t *rows)
{
    const struct mlf_window *const window = &conv2d->window;
    const int32_t depth = window->input_channels;
    const int32_t step = (corners[1].x - corners[0].x) * depth;
    const int neighbours = corners[0].y == corners[2].y && corners[0].image == corners[2].image &&
                           mlf_columns_inside_dsp(window, &corners[0]) && mlf_columns_inside_dsp(window, &corners[2]);
    for (int32_t row = 0; row < window->filter.height; row++) {
        const int32_t y = corners[0].y + row * window->dilation.height;
        if (neighbours && mlf_inside_dsp(y, window->input.height)) {
            const int8_t *const first = corners[0].image + (y * window->input.width + corners[0].x) * depth;
            const int8_t *const taps[3] = {first, first + step, first + 2 * step};
            rows = mlf_expand_block_dsp(pixels, rows, taps, window->filter.width * (depth >> 2));
        } else {
            rows = mlf_expand_taps_dsp(conv2d, pixels, corners, row, padding, rows);
        }
    }
}

/* Copy the window of one pixel, with zero points for the padding. */
MLF_KERNEL void mlf_gather_window_dsp(const struct mlf_window *window, const struct mlf_corner_dsp *corner,
                                      int32_t zero_point, int8_t *bytes)
{
    const struct mlf_size *const filter = &window->filter;
    const int32_t depth = window->input_channels;
    const int32_t line = filter->width * depth;
    const int32_t pitch = window->dilation.height * window->input.width * depth;
    const struct mlf_taps rows = mlf_clip(corner->y, filter->height, window->dilation.height, window->input.height);
    const struct mlf_taps columns = mlf_clip(corner->x, filter->width, window->dilation.width, window->input.width);
    const int columns_inside = mlf_columns_inside_dsp(window, corner);
    const int8_t *from = corner->image + (corner->y * window->input.width + corner->x) * depth + rows.first * pitch;
    int8_t *to = bytes + rows.first * line;
    if (!columns_inside || rows.end - rows.first != filter->height) {
        memset(bytes, zero_point, (size_t)(filter->height * line));
    }
    if (columns_inside != 0) {
        for (int32_t row = rows.first; row < rows.end; row++, to += line, from += pitch) {
            memcpy(to, from, (size_t)line);
        }
        return;
    }
    for (int32_t row = rows.first; row < rows.end; row++, to += line, from += pitch) {
        for (int32_t column = columns.first; column < columns.end; column++) {
            memcpy(to + column * depth, from + column * window->dilation.width * depth, (size_t)depth);
        }
    }
}

/* All output channels of the pixels whose windows are in `rows`. */
MLF_KERNEL void mlf_conv2d_block_dsp(const struct mlf_conv2d_dsp *conv2d, int32_t pixels, const int16_t *rows,
                                     const int32_t *filter, int8_t *output, int32_t pixel)
{
    const int32_t pitch = conv2d->matmul.outputs;
    mlf_dot_channels_dsp(&conv2d->matmul, pixels == 3 ? MLF_TILE_3X2 : MLF_TILE_2X2, rows, filter,
                         output + pixel * pitch, conv2d->matmul.rows < pixels ? 0 : pitch);
}

/* The windows of a block that begins at `pixel`; one is repeated if the output is smaller than a block. */
MLF_KERNEL void mlf_corners_dsp(const struct mlf_conv2d_dsp *conv2d, int32_t pixels, const int8_t *input,
                                int32_t pixel, struct mlf_corner_dsp corners[3])
{
    const struct mlf_window *const window = &conv2d->window;
    const int32_t end = window->output.width * window->stride.width - window->padding.width;
    corners[0] = mlf_corner_dsp(window, input, pixel);
    for (int32_t p = 1; p < 3; p++) {
        corners[p] = corners[p - 1];
        if (conv2d->matmul.rows < pixels || p == pixels) {
            continue;
        }
        corners[p].x += window->stride.width;
        if (corners[p].x == end) {
            corners[p] = mlf_corner_dsp(window, input, pixel + p);
        }
    }
}

/* The first pixel of the block after the one at `pixel`; the last block ends at the end of the output. */
MLF_KERNEL int32_t mlf_next_dsp(const struct mlf_conv2d_dsp *conv2d, int32_t pixels, int32_t pixel)
{
    const int32_t left = conv2d->matmul.rows - pixel;
    if (conv2d->matmul.rows < pixels) {
        return pixel + 1;
    }
    return left > pixels && left < 2 * pixels ? conv2d->matmul.rows - pixels : pixel + pixels;
}

/*
 * With a multiple of four input channels. `padding` is one pixel of the input's zero point. `scratch` holds a block,
 * then the copied pairs, which only blocks of three can have.
 */
MLF_SHARED void mlf_conv2d_int8_dsp(const struct mlf_conv2d_dsp *conv2d, int32_t pixels, const int8_t *input,
                                    const int32_t *filter, const int8_t *padding, int8_t *output, int16_t *scratch)
{
    const struct mlf_matmul_dsp *const matmul = &conv2d->matmul;
    const int32_t pitch = matmul->rows < pixels ? 0 : matmul->outputs;
    struct mlf_dot_dsp dot = mlf_dot_dsp(matmul->inputs, matmul->outputs, pitch, matmul->rounding);
    filter = mlf_copy_pairs_dsp(matmul, filter, (int32_t *)(void *)(scratch + 3 * matmul->inputs), &dot);
    for (int32_t pixel = 0; pixel < matmul->rows; pixel = mlf_next_dsp(conv2d, pixels, pixel)) {
        struct mlf_corner_dsp corners[3];
        mlf_corners_dsp(conv2d, pixels, input, pixel, corners);
        mlf_expand_windows_dsp(conv2d, pixels, corners, padding, scratch);
        if (pixels == 3) {
            mlf_dot_channels3_dsp(&dot, matmul->outputs, scratch, filter, output + pixel * matmul->outputs);
        } else {
            mlf_conv2d_block_dsp(conv2d, pixels, scratch, filter, output, pixel);
        }
    }
    mlf_activate_dsp(matmul, output);
}

/*
 * With any number of input channels, in blocks of three. `zero_point` is that of the input. `scratch` holds the expanded windows of a block, the windows
 * of `blocks` in bytes, and the copied pairs. Windows of several blocks are gathered at a time, because the code for
 * this and that of the products are together larger than small caches for instructions (1 KB on an STM32L4R5).
 */
MLF_KERNEL void mlf_conv2d_gather_int8_dsp(const struct mlf_conv2d_dsp *conv2d, int32_t blocks, const int8_t *input,
                                           const int32_t *filter, int8_t *output, int16_t *scratch,
                                           int32_t zero_point)
{
    const struct mlf_matmul_dsp *const matmul = &conv2d->matmul;
    const int32_t groups = (matmul->inputs + 3) / 4;
    int8_t *const bytes = (int8_t *)(scratch + 3 * 4 * groups);
    const int32_t pitch = matmul->rows < 3 ? 0 : matmul->outputs;
    struct mlf_dot_dsp dot = mlf_dot_dsp(matmul->inputs, matmul->outputs, pitch, matmul->rounding);
    filter = mlf_copy_pairs_dsp(matmul, filter, (int32_t *)(void *)(bytes + 12 * groups * blocks), &dot);
    memset(bytes, 0, (size_t)(12 * groups * blocks));
    const int32_t step = matmul->rows < 3 ? 1 : 3;
    for (int32_t first = 0, end; first < matmul->rows; first = end) {
        int8_t *window = bytes;
        end = first + step * blocks < matmul->rows ? first + step * blocks : matmul->rows;
        for (int32_t at = first; at < end; at += step, window += 12 * groups) {
            struct mlf_corner_dsp corners[3];
            mlf_corners_dsp(conv2d, 3, input, at > matmul->rows - step ? matmul->rows - step : at, corners);
            for (int32_t p = 0; p < 3; p++) {
                mlf_gather_window_dsp(&conv2d->window, &corners[p], zero_point, window + 4 * groups * p);
            }
        }
        window = bytes;
        for (int32_t at = first; at < end; at += step, window += 12 * groups) {
            const int32_t pixel = at > matmul->rows - step ? matmul->rows - step : at;
            (void)mlf_expand3_dsp(scratch, window, window + 4 * groups, window + 8 * groups, groups);
            mlf_dot_channels3_dsp(&dot, matmul->outputs, scratch, filter, output + pixel * matmul->outputs);
        }
    }
    mlf_activate_dsp(matmul, output);
}

#endif /* MLF_CONV2D_DSP_H_ */
