/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_INTEGER. Input NHWC, output int32 NHWO; the zero point is computed in each run, and is also the padding. The
 * sums are those of matmul_integer.h over the numbers under the window, which are copied to scratch memory; a filter of
 * one element reads the image itself, and so does a depthwise filter. Sums of a depthwise filter do not wrap.
 */
#ifndef MLF_CONV_INTEGER_H_
#define MLF_CONV_INTEGER_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "hybrid.h"
#include "matmul_integer.h"
#include "window.h"

/* The filter is OHWI; `offsets` may be NULL. */
MLF_KERNEL void mlf_conv2d_integer(const struct mlf_window *window, const int8_t *input, int32_t zero_point,
                                   const int8_t *weights, const int32_t *sums, const int32_t *offsets, int8_t *scratch,
                                   int32_t *output)
{
    const int32_t taps = window->filter.height * window->filter.width;
    const struct mlf_matrix matrix = {1, taps * window->input_channels, window->output_channels};
    for (int32_t batch = 0; batch < window->batches; batch++) {
        for (int32_t y = 0; y < window->output.height; y++) {
            const struct mlf_taps rows = mlf_rows(window, y);
            for (int32_t x = 0; x < window->output.width; x++) {
                const struct mlf_taps columns = mlf_columns(window, x);
                const int8_t *const patch = mlf_patch_hybrid(window, &rows, &columns, zero_point, input, scratch);
                if (offsets) {
                    mlf_matmul_integer_offset(&matrix, patch, zero_point, weights, sums, offsets, output);
                } else {
                    mlf_matmul_integer(&matrix, patch, zero_point, weights, sums, output);
                }
                output += window->output_channels;
            }
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
}

/* The filter is 1HWO. Taps are the outer loop, so that the inner one reads and writes contiguous memory. */
MLF_KERNEL void mlf_depthwise_conv2d_integer(const struct mlf_window *window, const int8_t *input, int32_t zero_point,
                                             const int8_t *weights, int32_t *output)
{
    const int32_t channels = window->output_channels;
    const int32_t multiplier = channels / window->input_channels;
    for (int32_t batch = 0; batch < window->batches; batch++) {
        for (int32_t y = 0; y < window->output.height; y++) {
            const struct mlf_taps rows = mlf_rows(window, y);
            for (int32_t x = 0; x < window->output.width; x++) {
                const struct mlf_taps columns = mlf_columns(window, x);
                memset(output, 0, (uint32_t)channels * sizeof *output);
                for (int32_t row = rows.first; row < rows.end; row++) {
                    for (int32_t column = columns.first; column < columns.end; column++) {
                        const int8_t *const pixel = input + mlf_pixel(window, &rows, &columns, row, column);
                        const int8_t *const factors = weights + (row * window->filter.width + column) * channels;
                        for (int32_t c = 0; c < channels; c++) {
                            output[c] += (pixel[c / multiplier] - zero_point) * factors[c];
                        }
                    }
                }
                output += channels;
            }
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
}

#endif /* MLF_CONV_INTEGER_H_ */
