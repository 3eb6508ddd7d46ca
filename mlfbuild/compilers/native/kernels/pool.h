/*
 * AVERAGE_POOL_2D and MAX_POOL_2D. Input [N, H, W, C], output [N, H', W', C]; padding does not count.
 *
 * Without padding the output may start where the input does: a pixel is written after its window was read, and never
 * beyond the start of the next window.
 */
#ifndef MLF_POOL_H_
#define MLF_POOL_H_

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

/* The mean of one channel under a window; input points at the channel. */
MLF_KERNEL int32_t mlf_average_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                    const struct mlf_taps *columns, const int8_t *input)
{
    int32_t sum = 0;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            sum += input[mlf_pixel(window, rows, columns, row, column)];
        }
    }
    return mlf_rounded_quotient(sum, mlf_tap_count(rows, columns));
}

/* The greatest value of one channel under a window; input points at the channel. */
MLF_KERNEL int32_t mlf_greatest_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                     const struct mlf_taps *columns, const int8_t *input)
{
    int32_t greatest = INT8_MIN;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int32_t value = input[mlf_pixel(window, rows, columns, row, column)];
            greatest = value > greatest ? value : greatest;
        }
    }
    return greatest;
}

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

/* As mlf_greatest_int8; a NaN is passed over, wherever it stands. */
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

/* Bounds of a fused activation on stored int8 values. */
struct mlf_int8_range {
    int32_t minimum;
    int32_t maximum;
};

/* The loops that all four pools share: `reduce` makes one value of a window, `clamp` bounds it. */
#define MLF_POOL(name, type, range_type, reduce, clamp)                                                                \
    MLF_KERNEL void name(const struct mlf_window *window, range_type range, const type *input, type *output)           \
    {                                                                                                                  \
        for (int32_t batch = 0; batch < window->batches; batch++) {                                                    \
            for (int32_t y = 0; y < window->output.height; y++) {                                                      \
                const struct mlf_taps rows = mlf_rows(window, y);                                                      \
                for (int32_t x = 0; x < window->output.width; x++) {                                                   \
                    const struct mlf_taps columns = mlf_columns(window, x);                                            \
                    for (int32_t c = 0; c < window->input_channels; c++) {                                             \
                        *output++ = clamp(reduce(window, &rows, &columns, input + c), range);                          \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            input += window->input.height * window->input.width * window->input_channels;                              \
        }                                                                                                              \
    }

MLF_KERNEL int8_t mlf_clamp_int8(int32_t value, struct mlf_int8_range range)
{
    return (int8_t)mlf_clamp(value, range.minimum, range.maximum);
}

MLF_POOL(mlf_average_pool_int8, int8_t, struct mlf_int8_range, mlf_average_int8, mlf_clamp_int8)
MLF_POOL(mlf_average_pool_float, float, struct mlf_float_range, mlf_average_float, mlf_clamp_float)
MLF_POOL(mlf_max_pool_int8, int8_t, struct mlf_int8_range, mlf_greatest_int8, mlf_clamp_int8)
MLF_POOL(mlf_max_pool_float, float, struct mlf_float_range, mlf_greatest_float, mlf_clamp_float)

#endif /* MLF_POOL_H_ */
