/*
 * CONV_2D on int8 for Helium (MVE); the sums and what becomes of them are those of conv2d.h.
 *
 * Windows inside the image are read where they lie: a filter row is one piece of memory. Windows that reach into the
 * padding are copied to scratch memory first, two at a time, and so are all windows whose rows are shorter than a
 * vector or have gaps (first layers, dilation), as many at a time as there is scratch memory for.
 *
 * Weights are in the order of gemm_mve.h. The filter's only row is a whole window where windows are copied.
 */
#ifndef MLF_CONV2D_MVE_H_
#define MLF_CONV2D_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "copy_mve.h"
#include "gemm_mve.h"
#include "requantize_mve.h"
#include "window.h"

/* A convolution under way. */
struct mlf_conv2d_mve {
    const struct mlf_window *window;
    const int8_t *input; /* the image */
    int8_t *scratch;     /* for copies of windows */
    mlf_gemm_function multiply;
    struct mlf_gemm gemm;
    struct mlf_taps inside; /* output columns whose windows lie inside the image */
    int32_t channels;       /* of the output */
    const struct mlf_channels4 *table;
    const int8_t *weights;
    int32_t group; /* bytes of the weights of four channels */
};

/* Make the two pixels of a pair write `distance` bytes apart, and only the first `count` of four channels. */
MLF_KERNEL void mlf_gemm_scatter(struct mlf_gemm *gemm, int32_t distance, int32_t count)
{
    for (int32_t c = 0; c < 4; c++) {
        const int32_t at = c < count ? c : count - 1; /* channels beyond the last one are copies of it */
        gemm->scatter[2 * c] = (uint16_t)at;
        gemm->scatter[2 * c + 1] = (uint16_t)(at + distance);
    }
}

/* Compute pairs of pixels, the second `distance` bytes of input from the first; 0 makes them one. */
MLF_SHARED void mlf_conv2d_pairs_mve(struct mlf_conv2d_mve *conv, const int8_t *first, int32_t distance,
                                     int32_t pairs, int8_t *output)
{
    struct mlf_gemm *const gemm = &conv->gemm;
    const int32_t whole = conv->channels / 4;
    const int32_t rest = conv->channels % 4;
    const int32_t apart = distance == 0 ? 0 : conv->channels;
    gemm->first = first;
    gemm->second = first + distance;
    gemm->step = 2 * distance;
    gemm->pairs = pairs;
    gemm->output_step = 2 * apart;
    if (whole > 0) {
        gemm->weights = conv->weights;
        gemm->weights_end = conv->weights + whole * conv->group;
        gemm->channels = conv->table;
        gemm->output = output;
        mlf_gemm_scatter(gemm, apart, 4);
        conv->multiply(gemm);
    }
    if (rest > 0) {
        gemm->weights = conv->weights + whole * conv->group;
        gemm->weights_end = gemm->weights + conv->group;
        gemm->channels = conv->table + whole;
        gemm->output = output + 4 * whole;
        mlf_gemm_scatter(gemm, apart, rest);
        conv->multiply(gemm);
    }
}

/* Compute `count` pixels whose windows start `distance` bytes apart. */
MLF_SHARED void mlf_conv2d_pixels_mve(struct mlf_conv2d_mve *conv, const int8_t *first, int32_t distance,
                                      int32_t count, int8_t *output)
{
    const int32_t even = count - count % 2;
    if (even > 0) {
        mlf_conv2d_pairs_mve(conv, first, distance, even / 2, output);
    }
    if (even < count) {
        mlf_conv2d_pairs_mve(conv, first + even * distance, 0, 1, output + even * conv->channels);
    }
}

/* Copy one filter row of a window, where `columns` of it lie in the image at `from`; returns behind the copy. */
MLF_KERNEL int8_t *mlf_conv2d_copy_row_mve(const struct mlf_window *window, const struct mlf_taps *columns,
                                           const int8_t *from, int8_t fill, int8_t *to)
{
    const int32_t depth = window->input_channels;
    to = mlf_fill_mve(to, fill, columns->first * depth);
    if (window->dilation.width == 1) {
        to = mlf_copy_mve(to, from, (columns->end - columns->first) * depth);
    } else {
        for (int32_t column = columns->first; column < columns->end; column++) {
            to = mlf_copy_mve(to, from, depth);
            from += window->dilation.width * depth;
        }
    }
    return mlf_fill_mve(to, fill, (window->filter.width - columns->end) * depth);
}

/* Copy the window of output pixel (rows, x), padded by `fill`; returns behind the copy. */
MLF_SHARED int8_t *mlf_conv2d_copy_mve(const struct mlf_conv2d_mve *conv, const struct mlf_taps *rows, int32_t x,
                                       int8_t fill, int8_t *to)
{
    const struct mlf_window *const window = conv->window;
    const struct mlf_taps columns = mlf_columns(window, x);
    const int32_t line = window->filter.width * window->input_channels;
    const int32_t pitch = window->dilation.height * window->input.width * window->input_channels;
    const int8_t *from = conv->input + mlf_pixel(window, rows, &columns, rows->first, columns.first);
    to = mlf_fill_mve(to, fill, rows->first * line);
    for (int32_t row = rows->first; row < rows->end; row++, from += pitch) {
        to = mlf_conv2d_copy_row_mve(window, &columns, from, fill, to);
    }
    return mlf_fill_mve(to, fill, (window->filter.height - rows->end) * line);
}

/* Return the first of the output columns whose windows lie inside the image, and the one behind them. */
MLF_KERNEL struct mlf_taps mlf_conv2d_inside_mve(const struct mlf_window *window)
{
    const int32_t stride = window->stride.width;
    const int32_t reach = window->input.width + window->padding.width - 1 -
                          (window->filter.width - 1) * window->dilation.width;
    const int32_t first = (window->padding.width + stride - 1) / stride;
    const int32_t end = reach < 0 ? 0 : mlf_clamp(reach / stride + 1, 0, window->output.width);
    const struct mlf_taps inside = {0, first, end < first ? first : end};
    return inside;
}

/* Copy the windows x..end-1 of an output row; those inside the image at once where a row of them fits a vector. */
MLF_KERNEL void mlf_conv2d_copies_mve(const struct mlf_conv2d_mve *conv, const struct mlf_taps *rows, int32_t x,
                                      int32_t end, int8_t fill)
{
    const struct mlf_window *const window = conv->window;
    const struct mlf_taps *const inside = &conv->inside;
    const int32_t depth = window->input_channels;
    const int32_t line = window->filter.width * depth;
    const int whole = rows->end - rows->first == window->filter.height && window->dilation.width == 1 && line <= 16;
    int8_t *to = conv->scratch;
    while (x < end) {
        const int32_t last = end < inside->end ? end : inside->end;
        if (whole && x >= inside->first && x < last) {
            const struct mlf_taps columns = mlf_columns(window, x);
            to = mlf_copy_windows_mve(to, conv->input + mlf_pixel(window, rows, &columns, 0, 0), line,
                                      window->dilation.height * window->input.width * depth, window->filter.height,
                                      window->stride.width * depth, last - x);
            x = last;
        } else {
            to = mlf_conv2d_copy_mve(conv, rows, x, fill, to);
            x++;
        }
    }
}

/* Compute the pixels x..end-1 of an output row from copies of `batch` windows at a time. */
MLF_SHARED void mlf_conv2d_copied_mve(struct mlf_conv2d_mve *conv, const struct mlf_taps *rows, int32_t x,
                                      int32_t end, int32_t batch, int8_t fill, int8_t *output)
{
    for (int32_t next; x < end; x = next) {
        next = end - x < batch ? end : x + batch;
        mlf_conv2d_copies_mve(conv, rows, x, next, fill);
        mlf_conv2d_pixels_mve(conv, conv->scratch, conv->group / 4, next - x, output + x * conv->channels);
    }
}

MLF_KERNEL struct mlf_conv2d_mve mlf_conv2d_start_mve(const struct mlf_window *window,
                                                      const struct mlf_quantization *quantization,
                                                      const int8_t *weights, const struct mlf_channels4 *channels,
                                                      mlf_gemm_function multiply, void *scratch, int32_t rows)
{
    const int32_t size = window->filter.height * window->filter.width * window->input_channels;
    struct mlf_conv2d_mve conv = {
        .window = window,
        .scratch = scratch,
        .multiply = multiply,
        .inside = mlf_conv2d_inside_mve(window),
        .channels = window->output_channels,
        .table = channels,
        .weights = weights,
        .group = 4 * size,
        .gemm = {
            .rows = rows,
            .vectors = size / rows / 16,
            .tail = size / rows % 16,
            .gap = size / rows % 16,
            .zero_point = quantization->output_zero_point,
            .minimum = quantization->minimum,
            .maximum = quantization->maximum,
        },
    };
    return conv;
}

/* All windows are copied; scratch memory for `batch` of them and 16 bytes. */
MLF_SHARED void mlf_conv2d_copied_int8_mve(const struct mlf_window *window,
                                           const struct mlf_quantization *quantization, const int8_t *input,
                                           const int8_t *weights, const struct mlf_channels4 *channels,
                                           mlf_gemm_function multiply, int32_t batch, void *scratch, int8_t *output)
{
    struct mlf_conv2d_mve conv = mlf_conv2d_start_mve(window, quantization, weights, channels, multiply, scratch, 1);
    for (int32_t n = 0; n < window->batches; n++) {
        conv.input = input;
        for (int32_t y = 0; y < window->output.height; y++) {
            const struct mlf_taps rows = mlf_rows(window, y);
            mlf_conv2d_copied_mve(&conv, &rows, 0, window->output.width, batch,
                                  (int8_t)quantization->input_zero_point, output);
            output += window->output.width * window->output_channels;
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
}

/* One output row, its inner windows read in place. */
MLF_KERNEL void mlf_conv2d_row_mve(struct mlf_conv2d_mve *conv, int32_t y, int8_t fill, int8_t *output)
{
    const struct mlf_window *const window = conv->window;
    const int32_t width = window->output.width;
    const int32_t stride = window->stride.width;
    const struct mlf_taps rows = mlf_rows(window, y);
    const int32_t left = conv->inside.first;
    const int32_t right = conv->inside.end;
    if (rows.end - rows.first < window->filter.height || right == left) {
        mlf_conv2d_copied_mve(conv, &rows, 0, width, 2, fill, output);
        return;
    }
    mlf_conv2d_copied_mve(conv, &rows, 0, left, 2, fill, output);
    const int32_t depth = window->input_channels;
    const int32_t gap = conv->gemm.gap;
    const struct mlf_taps columns = mlf_columns(window, left);
    conv->gemm.gap = window->dilation.height * window->input.width * depth - 16 * conv->gemm.vectors;
    mlf_conv2d_pixels_mve(conv, conv->input + mlf_pixel(window, &rows, &columns, 0, 0), stride * depth, right - left,
                          output + left * conv->channels);
    conv->gemm.gap = gap;
    mlf_conv2d_copied_mve(conv, &rows, right, width, 2, fill, output);
}

/* Windows are read in place; scratch memory for two of them where the image is padded. No dilation of columns. */
MLF_SHARED void mlf_conv2d_int8_mve(const struct mlf_window *window, const struct mlf_quantization *quantization,
                                    const int8_t *input, const int8_t *weights, const struct mlf_channels4 *channels,
                                    mlf_gemm_function multiply, void *scratch, int8_t *output)
{
    struct mlf_conv2d_mve conv =
        mlf_conv2d_start_mve(window, quantization, weights, channels, multiply, scratch, window->filter.height);
    for (int32_t n = 0; n < window->batches; n++) {
        conv.input = input;
        for (int32_t y = 0; y < window->output.height; y++) {
            mlf_conv2d_row_mve(&conv, y, (int8_t)quantization->input_zero_point, output);
            output += window->output.width * window->output_channels;
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
}

#endif /* MLF_CONV2D_MVE_H_ */
