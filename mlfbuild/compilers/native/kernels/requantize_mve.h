/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * From 32-bit sums to stored outputs on Helium (MVE), four output channels in a vector; equal to requantize.h.
 *
 * VQRDMULH is gemmlowp's doubling high multiply. VRSHL rounds ties up, and gemmlowp rounds them away from zero, so
 * negative numbers are decremented before they are shifted. This is omitted if outputs below the zero point are clamped
 * anyway, for example by a ReLU.
 *
 * Assembly kernels are composed of the texts in this header; q4 to q7 are not changed.
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
#define MLF_ENTER ".inst.w 0xf3af800f\n push {r3-r11, lr}\n vpush {d8-d15}\n"
#define MLF_LEAVE "vpop {d8-d15}\n pop {r3-r11, pc}\n"

/* Sums in r0 r2 r4 r6 and in r8 r10 r12 lr become q0 and q1. */
#define MLF_SUMS_TO_VECTORS                                                                                            \
    "vmov q0[2], q0[0], r0, r4\n"                                                                                      \
    "vmov q0[3], q0[1], r2, r6\n"                                                                                      \
    "vmov q1[2], q1[0], r8, r12\n"                                                                                     \
    "vmov q1[3], q1[1], r10, lr\n"

/* The vectors to which a step of the rescaling applies. */
#define MLF_BOTH(step) step("q0") step("q1")
#define MLF_FIRST(step) step("q0")
#define MLF_SECOND(step) step("q1")

#define MLF_ADD_BIAS(x) "vadd.i32 " x ", " x ", q2\n"
#define MLF_MULTIPLY(x) "vqrdmulh.s32 " x ", " x ", q2\n"
#define MLF_SHIFT_LEFT(x) "vshl.s32 " x ", " x ", q3\n"
#define MLF_SHIFT(x) "vrshl.s32 " x ", " x ", q2\n"
/* Negative numbers that are shifted right are decremented. */
#define MLF_SHIFT_AWAY(x)                                                                                              \
    "vand q3, " x ", q2\n"                                                                                             \
    "vshr.s32 q3, q3, #31\n"                                                                                           \
    "vadd.i32 " x ", " x ", q3\n" MLF_SHIFT(x)

/*
 * Rescale q0 and q1 (MLF_BOTH) or one of them by the struct mlf_channels4 at `base`, a low register, which then points
 * after it; uses q2 and q3. RELU: no channel shifts left, and negative results are clamped. RIGHT: no channel shifts
 * left.
 */
#define MLF_RESCALE_RELU(which, base)                                                                                  \
    "vldrw.u32 q2, [" base "], #16\n" which(MLF_ADD_BIAS)                                                              \
    "vldrw.u32 q2, [" base "], #16\n" which(MLF_MULTIPLY)                                                              \
    "vldrb.s32 q2, [" base "], #4\n" which(MLF_SHIFT)
#define MLF_RESCALE_RIGHT(which, base)                                                                                 \
    "vldrw.u32 q2, [" base "], #16\n" which(MLF_ADD_BIAS)                                                              \
    "vldrw.u32 q2, [" base "], #16\n" which(MLF_MULTIPLY)                                                              \
    "vldrb.s32 q2, [" base "], #4\n" which(MLF_SHIFT_AWAY)
#define MLF_RESCALE_ANY(which, base)                                                                                   \
    "vldrw.u32 q2, [" base "], #16\n" which(MLF_ADD_BIAS)                                                              \
    "vldrb.s32 q2, [" base ", #16]\n"                                                                                  \
    "vmov.i32 q3, #0\n"                                                                                                \
    "vmax.s32 q3, q2, q3\n" which(MLF_SHIFT_LEFT)                                                                      \
    "vldrw.u32 q2, [" base "], #16\n" which(MLF_MULTIPLY)                                                              \
    "vldrb.s32 q2, [" base "], #4\n"                                                                                   \
    "vmov.i32 q3, #0\n"                                                                                                \
    "vmin.s32 q2, q2, q3\n" which(MLF_SHIFT_AWAY)

/* q0 and q1 become the eight outputs: q4 is the zero point, q5 and q6 the clamp, q7 the offsets of outputs. */
#define MLF_STORE_OUTPUTS                                                                                              \
    "vqmovnb.s32 q0, q0\n"                                                                                             \
    "vqmovnt.s32 q0, q1\n"                                                                                             \
    "vqadd.s16 q0, q0, q4\n"                                                                                           \
    "vmax.s16 q0, q0, q5\n"                                                                                            \
    "vmin.s16 q0, q0, q6\n"                                                                                            \
    "vstrb.16 q0, [r11, q7]\n"

#endif /* MLF_MVE */

#endif /* MLF_REQUANTIZE_MVE_H_ */
