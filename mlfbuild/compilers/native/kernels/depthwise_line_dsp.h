/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * A line of the output of four channels of a depthwise convolution with 3x3 filters, from planes of 16 bits, one per
 * channel, in which adjacent pixels are adjacent halfwords. With w01 = (w[0], w[1]) and w12 = (w[1], w[2]) of a
 * row of the filter, all of it in six registers, and d0 = (x[0], x[1]), d1 = (x[2], x[3]):
 *
 *   stride 1:  sum[0] = SMLAD(d0, w01) + SMLABT(d1, w12), sum[1] = SMLATB(d0, w01) + SMLAD(d1, w12)
 *   stride 2:  sum[0] = SMLAD(d0, w01) + SMLABT(d1, w12), and d1 is the next output's d0
 *
 * A pair of outputs takes 19 instructions (1.1 per product) with stride 1, 22 with stride 2; requantisation takes 6 per
 * output.
 */
#ifndef MLF_DEPTHWISE_LINE_DSP_H_
#define MLF_DEPTHWISE_LINE_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "dsp.h"

/* The three lines of a plane are this many halfwords apart; assembly contains it as 128 and 384 bytes. */
#define MLF_LINE_DSP 64
#define MLF_PLANE_DSP (3 * MLF_LINE_DSP)

/* The filter of one channel, rows 0, 1, 2, 0, 1 of (2 w[0], 2 w[1]), (2 w[1], 2 w[2]), and how sums become outputs. */
struct mlf_plane_filter_dsp {
    int16_t weights[5][4];
    int32_t bias;
    int32_t multiplier;
    int32_t addend; /* rounding << shift */
    int32_t shift;
};

/* The parameters for a line in addition to the planes; assembly reads them by position. */
struct mlf_line_call_dsp {
    int32_t first; /* row of the filter for the plane's first line, in bytes: 0, 8 or 16 */
    int32_t pairs; /* of outputs */
    int32_t outputs;
    int32_t step;  /* bytes from one output to the next */
    int32_t *sums; /* memory for one sum per output, and one more */
};

#if MLF_DSP_ASM

/* Copy pairs of pixels, `step` bytes apart, of four channels to four planes. */
MLF_NAKED void mlf_fill_planes_dsp(int16_t *planes MLF_UNUSED, const int8_t *input MLF_UNUSED, int32_t step MLF_UNUSED,
                                   int32_t pairs MLF_UNUSED)
{
    __asm__ volatile("push {r4-r7, lr}\n"
                     "1:\n\t"
                     "ldr r5, [r1, r2]\n\t"
                     "ldr r4, [r1]\n\t"
                     "add r1, r1, r2, lsl #1\n\t"
                     "sxtb16 r7, r5\n\t"
                     "sxtb16 r6, r4\n\t"
                     "sxtb16 r5, r5, ror #8\n\t"
                     "sxtb16 r4, r4, ror #8\n\t"
                     "pkhtb r12, r7, r6, asr #16\n\t"
                     "pkhbt r6, r6, r7, lsl #16\n\t"
                     "pkhtb lr, r5, r4, asr #16\n\t"
                     "pkhbt r4, r4, r5, lsl #16\n\t"
                     "str r12, [r0, #768]\n\t"
                     "str lr, [r0, #1152]\n\t"
                     "str r4, [r0, #384]\n\t"
                     "str r6, [r0], #4\n\t"
                     "subs r3, r3, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r7, pc}");
}

/* r0: plane, r1: bias, r2, r3: four inputs, r4-r9: filter, r10, r11: two sums, r12: sums, lr: count. */
#define MLF_ROW1_DSP(load, w01, w12)                                                                                   \
    load "smlad r10, r2, " w01 ", r10\n\t"                                                                             \
         "smlatb r11, r2, " w01 ", r11\n\t"                                                                            \
         "smlabt r10, r3, " w12 ", r10\n\t"                                                                            \
         "smlad r11, r3, " w12 ", r11\n\t"

#define MLF_PAIR1_DSP                                                                                                  \
    "mov r10, r1\n\t"                                                                                                  \
    "mov r11, r1\n\t" MLF_ROW1_DSP("ldrd r2, r3, [r0, #256]\n\t", "r8", "r9")                                          \
        MLF_ROW1_DSP("ldrd r2, r3, [r0, #128]\n\t", "r6", "r7")                                                        \
            MLF_ROW1_DSP("ldrd r2, r3, [r0], #4\n\t", "r4", "r5") "strd r10, r11, [r12], #8\n\t"

#define MLF_ROW2_DSP(load, sum, w01, w12)                                                                              \
    load "smlad " sum ", r2, " w01 ", " sum "\n\t"                                                                     \
         "smlabt " sum ", r3, " w12 ", " sum "\n\t"

#define MLF_SUM2_DSP(sum)                                                                                              \
    "mov " sum ", r1\n\t" MLF_ROW2_DSP("ldrd r2, r3, [r0, #256]\n\t", sum, "r8", "r9")                                 \
        MLF_ROW2_DSP("ldrd r2, r3, [r0, #128]\n\t", sum, "r6", "r7")                                                   \
            MLF_ROW2_DSP("ldrd r2, r3, [r0], #4\n\t", sum, "r4", "r5")

#define MLF_PAIR2_DSP MLF_SUM2_DSP("r10") MLF_SUM2_DSP("r11") "strd r10, r11, [r12], #8\n\t"

#define MLF_LINE_BODY_DSP(pair)                                                                                        \
    "push {r4-r11, lr}\n\t"                                                                                            \
    "sub sp, sp, #36\n\t"                                                                                              \
    "strd r0, r1, [sp]\n\t"     /* planes, filters */                                                                  \
    "str r2, [sp, #8]\n\t"      /* output */                                                                           \
    "ldmia r3, {r4-r8}\n\t"                                                                                            \
    "strd r4, r5, [sp, #12]\n\t" /* first row of the filter, pairs */                                                  \
    "strd r6, r7, [sp, #20]\n\t" /* outputs, step */                                                                   \
    "str r8, [sp, #28]\n\t"     /* sums */                                                                             \
    "mov r4, #4\n"                                                                                                     \
    "1:\n\t"                                                                                                           \
    "str r4, [sp, #32]\n\t"     /* remaining channels */                                                               \
    "ldrd r0, r2, [sp]\n\t"                                                                                            \
    "ldrd r3, lr, [sp, #12]\n\t"                                                                                       \
    "ldr r12, [sp, #28]\n\t"                                                                                           \
    "ldr r1, [r2, #40]\n\t"                                                                                            \
    "add r2, r2, r3\n\t"                                                                                               \
    "ldmia r2, {r4-r9}\n\t"                                                                                            \
    "lsrs lr, lr, #1\n\t"                                                                                              \
    "bcc 2f\n\t"                                                                                                       \
    "add lr, lr, #1\n\t"                                                                                               \
    "b 3f\n"                                                                                                           \
    "2:\n\t" pair "3:\n\t" pair                                                                                        \
    "subs lr, lr, #1\n\t"                                                                                              \
    "bne 2b\n\t"                                                                                                       \
    "ldr r0, [sp, #28]\n\t"                                                                                            \
    "ldrd r1, r5, [sp, #4]\n\t"                                                                                        \
    "ldrd r2, r3, [r1, #44]\n\t" /* multiplier, addend */                                                              \
    "ldr r4, [r1, #52]\n\t"     /* shift */                                                                            \
    "ldrd r6, r7, [sp, #20]\n\t"                                                                                       \
    "add r8, r7, r7, lsl #1\n\t"                                                                                       \
    "lsrs r1, r6, #2\n\t"                                                                                              \
    "and r6, r6, #3\n\t"                                                                                               \
    "beq 5f\n"                                                                                                         \
    "4:\n\t"                                                                                                           \
    "ldmia r0!, {r9-r12}\n\t" MLF_OUTPUT_DSP("r9", "[r5]") MLF_OUTPUT_DSP("r10", "[r5, r7]")                           \
        MLF_OUTPUT_DSP("r11", "[r5, r7, lsl #1]") MLF_OUTPUT_DSP("r12", "[r5, r8]")                                    \
    "add r5, r5, r7, lsl #2\n\t"                                                                                       \
    "subs r1, r1, #1\n\t"                                                                                              \
    "bne 4b\n"                                                                                                         \
    "5:\n\t"                                                                                                           \
    "cbz r6, 7f\n"                                                                                                     \
    "6:\n\t"                                                                                                           \
    "ldr r9, [r0], #4\n\t" MLF_OUTPUT_DSP("r9", "[r5]")                                                                \
    "add r5, r5, r7\n\t"                                                                                               \
    "subs r6, r6, #1\n\t"                                                                                              \
    "bne 6b\n"                                                                                                         \
    "7:\n\t"                                                                                                           \
    "ldrd r0, r1, [sp]\n\t"                                                                                            \
    "ldr r2, [sp, #8]\n\t"                                                                                             \
    "ldr r4, [sp, #32]\n\t"                                                                                            \
    "add r0, r0, #384\n\t"                                                                                             \
    "add r1, r1, #56\n\t"                                                                                              \
    "add r2, r2, #1\n\t"                                                                                               \
    "strd r0, r1, [sp]\n\t"                                                                                            \
    "str r2, [sp, #8]\n\t"                                                                                             \
    "subs r4, r4, #1\n\t"                                                                                              \
    "bne 1b\n\t"                                                                                                       \
    "add sp, sp, #36\n\t"                                                                                              \
    "pop {r4-r11, pc}"

#define MLF_OUTPUT_DSP(sum, place) MLF_STORE_DSP(sum, "r2", "r3", "r4", "lr", place)

/* Compute a line of the output of four channels. */
MLF_NAKED void mlf_depthwise_line1_dsp(const int16_t *planes MLF_UNUSED,
                                       const struct mlf_plane_filter_dsp *filters MLF_UNUSED, int8_t *output MLF_UNUSED,
                                       const struct mlf_line_call_dsp *call MLF_UNUSED)
{
    __asm__ volatile(MLF_LINE_BODY_DSP(MLF_PAIR1_DSP));
}

MLF_NAKED void mlf_depthwise_line2_dsp(const int16_t *planes MLF_UNUSED,
                                       const struct mlf_plane_filter_dsp *filters MLF_UNUSED, int8_t *output MLF_UNUSED,
                                       const struct mlf_line_call_dsp *call MLF_UNUSED)
{
    __asm__ volatile(MLF_LINE_BODY_DSP(MLF_PAIR2_DSP));
}

#else /* the same in C */

MLF_SHARED void mlf_fill_planes_dsp(int16_t *planes, const int8_t *input, int32_t step, int32_t pairs)
{
    for (int32_t i = 0; i < 2 * pairs; i++) {
        for (int32_t c = 0; c < 4; c++) {
            planes[c * MLF_PLANE_DSP + i] = input[i * step + c];
        }
    }
}

MLF_KERNEL void mlf_depthwise_line_dsp(int32_t stride, const int16_t *planes,
                                       const struct mlf_plane_filter_dsp *filters, int8_t *output,
                                       const struct mlf_line_call_dsp *call)
{
    for (int32_t c = 0; c < 4; c++) {
        const struct mlf_plane_filter_dsp *const filter = &filters[c];
        for (int32_t i = 0; i < call->outputs; i++) {
            const int16_t *const input = planes + c * MLF_PLANE_DSP + stride * i;
            uint32_t sum = (uint32_t)filter->bias;
            for (int32_t line = 0; line < 3; line++) {
                const int16_t *const weights = filter->weights[call->first / 8 + line];
                const int16_t *const values = input + line * MLF_LINE_DSP;
                sum += (uint32_t)(values[0] * weights[0] + values[1] * weights[1] + values[2] * weights[3]);
            }
            const uint32_t addend = (uint32_t)filter->addend + (uint32_t)((int32_t)sum >> 31);
            output[i * call->step + c] = mlf_round_dsp(sum, filter->multiplier, addend, filter->shift);
        }
    }
}

MLF_SHARED void mlf_depthwise_line1_dsp(const int16_t *planes, const struct mlf_plane_filter_dsp *filters,
                                        int8_t *output, const struct mlf_line_call_dsp *call)
{
    mlf_depthwise_line_dsp(1, planes, filters, output, call);
}

MLF_SHARED void mlf_depthwise_line2_dsp(const int16_t *planes, const struct mlf_plane_filter_dsp *filters,
                                        int8_t *output, const struct mlf_line_call_dsp *call)
{
    mlf_depthwise_line_dsp(2, planes, filters, output, call);
}

#endif

#endif /* MLF_DEPTHWISE_LINE_DSP_H_ */
