/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * From 32-bit sums to stored outputs on Helium (MVE), four output channels in a vector; equal to requantize.h.
 *
 * VQRDMULH is gemmlowp's doubling high multiply. VRSHL rounds ties up, and gemmlowp rounds them away from zero, so
 * negative numbers are decremented before they are shifted. This is omitted if outputs below the zero point are clamped
 * anyway, for example by a ReLU.
 *
 * In names of kernels, RELU: no channel shifts left, and negative results are clamped. RIGHT: no channel shifts left.
 */
#ifndef MLF_REQUANTIZE_MVE_H_
#define MLF_REQUANTIZE_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

/* The biases of four output channels, and the rescaling of their sums to the output's scale. */
struct mlf_channels4 {
    int32_t bias[4];
    int32_t multiplier[4];
    int8_t shift[4]; /* negative: to the right */
};

/* Return the int8 output of the sum of channel `lane`; nothing wraps before it is clamped, as with VQMOVN and VQADD. */
MLF_KERNEL int8_t mlf_requantize_lane(uint32_t sum, const struct mlf_channels4 *channels, int32_t lane,
                                      int32_t zero_point, int32_t minimum, int32_t maximum)
{
    const int32_t shift = channels->shift[lane];
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t shifted = (int32_t)((sum + (uint32_t)channels->bias[lane]) << left);
    const int32_t scaled = mlf_shift_right(mlf_high_multiply(shifted, channels->multiplier[lane]), left - shift);
    return (int8_t)mlf_clamp(mlf_clamp(scaled, INT16_MIN, INT16_MAX) + zero_point, minimum, maximum);
}

#if defined(MLF_MVE)

/* BTI, for calls through pointers if branch targets are checked; a NOP on all other cores. */
#define MLF_ENTER ".inst.w 0xf3af800f\n push {r2-r8, r10, r11, lr}\n vpush {d8-d15}\n"
#define MLF_LEAVE "vpop {d8-d15}\n pop {r2-r8, r10, r11, pc}\n"

#endif /* MLF_MVE */

#endif /* MLF_REQUANTIZE_MVE_H_ */
