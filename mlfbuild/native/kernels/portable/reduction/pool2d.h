/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * AVERAGE_POOL_2D and MAX_POOL_2D. Input [N, H, W, C], output [N, H', W', C]; padding does not count.
 *
 * Without padding, the output may begin at the address of the input: a pixel is written after its window was read, and
 * never after the start of the next window.
 */
#ifndef MLF_POOL2D_H_
#define MLF_POOL2D_H_

#include <math.h>
#include <stdint.h>

#include "compiler.h"
#include "requantize.h"
#include "window.h"

/* Return sum / count rounded to nearest, ties away from zero. */
MLF_KERNEL int32_t mlf_rounded_quotient(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

MLF_KERNEL int32_t mlf_tap_count(const struct mlf_taps *rows, const struct mlf_taps *columns)
{
    return (rows->end - rows->first) * (columns->end - columns->first);
}

/* The mean and the greatest value of one channel under a window; input points at the channel. */
#define MLF_POOL_OF(suffix, type, least)                                                                               \
    MLF_KERNEL int32_t mlf_average_##suffix(const struct mlf_window *window, const struct mlf_taps *rows,              \
                                            const struct mlf_taps *columns, const type *input)                         \
    {                                                                                                                  \
        int32_t sum = 0;                                                                                               \
        for (int32_t row = rows->first; row < rows->end; row++) {                                                      \
            for (int32_t column = columns->first; column < columns->end; column++) {                                   \
                sum += input[mlf_pixel(window, rows, columns, row, column)];                                           \
            }                                                                                                          \
        }                                                                                                              \
        return mlf_rounded_quotient(sum, mlf_tap_count(rows, columns));                                                \
    }                                                                                                                  \
    MLF_KERNEL int32_t mlf_greatest_##suffix(const struct mlf_window *window, const struct mlf_taps *rows,             \
                                             const struct mlf_taps *columns, const type *input)                        \
    {                                                                                                                  \
        int32_t greatest = least;                                                                                      \
        for (int32_t row = rows->first; row < rows->end; row++) {                                                      \
            for (int32_t column = columns->first; column < columns->end; column++) {                                   \
                const int32_t value = input[mlf_pixel(window, rows, columns, row, column)];                            \
                greatest = value > greatest ? value : greatest;                                                        \
            }                                                                                                          \
        }                                                                                                              \
        return greatest;                                                                                               \
    }

MLF_POOL_OF(int8, int8_t, INT8_MIN)
MLF_POOL_OF(int16, int16_t, INT16_MIN)

MLF_KERNEL float mlf_average_float(const struct mlf_window *window, const struct mlf_taps *rows,
                                   const struct mlf_taps *columns, const float *input)
{
    float sum = 0.0f;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            sum += input[mlf_pixel(window, rows, columns, row, column)];
        }
    }
    return sum / (float)mlf_tap_count(rows, columns);
}

/* As mlf_greatest_int8; NaN is ignored at any position. */
MLF_KERNEL float mlf_greatest_float(const struct mlf_window *window, const struct mlf_taps *rows,
                                    const struct mlf_taps *columns, const float *input)
{
    float greatest = -INFINITY;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const float value = input[mlf_pixel(window, rows, columns, row, column)];
            greatest = value > greatest ? value : greatest;
        }
    }
    return greatest;
}

/* The loops that all pools share: `reduce` computes one value for a window, `clamp` clamps it. */
#define MLF_POOL(name, type, range_type, reduce, clamp)                                                                \
    MLF_KERNEL void name(const struct mlf_window *window, range_type range, const type *input, type *output)           \
    {                                                                                                                  \
        for (int32_t batch = 0; batch < window->batches; batch++) {                                                    \
            for (int32_t y = 0; y < window->output.height; y++) {                                                      \
                const struct mlf_taps rows = mlf_rows(window, y);                                                      \
                for (int32_t x = 0; x < window->output.width; x++) {                                                   \
                    const struct mlf_taps columns = mlf_columns(window, x);                                            \
                    for (int32_t c = 0; c < window->input_channels; c++) {                                             \
                        *output++ = (type)clamp(reduce(window, &rows, &columns, input + c), range);                    \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            input += window->input.height * window->input.width * window->input_channels;                              \
        }                                                                                                              \
    }

MLF_POOL(mlf_average_pool_int8, int8_t, struct mlf_int32_range, mlf_average_int8, mlf_clamp_int32)
MLF_POOL(mlf_average_pool_int16, int16_t, struct mlf_int32_range, mlf_average_int16, mlf_clamp_int32)
MLF_POOL(mlf_average_pool_float, float, struct mlf_float_range, mlf_average_float, mlf_clamp_float)
MLF_POOL(mlf_max_pool_int8, int8_t, struct mlf_int32_range, mlf_greatest_int8, mlf_clamp_int32)
MLF_POOL(mlf_max_pool_int16, int16_t, struct mlf_int32_range, mlf_greatest_int16, mlf_clamp_int32)
MLF_POOL(mlf_max_pool_float, float, struct mlf_float_range, mlf_greatest_float, mlf_clamp_float)

#endif /* MLF_POOL2D_H_ */
