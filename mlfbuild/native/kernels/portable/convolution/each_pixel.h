/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* The loops over the output of a convolution, which evaluate a call for each pixel, and over the taps of a filter. */
#ifndef MLF_EACH_PIXEL_H_
#define MLF_EACH_PIXEL_H_

#include <stdint.h>

#include "window.h"

/*
 * Evaluate `call` for each pixel of the output. It uses the variables `rows` and `columns`, the taps of the pixel's
 * window. `input` moves from image to image and `output` from pixel to pixel.
 */
#define MLF_EACH_PIXEL(window, input, output, call)                                                                    \
    do {                                                                                                               \
        for (int32_t batch = 0; batch < (window)->batches; batch++) {                                                  \
            for (int32_t y = 0; y < (window)->output.height; y++) {                                                    \
                const struct mlf_taps rows = mlf_rows((window), y);                                                    \
                for (int32_t x = 0; x < (window)->output.width; x++) {                                                 \
                    const struct mlf_taps columns = mlf_columns((window), x);                                          \
                    (call);                                                                                            \
                    (output) += (window)->output_channels;                                                             \
                }                                                                                                      \
            }                                                                                                          \
            (input) += (window)->input.height * (window)->input.width * (window)->input_channels;                      \
        }                                                                                                              \
    } while (0)

/* Defines the sum of one output channel of one pixel for this type of weights; input and filter point at its channel. */
#define MLF_DEPTHWISE_SUM(name, weight_type)                                                                           \
    MLF_KERNEL uint32_t name(const struct mlf_window *window, const struct mlf_taps *rows,                             \
                             const struct mlf_taps *columns, int32_t zero_point, const int8_t *input,                  \
                             const weight_type *filter, uint32_t sum)                                                  \
    {                                                                                                                  \
        for (int32_t row = 0; row < window->filter.height; row++) {                                                    \
            for (int32_t column = 0; column < window->filter.width; column++, filter += window->output_channels) {     \
                int32_t value = zero_point;                                                                            \
                if (row >= rows->first && row < rows->end && column >= columns->first && column < columns->end) {      \
                    value = input[mlf_pixel(window, rows, columns, row, column)];                                      \
                }                                                                                                      \
                sum += (uint32_t)(value * filter[0]);                                                                  \
            }                                                                                                          \
        }                                                                                                              \
        return sum;                                                                                                    \
    }

#endif /* MLF_EACH_PIXEL_H_ */
