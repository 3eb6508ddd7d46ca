/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D on float32 for scalar FPUs, at least four output channels; equal to conv2d.h except for the order and
 * rounding of additions. dot_4x4_float_vfp.h has the micro-kernel and the order of the weights, which are finite.
 *
 * Pixels are computed four at a time in the order of the output; the last four may overlap those before. A row of the
 * filter that is inside the image for all four is one run, other rows have a run for each tap, with zeros for taps in
 * the padding.
 *
 * Some groups of channels are computed for a strip of pixels before the next groups, so that large weights are read
 * from flash once for several blocks of pixels.
 */
#ifndef MLF_CONV2D_FLOAT_VFP_H_
#define MLF_CONV2D_FLOAT_VFP_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_4x4_float_vfp.h"
#include "window.h"

/* Bytes of inputs and weights that are used together, so that they fit in a data cache of 16 KB. */
#define MLF_STRIP_VFP 4096
#define MLF_WEIGHTS_VFP 9216

/* The position of a pixel's window, which may be outside its image. */
struct mlf_corner_vfp {
    int32_t y;
    int32_t x;
    const float *at; /* its first element */
};

struct mlf_conv2d_vfp {
    const struct mlf_window *window;
    const float *input;
    const float *padding; /* a pixel of zeros */
    struct mlf_run_vfp *runs;
    struct mlf_dot_4x4_vfp tile;
};

MLF_KERNEL int mlf_inside_vfp(int32_t at, int32_t size)
{
    return (uint32_t)at < (uint32_t)size;
}

/* Return the address `rows` below and `columns` to the right of `at`, which may be outside an image. */
MLF_KERNEL const float *mlf_moved_vfp(const struct mlf_window *window, const float *at, int32_t rows, int32_t columns)
{
    const int32_t pixels = rows * window->input.width + columns;
    return (const float *)((uintptr_t)at + (uintptr_t)(4 * pixels * window->input_channels));
}

MLF_KERNEL struct mlf_corner_vfp mlf_corner_vfp(const struct mlf_conv2d_vfp *conv, int32_t pixel)
{
    const struct mlf_window *const window = conv->window;
    const int32_t row = pixel / window->output.width;
    const int32_t batch = window->batches == 1 ? 0 : row / window->output.height;
    struct mlf_corner_vfp corner = {
        (row - batch * window->output.height) * window->stride.height - window->padding.height,
        (pixel - row * window->output.width) * window->stride.width - window->padding.width,
        conv->input,
    };
    corner.at = mlf_moved_vfp(window, conv->input, batch * window->input.height + corner.y, corner.x);
    return corner;
}

/* Return a pixel's address of the tap at (row, column), relative to its window; zeros in the padding. */
MLF_KERNEL const float *mlf_tap_vfp(const struct mlf_conv2d_vfp *conv, const struct mlf_corner_vfp *corner, int32_t row,
                                    int32_t column)
{
    const struct mlf_window *const window = conv->window;
    if (!mlf_inside_vfp(corner->y + row, window->input.height) ||
        !mlf_inside_vfp(corner->x + column, window->input.width)) {
        return conv->padding;
    }
    return mlf_moved_vfp(window, corner->at, row, column);
}

/* List a run for each tap of a row of the filter. */
MLF_SHARED struct mlf_run_vfp *mlf_taps_vfp(const struct mlf_conv2d_vfp *conv, const struct mlf_corner_vfp corners[4],
                                            int32_t row, struct mlf_run_vfp *run)
{
    const struct mlf_window *const window = conv->window;
    const int32_t depth = window->input_channels;
    for (int32_t column = 0; column < window->filter.width; column++, run++) {
        for (int32_t p = 0; p < 4; p++) {
            run->pixels[p] = mlf_tap_vfp(conv, &corners[p], row * window->dilation.height,
                                         column * window->dilation.width);
        }
        run->offset = 16 * (row * window->filter.width + column) * depth;
        run->length = depth;
    }
    return run;
}

/* List the runs of four windows from that of `pixel`, or of one four times if `step` is 0. */
MLF_SHARED void mlf_runs_vfp(struct mlf_conv2d_vfp *conv, int32_t pixel, int32_t step)
{
    const struct mlf_window *const window = conv->window;
    const int32_t line = window->filter.width * window->input_channels;
    const int32_t stride = step * window->stride.width;
    const int32_t end = window->output.width * window->stride.width - window->padding.width;
    struct mlf_run_vfp *run = conv->runs;
    struct mlf_corner_vfp corners[4];
    corners[0] = mlf_corner_vfp(conv, pixel);
    for (int32_t p = 1; p < 4; p++) {
        corners[p] = corners[p - 1];
        corners[p].x += stride;
        corners[p].at = mlf_moved_vfp(window, corners[p].at, 0, stride);
        if (corners[p].x == end) {
            corners[p] = mlf_corner_vfp(conv, pixel + p);
        }
    }
    const int neighbours = corners[0].x + 3 * stride == corners[3].x;
    const int whole = neighbours && window->dilation.width == 1 && corners[0].x >= 0 &&
                      corners[3].x + window->filter.width <= window->input.width;
    for (int32_t row = 0; row < window->filter.height; row++) {
        const int32_t down = row * window->dilation.height;
        const int inside = mlf_inside_vfp(corners[0].y + down, window->input.height);
        if (whole && inside) {
            for (int32_t p = 0; p < 4; p++) {
                run->pixels[p] = mlf_moved_vfp(window, corners[p].at, down, 0);
            }
            run->offset = 16 * row * line;
            run->length = line;
            run++;
        } else if (inside || !neighbours) {
            run = mlf_taps_vfp(conv, corners, row, run);
        }
    }
    conv->tile.runs = conv->runs;
    conv->tile.end = run;
}

/* `padding` is one pixel of zeros, `runs` has room for the taps of the filter. */
MLF_SHARED void mlf_conv2d_float_vfp(const struct mlf_window *window, struct mlf_float_range range, const float *input,
                                     const float *filter, const float *bias, const float *padding,
                                     struct mlf_run_vfp *runs, float *output)
{
    const int32_t channels = window->output_channels;
    const int32_t whole = channels / 4;
    const int32_t groups = (channels + 3) / 4;
    const int32_t pixels = window->batches * window->output.height * window->output.width;
    const int32_t size = window->filter.height * window->filter.width * window->input_channels;
    const int32_t step = pixels < 4 ? 0 : 1;
    const int32_t most = MLF_WEIGHTS_VFP / 16 / size; /* groups whose weights stay in a cache */
    const int32_t strip = step == 0 ? 1 : MLF_STRIP_VFP / 4 / window->input_channels / 4 * 4 + 4;
    struct mlf_conv2d_vfp conv = {
        window, input, padding, runs, {.group = 16 * size, .pitch = 4 * step * channels, .range = range},
    };
    for (int32_t first = 0; first < pixels; first += strip) {
        for (int32_t group = 0; group < groups; group += conv.tile.groups) {
            const int32_t channel = group < whole ? 4 * group : channels - 4;
            conv.tile.groups = group + most <= whole ? most : group < whole ? whole - group : 1;
            conv.tile.groups = most == 0 ? 1 : conv.tile.groups;
            for (int32_t pixel = first; pixel < first + strip && pixel < pixels; pixel += 4) {
                const int32_t start = step == 0 || pixel + 4 <= pixels ? pixel : pixels - 4;
                mlf_runs_vfp(&conv, start, step);
                conv.tile.weights = filter + group * 4 * size;
                conv.tile.bias = bias + channel;
                conv.tile.output = output + start * channels + channel;
                mlf_dot_4x4_vfp(&conv.tile);
            }
        }
    }
}

#endif /* MLF_CONV2D_FLOAT_VFP_H_ */
