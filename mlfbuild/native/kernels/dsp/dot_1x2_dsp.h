/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 1x2 of int8: one pixel, or row of a matrix, times a pair of output channels, for all pairs;
 * matmul_dsp.h describes the filter's layout.
 *
 * Inputs are expanded to 16 bits before, in the order of expand_dsp.h, or read as bytes and expanded for each pair of
 * channels again, which needs no scratch memory. On cores that issue one instruction at a time, eight inputs take 14
 * instructions for 16 products in the first case (0.91 each with the branch) and 19 in the second (1.22). On a
 * Cortex-M7, loads are issued beside multiplications: 5 or 6 cycles for 8 products.
 *
 * Each weight is loaded and expanded for a single pixel, where blocks of three share that. So this is for rows that are
 * multiplied one by one: mlf_matmul_int8_dsp and mlf_matvec_int8_dsp of matmul_dsp.h.
 */
#ifndef MLF_DOT_1X2_DSP_H_
#define MLF_DOT_1X2_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_3x2_dsp.h"
#include "dsp.h"
#include "expand_dsp.h"

#if MLF_DSP_ASM

#if MLF_DUAL_ISSUE

/*
 * r0: inputs, r1: filter, r2-r5: eight inputs, r6-r8, lr: their weights for two channels, r10, r11: sums as above. A
 * step multiplies four inputs in x0, x1 with w0, w1 and loads the next ones to y0, y1 and v0, v1: 5 cycles on a
 * Cortex-M7, or 6 if inputs are bytes. The last step of a loop loads nothing.
 */
#define MLF_FOUR_INT16_DSP(load, x0, x1, w0, w1, y0, y1, v0, v1)                                                       \
    "smlad r11, " w0 ", " x0 ", r11\n\t" load(v0, "r1")                                                                \
    "sxtb16 " w0 ", " w0 "\n\t"                                                                                        \
    "smlad r11, " w1 ", " x1 ", r11\n\t"                                                                               \
    "smlad r10, " w0 ", " x0 ", r10\n\t" load(y0, "r0")                                                                \
    "sxtb16 " w1 ", " w1 "\n\t" load(v1, "r1")                                                                         \
    "smlad r10, " w1 ", " x1 ", r10\n\t" load(y1, "r0")
#define MLF_FOUR_INT8_DSP(load, x0, x1, w0, w1, y0, y1, v0, v1)                                                        \
    "smlad r11, " w0 ", " x0 ", r11\n\t" load(y0, "r0")                                                                \
    "sxtb16 " w0 ", " w0 "\n\t"                                                                                        \
    "smlad r11, " w1 ", " x1 ", r11\n\t"                                                                               \
    "smlad r10, " w0 ", " x0 ", r10\n\t" load(v0, "r1")                                                                \
    "sxtb16 " w1 ", " w1 "\n\t" load(v1, "r1") MLF_EXPAND_##load(y1, y0, ", ror #8")                                   \
    "smlad r10, " w1 ", " x1 ", r10\n\t" MLF_EXPAND_##load(y0, y0, "")
#define MLF_STEP_LOAD_DSP(x, pointer) "ldr " x ", [" pointer "], #4\n\t"
#define MLF_STEP_END_DSP(x, pointer)
#define MLF_EXPAND_MLF_STEP_LOAD_DSP(to, from, rotation) "sxtb16 " to ", " from rotation "\n\t"
#define MLF_EXPAND_MLF_STEP_END_DSP(to, from, rotation)
#define MLF_EVEN_FOUR_DSP(four, load) four(load, "r2", "r3", "r6", "r7", "r4", "r5", "r8", "lr")
#define MLF_ODD_FOUR_DSP(four, load) four(load, "r4", "r5", "r8", "lr", "r2", "r3", "r6", "r7")
#define MLF_EIGHT_DSP(four) MLF_EVEN_FOUR_DSP(four, MLF_STEP_LOAD_DSP) MLF_ODD_FOUR_DSP(four, MLF_STEP_LOAD_DSP)

#define MLF_START_INT16_DSP                                                                                            \
    "ldr r6, [r1], #4\n\tldr r2, [r0], #4\n\tldr r7, [r1], #4\n\tldr r3, [r0], #4\n\t"
#define MLF_START_INT8_DSP                                                                                             \
    "ldr r2, [r0], #4\n\tldr r6, [r1], #4\n\tldr r7, [r1], #4\n\tsxtb16 r3, r2, ror #8\n\tsxtb16 r2, r2\n\t"
#define MLF_DOT_1X2_LOOP_DSP(start, four)                                                                              \
    "5:\n\t" start "10:\n\t" MLF_EIGHT_DSP(four) MLF_EIGHT_DSP(four) MLF_EIGHT_DSP(four)                               \
    MLF_EVEN_FOUR_DSP(four, MLF_STEP_LOAD_DSP)                                                                         \
    "subs r12, r12, #1\n\t"                                                                                            \
    "beq 11f\n\t" MLF_ODD_FOUR_DSP(four, MLF_STEP_LOAD_DSP)                                                            \
    "b 10b\n"                                                                                                          \
    "11:\n\t" MLF_ODD_FOUR_DSP(four, MLF_STEP_END_DSP)

#define MLF_DOT_1X2_BODY_DSP(start, four)                                                                              \
    MLF_DOT_1X2_DSP(start MLF_EVEN_FOUR_DSP(four, MLF_STEP_END_DSP), MLF_DOT_1X2_LOOP_DSP(start, four))
#define MLF_DOT_1X2_EXPANDED_DSP MLF_DOT_1X2_BODY_DSP(MLF_START_INT16_DSP, MLF_FOUR_INT16_DSP)
#define MLF_DOT_1X2_BYTES_DSP MLF_DOT_1X2_BODY_DSP(MLF_START_INT8_DSP, MLF_FOUR_INT8_DSP)

#else

/* r0: inputs, r1: filter, r2-r5: eight inputs, r6-r8, lr: their weights for two channels, r10, r11: sums as above. */
#define MLF_SINGLE_DSP(weights, input)                                                                                 \
    "smlad r11, " weights ", " input ", r11\n\t"                                                                       \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    "smlad r10, " weights ", " input ", r10\n\t"

#define MLF_EIGHT_DSP(load_eight)                                                                                      \
    load_eight "ldmia r1!, {r6-r8, lr}\n\t" MLF_SINGLE_DSP("r6", "r2") MLF_SINGLE_DSP("r7", "r3")                      \
        MLF_SINGLE_DSP("r8", "r4") MLF_SINGLE_DSP("lr", "r5")

/* Inputs that were expanded before: 14 instructions for 16 products, 0.91 each with the branch. */
#define MLF_LOAD4_INT16_DSP "ldmia r0!, {r2, r3}\n\t"
#define MLF_LOAD8_INT16_DSP "ldmia r0!, {r2-r5}\n\t"

/* Inputs as they are in memory, possibly not aligned: 19 instructions, 1.22 each. */
#define MLF_LOAD4_INT8_DSP                                                                                             \
    "ldr r2, [r0], #4\n\t"                                                                                             \
    "sxtb16 r3, r2, ror #8\n\t"                                                                                        \
    "sxtb16 r2, r2\n\t"
#define MLF_LOAD8_INT8_DSP                                                                                             \
    MLF_LOAD4_INT8_DSP                                                                                                 \
    "ldr r4, [r0], #4\n\t"                                                                                             \
    "sxtb16 r5, r4, ror #8\n\t"                                                                                        \
    "sxtb16 r4, r4\n\t"
#define MLF_DOT_1X2_FOUR_DSP(load_four)                                                                                \
    load_four "ldmia r1!, {r6, r7}\n\t" MLF_SINGLE_DSP("r6", "r2") MLF_SINGLE_DSP("r7", "r3")
#define MLF_DOT_1X2_LOOP_DSP(load_eight)                                                                               \
    "5:\n\t" MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight)   \
    "subs r12, r12, #1\n\t"                                                                                            \
    "bne 5b\n\t"

#define MLF_DOT_1X2_EXPANDED_DSP                                                                                       \
    MLF_DOT_1X2_DSP(MLF_DOT_1X2_FOUR_DSP(MLF_LOAD4_INT16_DSP), MLF_DOT_1X2_LOOP_DSP(MLF_LOAD8_INT16_DSP))
#define MLF_DOT_1X2_BYTES_DSP                                                                                          \
    MLF_DOT_1X2_DSP(MLF_DOT_1X2_FOUR_DSP(MLF_LOAD4_INT8_DSP), MLF_DOT_1X2_LOOP_DSP(MLF_LOAD8_INT8_DSP))

#endif

/*
 * As mlf_dot_3x2_dsp for one pixel. After at most 508 inputs the odd channel's sum is saved, so that 24 bits are enough
 * for any weights.
 */
#define MLF_DOT_1X2_DSP(four, loop)                                                                                    \
    "push {r4-r8, r10, r11, lr}\n\t"                                                                                   \
    "sub sp, sp, #40\n\t"                                                                                              \
    "ldmia r3, {r4-r7}\n\t"                                                                                            \
    "add r5, r2, r5, lsl #1\n\t"                                                                                       \
    "strd r5, r7, [sp, #16]\n\t" /* the end of the outputs, rounding */                                                \
    "str r2, [sp, #12]\n\t"      /* output */                                                                          \
    "and r5, r4, #7\n\t"                                                                                               \
    "strd r0, r5, [sp]\n\t"      /* row, and groups of the loop for single ones */                                     \
    "lsr r4, r4, #3\n\t"         /* eight groups at a time, 15 times in a segment */                                   \
    "mov r5, #0\n\t"                                                                                                   \
    "b 9f\n"                                                                                                           \
    "8:\n\t"                                                                                                           \
    "sub r4, r4, #15\n\t"                                                                                              \
    "add r5, r5, #1\n"                                                                                                 \
    "9:\n\t"                                                                                                           \
    "cmp r4, #15\n\t"                                                                                                  \
    "bgt 8b\n\t"                                                                                                       \
    "str r4, [sp, #8]\n\t"       /* the first segment */                                                               \
    "cbz r5, 1f\n\t"                                                                                                   \
    "add r5, r5, #1\n"                                                                                                 \
    "1:\n\t"                                                                                                           \
    "strd r5, r5, [sp, #24]\n"   /* several segments, and the remaining ones */                                        \
    "2:\n\t"                                                                                                           \
    "ldrd r0, r12, [sp]\n\t"                                                                                           \
    "ldr r2, [r1], #4\n\t"                                                                                             \
    "mov r10, #0\n\t"                                                                                                  \
    "mov r11, #0\n\t"                                                                                                  \
    "strd r10, r2, [sp, #32]\n\t" /* what was put aside, the odd channel's bias */                                    \
    "cmp r12, #0\n\t"                                                                                                  \
    "beq 4f\n"                                                                                                         \
    "3:\n\t" four                                                                                                      \
    "subs r12, r12, #1\n\t"                                                                                            \
    "bne 3b\n"                                                                                                         \
    "4:\n\t"                                                                                                           \
    "ldr r12, [sp, #8]\n\t"                                                                                            \
    "cmp r12, #0\n\t"                                                                                                  \
    "beq 7f\n" loop                                                                                                    \
    "ldr r2, [sp, #28]\n\t"                                                                                            \
    "cbz r2, 7f\n\t"                                                                                                   \
    "subs r2, r2, #1\n\t"                                                                                              \
    "beq 6f\n\t"                                                                                                       \
    "str r2, [sp, #28]\n\t"                                                                                            \
    "sub r11, r11, r10\n\t"                                                                                            \
    "ldr lr, [sp, #32]\n\t"                                                                                            \
    "add lr, lr, r11, asr #8\n\t"                                                                                      \
    "str lr, [sp, #32]\n\t"                                                                                            \
    "mov r11, r10\n\t"                                                                                                 \
    "mov r12, #15\n\t"                                                                                                 \
    "b 5b\n"                                                                                                           \
    "6:\n\t"                                                                                                           \
    "ldr r2, [sp, #24]\n\t"                                                                                            \
    "str r2, [sp, #28]\n"                                                                                              \
    "7:\n\t"                                                                                                           \
    "sub r11, r11, r10\n\t"                                                                                            \
    "ldr lr, [sp, #32]\n\t"                                                                                            \
    "ldr r2, [sp, #20]\n\t"                                                                                            \
    "ldr r0, [sp, #12]\n\t"                                                                                            \
    "add lr, lr, r11, asr #8\n\t"                                                                                      \
    "cbz r2, 8f\n\t"                                                                                                   \
    "ldmia r1!, {r3-r7}\n\t"                                                                                           \
    "add r10, r3, r10, lsl #1\n\t"                                                                                     \
    "add r11, r4, lr, lsl #1\n\t"                                                                                      \
    "lsl r3, r2, r7\n\t"                                                                                               \
    "lsr r12, r7, #8\n\t"                                                                                              \
    "lsl r2, r2, r12\n\t" MLF_RESCALE_DSP("r10", "r5", "r3", "r4") MLF_RESCALE_DSP("r11", "r6", "r2", "r4")            \
    MLF_SHIFT_DSP("r10", "r7") MLF_SHIFT_DSP("r11", "r12") MLF_SATURATE_DSP("r10") MLF_SATURATE_DSP("r11")             \
    MLF_BYTE_DSP("r10", "[r0], #1") MLF_BYTE_DSP("r11", "[r0], #1")                                                    \
    "b 9f\n"                                                                                                           \
    "8:\n\t"                                                                                                           \
    "ldmia r1!, {r3-r5}\n\t"                                                                                           \
    "ldr r6, [sp, #36]\n\t"                                                                                            \
    "add r10, r3, r10, lsl #8\n\t"                                                                                     \
    "add r11, r6, lr, lsl #8\n\t"                                                                                      \
    MLF_SCALE_BRIEF_DSP("r10", "r4") MLF_SCALE_BRIEF_DSP("r11", "r5")                                                  \
    MLF_SATURATE_BRIEF_DSP("r10") MLF_SATURATE_BRIEF_DSP("r11")                                                        \
    "strb r10, [r0]\n\t"                                                                                               \
    "strb r11, [r0, #1]\n\t"                                                                                           \
    "adds r0, #2\n"                                                                                                    \
    "9:\n\t"                                                                                                           \
    "ldr r3, [sp, #16]\n\t"                                                                                            \
    "str r0, [sp, #12]\n\t"                                                                                            \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 2b\n\t"                                                                                                       \
    "mov r0, r1\n\t"                                                                                                   \
    "add sp, sp, #40\n\t"                                                                                              \
    "pop {r4-r8, r10, r11, pc}"

/* `row` holds expanded inputs. */
MLF_NAKED const int32_t *mlf_dot_1x2_dsp(const int16_t *row MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                         int8_t *output MLF_UNUSED, const struct mlf_dot_dsp *dot MLF_UNUSED)
{
    __asm__ volatile(MLF_DOT_1X2_EXPANDED_DSP);
}

/* `row` holds inputs as they are. */
MLF_NAKED const int32_t *mlf_dot_1x2_int8_dsp(const int8_t *row MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                              int8_t *output MLF_UNUSED, const struct mlf_dot_dsp *dot MLF_UNUSED)
{
    __asm__ volatile(MLF_DOT_1X2_BYTES_DSP);
}

#else /* the same in C */

MLF_SHARED const int32_t *mlf_dot_1x2_dsp(const int16_t *row, const int32_t *filter, int8_t *output,
                                          const struct mlf_dot_dsp *dot)
{
    return mlf_dot_in_c_dsp(1, row, filter, output, dot);
}

MLF_SHARED const int32_t *mlf_dot_1x2_int8_dsp(const int8_t *row, const int32_t *filter, int8_t *output,
                                               const struct mlf_dot_dsp *dot)
{
    for (int32_t pair = 0; pair < dot->pairs; pair++) {
        const int32_t bias = *filter++;
        uint32_t sums[2] = {0, 0};
        uint32_t odd = 0;
        for (int32_t i = 0; i < dot->groups; i++) {
            int16_t group[4];
            mlf_expand4_dsp(group, row + 4 * i);
            mlf_smlad2_dsp(sums, filter[2 * i], group);
            mlf_smlad2_dsp(sums, filter[2 * i + 1], group + 2);
            odd += (uint32_t)((int32_t)(sums[1] - sums[0]) >> 8);
            sums[1] = sums[0];
        }
        filter = mlf_store_pair_dsp(bias, filter + 2 * dot->groups, sums[0], odd, output + 2 * pair, dot);
    }
    return filter;
}

#endif

#endif /* MLF_DOT_1X2_DSP_H_ */
