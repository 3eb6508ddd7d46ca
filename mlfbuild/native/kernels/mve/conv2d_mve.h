/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D on int8 for Helium (MVE); sums and rescaling are those of conv2d.h.
 *
 * dot_2x4_mve.h has the micro-kernel and the order of the weights, dot_2x4_fixed_mve.h the micro-kernel for frequent
 * sizes of windows; windows_mve.h iterates over the image. If the rows of windows are shorter than a vector or have
 * gaps (first layers, dilation), all are copied and the weights have one row. A 1x1 filter can be computed in place.
 *
 * Layout of the weights: that of dot_2x4_mve.h, for windows of `rows` pieces of memory. Scratch memory holds a strip of
 * rows of the image with their padding, if it is large enough: then each byte is copied once, and a call of the
 * micro-kernel computes several rows. Otherwise it holds the windows that are copied, one after the other.
 *
 * Cost: 14 instructions for 128 products of two pixels and four channels if the pieces fill vectors (dot_2x4_mve.h).
 * That is why windows in the image are read in place: a copied byte is loaded and stored again. A piece shorter than a
 * vector would take as many instructions as a whole one, so copying is cheaper then.
 */
#ifndef MLF_CONV2D_MVE_H_
#define MLF_CONV2D_MVE_H_

#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "dot_2x4_fixed_mve.h"
#include "dot_2x4_mve.h"
#include "requantize_mve.h"
#include "window.h"
#include "windows_mve.h"

/* The state of a convolution. */
struct mlf_conv2d_mve {
    struct mlf_windows windows; /* first, because windows_mve.h uses only this member */
    mlf_dot_2x4_function multiply;
    int32_t channels; /* of the output */
    const struct mlf_channels4 *table;
    const int8_t *weights;
    int32_t group; /* bytes of the weights of four channels */
    struct mlf_dot_2x4 dot;
};

/* Let the pixels of a pair be written `distance` bytes apart, and only the first `count` of four channels. */
MLF_KERNEL void mlf_dot_2x4_scatter(struct mlf_dot_2x4 *dot, int32_t distance, int32_t count)
{
    for (int32_t c = 0; c < 4; c++) {
        const int32_t at = c < count ? c : count - 1; /* channels beyond the last one are copies of it */
        dot->scatter[c] = (uint32_t)at | (uint32_t)(at + distance) << 16;
    }
}

/* Compute pairs of pixels, `distance` bytes of input and `apart` bytes of output apart; 0 makes a pair one pixel. */
MLF_SHARED void mlf_conv2d_pairs_mve(struct mlf_conv2d_mve *conv, const int8_t *first, int32_t distance,
                                     int32_t pairs, int8_t *output, int32_t apart)
{
    struct mlf_dot_2x4 *const dot = &conv->dot;
    const int32_t whole = conv->channels / 4;
    const int32_t rest = conv->channels % 4;
    dot->first = first;
    dot->second = first + distance;
    dot->step = 2 * distance;
    dot->pairs = pairs;
    dot->output_step = 2 * apart;
    if (whole > 0) {
        dot->weights = conv->weights;
        dot->weights_end = conv->weights + whole * conv->group;
        dot->channels = conv->table;
        dot->output = output;
        mlf_dot_2x4_scatter(dot, apart, 4);
        conv->multiply(dot);
    }
    if (rest > 0) {
        dot->weights = conv->weights + whole * conv->group;
        dot->weights_end = dot->weights + conv->group;
        dot->channels = conv->table + whole;
        dot->output = output + 4 * whole;
        mlf_dot_2x4_scatter(dot, apart, rest);
        conv->multiply(dot);
    }
}

/* Compute a run of pixels. */
MLF_SHARED void mlf_conv2d_pixels_mve(struct mlf_windows *windows, const struct mlf_run *run)
{
    struct mlf_conv2d_mve *const conv = (struct mlf_conv2d_mve *)(void *)windows;
    const int32_t even = run->count - run->count % 2;
    conv->dot.gap = run->pitch - 16 * conv->dot.vectors;
    if (even > 0) {
        mlf_conv2d_pairs_mve(conv, run->first, run->distance, even / 2, run->output, run->apart);
    }
    if (even < run->count) {
        mlf_conv2d_pairs_mve(conv, run->first + even * run->distance, 0, 1, run->output + even * run->apart, 0);
    }
}

/* Return a convolution whose windows are `rows` pieces of memory. */
MLF_SHARED struct mlf_conv2d_mve mlf_conv2d_start_mve(const struct mlf_window *window,
                                                      const struct mlf_quantization *quantization,
                                                      const int8_t *weights, const struct mlf_channels4 *channels,
                                                      mlf_dot_2x4_function multiply, int32_t rows)
{
    const int32_t size = window->filter.height * window->filter.width * window->input_channels;
    struct mlf_conv2d_mve conv = {
        .windows =
            {
                .window = window,
                .run = mlf_conv2d_pixels_mve,
                .lanes = 2,
                .fill = (int8_t)quantization->input_zero_point,
            },
        .multiply = multiply,
        .channels = window->output_channels,
        .table = channels,
        .weights = weights,
        .group = 4 * size,
        .dot =
            {
                .rows = rows,
                .vectors = size / rows / 16,
                .tail = size / rows % 16,
                .zero_point = quantization->output_zero_point,
                .minimum = quantization->minimum,
                .maximum = quantization->maximum,
            },
    };
    return conv;
}

/*
 * All windows are copied, `batch` at a time; with a batch of 0, only those that reach into the padding, two at a time.
 * Scratch memory is needed for as many windows and 16 bytes.
 */
MLF_SHARED void mlf_conv2d_int8_mve(const struct mlf_window *window, const struct mlf_quantization *quantization,
                                    const int8_t *input, const int8_t *weights, const struct mlf_channels4 *channels,
                                    mlf_dot_2x4_function multiply, int32_t batch, void *scratch, int8_t *output)
{
    struct mlf_conv2d_mve conv = mlf_conv2d_start_mve(window, quantization, weights, channels, multiply,
                                                      batch > 0 ? 1 : window->filter.height);
    conv.windows.scratch = scratch;
    conv.windows.batch = batch > 0 ? batch : 2;
    if (batch > 0) {
        mlf_windows_run_copied(&conv.windows, input, output);
    } else {
        mlf_windows_run(&conv.windows, input, output);
    }
}

/* Compute `count` rows of the output, whose windows are `step` bytes apart; `together` if the micro-kernel can do all. */
MLF_SHARED void mlf_conv2d_lines_mve(struct mlf_conv2d_mve *conv, struct mlf_run *run, int32_t step, int32_t count,
                                     int32_t together)
{
    const int32_t rows = together != 0 ? count : 1;
    const struct mlf_dot_2x4_lines lines = {rows - 1, step, run->count * run->apart};
    conv->dot.lines = &lines;
    for (int32_t y = 0; y < count; y += rows) {
        mlf_conv2d_pixels_mve(&conv->windows, run);
        run->first += rows * step;
        run->output += rows * lines.output_step;
    }
    conv->dot.lines = NULL;
}

/*
 * Windows are read in a strip: `rows` rows of the image, each between its columns of padding, `pitch` bytes apart. From
 * one strip to the next, the rows that both have are moved. So the output may begin at the address of the input if each
 * of its rows ends before the rows of the image that are not in the strip. Without a strip (0 rows), all windows are
 * inside the image and read there.
 */
MLF_SHARED void mlf_conv2d_strip_int8_mve(const struct mlf_window *window, const struct mlf_quantization *quantization,
                                          const int8_t *input, const int8_t *weights,
                                          const struct mlf_channels4 *channels, mlf_dot_2x4_function multiply,
                                          int32_t together, int32_t rows, int32_t pitch, int8_t *strip, int8_t *output)
{
    struct mlf_conv2d_mve conv =
        mlf_conv2d_start_mve(window, quantization, weights, channels, multiply, window->filter.height);
    const int32_t depth = window->input_channels;
    const int32_t line = window->input.width * depth;
    const int32_t stride = window->stride.height;
    struct mlf_run run = {input, window->output.width, window->stride.width * depth, pitch, output, conv.channels};
    if (rows == 0) {
        for (int32_t n = 0; n < window->batches; n++) {
            run.first = input + n * window->input.height * line;
            mlf_conv2d_lines_mve(&conv, &run, stride * line, window->output.height, together);
        }
        return;
    }
    const int32_t most = (rows - window->filter.height) / stride + 1; /* rows of the output of a strip */
    int8_t *const inside = strip + window->padding.width * depth;
    int32_t kept = 0;
    int32_t y = -window->padding.height; /* row of the image that is copied next */
    for (int8_t *row = strip; row < strip + rows * pitch; row += pitch) {
        (void)mlf_fill_mve(row, conv.windows.fill, (int32_t)(inside - strip));
        (void)mlf_fill_mve(row + (inside - strip) + line, conv.windows.fill, pitch - (int32_t)(inside - strip) - line);
    }
    for (int32_t left = window->output.height, count; left > 0; left -= count) {
        count = left < most ? left : most;
        for (; kept < (count - 1) * stride + window->filter.height; kept++, y++) {
            if (y >= 0 && y < window->input.height) {
                (void)mlf_copy_mve(inside + kept * pitch, input + y * line, line);
            } else {
                (void)mlf_fill_mve(inside + kept * pitch, conv.windows.fill, line);
            }
        }
        run.first = strip;
        mlf_conv2d_lines_mve(&conv, &run, stride * pitch, count, together);
        kept -= count * stride;
        (void)mlf_copy_mve(strip, run.first, kept * pitch);
    }
}

/*
 * A 1x1 filter on the pixels of one long row; the output may begin at the address of the input. `batch` pixels at a
 * time are copied to scratch memory before outputs are written; if output pixels are larger, from the end.
 */
MLF_SHARED void mlf_conv2d_pointwise_int8_mve(const struct mlf_window *window,
                                              const struct mlf_quantization *quantization, const int8_t *input,
                                              const int8_t *weights, const struct mlf_channels4 *channels,
                                              mlf_dot_2x4_function multiply, int32_t batch, int8_t *scratch,
                                              int8_t *output)
{
    struct mlf_conv2d_mve conv = mlf_conv2d_start_mve(window, quantization, weights, channels, multiply, 1);
    const int32_t depth = window->input_channels;
    const int32_t pixels = window->output.width;
    for (int32_t done = 0, count; done < pixels; done += count) {
        count = pixels - done < batch ? pixels - done : batch;
        const int32_t x = conv.channels > depth ? pixels - done - count : done;
        const struct mlf_run run = {scratch, count, depth, 0, output + x * conv.channels, conv.channels};
        (void)mlf_copy_mve(scratch, input + x * depth, count * depth);
        mlf_conv2d_pixels_mve(&conv.windows, &run);
    }
}

#endif /* MLF_CONV2D_MVE_H_ */
