/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * AVERAGE_POOL_2D and MAX_POOL_2D on int8 for Helium (MVE), 8 and 16 channels at a time; equal to pool2d.h.
 *
 * Averages are of at most 255 pixels, so that 16 bits hold a sum and a quotient is the high half of a product: n / d is
 * n * ceil(2^32 / d) / 2^32, rounded down, for n below 2^15 and d from 2 to 255: the error n / 2^32 is below 1 / d.
 */
#ifndef MLF_POOL2D_MVE_H_
#define MLF_POOL2D_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "pool2d.h"
#include "requantize_mve.h"
#include "window.h"

#if defined(MLF_MVE)

#include <arm_mve.h>

/* The pixels of a window inside the image. */
struct mlf_pool_taps {
    const int8_t *first;
    int32_t rows;
    int32_t columns;
    int32_t row;   /* bytes from a row to the next */
    int32_t depth; /* bytes from a pixel to the next */
};

/* Return 32-bit sums over `count`, rounded to nearest, ties away from zero; reciprocal is ceil(2^32 / count). */
MLF_KERNEL int32x4_t mlf_pool_quotient(int32x4_t sum, int32_t count, uint32_t reciprocal)
{
    const uint32x4_t magnitude = vaddq_n_u32(vreinterpretq_u32_s32(vabsq_s32(sum)), (uint32_t)(count / 2));
    const int32x4_t quotient =
        vreinterpretq_s32_u32(count == 1 ? magnitude : vmulhq_u32(magnitude, vdupq_n_u32(reciprocal)));
    return vnegq_m_s32(quotient, quotient, vcmpltq_n_s32(sum, 0));
}

/* Return sums of 16 bits of up to 8 channels from channel c on. */
MLF_KERNEL int16x8_t mlf_pool_sums_8(const struct mlf_pool_taps *taps, int32_t c)
{
    const mve_pred16_t inside = vctp16q((uint32_t)(taps->depth - c));
    int16x8_t sum = vdupq_n_s16(0);
    const int8_t *row = taps->first + c;
    for (int32_t i = 0; i < taps->rows; i++, row += taps->row) {
        const int8_t *from = row;
        for (int32_t j = 0; j < taps->columns; j++, from += taps->depth) {
            sum = vaddq_s16(sum, vldrbq_z_s16(from, inside));
        }
    }
    return sum;
}

/* Up to 8 channels of a pixel. */
MLF_KERNEL void mlf_average_8(const struct mlf_pool_taps *taps, int32_t c, struct mlf_int32_range range,
                              uint32_t reciprocal, int8_t *output)
{
    const mve_pred16_t inside = vctp16q((uint32_t)(taps->depth - c));
    const int32_t count = taps->rows * taps->columns;
    const int16x8_t sum = mlf_pool_sums_8(taps, c);
    const int32x4_t even = mlf_pool_quotient(vmovlbq_s16(sum), count, reciprocal);
    const int32x4_t odd = mlf_pool_quotient(vmovltq_s16(sum), count, reciprocal);
    int16x8_t mean = vmovntq_s32(vmovnbq_s32(sum, even), odd);
    mean = vmaxq_s16(vminq_s16(mean, vdupq_n_s16((int16_t)range.maximum)), vdupq_n_s16((int16_t)range.minimum));
    vstrbq_p_s16(output + c, mean, inside);
}

MLF_KERNEL void mlf_average_window(const struct mlf_pool_taps *taps, struct mlf_int32_range range, int8_t *output)
{
    const uint32_t count = (uint32_t)(taps->rows * taps->columns);
    const uint32_t reciprocal = UINT32_MAX / count + 1; /* not used, and 0, if count is 1 */
    for (int32_t c = 0; c < taps->depth; c += 8) {
        mlf_average_8(taps, c, range, reciprocal, output);
    }
}

MLF_KERNEL void mlf_greatest_window(const struct mlf_pool_taps *taps, struct mlf_int32_range range, int8_t *output)
{
    for (int32_t c = 0; c < taps->depth; c += 16) {
        const mve_pred16_t inside = vctp8q((uint32_t)(taps->depth - c));
        int8x16_t greatest = vdupq_n_s8((int8_t)range.minimum);
        const int8_t *row = taps->first + c;
        for (int32_t i = 0; i < taps->rows; i++, row += taps->row) {
            const int8_t *from = row;
            for (int32_t j = 0; j < taps->columns; j++, from += taps->depth) {
                greatest = vmaxq_s8(greatest, vldrbq_z_s8(from, inside));
            }
        }
        vstrbq_p_s8(output + c, vminq_s8(greatest, vdupq_n_s8((int8_t)range.maximum)), inside);
    }
}

/* The loops of all pools. */
#define MLF_POOL_MVE(name, range_type, portable, reduce)                                                               \
    MLF_KERNEL void name(const struct mlf_window *window, range_type range, const int8_t *input, int8_t *output)       \
    {                                                                                                                  \
        const int32_t depth = window->input_channels;                                                                  \
        for (int32_t batch = 0; batch < window->batches; batch++) {                                                    \
            for (int32_t y = 0; y < window->output.height; y++) {                                                      \
                const struct mlf_taps rows = mlf_rows(window, y);                                                      \
                for (int32_t x = 0; x < window->output.width; x++) {                                                   \
                    const struct mlf_taps columns = mlf_columns(window, x);                                            \
                    const struct mlf_pool_taps taps = {                                                                \
                        input + mlf_pixel(window, &rows, &columns, rows.first, columns.first),                         \
                        rows.end - rows.first,                                                                         \
                        columns.end - columns.first,                                                                   \
                        window->input.width * depth,                                                                   \
                        depth,                                                                                         \
                    };                                                                                                 \
                    reduce(&taps, range, output);                                                                      \
                    output += depth;                                                                                   \
                }                                                                                                      \
            }                                                                                                          \
            input += window->input.height * window->input.width * depth;                                               \
        }                                                                                                              \
    }

#else

#define MLF_POOL_MVE(name, range_type, portable, reduce)                                                               \
    MLF_KERNEL void name(const struct mlf_window *window, range_type range, const int8_t *input, int8_t *output)       \
    {                                                                                                                  \
        portable(window, range, input, output);                                                                        \
    }

#endif /* MLF_MVE */

MLF_POOL_MVE(mlf_average_pool_int8_mve, struct mlf_int32_range, mlf_average_pool_int8, mlf_average_window)
MLF_POOL_MVE(mlf_max_pool_int8_mve, struct mlf_int32_range, mlf_max_pool_int8, mlf_greatest_window)

#endif /* MLF_POOL2D_MVE_H_ */
