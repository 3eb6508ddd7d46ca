/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D on float32 for Helium (MVE with floats), at least eight output channels; equal to conv2d.h except for the
 * order and rounding of additions. dot_3x8_float_mve.h has the micro-kernel, windows_mve.h iterates over the image.
 *
 * Layout of the weights: that of dot_3x8_float_mve.h, groups of eight channels. Three pixels are computed together, or
 * the one or two that are left, some of them twice. Windows that reach into the padding are copied to scratch memory
 * three at a time, those of dilated filters all, six at a time.
 *
 * Cost: 19 instructions for the 48 products of three pixels, eight channels and two inputs. The six sums are vectors of
 * channels, so that short rows of windows, such as those of first layers, leave no lanes unused and need no copies.
 */
#ifndef MLF_CONV2D_FLOAT_MVE_H_
#define MLF_CONV2D_FLOAT_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_3x8_float_mve.h"
#include "requantize_mve.h"
#include "window.h"
#include "windows_mve.h"

/* The state of a convolution. */
struct mlf_conv2d_float_mve {
    struct mlf_windows windows; /* first, because windows_mve.h uses only this member */
    int32_t channels;           /* of the output */
    const float *weights;
    const float *bias;
    struct mlf_dot_3x8_float dot;
};

/* Compute triples of pixels of `run` from its pixel `first`; the last triple has `count` pixels, 1 to 3. */
MLF_SHARED void mlf_conv2d_float_triples_mve(struct mlf_conv2d_float_mve *conv, const struct mlf_run *run,
                                             int32_t first, int32_t triples, int32_t count)
{
    struct mlf_dot_3x8_float *const dot = &conv->dot;
    const int32_t whole = conv->channels / 8;
    const int32_t group = 8 * dot->rows * dot->length;
    float *const output = (float *)(void *)(run->output + first * run->apart);
    for (int32_t i = 0; i < 3; i++) {
        const int32_t pixel = first + (i < count ? i : count - 1);
        dot->pixels[i] = (const float *)(const void *)(run->first + pixel * run->distance);
    }
    dot->triples = triples;
    dot->step = 3 * run->distance;
    dot->apart[0] = count > 1 ? run->apart : 0;
    dot->apart[1] = count > 2 ? run->apart : 0;
    dot->output_step = 3 * run->apart;
    dot->weights = conv->weights;
    dot->weights_end = conv->weights + whole * group;
    dot->bias = conv->bias;
    dot->output = output;
    mlf_dot_3x8_float(dot);
    if (conv->channels % 8 != 0) {
        dot->weights = dot->weights_end;
        dot->weights_end += group;
        dot->bias = conv->bias + conv->channels - 8;
        dot->output = output + conv->channels - 8;
        mlf_dot_3x8_float(dot);
    }
}

/* Compute a run of pixels. */
MLF_SHARED void mlf_conv2d_float_pixels_mve(struct mlf_windows *windows, const struct mlf_run *run)
{
    struct mlf_conv2d_float_mve *const conv = (struct mlf_conv2d_float_mve *)(void *)windows;
    const int32_t rest = run->count % 3;
    conv->dot.gap = run->pitch - 4 * conv->dot.length;
    if (run->count >= 3) {
        mlf_conv2d_float_triples_mve(conv, run, 0, run->count / 3, 3);
    }
    if (rest > 0) {
        mlf_conv2d_float_triples_mve(conv, run, run->count - rest, 1, rest);
    }
}

/* As mlf_conv2d_int8_mve; the channels of the window are in bytes, and the output does not overwrite the input. */
MLF_SHARED void mlf_conv2d_float_mve(const struct mlf_window *window, struct mlf_float_range range,
                                     const float *input, const float *weights, const float *bias, int32_t batch,
                                     void *scratch, float *output)
{
    const int32_t rows = batch > 0 ? 1 : window->filter.height;
    const int32_t size = window->filter.height * window->filter.width * window->input_channels;
    struct mlf_conv2d_float_mve conv = {
        .windows =
            {
                .window = window,
                .run = mlf_conv2d_float_pixels_mve,
                .scratch = scratch,
                .batch = batch > 0 ? batch : 3,
                .lanes = 3,
            },
        .channels = window->output_channels / 4,
        .weights = weights,
        .bias = bias,
        .dot =
            {
                .rows = rows,
                .length = size / rows / 4,
                .range = range,
            },
    };
    const int8_t *const from = (const int8_t *)(const void *)input;
    int8_t *const to = (int8_t *)(void *)output;
    if (batch > 0) {
        mlf_windows_run_copied(&conv.windows, from, to);
    } else {
        mlf_windows_run(&conv.windows, from, to);
    }
}

#endif /* MLF_CONV2D_FLOAT_MVE_H_ */
