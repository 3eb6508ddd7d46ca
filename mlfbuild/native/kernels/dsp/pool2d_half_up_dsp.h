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
    struct mlf_sums4 sums = mlf_sums4_dsp(window, rows, columns, input);
    uint32_t means = 0;
    for (int32_t c = 0; c < 4; c++) {
        const uint32_t next = sums.even >> 16;
        means = means >> 8 | (uint32_t)mlf_half_up_quotient((int16_t)(uint16_t)sums.even, sums.count) << 24;
        sums.even = sums.odd;
        sums.odd = next;
    }
    return means;
}

MLF_POOL_DSP(mlf_average_pool_half_up_int8_dsp, struct mlf_int32_range, mlf_average4_half_up_dsp, mlf_store4_dsp,
             mlf_average_half_up_int8, mlf_clamp_int32)

#endif /* MLF_POOL2D_HALF_UP_DSP_H_ */
