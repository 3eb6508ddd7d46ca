/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * AVERAGE_POOL_2D of ONNX networks for Helium (MVE): sums of 16 bits as in pool2d_mve.h, rescaled as in
 * pool2d_half_even.h, 8 channels at a time.
 */
#ifndef MLF_POOL2D_HALF_EVEN_MVE_H_
#define MLF_POOL2D_HALF_EVEN_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "half_even.h"
#include "pool2d_half_even.h"
#include "pool2d_mve.h"
#include "window.h"

#if defined(MLF_MVE)

/* Return the outputs of 32-bit sums of count stored values, as mlf_rescaled_half_even, and clamp them. */
MLF_KERNEL int32x4_t mlf_pool_means_4(int32x4_t sum, int32_t count, const struct mlf_rescaling *rescaling,
                                      struct mlf_pool_means means)
{
    const int32_t right = rescaling->rescale.right_shift;
    const int32x4_t real = vsubq_n_s32(sum, count * rescaling->input_zero_point);
    const int32x4_t shifted = vshlq_r_s32(real, rescaling->rescale.left_shift);
    const int32x4_t product = vqrdmulhq_n_s32(shifted, rescaling->rescale.multiplier);
    const int32x4_t odd = vandq_s32(vshlq_r_s32(product, -right), vdupq_n_s32(1));
    const int32x4_t nudged = vaddq_s32(vaddq_n_s32(product, (1 << (right - 1)) - 1), odd);
    const int32x4_t stored = vaddq_n_s32(vshlq_r_s32(nudged, -right), rescaling->output_zero_point);
    return vmaxq_s32(vminq_s32(stored, vdupq_n_s32(means.maximum)), vdupq_n_s32(means.minimum));
}

MLF_KERNEL void mlf_half_even_window(const struct mlf_pool_taps *taps, struct mlf_pool_means means, int8_t *output)
{
    const int32_t count = taps->rows * taps->columns;
    const struct mlf_rescaling *const rescaling = &means.rescalings[means.most - count];
    for (int32_t c = 0; c < taps->depth; c += 8) {
        const int16x8_t sum = mlf_pool_sums_8(taps, c);
        const int32x4_t even = mlf_pool_means_4(vmovlbq_s16(sum), count, rescaling, means);
        const int32x4_t odd = mlf_pool_means_4(vmovltq_s16(sum), count, rescaling, means);
        const int16x8_t mean = vmovntq_s32(vmovnbq_s32(sum, even), odd);
        vstrbq_p_s16(output + c, mean, vctp16q((uint32_t)(taps->depth - c)));
    }
}

#endif /* MLF_MVE */

MLF_POOL_MVE(mlf_average_pool_half_even_int8_mve, struct mlf_pool_means, mlf_average_pool_half_even_int8,
             mlf_half_even_window)

#endif /* MLF_POOL2D_HALF_EVEN_MVE_H_ */
