/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D and FULLY_CONNECTED of int16 activations for cores with the DSP extension: the inputs of three pixels are
 * copied side by side, padding as zeros, and multiplied with all output channels (dot_3x2_int16_dsp.h, which describes
 * the filter).
 *
 * Layout of scratch memory: words of two inputs; word k of pixel p is at 3 * k + p, or at k for a single pixel. So one
 * LDM loads a word of each pixel, and the weights of two output channels are loaded once for three pixels.
 *
 * Copying takes four instructions for a word, once for all output channels, against 0.85 for each product of three
 * pixels, or 1.47 of one. As inputs have 16 bits in memory, rows of a matrix can also be multiplied in place, one by
 * one. The filters of the first pairs of output channels may be copied behind the pixels, so that flash is read once.
 */
#ifndef MLF_CONV2D_INT16_DSP_H_
#define MLF_CONV2D_INT16_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dot_3x2_int16_dsp.h"
#include "window.h"

/* A matrix product and its activation. */
struct mlf_matmul_int16_dsp {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
    int32_t minimum; /* of a fused activation; INT16_MIN and INT16_MAX without one */
    int32_t maximum;
    int32_t copied; /* pairs of output channels whose filter is copied to RAM */
};

MLF_KERNEL void mlf_activate_int16_dsp(const struct mlf_matmul_int16_dsp *matmul, int16_t *output)
{
    mlf_clamp_int16_dsp(output, matmul->rows * matmul->outputs, matmul->minimum, matmul->maximum);
}

MLF_KERNEL const int32_t *mlf_dot_pairs_int16_dsp(const struct mlf_matmul_int16_dsp *matmul, int32_t pixels,
                                                  const int16_t *rows, const int32_t *filter, int16_t *output,
                                                  const struct mlf_dot_int16_dsp *dot)
{
    if (pixels == 3) {
        return matmul->minimum == 0 ? mlf_dot_3x2_relu_int16_dsp(rows, filter, output, dot)
                                    : mlf_dot_3x2_int16_dsp(rows, filter, output, dot);
    }
    return matmul->minimum == 0 ? mlf_dot_1x2_relu_int16_dsp(rows, filter, output, dot)
                                : mlf_dot_1x2_int16_dsp(rows, filter, output, dot);
}

MLF_KERNEL int32_t mlf_copied_words_int16_dsp(const struct mlf_matmul_int16_dsp *matmul)
{
    return matmul->copied * (4 + 2 * ((matmul->inputs + 3) / 4));
}

/* Copy the filters of the first pairs behind three pixels in `scratch`; return their address there. */
MLF_KERNEL const int32_t *mlf_copy_pairs_int16_dsp(const struct mlf_matmul_int16_dsp *matmul, const int32_t *filter,
                                                   int16_t *scratch)
{
    int32_t *const copy = (int32_t *)(void *)(scratch + (matmul->inputs + 3) / 4 * 12);
    if (matmul->copied > 0) {
        memcpy(copy, filter, 4 * (size_t)mlf_copied_words_int16_dsp(matmul));
    }
    return copy;
}

/* All output channels of one or three pixels; `copy` has the copied filters. */
MLF_KERNEL void mlf_dot_channels_int16_dsp(const struct mlf_matmul_int16_dsp *matmul, int32_t pixels,
                                           const int16_t *rows, const int32_t *filter, const int32_t *copy,
                                           int16_t *output)
{
    struct mlf_dot_int16_dsp dot = {(matmul->inputs + 3) / 4, matmul->copied, 2 * matmul->outputs};
    if (matmul->copied > 0) {
        (void)mlf_dot_pairs_int16_dsp(matmul, pixels, rows, copy, output, &dot);
        filter += mlf_copied_words_int16_dsp(matmul);
    }
    dot.pairs = matmul->outputs / 2 - matmul->copied;
    if (dot.pairs > 0) {
        filter = mlf_dot_pairs_int16_dsp(matmul, pixels, rows, filter, output + 2 * matmul->copied, &dot);
    }
    if (matmul->outputs % 2 != 0) {
        dot.pairs = 1;
        (void)mlf_dot_pairs_int16_dsp(matmul, pixels, rows, filter, output + matmul->outputs - 2, &dot);
    }
}

/*
 * Copy inputs at to at + count - 1 of one of a block's pixels, whose pairs of inputs are `step` pairs apart and begin
 * at `row`. Four instructions per pair.
 */
MLF_SHARED void mlf_place_int16_dsp(int16_t *row, int32_t step, int32_t at, const int16_t *from, int32_t count)
{
    if (at % 2 != 0 && count > 0) {
        row[(at - 1) * step + 1] = *from++;
        at++;
        count--;
    }
    const int16_t *const end = from + (count & ~1);
    const int16_t *const fours = from + (count & ~3);
    for (row += at * step; from != fours; from += 4, row += 4 * step) {
        uint32_t first;
        uint32_t second;
        memcpy(&first, from, sizeof first);
        memcpy(&second, from + 2, sizeof second);
        memcpy(row, &first, sizeof first);
        memcpy(row + 2 * step, &second, sizeof second);
    }
    if (from != end) {
        memcpy(row, from, 4);
        row += 2 * step;
    }
    if (count % 2 != 0) {
        *row = *end;
    }
}

/* As mlf_place_int16_dsp with zeros. */
MLF_SHARED void mlf_place_zeros_int16_dsp(int16_t *row, int32_t step, int32_t at, int32_t count)
{
    for (const int32_t end = at + count; at < end; at++) {
        row[(at >> 1) * 2 * step + (at & 1)] = 0;
    }
}

/* Multiply rows in place, for a multiple of four inputs; the output must not overlap the input. */
MLF_KERNEL void mlf_matvec_int16_dsp(const struct mlf_matmul_int16_dsp *matmul, const int16_t *input,
                                     const int32_t *filter, int16_t *output)
{
    for (int32_t row = 0; row < matmul->rows; row++) {
        mlf_dot_channels_int16_dsp(matmul, 1, input + row * matmul->inputs, filter, filter,
                                   output + row * matmul->outputs);
    }
    mlf_activate_int16_dsp(matmul, output);
}

/*
 * FULLY_CONNECTED and CONV_2D of 1x1 with stride 1: rows of inputs times the filter. `scratch` holds three rows, padded
 * to four inputs, then copied filters. The output may begin at the address of the input: a block is copied before it is written, and if the
 * output is larger, blocks are computed from the end to the start.
 */
MLF_KERNEL void mlf_matmul_int16_dsp(const struct mlf_matmul_int16_dsp *matmul, const int16_t *input,
                                     const int32_t *filter, int16_t *output, int16_t *scratch)
{
    const int32_t depth = matmul->inputs;
    const int32_t backward = matmul->outputs > depth;
    const int32_t *const copy = mlf_copy_pairs_int16_dsp(matmul, filter, scratch);
    int32_t count;
    for (int32_t done = 0; done < matmul->rows; done += count) {
        count = matmul->rows - done >= 3 ? 3 : 1;
        const int32_t row = backward ? matmul->rows - done - count : done;
        for (int32_t p = 0; p < count; p++) {
            mlf_place_int16_dsp(scratch + 2 * p, count, 0, input + (row + p) * depth, depth);
        }
        mlf_dot_channels_int16_dsp(matmul, count, scratch, filter, copy, output + row * matmul->outputs);
    }
    mlf_activate_int16_dsp(matmul, output);
}

/* Copy the window of the output pixel (y, x), whose inputs are placed as above. */
MLF_KERNEL void mlf_place_window_int16_dsp(const struct mlf_window *window, const int16_t *image, int32_t y, int32_t x,
                                           int16_t *placed, int32_t step)
{
    const struct mlf_taps rows = mlf_rows(window, y);
    const struct mlf_taps columns = mlf_columns(window, x);
    const int32_t depth = window->input_channels;
    const int32_t line = window->filter.width * depth;
    const int32_t left = columns.first * depth;
    const int32_t right = columns.end * depth;
    for (int32_t row = 0; row < window->filter.height; row++) {
        const int32_t at = row * line;
        if (row < rows.first || row >= rows.end) {
            mlf_place_zeros_int16_dsp(placed, step, at, line);
            continue;
        }
        if (left > 0) {
            mlf_place_zeros_int16_dsp(placed, step, at, left);
        }
        if (window->dilation.width == 1) {
            const int16_t *const from = image + mlf_pixel(window, &rows, &columns, row, columns.first);
            mlf_place_int16_dsp(placed, step, at + left, from, right - left);
        } else {
            for (int32_t column = columns.first; column < columns.end; column++) {
                const int16_t *const from = image + mlf_pixel(window, &rows, &columns, row, column);
                mlf_place_int16_dsp(placed, step, at + column * depth, from, depth);
            }
        }
        if (right < line) {
            mlf_place_zeros_int16_dsp(placed, step, at + right, line - right);
        }
    }
}

/*
 * CONV_2D with any window; `matmul` has a row for each pixel of the output and the inputs of a window. `scratch` holds
 * the windows of a block, then copied filters. The last block of three may overlap the one before.
 */
MLF_KERNEL void mlf_conv2d_int16_dsp(const struct mlf_window *window, const struct mlf_matmul_int16_dsp *matmul,
                                     const int16_t *input, const int32_t *filter, int16_t *output, int16_t *scratch)
{
    const int32_t size = window->input.height * window->input.width * window->input_channels;
    const int32_t count = matmul->rows >= 3 ? 3 : 1;
    const int32_t *const copy = mlf_copy_pairs_int16_dsp(matmul, filter, scratch);
    for (int32_t done = 0; done < matmul->rows; done += count) {
        const int32_t first = done + count > matmul->rows ? matmul->rows - count : done;
        for (int32_t p = 0; p < count; p++) {
            const int32_t line = (first + p) / window->output.width;
            const int32_t batch = line / window->output.height;
            mlf_place_window_int16_dsp(window, input + batch * size, line - batch * window->output.height,
                                       first + p - line * window->output.width, scratch + 2 * p, count);
        }
        mlf_dot_channels_int16_dsp(matmul, count, scratch, filter, copy, output + first * matmul->outputs);
    }
    mlf_activate_int16_dsp(matmul, output);
}

#endif /* MLF_CONV2D_INT16_DSP_H_ */
