/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * AVERAGE_POOL_2D of ONNX networks, whose output has its own scale: as pool2d.h, but the sum of a window is brought to
 * the output's scale with one rounding, half to even.
 */
#ifndef MLF_POOL2D_HALF_EVEN_H_
#define MLF_POOL2D_HALF_EVEN_H_

#include <stdint.h>

#include "compiler.h"
#include "half_even.h"
#include "pool2d.h"
#include "requantize.h"
#include "window.h"

/* The stored values under a window. */
struct mlf_pool_sum {
    int32_t sum;
    int32_t count;
};

/* The clamp of stored values, and the rescalings of sums of most pixels, of one pixel less, and so on. */
struct mlf_pool_means {
    int32_t minimum;
    int32_t maximum;
    int32_t most;
    const struct mlf_rescaling *rescalings;
};

MLF_KERNEL int32_t mlf_pool_mean(struct mlf_pool_sum under, struct mlf_pool_means means)
{
    const struct mlf_rescaling *const rescaling = &means.rescalings[means.most - under.count];
    return mlf_clamp(mlf_rescaled_half_even(under.sum, under.count, rescaling), means.minimum, means.maximum);
}

#define MLF_POOL_SUM(suffix, type)                                                                                     \
    MLF_KERNEL struct mlf_pool_sum mlf_pool_sum_##suffix(const struct mlf_window *window, const struct mlf_taps *rows, \
                                                         const struct mlf_taps *columns, const type *input)            \
    {                                                                                                                  \
        struct mlf_pool_sum under = {0, mlf_tap_count(rows, columns)};                                                 \
        for (int32_t row = rows->first; row < rows->end; row++) {                                                      \
            for (int32_t column = columns->first; column < columns->end; column++) {                                   \
                under.sum += input[mlf_pixel(window, rows, columns, row, column)];                                     \
            }                                                                                                          \
        }                                                                                                              \
        return under;                                                                                                  \
    }

MLF_POOL_SUM(int8, int8_t)
MLF_POOL_SUM(int16, int16_t)

MLF_POOL(mlf_average_pool_half_even_int8, int8_t, struct mlf_pool_means, mlf_pool_sum_int8, mlf_pool_mean)
MLF_POOL(mlf_average_pool_half_even_int16, int16_t, struct mlf_pool_means, mlf_pool_sum_int16, mlf_pool_mean)

#endif /* MLF_POOL2D_HALF_EVEN_H_ */
