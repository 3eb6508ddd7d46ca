/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * AVERAGE_POOL_2D as in pool2d.h for uint8 networks, whose values are stored lower by 128: they have no sign, so halves
 * are rounded up.
 */
#ifndef MLF_POOL2D_HALF_UP_H_
#define MLF_POOL2D_HALF_UP_H_

#include <stdint.h>

#include "compiler.h"
#include "pool2d.h"
#include "requantize.h"
#include "window.h"

/* Return sum / count for a sum of stored values, rounded to nearest, halves up. */
MLF_KERNEL int32_t mlf_half_up_quotient(int32_t sum, int32_t count)
{
    return (sum + 128 * count + count / 2) / count - 128;
}

MLF_KERNEL int32_t mlf_average_half_up_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                            const struct mlf_taps *columns, const int8_t *input)
{
    int32_t sum = 0;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            sum += input[mlf_pixel(window, rows, columns, row, column)];
        }
    }
    return mlf_half_up_quotient(sum, mlf_tap_count(rows, columns));
}

MLF_POOL(mlf_average_pool_half_up_int8, int8_t, struct mlf_int32_range, mlf_average_half_up_int8, mlf_clamp_int32)

#endif /* MLF_POOL2D_HALF_UP_H_ */
