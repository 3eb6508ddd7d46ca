/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * AVERAGE_POOL_2D of ONNX networks for cores with the DSP extension: sums of 16 bits as in pool2d_dsp.h, rescaled as in
 * pool2d_half_even.h.
 */
#ifndef MLF_POOL2D_HALF_EVEN_DSP_H_
#define MLF_POOL2D_HALF_EVEN_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "half_even.h"
#include "pool2d_dsp.h"
#include "pool2d_half_even.h"
#include "requantize.h"
#include "window.h"

/* Store the means of four channels. */
MLF_KERNEL void mlf_store_means4_dsp(int8_t *to, struct mlf_sums4 sums, struct mlf_pool_means means)
{
    for (int32_t c = 0; c < 4; c++) {
        const uint32_t next = sums.even >> 16;
        const struct mlf_pool_sum under = {(int16_t)(uint16_t)sums.even, sums.count};
        to[c] = (int8_t)mlf_pool_mean(under, means);
        sums.even = sums.odd;
        sums.odd = next;
    }
}

MLF_POOL_DSP(mlf_average_pool_half_even_int8_dsp, struct mlf_pool_means, mlf_sums4_dsp, mlf_store_means4_dsp,
             mlf_pool_sum_int8, mlf_pool_mean)

#endif /* MLF_POOL2D_HALF_EVEN_DSP_H_ */
