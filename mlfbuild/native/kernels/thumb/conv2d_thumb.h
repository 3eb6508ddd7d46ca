/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D of int8 for cores without SIMD: the windows of four pixels, or of two if memory is short, are packed into
 * scratch memory, in the order of rows, columns and channels, for dot_4x1_thumb.h. The padding is read as the input's
 * zero point, which represents 0. The last block of an output may overlap the one before.
 *
 * Layout of scratch memory: for each input of a window one word of two pixels, p + q * 65536, or for four pixels two
 * words next to each other. So it has 4 or 8 bytes for each input. dot_4x1_thumb.h describes the filter.
 *
 * Packing four pixels takes 13 instructions for an input of each, once for all output channels; a product takes 2.1 or
 * 2.4 (dot_4x1_thumb.h). Two pixels need half the scratch memory and 15 % more instructions. Without any,
 * fully_connected_thumb.h reads the image itself, with 60 % more.
 */
#ifndef MLF_CONV2D_THUMB_H_
#define MLF_CONV2D_THUMB_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_4x1_thumb.h"
#include "matmul_thumb.h"
#include "pack_thumb.h"
#include "window.h"

/* A convolution; for `matmul`, rows are pixels of the output, and inputs are those of a window. */
struct mlf_conv2d_thumb {
    const struct mlf_window *window;
    const struct mlf_matmul_thumb *matmul;
};

/* The position of a pixel's window, which may be outside the image. */
struct mlf_corner_thumb {
    const int8_t *image;
    int32_t y;
    int32_t x;
};

/* The windows of a block that begins at `pixel`; one is repeated if the output is smaller than a block. */
MLF_KERNEL void mlf_corners_thumb(const struct mlf_conv2d_thumb *conv2d, const int8_t *input, int32_t pixel,
                                  struct mlf_corner_thumb corners[4])
{
    const struct mlf_window *const window = conv2d->window;
    int32_t row = pixel / window->output.width;
    int32_t x = pixel - row * window->output.width;
    int32_t batch = row / window->output.height;
    int32_t y = row - batch * window->output.height;
    const int32_t pixels = conv2d->matmul->rows < conv2d->matmul->pixels ? 1 : conv2d->matmul->pixels;
    for (int32_t p = 0; p < 4; p++) {
        corners[p].image = input + batch * (window->input.height * window->input.width * window->input_channels);
        corners[p].y = y * window->stride.height - window->padding.height;
        corners[p].x = x * window->stride.width - window->padding.width;
        if (p + 1 < pixels && ++x == window->output.width) {
            x = 0;
            if (++y == window->output.height) {
                y = 0;
                batch++;
            }
        }
    }
}

MLF_KERNEL int32_t *mlf_pack_block_thumb(int32_t pixels, int32_t *rows, const int8_t *const taps[4], int32_t count)
{
    return pixels == 4 ? mlf_pack4_thumb(rows, taps, count) : mlf_pack2_thumb(rows, taps, count);
}

/* Pack a row of the filter of each window, tap by tap; `padding` is one pixel of the input's zero point. */
MLF_SHARED int32_t *mlf_pack_taps_thumb(const struct mlf_conv2d_thumb *conv2d, const struct mlf_corner_thumb corners[4],
                                        int32_t row, const int8_t *padding, int32_t *rows)
{
    const struct mlf_window *const window = conv2d->window;
    const int8_t *lines[4];
    for (int32_t p = 0; p < 4; p++) {
        const int32_t y = corners[p].y + row * window->dilation.height;
        const int inside = y >= 0 && y < window->input.height;
        lines[p] = inside ? corners[p].image + y * window->input.width * window->input_channels : (const int8_t *)0;
    }
    for (int32_t column = 0; column < window->filter.width; column++) {
        const int8_t *taps[4];
        for (int32_t p = 0; p < 4; p++) {
            const int32_t x = corners[p].x + column * window->dilation.width;
            const int inside = lines[p] != (const int8_t *)0 && x >= 0 && x < window->input.width;
            taps[p] = inside ? lines[p] + x * window->input_channels : padding;
        }
        rows = mlf_pack_block_thumb(conv2d->matmul->pixels, rows, taps, window->input_channels);
    }
    return rows;
}

/* Pack the windows of a block. */
MLF_SHARED void mlf_pack_windows_thumb(const struct mlf_conv2d_thumb *conv2d, const struct mlf_corner_thumb corners[4],
                                       const int8_t *padding, int32_t *rows)
{
    const struct mlf_window *const window = conv2d->window;
    const int32_t depth = window->input_channels;
    const int8_t *taps[4];
    int inside = window->dilation.width == 1;
    for (int32_t p = 0; p < 4; p++) {
        const struct mlf_corner_thumb *const corner = &corners[p];
        inside &= corner->x >= 0 && corner->x + window->filter.width <= window->input.width && corner->y >= 0 &&
                  corner->y + (window->filter.height - 1) * window->dilation.height < window->input.height;
    }
    for (int32_t p = 0; p < 4; p++) {
        const int32_t first = (corners[p].y * window->input.width + corners[p].x) * depth;
        taps[p] = corners[p].image + (inside ? first : 0);
    }
    for (int32_t row = 0; row < window->filter.height; row++) {
        if (inside) {
            rows = mlf_pack_block_thumb(conv2d->matmul->pixels, rows, taps, window->filter.width * depth);
            for (int32_t p = 0; p < 4; p++) {
                taps[p] += window->dilation.height * window->input.width * depth;
            }
        } else {
            rows = mlf_pack_taps_thumb(conv2d, corners, row, padding, rows);
        }
    }
}

/* `padding` is one pixel of the input's zero point, `scratch` the packed windows of a block. */
MLF_SHARED void mlf_conv2d_int8_thumb(const struct mlf_window *window, const struct mlf_matmul_thumb *matmul,
                                      const int8_t *input, const int32_t *filter, const int8_t *padding,
                                      int8_t *output, int32_t *scratch)
{
    const struct mlf_conv2d_thumb conv2d = {window, matmul};
    struct mlf_dot_thumb dot = mlf_dot_of_thumb(matmul);
    const int32_t last = matmul->rows - matmul->pixels;
    if (last < 0) {
        dot.pitch = 0; /* one pixel, which is computed several times */
    }
    for (int32_t pixel = 0; pixel < matmul->rows;) {
        struct mlf_corner_thumb corners[4];
        mlf_corners_thumb(&conv2d, input, pixel, corners);
        mlf_pack_windows_thumb(&conv2d, corners, padding, scratch);
        if (matmul->pixels == 4) {
            (void)mlf_dot_4x1_thumb(scratch, filter, output + pixel * matmul->outputs, &dot);
        } else {
            (void)mlf_dot_2x1_thumb(scratch, filter, output + pixel * matmul->outputs, &dot);
        }
        pixel += matmul->pixels;
        pixel = pixel < matmul->rows && pixel > last ? last : pixel;
    }
    mlf_activate_thumb(matmul, output);
}

#endif /* MLF_CONV2D_THUMB_H_ */
