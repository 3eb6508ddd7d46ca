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
 * Six outputs share the loads of a row of inputs and of the filter: 20 cycles on a Cortex-M4 with stride 1, 24 with
 * stride 2, and their sums stay in registers until they are requantised. The last outputs are computed singly.
 */
#ifndef MLF_DEPTHWISE_LINE_DSP_H_
#define MLF_DEPTHWISE_LINE_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "dsp.h"

/* The three lines of a plane are this many halfwords apart; assembly contains it as 128 and 384 bytes. */
#define MLF_LINE_DSP 64
#define MLF_PLANE_DSP (3 * MLF_LINE_DSP)

/* The outputs that are computed together; assembly contains it. */
#define MLF_OUTPUTS_DSP 6

struct mlf_plane_scale_dsp {
    int32_t bias;
    int32_t multiplier;
};

/*
 * The filter of one channel, rows 0, 1, 2, 0, 1 of (w[0], w[1]), (w[1], w[2]), all times 256, and how sums become
 * outputs. Brief bias (otherwise 0) and multiplier have the same distance from each possible first row.
 */
struct mlf_plane_filter_dsp {
    int16_t weights[5][4];
    struct mlf_plane_scale_dsp scales[3];
    int32_t addend; /* rounding << shift */
    int32_t shift;
    int32_t bias; /* doubled, unless it is the brief one */
};

/* The parameters for a line in addition to the planes; assembly reads them by position. */
struct mlf_line_call_dsp {
    int32_t first;   /* row of the filter for the plane's first line, in bytes: 0, 8 or 16 */
    int32_t step;    /* bytes from one output to the next */
    int32_t blocks;  /* bytes of the outputs that are computed together */
    int32_t line;    /* bytes of all outputs */
    int32_t plane;   /* bytes from the end of a line's inputs to those of the next plane */
    int32_t general; /* an odd number, or 0 for the brief requantisation */
};

#if MLF_DSP_ASM

#define MLF_FILL_PAIR_DSP                                                                                              \
    "ldr r5, [r1, r2]\n\t"                                                                                             \
    "ldr r4, [r1]\n\t"                                                                                                 \
    "sxtb16 r7, r5\n\t"                                                                                                \
    "add r1, r1, r2, lsl #1\n\t"                                                                                       \
    "sxtb16 r6, r4\n\t"                                                                                                \
    "sxtb16 r5, r5, ror #8\n\t"                                                                                        \
    "sxtb16 r4, r4, ror #8\n\t"                                                                                        \
    "pkhtb r12, r7, r6, asr #16\n\t"                                                                                   \
    "pkhbt r6, r6, r7, lsl #16\n\t"                                                                                    \
    "pkhtb lr, r5, r4, asr #16\n\t"                                                                                    \
    "pkhbt r4, r4, r5, lsl #16\n\t"                                                                                    \
    "str r4, [r0, #384]\n\t"                                                                                           \
    "str r12, [r0, #768]\n\t"                                                                                          \
    "str lr, [r0, #1152]\n\t"                                                                                          \
    "str r6, [r0], #4\n\t"

/* Copy pairs of pixels, `step` bytes apart, of four channels to four planes. */
MLF_NAKED void mlf_fill_planes_dsp(int16_t *planes MLF_UNUSED, const int8_t *input MLF_UNUSED, int32_t step MLF_UNUSED,
                                   int32_t pairs MLF_UNUSED)
{
    __asm__ volatile("push {r4-r7, lr}\n\t"
                     "lsrs r3, r3, #1\n\t"
                     "bcs 2f\n"
                     "1:\n\t" MLF_FILL_PAIR_DSP
                     "subs r3, r3, #1\n" /* no other instruction changes flags */
                     "2:\n\t" MLF_FILL_PAIR_DSP
                     "bne 1b\n\t"
                     "pop {r4-r7, pc}");
}

#define MLF_SPREAD_DSP(first, second, third, low0, low1, high0, high1)                                                 \
    "pkhbt r11, " first ", " second ", lsl #16\n\t"                                                                    \
    "pkhbt r12, " second ", " third ", lsl #16\n\t"                                                                    \
    "str r11, [r1, #" low0 "]\n\t"                                                                                     \
    "str r12, [r1, #" low0 " + 4]\n\t"                                                                                 \
    "str r11, [r1, #" low1 "]\n\t"                                                                                     \
    "str r12, [r1, #" low1 " + 4]\n\t"                                                                                 \
    "pkhtb r11, " second ", " first ", asr #16\n\t"                                                                    \
    "pkhtb r12, " third ", " second ", asr #16\n\t"                                                                    \
    "str r11, [r1, #" high0 "]\n\t"                                                                                    \
    "str r12, [r1, #" high0 " + 4]\n\t"                                                                                \
    "str r11, [r1, #" high1 "]\n\t"                                                                                    \
    "str r12, [r1, #" high1 " + 4]\n\t"

/*
 * Write nine words of weights, one channel per byte, as the rows of four filters; r2 selects high bytes of halfwords.
 * The copy of the third row is followed by the scales, which are written later.
 */
MLF_NAKED void mlf_spread_filters_dsp(const int32_t *weights MLF_UNUSED,
                                      struct mlf_plane_filter_dsp *filters MLF_UNUSED)
{
    __asm__ volatile("push {r4-r8, r10, r11, lr}\n\t"
                     "mov r2, #0xff00ff00\n\t"
                     "movs r10, #3\n"
                     "1:\n\t"
                     "ldr r3, [r0]\n\t"
                     "ldr r4, [r0, #4]\n\t"
                     "ldr r5, [r0, #8]\n\t"
                     "and r6, r2, r3, lsl #8\n\t"
                     "and r7, r2, r4, lsl #8\n\t"
                     "and r8, r2, r5, lsl #8\n\t"
                     "ands r3, r2\n\t"
                     "ands r4, r2\n\t"
                     "ands r5, r2\n\t" MLF_SPREAD_DSP("r6", "r7", "r8", "0", "24", "152", "176")
                         MLF_SPREAD_DSP("r3", "r4", "r5", "76", "100", "228", "252")
                     "adds r0, #12\n\t"
                     "adds r1, #8\n\t"
                     "subs r10, r10, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r8, r10, r11, pc}");
}

/* A row of the filter and its first inputs. */
#define MLF_LOAD_ROW_DSP(w01, w12, d0, d1)                                                                             \
    "ldr r3, [r1, #" w01 "]\n\t"                                                                                       \
    "ldr r4, [r1, #" w12 "]\n\t"                                                                                       \
    "ldr r5, [r0, #" d0 "]\n\t"                                                                                        \
    "ldr r6, [r0, #" d1 "]\n\t"

/* r0: plane, r1: filter, r2, r8, r10-r12, lr: six sums, r3, r4: a row of the filter, r5-r7: inputs; bias in lr. */
#define MLF_ROW1_DSP(w01, w12, d0, d1, d2, d3, r2, r8, r10, r11, r12, lr)                                              \
    MLF_LOAD_ROW_DSP(w01, w12, d0, d1)                                                                                 \
    "ldr r7, [r0, #" d2 "]\n\t"                                                                                        \
    "smlad r2, r5, r3, " r2 "\n\t"                                                                                     \
    "smlabt r2, r6, r4, r2\n\t"                                                                                        \
    "smlatb r8, r5, r3, " r8 "\n\t"                                                                                    \
    "smlad r8, r6, r4, r8\n\t"                                                                                         \
    "ldr r5, [r0, #" d3 "]\n\t"                                                                                        \
    "smlad r10, r6, r3, " r10 "\n\t"                                                                                   \
    "smlabt r10, r7, r4, r10\n\t"                                                                                      \
    "smlatb r11, r6, r3, " r11 "\n\t"                                                                                  \
    "smlad r11, r7, r4, r11\n\t"                                                                                       \
    "smlad r12, r7, r3, " r12 "\n\t"                                                                                   \
    "smlabt r12, r5, r4, r12\n\t"                                                                                      \
    "smlatb lr, r7, r3, " lr "\n\t"                                                                                    \
    "smlad lr, r5, r4, lr\n\t"

#define MLF_ROW2_DSP(w01, w12, d0, d1, d2, d3, d4, d5, d6, r2, r8, r10, r11, r12, lr)                                  \
    MLF_LOAD_ROW_DSP(w01, w12, d0, d1)                                                                                 \
    "ldr r7, [r0, #" d2 "]\n\t"                                                                                        \
    "smlad r2, r5, r3, " r2 "\n\t"                                                                                     \
    "smlabt r2, r6, r4, r2\n\t"                                                                                        \
    "smlad r8, r6, r3, " r8 "\n\t"                                                                                     \
    "smlabt r8, r7, r4, r8\n\t"                                                                                        \
    "smlad r10, r7, r3, " r10 "\n\t"                                                                                   \
    "ldr r5, [r0, #" d3 "]\n\t"                                                                                        \
    "ldr r6, [r0, #" d4 "]\n\t"                                                                                        \
    "ldr r7, [r0, #" d5 "]\n\t"                                                                                        \
    "smlabt r10, r5, r4, r10\n\t"                                                                                      \
    "smlad r11, r5, r3, " r11 "\n\t"                                                                                   \
    "smlabt r11, r6, r4, r11\n\t"                                                                                      \
    "ldr r5, [r0, #" d6 "]\n\t"                                                                                        \
    "smlad r12, r6, r3, " r12 "\n\t"                                                                                   \
    "smlabt r12, r7, r4, r12\n\t"                                                                                      \
    "smlad lr, r7, r3, " lr "\n\t"                                                                                     \
    "smlabt lr, r5, r4, lr\n\t"

/* Offsets of the rows of the filter, and of their inputs; what the sums are added to. */
#define MLF_ROWS1_DSP                                                                                                  \
    MLF_ROW1_DSP("0", "4", "0", "4", "8", "12", "lr", "lr", "lr", "lr", "lr", "lr")                                    \
    MLF_ROW1_DSP("8", "12", "128", "132", "136", "140", "r2", "r8", "r10", "r11", "r12", "lr")                         \
    MLF_ROW1_DSP("16", "20", "256", "260", "264", "268", "r2", "r8", "r10", "r11", "r12", "lr")

#define MLF_ROWS2_DSP                                                                                                  \
    MLF_ROW2_DSP("0", "4", "0", "4", "8", "12", "16", "20", "24", "lr", "lr", "lr", "lr", "lr", "lr")                  \
    MLF_ROW2_DSP("8", "12", "128", "132", "136", "140", "144", "148", "152", "r2", "r8", "r10", "r11", "r12", "lr")    \
    MLF_ROW2_DSP("16", "20", "256", "260", "264", "268", "272", "276", "280", "r2", "r8", "r10", "r11", "r12", "lr")

/* One output. */
#define MLF_SINGLE_ROW_DSP(w01, w12, d0, d1)                                                                           \
    MLF_LOAD_ROW_DSP(w01, w12, d0, d1)                                                                                 \
    "smlad r2, r5, r3, r2\n\t"                                                                                         \
    "smlabt r2, r6, r4, r2\n\t"

#define MLF_LINE_BODY_DSP(rows, six_inputs, one_input)                                                                 \
    "push {r4-r8, r10, r11, lr}\n\t"                                                                                   \
    "sub sp, sp, #64\n\t"                                                                                              \
    "ldmia r3, {r4-r8, r10}\n\t"                                                                                       \
    "add r1, r1, r4\n\t"                                                                                               \
    "rsb r4, r4, #64\n\t"                                                                                              \
    "str r4, [sp, #36]\n\t" /* from the filter to its addend */                                                        \
    "and r10, r10, #1\n\t"                                                                                             \
    "add r5, r10, r5, lsl #1\n\t"                                                                                      \
    "str r5, [sp, #12]\n\t" /* 2 * step, plus 1 unless the requantisation is the brief one */                          \
    "str r6, [sp, #16]\n\t" /* bytes of blocks */                                                                      \
    "str r7, [sp, #20]\n\t" /* of a line */                                                                            \
    "str r8, [sp, #24]\n\t" /* to the next plane */                                                                    \
    "add r3, r1, #304\n\t"                                                                                             \
    "str r3, [sp, #28]\n" /* the end of the filters */                                                                 \
    "1:\n\t"                                                                                                           \
    "ldr r3, [sp, #16]\n\t"                                                                                            \
    "ldr r4, [sp, #20]\n\t"                                                                                            \
    "add r3, r2, r3\n\t"                                                                                               \
    "add r4, r2, r4\n\t"                                                                                               \
    "str r2, [sp]\n\t" /* output, the end of blocks, that of the line */                                               \
    "str r3, [sp, #4]\n\t"                                                                                             \
    "str r4, [sp, #8]\n\t"                                                                                             \
    "cmp r2, r3\n\t"                                                                                                   \
    "beq 4f\n\t"                                                                                                       \
    ".balign 4\n" /* loads of 32 bits at word boundaries can overlap */                                                \
    "2:\n\t"                                                                                                           \
    "ldr lr, [r1, #40]\n\t" rows                                                                                       \
    "ldr r3, [r1, #44]\n\t"                                                                                            \
    "ldr r4, [sp]\n\t"                                                                                                 \
    "ldr r5, [sp, #12]\n\t"                                                                                            \
    "ldr r6, [sp, #4]\n\t"                                                                                             \
    "asrs r5, r5, #1\n\t"                                                                                              \
    "bcs 6f\n\t" MLF_SCALE_BRIEF_DSP("r2", "r3") MLF_SCALE_BRIEF_DSP("r8", "r3") MLF_SCALE_BRIEF_DSP("r10", "r3")      \
    MLF_SCALE_BRIEF_DSP("r11", "r3") MLF_SATURATE_BRIEF_DSP("r2") MLF_SCALE_BRIEF_DSP("r12", "r3")                     \
    MLF_SATURATE_BRIEF_DSP("r8") MLF_SCALE_BRIEF_DSP("lr", "r3") MLF_SATURATE_BRIEF_DSP("r10")                         \
    MLF_SATURATE_BRIEF_DSP("r11") MLF_SATURATE_BRIEF_DSP("r12") MLF_SATURATE_BRIEF_DSP("lr")                           \
    "add r7, r4, r5\n\t"                                                                                               \
    "strb r2, [r4]\n\t"                                                                                                \
    "add r4, r7, r5\n\t"                                                                                               \
    "strb r8, [r7]\n\t"                                                                                                \
    "add r7, r4, r5\n\t"                                                                                               \
    "strb r10, [r4]\n\t"                                                                                               \
    "add r4, r7, r5\n\t"                                                                                               \
    "strb r11, [r7]\n\t"                                                                                               \
    "add r7, r4, r5\n\t"                                                                                               \
    "strb r12, [r4]\n\t"                                                                                               \
    "add r4, r7, r5\n\t"                                                                                               \
    "strb lr, [r7]\n"                                                                                                  \
    "3:\n\t"                                                                                                           \
    "adds r0, #" six_inputs "\n\t"                                                                                     \
    "str r4, [sp]\n\t"                                                                                                 \
    "cmp r4, r6\n\t"                                                                                                   \
    "bne 2b\n\t"                                                                                                       \
    "ldr r6, [sp, #8]\n\t"                                                                                             \
    "cmp r4, r6\n\t"                                                                                                   \
    "beq 5f\n\t"                                                                                                       \
    ".balign 4\n\t"                                                                                                    \
    "nop\n"                                                                                                            \
    "4:\n\t"                                                                                                           \
    "ldr r2, [r1, #40]\n\t" MLF_SINGLE_ROW_DSP("0", "4", "0", "4")                                                     \
    MLF_SINGLE_ROW_DSP("8", "12", "128", "132") MLF_SINGLE_ROW_DSP("16", "20", "256", "260")                           \
    "ldr r3, [r1, #44]\n\t"                                                                                            \
    "ldr r4, [sp]\n\t"                                                                                                 \
    "ldr r5, [sp, #12]\n\t"                                                                                            \
    "ldr r6, [sp, #8]\n\t"                                                                                             \
    "asrs r5, r5, #1\n\t"                                                                                              \
    "bcs 8f\n\t" MLF_BRIEF_DSP("r2", "r3")                                                                             \
    "9:\n\t"                                                                                                           \
    "strb r2, [r4]\n\t"                                                                                                \
    "add r4, r4, r5\n\t"                                                                                               \
    "str r4, [sp]\n\t"                                                                                                 \
    "adds r0, #" one_input "\n\t"                                                                                      \
    "cmp r4, r6\n\t"                                                                                                   \
    "bne 4b\n"                                                                                                         \
    "5:\n\t"                                                                                                           \
    "ldr r3, [sp, #24]\n\t"                                                                                            \
    "ldr r5, [sp, #28]\n\t"                                                                                            \
    "ldr r6, [sp, #20]\n\t"                                                                                            \
    "add r0, r0, r3\n\t"                                                                                               \
    "add r1, r1, #76\n\t"                                                                                              \
    "sub r2, r4, r6\n\t"                                                                                               \
    "adds r2, #1\n\t"                                                                                                  \
    "cmp r1, r5\n\t"                                                                                                   \
    "bne 1b\n\t"                                                                                                       \
    "add sp, sp, #64\n\t"                                                                                              \
    "pop {r4-r8, r10, r11, pc}\n"                                                                                      \
    "6:\n\t" /* six sums */                                                                                            \
    "add r7, sp, #40\n\t"                                                                                              \
    "stmia r7, {r2, r8, r10-r12, lr}\n\t"                                                                              \
    "ldr r6, [sp, #36]\n\t"                                                                                            \
    "add r6, r6, r1\n\t"                                                                                               \
    "ldrd r8, r10, [r6]\n\t"                                                                                           \
    "ldr lr, [r6, #8]\n\t"                                                                                             \
    "add r11, r7, #24\n"                                                                                               \
    "7:\n\t"                                                                                                           \
    "ldr r2, [r7], #4\n\t"                                                                                             \
    "add r2, lr, r2, asr #7\n\t" MLF_STORE_DSP("r2", "r3", "r8", "r10", "r12", "[r4]")                                 \
    "add r4, r4, r5\n\t"                                                                                               \
    "cmp r7, r11\n\t"                                                                                                  \
    "bne 7b\n\t"                                                                                                       \
    "ldr r6, [sp, #4]\n\t"                                                                                             \
    "b 3b\n"                                                                                                           \
    "8:\n\t" /* one sum */                                                                                             \
    "ldr r7, [sp, #36]\n\t"                                                                                            \
    "add r7, r7, r1\n\t"                                                                                               \
    "ldrd r8, r10, [r7]\n\t"                                                                                           \
    "ldr lr, [r7, #8]\n\t"                                                                                             \
    "add r2, lr, r2, asr #7\n\t"                                                                                       \
    "add r12, r8, r2, asr #31\n\t"                                                                                     \
    "smmlar r2, r2, r3, r12\n\t"                                                                                       \
    "asr r2, r2, r10\n\t"                                                                                              \
    "ssat r2, #8, r2, asr #1\n\t"                                                                                      \
    "b 9b\n\t"

/* Compute a line of the output of four channels. */
MLF_NAKED void mlf_depthwise_line1_dsp(const int16_t *planes MLF_UNUSED,
                                       const struct mlf_plane_filter_dsp *filters MLF_UNUSED, int8_t *output MLF_UNUSED,
                                       const struct mlf_line_call_dsp *call MLF_UNUSED)
{
    __asm__ volatile(MLF_LINE_BODY_DSP(MLF_ROWS1_DSP, "12", "2"));
}

MLF_NAKED void mlf_depthwise_line2_dsp(const int16_t *planes MLF_UNUSED,
                                       const struct mlf_plane_filter_dsp *filters MLF_UNUSED, int8_t *output MLF_UNUSED,
                                       const struct mlf_line_call_dsp *call MLF_UNUSED)
{
    __asm__ volatile(MLF_LINE_BODY_DSP(MLF_ROWS2_DSP, "24", "4"));
}

#else /* the same in C */

MLF_SHARED void mlf_spread_filters_dsp(const int32_t *weights, struct mlf_plane_filter_dsp *filters)
{
    for (int32_t i = 0; i < 60; i++) {
        const int32_t c = i / 15;
        const int32_t row = i % 15 / 3;
        const int32_t column = i % 3;
        int16_t *const to = filters[c].weights[row];
        const int16_t weight = (int16_t)(256 * mlf_byte_of_dsp(weights[3 * (row % 3) + column], c));
        to[column == 2 ? 3 : column] = weight;
        if (column == 1) {
            to[2] = weight;
        }
    }
}

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
        const struct mlf_plane_scale_dsp *const scale = &filter->scales[0];
        for (int32_t i = 0; i < call->line / call->step; i++) {
            const int16_t *const input = planes + c * MLF_PLANE_DSP + stride * i;
            uint32_t sum = (uint32_t)scale->bias;
            for (int32_t line = 0; line < 3; line++) {
                const int16_t *const weights = filter->weights[call->first / 8 + line];
                const int16_t *const values = input + line * MLF_LINE_DSP;
                sum += (uint32_t)(values[0] * weights[0]) + (uint32_t)(values[1] * weights[1]) +
                       (uint32_t)(values[2] * weights[3]);
            }
            if (call->general == 0) {
                output[i * call->step + c] = mlf_brief_dsp(sum, scale->multiplier);
            } else {
                sum = (uint32_t)filter->bias + (uint32_t)((int32_t)sum >> 7);
                const uint32_t addend = (uint32_t)filter->addend + (uint32_t)((int32_t)sum >> 31);
                output[i * call->step + c] = mlf_round_dsp(sum, scale->multiplier, addend, filter->shift);
            }
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
