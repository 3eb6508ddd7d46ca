/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D of int16 activations for Helium (MVE): one output channel for each input channel, a multiple of
 * eight channels, any window. Taps are found as in depthwise_conv2d_int16_dsp.h. Eight channels take 9 instructions per
 * tap (1.1 per product): VMULLB and VMULLT multiply even and odd channels separately, VRMULH replaces SMMULR, and
 * VQMOVN interleaves the results.
 *
 * The filter holds for every eight channels, in words: biases of channels 0, 2, 4, 6, 1, 3, 5, 7; for each tap two
 * words of the weights of all eight, a byte each; multipliers, in the order of the biases.
 */
#ifndef MLF_DEPTHWISE_CONV2D_INT16_MVE_H_
#define MLF_DEPTHWISE_CONV2D_INT16_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "depthwise_conv2d_int16_dsp.h"
#include "wide_sums.h"
#include "window.h"

#if defined(MLF_MVE)

/* r0 pixel, r1 filter, r2 output, r3 range; then r4 taps, r5, r6 their addresses, r7 bytes of all channels. */
MLF_NAKED void mlf_depthwise_pixel_int16_mve(const struct mlf_taps_int16_dsp *pixel MLF_UNUSED,
                                             const int32_t *filter MLF_UNUSED, int16_t *output MLF_UNUSED,
                                             const struct mlf_int16_range *range MLF_UNUSED)
{
    __asm__ volatile("push {r4-r7, r12, lr}\n"
                     "vpush {d8-d13}\n"
                     "ldrd r4, r5, [r3]\n"
                     "vdup.16 q5, r4\n"
                     "vdup.16 q6, r5\n"
                     "ldmia r0!, {r4, r7}\n"
                     "lsl r7, r7, #1\n"
                     "mov r12, #0\n"
                     "1: vldrw.u32 q0, [r1], #16\n"
                     "vldrw.u32 q1, [r1], #16\n"
                     "mov r5, r0\n"
                     "dls lr, r4\n"
                     "2: ldr r6, [r5], #4\n"
                     "vldrb.s16 q3, [r1], #8\n"
                     "add r6, r6, r12\n"
                     "vldrh.u16 q2, [r6]\n"
                     "vmullb.s16 q4, q2, q3\n"
                     "vadd.i32 q0, q0, q4\n"
                     "vmullt.s16 q4, q2, q3\n"
                     "vadd.i32 q1, q1, q4\n"
                     "le lr, 2b\n"
                     "vldrw.u32 q2, [r1], #16\n"
                     "vldrw.u32 q3, [r1], #16\n"
                     "vrmulh.s32 q0, q0, q2\n"
                     "vrmulh.s32 q1, q1, q3\n"
                     "vqmovnb.s32 q0, q0\n"
                     "vqmovnt.s32 q0, q1\n"
                     "vmax.s16 q0, q0, q5\n"
                     "vmin.s16 q0, q0, q6\n"
                     "vstrh.16 q0, [r2], #16\n"
                     "add r12, r12, #16\n"
                     "cmp r12, r7\n"
                     "bne 1b\n"
                     "vpop {d8-d13}\n"
                     "pop {r4-r7, r12, pc}");
}

#else /* the same in C */

MLF_SHARED void mlf_depthwise_pixel_int16_mve(const struct mlf_taps_int16_dsp *pixel, const int32_t *filter,
                                              int16_t *output, const struct mlf_int16_range *range)
{
    for (int32_t c = 0; c < pixel->channels; c++) {
        const int32_t place = c % 8 / 2 + c % 2 * 4;
        const int32_t *const eight = filter + c / 8 * (16 + 2 * pixel->count);
        uint32_t sum = (uint32_t)eight[place];
        for (int32_t tap = 0; tap < pixel->count; tap++) {
            sum += (uint32_t)(pixel->taps[tap][c] * mlf_byte_of_dsp(eight[8 + 2 * tap + c % 8 / 4], c % 4));
        }
        const int32_t value = mlf_round_int16_dsp(sum, eight[8 + 2 * pixel->count + place], INT16_MIN);
        output[c] = (int16_t)mlf_clamp(value, range->minimum, range->maximum);
    }
}

#endif

/* `padding` is one pixel of zeros; it is not used for a window without padding. */
MLF_KERNEL void mlf_depthwise_conv2d_int16_mve(const struct mlf_window *window, const struct mlf_int16_range *range,
                                               const int16_t *input, const int32_t *filter, const int16_t *padding,
                                               int16_t *output)
{
    struct mlf_taps_int16_dsp pixel;
    pixel.count = window->filter.height * window->filter.width;
    pixel.channels = window->input_channels;
    for (int32_t batch = 0; batch < window->batches; batch++) {
        for (int32_t y = 0; y < window->output.height; y++) {
            const struct mlf_taps rows = mlf_rows(window, y);
            for (int32_t x = 0; x < window->output.width; x++, output += pixel.channels) {
                const struct mlf_taps columns = mlf_columns(window, x);
                mlf_find_taps_int16_dsp(window, &rows, &columns, input, padding, pixel.taps);
                mlf_depthwise_pixel_int16_mve(&pixel, filter, output, range);
            }
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
}

#endif /* MLF_DEPTHWISE_CONV2D_INT16_MVE_H_ */
