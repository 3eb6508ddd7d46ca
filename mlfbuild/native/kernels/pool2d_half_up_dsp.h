/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * AVERAGE_POOL_2D of uint8 networks for cores with the DSP extension: sums of 16 bits as in pool2d_dsp.h, rounded as in
 * pool2d_half_up.h.
 */
#ifndef MLF_POOL2D_HALF_UP_DSP_H_
#define MLF_POOL2D_HALF_UP_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "pool2d_dsp.h"
#include "pool2d_half_up.h"
#include "window.h"

/* The means of four channels under a window; input points at the first channel. */
MLF_KERNEL uint32_t mlf_average4_half_up_dsp(const struct mlf_window *window, const struct mlf_taps *rows,
                                             const struct mlf_taps *columns, const int8_t *input)
{
    const int32_t count = mlf_tap_count(rows, columns);
    uint32_t even = 0;
    uint32_t odd = 0;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const uint32_t word = mlf_load4_dsp(input + mlf_pixel(window, rows, columns, row, column));
            even = mlf_add_even_dsp(even, word);
            odd = mlf_add_odd_dsp(odd, word);
        }
    }
    uint32_t means = 0;
    for (int32_t c = 0; c < 4; c++) {
        const uint32_t next = even >> 16;
        means = means >> 8 | (uint32_t)mlf_half_up_quotient((int16_t)(uint16_t)even, count) << 24;
        even = odd;
        odd = next;
    }
    return means;
}

MLF_POOL_DSP(mlf_average_pool_half_up_int8_dsp, mlf_average4_half_up_dsp, mlf_average_half_up_int8)

#endif /* MLF_POOL2D_HALF_UP_DSP_H_ */
