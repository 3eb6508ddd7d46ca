/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* A filter that moves over an image: the sizes of convolutions and pools, and the part of a filter inside the image. */
#ifndef MLF_WINDOW_H_
#define MLF_WINDOW_H_

#include <stdint.h>

#include "compiler.h"

struct mlf_size {
    int32_t height;
    int32_t width;
};

struct mlf_window {
    int32_t batches;
    struct mlf_size input;
    int32_t input_channels;
    struct mlf_size output;
    int32_t output_channels;
    struct mlf_size filter;
    struct mlf_size stride;
    struct mlf_size dilation;
    struct mlf_size padding; /* rows above and columns to the left of the image */
};

/* The taps first..end-1 of a filter are inside the image; tap 0 is at origin, which may be outside. */
struct mlf_taps {
    int32_t origin;
    int32_t first;
    int32_t end;
};

/* Return which of `filter` taps, `dilation` apart, are inside an image of `size` if the first one is at origin. */
MLF_KERNEL struct mlf_taps mlf_clip(int32_t origin, int32_t filter, int32_t dilation, int32_t size)
{
    const int32_t end = (size - origin + dilation - 1) / dilation;
    const struct mlf_taps taps = {
        origin,
        origin < 0 ? (dilation - 1 - origin) / dilation : 0,
        end < filter ? end : filter,
    };
    return taps;
}

MLF_KERNEL struct mlf_taps mlf_rows(const struct mlf_window *window, int32_t output_row)
{
    return mlf_clip(output_row * window->stride.height - window->padding.height, window->filter.height,
                    window->dilation.height, window->input.height);
}

MLF_KERNEL struct mlf_taps mlf_columns(const struct mlf_window *window, int32_t output_column)
{
    return mlf_clip(output_column * window->stride.width - window->padding.width, window->filter.width,
                    window->dilation.width, window->input.width);
}

/* Return the number of elements before the pixel under tap (row, column). */
MLF_KERNEL int32_t mlf_pixel(const struct mlf_window *window, const struct mlf_taps *rows,
                             const struct mlf_taps *columns, int32_t row, int32_t column)
{
    const int32_t y = rows->origin + row * window->dilation.height;
    const int32_t x = columns->origin + column * window->dilation.width;
    return (y * window->input.width + x) * window->input_channels;
}

#endif /* MLF_WINDOW_H_ */
