/*
 * CONV_2D of int8 for cores with the DSP extension: the windows of three pixels, expanded to 16 bits, times the filter
 * of matmul_dsp.h. Inputs of a window are in the order of its rows, columns and channels, filled up to whole groups of
 * four with weights of 0. The padding is read as the input's zero point, which stands for 0.
 *
 * Where the input has a multiple of four channels, windows are expanded from where they lie, a row of the filter at a
 * time where no tap is outside; other inputs are gathered byte by byte first. The last three pixels of an image may
 * begin before the end of the three before them.
 */
#ifndef MLF_CONV2D_DSP_H_
#define MLF_CONV2D_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "matmul_dsp.h"
#include "window.h"

/* Where the window of a pixel begins, perhaps outside of its image. */
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

/* Whether no column of the window is outside; its columns are neighbours. */
MLF_KERNEL int mlf_columns_inside_dsp(const struct mlf_window *window, const struct mlf_corner_dsp *corner)
{
    return corner->x >= 0 && corner->x + window->filter.width <= window->input.width && window->dilation.width == 1;
}

/* Expand the windows of three pixels; `padding` is one pixel of the input's zero point. */
MLF_SHARED void mlf_expand_windows_dsp(const struct mlf_window *window, const struct mlf_corner_dsp corners[3],
                                       const int8_t *padding, int16_t *rows)
{
    const int32_t groups = window->input_channels / 4;
    const int columns_inside = mlf_columns_inside_dsp(window, &corners[0]) &&
                               mlf_columns_inside_dsp(window, &corners[1]) &&
                               mlf_columns_inside_dsp(window, &corners[2]);
    for (int32_t row = 0; row < window->filter.height; row++) {
        const int8_t *taps[3];
        int inside = columns_inside;
        for (int32_t p = 0; p < 3; p++) {
            taps[p] = mlf_tap_dsp(window, &corners[p], row, 0, padding);
            inside = inside && taps[p] != padding;
        }
        if (inside) {
            rows = mlf_expand3_dsp(rows, taps[0], taps[1], taps[2], window->filter.width * groups);
            continue;
        }
        for (int32_t column = 0; column < window->filter.width; column++) {
            rows = mlf_expand3_dsp(rows, mlf_tap_dsp(window, &corners[0], row, column, padding),
                                   mlf_tap_dsp(window, &corners[1], row, column, padding),
                                   mlf_tap_dsp(window, &corners[2], row, column, padding), groups);
        }
    }
}

/* Copy the window of one pixel, with zero points for the padding. */
MLF_SHARED void mlf_gather_window_dsp(const struct mlf_window *window, const struct mlf_corner_dsp *corner,
                                      int32_t zero_point, int8_t *bytes)
{
    const int32_t depth = window->input_channels;
    const int columns_inside = mlf_columns_inside_dsp(window, corner);
    for (int32_t row = 0; row < window->filter.height; row++) {
        const int32_t y = corner->y + row * window->dilation.height;
        for (int32_t column = 0; column < window->filter.width;) {
            const int32_t x = corner->x + column * window->dilation.width;
            const int32_t taps = columns_inside ? window->filter.width : 1;
            const int8_t *source = corner->image + (y * window->input.width + x) * depth;
            const int inside = mlf_inside_dsp(y, window->input.height) && mlf_inside_dsp(x, window->input.width);
            int32_t left = taps * depth;
            for (; inside && left >= 4; left -= 4, source += 4, bytes += 4) {
                memcpy(bytes, source, 4);
            }
            for (; left > 0; left--) {
                *bytes++ = inside ? *source++ : (int8_t)zero_point;
            }
            column += taps;
        }
    }
}

/* What a convolution needs beside its window. */
struct mlf_conv2d_dsp {
    struct mlf_window window;
    struct mlf_matmul_dsp matmul; /* rows: pixels of the output; inputs: those of a window */
    int32_t zero_point;           /* of the input */
};

/* All output channels of the pixels whose windows lie in `rows`: three, or one three times where there are fewer. */
MLF_KERNEL void mlf_conv2d_block_dsp(const struct mlf_conv2d_dsp *conv2d, const int16_t *rows, const int32_t *filter,
                                     int8_t *output, int32_t pixel)
{
    const int32_t pitch = conv2d->matmul.outputs;
    mlf_pixels_dsp(&conv2d->matmul, MLF_THREE_PIXELS, rows, filter, output + pixel * pitch,
                   conv2d->matmul.rows < 3 ? 0 : pitch);
}

/* The windows of three pixels from `pixel` on; of one pixel three times where the output has fewer than three. */
MLF_KERNEL void mlf_corners_dsp(const struct mlf_conv2d_dsp *conv2d, const int8_t *input, int32_t pixel,
                                struct mlf_corner_dsp corners[3])
{
    const int32_t step = conv2d->matmul.rows < 3 ? 0 : 1;
    for (int32_t p = 0; p < 3; p++) {
        corners[p] = mlf_corner_dsp(&conv2d->window, input, pixel + p * step);
    }
}

/* The first pixel of the block of three after the one at `pixel`. */
MLF_KERNEL int32_t mlf_next_dsp(int32_t pixel, int32_t pixels)
{
    if (pixels < 3) {
        return pixel + 1;
    }
    return pixel + 3 < pixels && pixel + 6 > pixels ? pixels - 3 : pixel + 3;
}

/* With a multiple of four input channels. `scratch` holds three expanded windows and the zero points of one pixel. */
MLF_SHARED void mlf_conv2d_int8_dsp(const struct mlf_conv2d_dsp *conv2d, const int8_t *input, const int32_t *filter,
                                    int8_t *output, int16_t *scratch)
{
    const struct mlf_matmul_dsp *const matmul = &conv2d->matmul;
    int8_t *const padding = (int8_t *)(scratch + 3 * matmul->inputs);
    for (int32_t i = 0; i < conv2d->window.input_channels; i++) {
        padding[i] = (int8_t)conv2d->zero_point;
    }
    for (int32_t pixel = 0; pixel < matmul->rows; pixel = mlf_next_dsp(pixel, matmul->rows)) {
        struct mlf_corner_dsp corners[3];
        mlf_corners_dsp(conv2d, input, pixel, corners);
        mlf_expand_windows_dsp(&conv2d->window, corners, padding, scratch);
        mlf_conv2d_block_dsp(conv2d, scratch, filter, output, pixel);
    }
    mlf_activate_dsp(matmul, output);
}

/* With any number of input channels. `scratch` holds three expanded windows, then the same in bytes. */
MLF_SHARED void mlf_conv2d_gather_int8_dsp(const struct mlf_conv2d_dsp *conv2d, const int8_t *input,
                                           const int32_t *filter, int8_t *output, int16_t *scratch)
{
    const struct mlf_matmul_dsp *const matmul = &conv2d->matmul;
    const int32_t groups = (matmul->inputs + 3) / 4;
    int8_t *const bytes = (int8_t *)(scratch + 3 * 4 * groups);
    memset(bytes, 0, (size_t)(3 * 4 * groups));
    for (int32_t pixel = 0; pixel < matmul->rows; pixel = mlf_next_dsp(pixel, matmul->rows)) {
        struct mlf_corner_dsp corners[3];
        mlf_corners_dsp(conv2d, input, pixel, corners);
        for (int32_t p = 0; p < 3; p++) {
            mlf_gather_window_dsp(&conv2d->window, &corners[p], conv2d->zero_point, bytes + 4 * groups * p);
        }
        (void)mlf_expand3_dsp(scratch, bytes, bytes + 4 * groups, bytes + 8 * groups, groups);
        mlf_conv2d_block_dsp(conv2d, scratch, filter, output, pixel);
    }
    mlf_activate_dsp(matmul, output);
}

#endif /* MLF_CONV2D_DSP_H_ */
