/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Iterates a filter over an image on Helium (MVE), for kernels that compute runs of pixels.
 *
 * Elements are bytes here: the channels of the window are bytes of a pixel. Windows inside the image are read in place,
 * a whole run at once; those that reach into the padding are copied to scratch memory. If all are copied, because rows
 * are too short or have gaps, a copy is one piece of memory, a window of one row.
 */
#ifndef MLF_WINDOWS_MVE_H_
#define MLF_WINDOWS_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "copy_mve.h"
#include "requantize.h"
#include "window.h"

/* Bytes between the outputs of two pixels that are computed together. */
#define MLF_WINDOWS_MOST_APART 65532

struct mlf_windows;

/* Pixels whose windows start `distance` bytes and whose outputs start `apart` bytes apart; rows are `pitch` apart. */
struct mlf_run {
    const int8_t *first;
    int32_t count;
    int32_t distance;
    int32_t pitch;
    int8_t *output;
    int32_t apart;
};

typedef void (*mlf_windows_function)(struct mlf_windows *windows, const struct mlf_run *run);

struct mlf_windows {
    const struct mlf_window *window;
    mlf_windows_function run;
    const int8_t *input; /* the image */
    int8_t *scratch;     /* for `batch` copies and 16 bytes */
    int32_t batch;
    int32_t lanes;          /* pixels that are computed together */
    int8_t fill;            /* the padding */
    struct mlf_taps inside; /* output columns whose windows are inside the image */
};

/* Copy one filter row of a window, whose `columns` in the image are at `from`; return the address after the copy. */
MLF_KERNEL int8_t *mlf_windows_copy_row(const struct mlf_windows *windows, const struct mlf_taps *columns,
                                        const int8_t *from, int8_t *to)
{
    const struct mlf_window *const window = windows->window;
    const int32_t depth = window->input_channels;
    to = mlf_fill_mve(to, windows->fill, columns->first * depth);
    if (window->dilation.width == 1) {
        to = mlf_copy_mve(to, from, (columns->end - columns->first) * depth);
    } else {
        for (int32_t column = columns->first; column < columns->end; column++) {
            to = mlf_copy_mve(to, from, depth);
            from += window->dilation.width * depth;
        }
    }
    return mlf_fill_mve(to, windows->fill, (window->filter.width - columns->end) * depth);
}

/* Copy the window of output pixel (rows, x); return the address after the copy. */
MLF_SHARED int8_t *mlf_windows_copy_one(const struct mlf_windows *windows, const struct mlf_taps *rows, int32_t x,
                                        int8_t *to)
{
    const struct mlf_window *const window = windows->window;
    const struct mlf_taps columns = mlf_columns(window, x);
    const int32_t line = window->filter.width * window->input_channels;
    const int32_t pitch = window->dilation.height * window->input.width * window->input_channels;
    const int8_t *from = windows->input + mlf_pixel(window, rows, &columns, rows->first, columns.first);
    to = mlf_fill_mve(to, windows->fill, rows->first * line);
    for (int32_t row = rows->first; row < rows->end; row++, from += pitch) {
        to = mlf_windows_copy_row(windows, &columns, from, to);
    }
    return mlf_fill_mve(to, windows->fill, (window->filter.height - rows->end) * line);
}

/* As mlf_windows_copy_one if a row of the window fits in a vector and has no gaps. */
MLF_SHARED int8_t *mlf_windows_copy_narrow(const struct mlf_windows *windows, const struct mlf_taps *rows, int32_t x,
                                           int8_t *to)
{
    const struct mlf_window *const window = windows->window;
    const struct mlf_taps columns = mlf_columns(window, x);
    const int32_t depth = window->input_channels;
    const int32_t line = window->filter.width * depth;
    const int32_t pitch = window->dilation.height * window->input.width * depth;
    const struct mlf_clip_mve clip = {columns.first * depth, columns.end * depth, windows->fill};
    const int8_t *const from = windows->input + mlf_pixel(window, rows, &columns, rows->first, 0);
    to = mlf_fill_mve(to, windows->fill, rows->first * line);
    to = mlf_copy_clipped_mve(to, from, line, pitch, rows->end - rows->first, &clip);
    return mlf_fill_mve(to, windows->fill, (window->filter.height - rows->end) * line);
}

/* Return the first of the output columns whose windows are inside the image, and the one after the last. */
MLF_KERNEL struct mlf_taps mlf_windows_inside(const struct mlf_window *window)
{
    const int32_t stride = window->stride.width;
    const int32_t reach = window->input.width + window->padding.width - 1 -
                          (window->filter.width - 1) * window->dilation.width;
    const int32_t first = mlf_clamp((window->padding.width + stride - 1) / stride, 0, window->output.width);
    const int32_t end = reach < 0 ? 0 : mlf_clamp(reach / stride + 1, 0, window->output.width);
    const struct mlf_taps inside = {0, first, end < first ? first : end};
    return inside;
}

/* Return the input of the window of output pixel (rows, x), which is completely inside the image. */
MLF_KERNEL const int8_t *mlf_windows_start(const struct mlf_windows *windows, const struct mlf_taps *rows, int32_t x)
{
    const struct mlf_taps columns = mlf_columns(windows->window, x);
    return windows->input + mlf_pixel(windows->window, rows, &columns, 0, 0);
}

/* Copy the windows x..end-1 of an output row; those inside the image at once if their rows fit in a vector. */
MLF_SHARED int8_t *mlf_windows_copy(const struct mlf_windows *windows, const struct mlf_taps *rows, int32_t x,
                                    int32_t end, int8_t *to)
{
    const struct mlf_window *const window = windows->window;
    const int32_t depth = window->input_channels;
    const int32_t line = window->filter.width * depth;
    const int narrow = window->dilation.width == 1 && line <= 16;
    const int whole = narrow && rows->end - rows->first == window->filter.height;
    while (x < end) {
        const int32_t last = end < windows->inside.end ? end : windows->inside.end;
        if (whole && x >= windows->inside.first && x < last) {
            to = mlf_copy_windows_mve(to, mlf_windows_start(windows, rows, x), line,
                                      window->dilation.height * window->input.width * depth, window->filter.height,
                                      window->stride.width * depth, last - x);
            x = last;
        } else {
            to = narrow ? mlf_windows_copy_narrow(windows, rows, x, to) : mlf_windows_copy_one(windows, rows, x, to);
            x++;
        }
    }
    return to;
}

/* Compute `count` pixels from the copies in scratch memory. */
MLF_KERNEL void mlf_windows_scratch(struct mlf_windows *windows, int32_t count, int8_t *output, int32_t apart)
{
    const int32_t line = windows->window->filter.width * windows->window->input_channels;
    const struct mlf_run run = {windows->scratch, count, windows->window->filter.height * line, line, output, apart};
    windows->run(windows, &run);
}

/* Compute the pixels x..end-1 of an output row from copies, a batch at a time. */
MLF_SHARED void mlf_windows_copied(struct mlf_windows *windows, const struct mlf_taps *rows, int32_t x, int32_t end,
                                   int8_t *output)
{
    const int32_t apart = windows->window->output_channels;
    for (int32_t next; x < end; x = next) {
        next = end - x < windows->batch ? end : x + windows->batch;
        (void)mlf_windows_copy(windows, rows, x, next, windows->scratch);
        mlf_windows_scratch(windows, next - x, output + x * apart, apart);
    }
}

/*
 * Compute the pixels before `left` and from `right`, whose windows reach into the padding. If there is one on each
 * side, both are computed together.
 */
MLF_KERNEL void mlf_windows_borders(struct mlf_windows *windows, const struct mlf_taps *rows, int32_t left,
                                    int32_t right, int8_t *output)
{
    const int32_t width = windows->window->output.width;
    const int32_t apart = right * windows->window->output_channels;
    if (left == 1 && right == width - 1 && apart <= MLF_WINDOWS_MOST_APART) {
        int8_t *const second = mlf_windows_copy(windows, rows, 0, 1, windows->scratch);
        (void)mlf_windows_copy(windows, rows, right, width, second);
        mlf_windows_scratch(windows, 2, output, apart);
    } else {
        mlf_windows_copied(windows, rows, 0, left, output);
        mlf_windows_copied(windows, rows, right, width, output);
    }
}

/* One output row; inner windows are read in place, except a remainder that is computed with those at the border. */
MLF_KERNEL void mlf_windows_row(struct mlf_windows *windows, int32_t y, int8_t *output)
{
    const struct mlf_window *const window = windows->window;
    const struct mlf_taps rows = mlf_rows(window, y);
    const int whole = rows.end - rows.first == window->filter.height;
    const int32_t width = window->output.width;
    const int32_t left = whole ? windows->inside.first : width;
    int32_t right = whole ? windows->inside.end : width;
    const int32_t rest = (right - left) % windows->lanes;
    if (right < width && left == 0 && rest + width - right <= windows->lanes) {
        right -= rest;
    }
    if (left < right) {
        const struct mlf_run run = {
            mlf_windows_start(windows, &rows, left),
            right - left,
            window->stride.width * window->input_channels,
            window->dilation.height * window->input.width * window->input_channels,
            output + left * window->output_channels,
            window->output_channels,
        };
        windows->run(windows, &run);
    }
    mlf_windows_borders(windows, &rows, left, right, output);
}

/* Compute all pixels from copies; a batch may have pixels of several rows. */
MLF_SHARED void mlf_windows_run_copied(struct mlf_windows *windows, const int8_t *input, int8_t *output)
{
    const struct mlf_window *const window = windows->window;
    int8_t *to = windows->scratch;
    int32_t held = 0;
    windows->inside = mlf_windows_inside(window);
    windows->input = input;
    for (int32_t row = 0; row < window->batches * window->output.height; row++) {
        const int32_t y = row % window->output.height;
        const struct mlf_taps rows = mlf_rows(window, y);
        for (int32_t x = 0, next; x < window->output.width; x = next) {
            const int32_t room = windows->batch - held;
            next = window->output.width - x < room ? window->output.width : x + room;
            to = mlf_windows_copy(windows, &rows, x, next, to);
            held += next - x;
            if (held == windows->batch) {
                mlf_windows_scratch(windows, held, output, window->output_channels);
                output += held * window->output_channels;
                to = windows->scratch;
                held = 0;
            }
        }
        if (y + 1 == window->output.height) {
            windows->input += window->input.height * window->input.width * window->input_channels;
        }
    }
    if (held > 0) {
        mlf_windows_scratch(windows, held, output, window->output_channels);
    }
}

/* Compute all pixels; windows inside the image are read in place. */
MLF_SHARED void mlf_windows_run(struct mlf_windows *windows, const int8_t *input, int8_t *output)
{
    const struct mlf_window *const window = windows->window;
    windows->inside = mlf_windows_inside(window);
    for (int32_t n = 0; n < window->batches; n++) {
        windows->input = input;
        for (int32_t y = 0; y < window->output.height; y++) {
            mlf_windows_row(windows, y, output);
            output += window->output.width * window->output_channels;
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
}

#endif /* MLF_WINDOWS_MVE_H_ */
