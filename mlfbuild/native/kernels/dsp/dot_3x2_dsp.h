/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tiles 3x2 and 2x2 of int8: three or two pixels times a pair of output channels, six or four sums in
 * registers, for all pairs; matmul_dsp.h describes the layout of the filter.
 *
 * On a Cortex-M4 the inner loop for three takes 24 cycles for 24 products, 24.8 with its branch, for 20 inputs: 5 and 3
 * loads in a row (6 and 4 cycles), twice 1 SXTB16 and 6 SMLAD. The last loads of a round also move the pointers.
 */
#ifndef MLF_DOT_3X2_DSP_H_
#define MLF_DOT_3X2_DSP_H_

#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "dsp.h"

/* The parameters of a layer for a block of pixels; assembly reads them by position. */
struct mlf_dot_dsp {
    int32_t groups;   /* of four inputs */
    int32_t pairs;    /* of output channels */
    int32_t pitch;    /* bytes from one pixel's output to the next one's */
    int32_t rounding; /* 2 * the output's zero point + 1; 0 if the filter is for the brief requantisation */
    int32_t left_out; /* groups of the first round of five that are left out; the first group precedes it */
    int32_t others;   /* further pairs of output channels, whose filter is elsewhere */
    const int32_t *filter_of_others;
};

/* Return the parameters of a layer with `inputs` and `outputs` for a pixel. */
MLF_KERNEL struct mlf_dot_dsp mlf_dot_dsp(int32_t inputs, int32_t outputs, int32_t pitch, int32_t rounding)
{
    const int32_t groups = (inputs + 3) / 4;
    const int32_t left_out = groups == 1 ? 5 : 4 - (groups + 3) % 5;
    const struct mlf_dot_dsp dot = {groups, outputs / 2, pitch, rounding, left_out, 0, NULL};
    return dot;
}

#if MLF_DSP_ASM

/*
 * All pairs of output channels of a block of pixels: r0 expanded inputs, r1 filter, r2 output, r3 block; r4 is the end
 * of the inputs. On the stack: inputs; where they, the weights and the loop continue after a pair's first group, which
 * precedes the loop of five; output, the end of the first pixel's; pitch; rounding; end of the inputs, minus 1 if the
 * requantisation is the brief one, so that the test of the loop also selects it; the block, until its other pairs
 * begin.
 *
 * Loads stand side by side, with offsets rather than updates of their base: on Cortex-M3 and M4 a row of N loads takes
 * N + 1 cycles.
 */
#define MLF_DOT_DSP(group_bytes, adjust_end, first_group, round, end, restore, last, brief, general)                   \
    "push {r4-r8, r10, r11, lr}\n\t"                                                                                   \
    "sub sp, sp, #40\n\t"                                                                                              \
    "str r3, [sp, #36]\n\t" MLF_BACK_DSP                                                                               \
    "ldmia r3, {r3, r5-r8}\n\t" /* groups, pairs, pitch, rounding, groups to leave out */                              \
    "str r6, [sp, #24]\n\t"                                                                                            \
    "str r7, [sp, #28]\n\t"                                                                                            \
    "add r5, r2, r5, lsl #1\n\t"                                                                                       \
    "str r2, [sp, #16]\n\t"                                                                                            \
    "str r5, [sp, #20]\n\t"                                                                                            \
    "movs r6, #" group_bytes "\n\t"                                                                                    \
    "mla r4, r3, r6, r0\n\t" adjust_end                                                                                \
    "cmp r7, #1\n\t"                                                                                                   \
    "sbc r4, r4, #0\n\t" /* 1 less without rounding */                                                                 \
    "mls r6, r8, r6, r6\n\t"                                                                                           \
    "add r6, r6, r0\n\t" MLF_BACK_OF_INPUTS_DSP("r6")                                                                  \
    "str r0, [sp]\n\t"                                                                                                 \
    "str r6, [sp, #4]\n\t"                                                                                             \
    "lsl r6, r8, #3\n\t" MLF_ENTRY_DSP("r8", "r5", "r7")                                                               \
    "str r6, [sp, #8]\n\t"                                                                                             \
    "str r8, [sp, #12]\n\t"                                                                                            \
    "str r4, [sp, #32]\n\t" MLF_SINGLE_GROUP_DSP                                                                       \
    ".balign 4\n" /* loads of 32 bits at word boundaries can overlap */                                                \
    "1:\n\t"                                                                                                           \
    first_group MLF_ENTER_LOOP_DSP                                                                                     \
    "3:\n\t" round MLF_ADVANCE_DSP                                                                                     \
    "cmp r0, " end "\n\t"                                                                                              \
    "blo 3b\n"                                                                                                         \
    "7:\n\t" last                                                                                                      \
    "ldr r5, [sp, #24]\n\t"                                                                                            \
    "ldr r0, [sp, #16]\n\t"                                                                                            \
    "ldr r3, [r1, #" MLF_AHEAD_DSP "]\n\t"                                                                             \
    "ldr r6, [r1, #4 + " MLF_AHEAD_DSP "]\n\t"                                                                         \
    "beq 5f\n\t" brief MLF_BRIEF_END_DSP                                                                               \
    "6:\n\t"                                                                                                           \
    "str r0, [sp, #16]\n\t"                                                                                            \
    "cmp r0, r7\n\t"                                                                                                   \
    "bne 1b\n\t"                                                                                                       \
    "ldr r3, [sp, #36]\n\t"                                                                                            \
    "cbz r3, 8f\n\t"                                                                                                   \
    "ldr r5, [r3, #20]\n\t"                                                                                            \
    "cbz r5, 8f\n\t"                                                                                                   \
    "ldr r1, [r3, #24]\n\t" /* the filter of the others */ MLF_BACK_DSP                                                \
    "add r7, r0, r5, lsl #1\n\t"                                                                                       \
    "str r7, [sp, #20]\n\t"                                                                                            \
    "movs r3, #0\n\t"                                                                                                  \
    "str r3, [sp, #36]\n\t"                                                                                            \
    "b 1b\n"                                                                                                           \
    "8:\n\t"                                                                                                           \
    "add r0, r1, #" MLF_BEHIND_DSP "\n\t"                                                                              \
    "add sp, sp, #40\n\t"                                                                                              \
    "pop {r4-r8, r10, r11, pc}\n"                                                                                      \
    "5:\n\t" general restore                                                                                           \
    "ldr r7, [sp, #20]\n\t"                                                                                            \
    "adds r1, #20 + " MLF_AHEAD_DSP " - " MLF_BEHIND_DSP "\n\t"                                                        \
    "b 6b\n\t" MLF_AFTER_SINGLE_DSP

#define MLF_RESTORE_END_DSP "ldr r4, [sp, #32]\n\t"

/* Of a pair: recover doubled sums, then store them as requantize.h defines it. */
#define MLF_PAIR_DSP(recover, store_even, store_odd)                                                                   \
    recover                                                                                                            \
    "ldr r6, [r1, #8 + " MLF_AHEAD_DSP "]\n\t" /* multiplier of the even channel */                                    \
    "ldr r7, [r1, #16 + " MLF_AHEAD_DSP "]\n\t" /* shifts */                                                           \
    "ldr r3, [sp, #28]\n\t"                                                                                            \
    "lsls r3, r3, r7\n\t" store_even                                                                                   \
    "ldr r6, [r1, #12 + " MLF_AHEAD_DSP "]\n\t"                                                                        \
    "ldr r3, [sp, #28]\n\t"                                                                                            \
    "lsrs r7, r7, #8\n\t"                                                                                              \
    "lsls r3, r3, r7\n\t" store_odd

/* From 256 * odd + even and even to twice the sum of each channel; biases are already doubled. */
#define MLF_RECOVER_DSP(even, odd)                                                                                     \
    "sub " odd ", " odd ", " even "\n\t"                                                                               \
    "add " even ", r3, " even ", lsl #1\n\t"                                                                           \
    "add " odd ", r6, " odd ", asr #7\n\t"

/* The same for 256 times the sum of each channel; the odd channel's bias is in its sum. */
#define MLF_RECOVER_BRIEF_DSP(even, odd)                                                                               \
    "sub " odd ", " odd ", " even "\n\t"                                                                               \
    "add " even ", r3, " even ", lsl #8\n\t"

#define MLF_ROUND3_DSP(a, b, c)                                                                                        \
    MLF_STORE3_DSP(a, b, c, "r6", "r3", "r7", "r4", "[r0, r5, lsl #1]", "[r0, r5]", "[r0], #1")
#define MLF_ROUND2_DSP(a, b) MLF_STORE2_DSP(a, b, "r6", "r3", "r7", "r4", "[r0, r5]", "[r0], #1")

#if MLF_DUAL_ISSUE
#define MLF_BACK_DSP
#define MLF_BEHIND_DSP "0"
#define MLF_BRIEF_MULTIPLIER_DSP "ldr r3, [r1, #8]\n\t"
#define MLF_BRIEF_END_DSP "adds r1, #12\n"
#define MLF_ENTER_LOOP_DSP "ldr pc, [sp, #12]\n"
#define MLF_ADVANCE_DSP "ldr r4, [sp, #32]\n\t"
#define MLF_AHEAD_DSP "0"
#define MLF_BACK_OF_INPUTS_DSP(pointer)
#define MLF_SINGLE_GROUP_DSP
#define MLF_AFTER_SINGLE_DSP
#define MLF_LOAD_DSP(x, pointer) "ldr " x ", [" pointer "], #4\n\t"
#define MLF_LOAD_NONE_DSP(x, pointer)
#else
/* Between pairs, r1 is a word before the next filter: the last load of the brief requantisation moves it there. */
#define MLF_BACK_DSP "subs r1, #4\n\t"
#define MLF_BEHIND_DSP "4"
#define MLF_BRIEF_MULTIPLIER_DSP "ldr r3, [r1, #8 + " MLF_AHEAD_DSP "]!\n\t"
#define MLF_BRIEF_END_DSP "\n"
/* The last loads of the first group moved both pointers behind it; r1 goes back if groups are left out. */
#define MLF_ENTER_LOOP_DSP                                                                                             \
    MLF_WHOLE_ROUNDS_DSP                                                                                               \
    "ldr r0, [sp, #4]\n\t"                                                                                             \
    "ldr r5, [sp, #12]\n\t"                                                                                            \
    "subs r1, r1, r3\n\t"                                                                                              \
    "bx r5\n\t"                                                                                                        \
    ".balign 4\n"
/*
 * In a round, r0 and r1 are a word before the next inputs and weights: loads of its last group move them on. A single
 * group has no round, and continues at the last label 9, where r1 goes forward again.
 */
#define MLF_ADVANCE_DSP
#define MLF_AHEAD_DSP "4"
#define MLF_BACK_OF_INPUTS_DSP(pointer) "subs " pointer ", #4\n\t"
#define MLF_SINGLE_GROUP_DSP                                                                                           \
    "cmp r3, #1\n\t"                                                                                                   \
    "beq.w 9f\n"                                                                                                       \
    "2:\n\t"
#define MLF_AFTER_SINGLE_DSP                                                                                           \
    "9:\n\t"                                                                                                           \
    "adr.w r8, 9f\n\t"                                                                                                 \
    "adds r8, r8, #1\n\t"                                                                                              \
    "str r8, [sp, #12]\n\t"                                                                                            \
    "b 2b\n"                                                                                                           \
    "9:\n\t"                                                                                                           \
    "adds r1, r1, r3\n\t"                                                                                              \
    "ldr r3, [sp, #32]\n\t"                                                                                            \
    "bic r0, r3, #3\n\t"                                                                                               \
    "cmp r0, r3\n\t"                                                                                                   \
    "b 7b\n\t"
#endif

#if MLF_DUAL_ISSUE

/*
 * Three pixels on a Cortex-M7: r3, r4 weights of two channels and their expanded form; r5-r7 inputs; r8, r2, r10 even
 * sums; r11, r12, lr odd and even ones. Six cycles for the 12 products of a step: each load is issued with a
 * multiplication, two cycles before its use. `load` loads the weights and two inputs of the next step.
 * The instruction adds to the even channel's sums, and names them, or for the first products it is one that does not;
 * the others begin with the odd channel's bias, in lr.
 */
#define MLF_STEP3_DSP(smlad, load, r8, r2, r10, r11, r12)                                                              \
    "smlad r11, r3, r5, " r11 "\n\t"                                                                                   \
    "ldr r7, [r0], #4\n\t"                                                                                             \
    "smlad r12, r3, r6, " r12 "\n\t"                                                                                   \
    "sxtb16 r4, r3\n\t"                                                                                                \
    "smlad lr, r3, r7, lr\n\t"                                                                                         \
    smlad " r8, r4, r5" r8 "\n\t" load("r3", "r1")                                                                     \
    smlad " r2, r4, r6" r2 "\n\t" load("r5", "r0")                                                                     \
    smlad " r10, r4, r7" r10 "\n\t" load("r6", "r0")
#define MLF_NEXT3_DSP(load) MLF_STEP3_DSP("smlad", load, ", r8", ", r2", ", r10", "r11", "r12")
#define MLF_GROUP3_DSP MLF_NEXT3_DSP(MLF_LOAD_DSP) MLF_NEXT3_DSP(MLF_LOAD_DSP)

/* A round of groups begins with the second step of one, so that the last step is after the loop. */
#define MLF_FIRST3_DSP                                                                                                 \
    "ldr r0, [sp]\n\t"                                                                                                 \
    MLF_LOAD_DSP("lr", "r1") MLF_LOAD_DSP("r3", "r1") MLF_LOAD_DSP("r5", "r0") MLF_LOAD_DSP("r6", "r0")                \
    MLF_STEP3_DSP("smuad", MLF_LOAD_DSP, "", "", "", "lr", "lr")
#define MLF_ROUND_OF_GROUPS3_DSP                                                                                       \
    MLF_GROUP3_DSP "4: .rept 4\n\t" MLF_GROUP3_DSP ".endr\n\t"
#define MLF_ROUND_END3_DSP "r4"
#define MLF_RESTORE_END3_DSP MLF_RESTORE_END_DSP
#define MLF_LAST3_DSP MLF_NEXT3_DSP(MLF_LOAD_NONE_DSP)
#define MLF_END3_DSP "subs r4, r4, #4\n\t" /* the third input of the last step is not loaded before it */

#else

/*
 * Three pixels: r3, r4 weights of two channels; r5-r7 inputs; r8, r2, r10 even sums; r11, r12, lr odd and even ones.
 *
 * The instruction adds to the even channel's sums, and names them, or for the first products it is one that does not;
 * the others begin with the odd channel's bias, in lr.
 */
#define MLF_STEP3_DSP(weights, smlad, r8, r2, r10, r11, r12)                                                           \
    "smlad r11, " weights ", r5, " r11 "\n\t"                                                                          \
    "smlad r12, " weights ", r6, " r12 "\n\t"                                                                          \
    "smlad lr, " weights ", r7, lr\n\t"                                                                                \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    smlad " r8, " weights ", r5" r8 "\n\t"                                                                             \
    smlad " r2, " weights ", r6" r2 "\n\t"                                                                             \
    smlad " r10, " weights ", r7" r10 "\n\t"

#define MLF_NEXT3_DSP(weights) MLF_STEP3_DSP(weights, "smlad", ", r8", ", r2", ", r10", "r11", "r12")
#define MLF_LOAD3_DSP(first, second, third)                                                                            \
    "ldr r5, [r0, #" first "]\n\t"                                                                                     \
    "ldr r6, [r0, #" second "]\n\t"                                                                                    \
    "ldr r7, [r0, #" third "\n\t"

/*
 * On a Cortex-M4, loads from flash and from RAM do not overlap: both weights of a group are loaded in a row, to save a
 * cycle for each group in flash. The end of the inputs then has no register, and is loaded in each round. Other cores
 * have it in r4.
 */
#ifdef __ARM_ARCH_7EM__
#define MLF_ROUND_END3_DSP "r3"
#define MLF_RESTORE_END3_DSP
#define MLF_WHOLE_ROUNDS_DSP "cbz r3, 3f\n\t"
#define MLF_GROUP3_DSP(w0, w1, a0, a1, a2, a3, a4, a5)                                                                 \
    "ldr r3, [r1, #" w0 "]\n\t"                                                                                        \
    "ldr r4, [r1, #" w1 "]\n\t" MLF_LOAD3_DSP(a0, a1, a2) MLF_NEXT3_DSP("r3")                                          \
    MLF_LOAD3_DSP(a3, a4, a5) MLF_NEXT3_DSP("r4")
/* Here and below, all loads of 32 bits are at word boundaries. */
#define MLF_LAST_GROUP3_DSP                                                                                            \
    "ldr.w r3, [r1, #36]\n\t"                                                                                          \
    "ldr r4, [r1, #40]!\n\t"                                                                                           \
    MLF_LOAD3_DSP("100", "104", "108]") MLF_NEXT3_DSP("r3")                                                            \
    "ldr r3, [sp, #32]\n\t" MLF_LOAD3_DSP("112", "116", "120]!") MLF_NEXT3_DSP("r4")
#define MLF_FIRST3_DSP                                                                                                 \
    "ldr r0, [sp]\n\t"                                                                                                 \
    "ldr r3, [r1, #8]\n\t"                                                                                             \
    "ldr lr, [r1, #4]\n\t"                                                                                             \
    "ldr.w r4, [r1, #12]!\n\t"                                                                                         \
    MLF_LOAD3_DSP("0", "4", "8]") MLF_STEP3_DSP("r3", "smuad", "", "", "", "lr", "lr")                                 \
    "ldr r3, [sp, #8]\n\t" MLF_LOAD3_DSP("12", "16", "20]!") MLF_NEXT3_DSP("r4")
#else
#define MLF_ROUND_END3_DSP "r4"
#define MLF_RESTORE_END3_DSP MLF_RESTORE_END_DSP
#define MLF_WHOLE_ROUNDS_DSP
#define MLF_GROUP3_DSP(w0, w1, a0, a1, a2, a3, a4, a5)                                                                 \
    "ldr r3, [r1, #" w0 "]\n\t" MLF_LOAD3_DSP(a0, a1, a2) MLF_NEXT3_DSP("r3")                                          \
    "ldr r3, [r1, #" w1 "]\n\t" MLF_LOAD3_DSP(a3, a4, a5) MLF_NEXT3_DSP("r3")
#define MLF_LAST_GROUP3_DSP                                                                                            \
    "ldr r3, [r1, #36]\n\t" MLF_LOAD3_DSP("100", "104", "108]") MLF_NEXT3_DSP("r3")                                    \
    "ldr r3, [r1, #40]!\n\t" MLF_LOAD3_DSP("112", "116", "120]!") MLF_NEXT3_DSP("r3")
#define MLF_FIRST3_DSP                                                                                                 \
    "ldr r0, [sp]\n\t"                                                                                                 \
    "ldr r3, [r1, #8]\n\t"                                                                                             \
    "ldr lr, [r1, #4]\n\t" MLF_LOAD3_DSP("0", "4", "8]") MLF_STEP3_DSP("r3", "smuad", "", "", "", "lr", "lr")          \
    "ldr r3, [r1, #12]!\n\t" MLF_LOAD3_DSP("12", "16", "20]!") MLF_NEXT3_DSP("r3")                                     \
    "ldr r3, [sp, #8]\n\t"
#endif

#define MLF_ROUND_OF_GROUPS3_DSP                                                                                       \
    MLF_GROUP3_DSP("4", "8", "4", "8", "12]", "16", "20", "24]") "4:\n\t"                                              \
    MLF_GROUP3_DSP("12", "16", "28", "32", "36]", "40", "44", "48]")                                                   \
    MLF_GROUP3_DSP("20", "24", "52", "56", "60]", "64", "68", "72]")                                                   \
    MLF_GROUP3_DSP("28", "32", "76", "80", "84]", "88", "92", "96]") MLF_LAST_GROUP3_DSP
#define MLF_LAST3_DSP
#define MLF_END3_DSP MLF_BACK_OF_INPUTS_DSP("r4")

#endif

#define MLF_BRIEF3_DSP                                                                                                 \
    MLF_RECOVER_BRIEF_DSP("r8", "r11") MLF_RECOVER_BRIEF_DSP("r2", "r12") MLF_RECOVER_BRIEF_DSP("r10", "lr")           \
    MLF_BRIEF_MULTIPLIER_DSP                                                                                           \
    "ldr r7, [sp, #20]\n\t"                                                                                            \
    MLF_SCALE_BRIEF_DSP("r8", "r6") MLF_SCALE_BRIEF_DSP("r2", "r6") MLF_SCALE_BRIEF_DSP("r10", "r6")                   \
    "add r6, r0, r5\n\t" MLF_SATURATE_BRIEF_DSP("r8") MLF_SCALE_BRIEF_DSP("r11", "r3")                                 \
    MLF_SATURATE_BRIEF_DSP("r2") MLF_SCALE_BRIEF_DSP("r12", "r3")                                                      \
    MLF_SATURATE_BRIEF_DSP("r10") MLF_SCALE_BRIEF_DSP("lr", "r3")                                                      \
    "add r3, r6, r5\n\t" MLF_SATURATE_BRIEF_DSP("r11") MLF_BYTE_DSP("r8", "[r0], #1")                                  \
    MLF_SATURATE_BRIEF_DSP("r12") MLF_BYTE_DSP("r2", "[r6]")                                                           \
    MLF_SATURATE_BRIEF_DSP("lr") MLF_BYTE_DSP("r10", "[r3]")                                                           \
    MLF_BYTE_DSP("r11", "[r0], #1") MLF_BYTE_DSP("r12", "[r6, #1]") MLF_BYTE_DSP("lr", "[r3, #1]")

#define MLF_GENERAL3_DSP                                                                                               \
    MLF_PAIR_DSP(MLF_RECOVER_DSP("r8", "r11") MLF_RECOVER_DSP("r2", "r12") MLF_RECOVER_DSP("r10", "lr"),               \
                 MLF_ROUND3_DSP("r10", "r2", "r8"), MLF_ROUND3_DSP("lr", "r12", "r11"))

/* All pairs of output channels of three pixels, whose expanded inputs are `rows`. Returns the end of the filter. */
MLF_NAKED const int32_t *mlf_dot_3x2_dsp(const int16_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                         int8_t *output MLF_UNUSED, const struct mlf_dot_dsp *dot MLF_UNUSED)
{
    __asm__ volatile(MLF_DOT_DSP("24", MLF_END3_DSP, MLF_FIRST3_DSP, MLF_ROUND_OF_GROUPS3_DSP, MLF_ROUND_END3_DSP,
                                 MLF_RESTORE_END3_DSP, MLF_LAST3_DSP, MLF_BRIEF3_DSP, MLF_GENERAL3_DSP));
}

#if MLF_DUAL_ISSUE

/*
 * Two pixels on a Cortex-M7: r3, r4 weights of two channels and their expanded form; r5, r6 and r7, r10 inputs of
 * alternate steps; r8, r2 even sums; r11, lr odd and even ones. Four cycles for the eight products of a step.
 */
#define MLF_STEP2_DSP(smlad, load, first, second, next_first, next_second, r8, r2, r11)                                \
    "smlad r11, r3, " first ", " r11 "\n\t" load(next_first, "r0")                                                     \
    "sxtb16 r4, r3\n\t"                                                                                                \
    "smlad lr, r3, " second ", lr\n\t"                                                                                 \
    smlad " r8, r4, " first r8 "\n\t" load("r3", "r1")                                                                 \
    smlad " r2, r4, " second r2 "\n\t" load(next_second, "r0")
#define MLF_NEXT2_DSP(load, first, second, next_first, next_second)                                                    \
    MLF_STEP2_DSP("smlad", load, first, second, next_first, next_second, ", r8", ", r2", "r11")
#define MLF_GROUP2_DSP                                                                                                 \
    MLF_NEXT2_DSP(MLF_LOAD_DSP, "r7", "r10", "r5", "r6") MLF_NEXT2_DSP(MLF_LOAD_DSP, "r5", "r6", "r7", "r10")
#define MLF_FIRST2_DSP                                                                                                 \
    "ldr r0, [sp]\n\t"                                                                                                 \
    MLF_LOAD_DSP("lr", "r1") MLF_LOAD_DSP("r3", "r1") MLF_LOAD_DSP("r5", "r0") MLF_LOAD_DSP("r6", "r0")                \
    MLF_STEP2_DSP("smuad", MLF_LOAD_DSP, "r5", "r6", "r7", "r10", "", "", "lr")
#define MLF_ROUND_OF_GROUPS2_DSP                                                                                       \
    MLF_GROUP2_DSP "4: .rept 4\n\t" MLF_GROUP2_DSP ".endr\n\t"
#define MLF_LAST2_DSP MLF_NEXT2_DSP(MLF_LOAD_NONE_DSP, "r7", "r10", "", "")
#define MLF_END2_DSP

#else

/*
 * Two pixels: r3, r7 weights of two channels; r5, r6, r10, r12 inputs; r8, r2 even sums; r11, lr odd and even ones.
 */
#define MLF_LOAD2_DSP(w0, w1, a0, a1, a2, a3)                                                                          \
    "ldr r3, [r1, #" w0 "\n\t"                                                                                         \
    w1 "\n\t"                                                                                                          \
    "ldr r5, [r0, #" a0 "]\n\t"                                                                                        \
    "ldr r6, [r0, #" a1 "]\n\t"                                                                                        \
    "ldr r10, [r0, #" a2 "]\n\t"                                                                                       \
    "ldr r12, [r0, #" a3 "\n\t"

#define MLF_STEP2_DSP(smlad, weights, first, second, r8, r2, r11)                                                      \
    "smlad r11, " weights ", " first ", " r11 "\n\t"                                                                   \
    "smlad lr, " weights ", " second ", lr\n\t"                                                                        \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    smlad " r8, " weights ", " first r8 "\n\t"                                                                         \
    smlad " r2, " weights ", " second r2 "\n\t"

#define MLF_NEXT2_DSP(weights, first, second) MLF_STEP2_DSP("smlad", weights, first, second, ", r8", ", r2", "r11")
#define MLF_GROUP2_DSP(w0, w1, a0, a1, a2, a3)                                                                         \
    MLF_LOAD2_DSP(w0, w1, a0, a1, a2, a3) MLF_NEXT2_DSP("r3", "r5", "r6") MLF_NEXT2_DSP("r7", "r10", "r12")

#define MLF_FIRST2_DSP                                                                                                 \
    "ldr r0, [sp]\n\t" MLF_LOAD2_DSP("8]", "ldr lr, [r1, #4]\n\tldr.w r7, [r1, #12]!", "0", "4", "8", "12]!")          \
    MLF_STEP2_DSP("smuad", "r3", "r5", "r6", "", "", "lr") "ldr r3, [sp, #8]\n\t" MLF_NEXT2_DSP("r7", "r10", "r12")
#define MLF_ROUND_OF_GROUPS2_DSP                                                                                       \
    MLF_GROUP2_DSP("4]", "ldr r7, [r1, #8]", "4", "8", "12", "16]") "4:\n\t"                                           \
    MLF_GROUP2_DSP("12]", "ldr r7, [r1, #16]", "20", "24", "28", "32]")                                                \
    MLF_GROUP2_DSP("20]", "ldr r7, [r1, #24]", "36", "40", "44", "48]")                                                \
    MLF_GROUP2_DSP("28]", "ldr r7, [r1, #32]", "52", "56", "60", "64]")                                                \
    MLF_GROUP2_DSP("36]", "ldr.w r7, [r1, #40]!", "68", "72", "76", "80]!")
#define MLF_LAST2_DSP
#define MLF_END2_DSP MLF_BACK_OF_INPUTS_DSP("r4")

#endif

#define MLF_BRIEF2_DSP                                                                                                 \
    MLF_RECOVER_BRIEF_DSP("r8", "r11") MLF_RECOVER_BRIEF_DSP("r2", "lr")                                               \
    MLF_BRIEF_MULTIPLIER_DSP                                                                                           \
    "ldr r7, [sp, #20]\n\t" MLF_SCALE_BRIEF_DSP("r8", "r6") MLF_SCALE_BRIEF_DSP("r2", "r6")                            \
    "add r6, r0, r5\n\t" MLF_SCALE_BRIEF_DSP("r11", "r3") MLF_SCALE_BRIEF_DSP("lr", "r3")                              \
    MLF_SATURATE_BRIEF_DSP("r8") MLF_SATURATE_BRIEF_DSP("r2") MLF_BYTE_DSP("r8", "[r0], #1")                           \
    MLF_SATURATE_BRIEF_DSP("r11") MLF_BYTE_DSP("r2", "[r6]") MLF_SATURATE_BRIEF_DSP("lr")                              \
    MLF_BYTE_DSP("r11", "[r0], #1") MLF_BYTE_DSP("lr", "[r6, #1]")

#define MLF_GENERAL2_DSP                                                                                               \
    MLF_PAIR_DSP(MLF_RECOVER_DSP("r8", "r11") MLF_RECOVER_DSP("r2", "lr"),                                             \
                 MLF_ROUND2_DSP("r2", "r8"), MLF_ROUND2_DSP("lr", "r11"))

/* As mlf_dot_3x2_dsp for two pixels. */
MLF_NAKED const int32_t *mlf_dot_2x2_dsp(const int16_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                         int8_t *output MLF_UNUSED, const struct mlf_dot_dsp *dot MLF_UNUSED)
{
    __asm__ volatile(MLF_DOT_DSP("16", MLF_END2_DSP, MLF_FIRST2_DSP, MLF_ROUND_OF_GROUPS2_DSP, "r4",
                                 MLF_RESTORE_END_DSP, MLF_LAST2_DSP, MLF_BRIEF2_DSP, MLF_GENERAL2_DSP));
}

#else /* the same in C */

/* Add both products of an input pair and a word of weights to the sums of the even and, times 256, the odd channel. */
MLF_KERNEL void mlf_smlad2_dsp(uint32_t sums[2], int32_t weights, const int16_t *input)
{
    const int32_t low = (int16_t)(uint16_t)weights;
    const int32_t high = (int16_t)(uint16_t)((uint32_t)weights >> 16);
    sums[0] += (uint32_t)(mlf_byte_of_dsp(weights, 0) * input[0] + mlf_byte_of_dsp(weights, 2) * input[1]);
    sums[1] += (uint32_t)(low * input[0]) + (uint32_t)(high * input[1]);
}

MLF_KERNEL int8_t mlf_store_dsp(uint32_t sum, int32_t multiplier, int32_t rounding, int32_t shift)
{
    const uint32_t negative = (uint32_t)((int32_t)sum >> 31);
    return mlf_round_dsp(sum, multiplier, ((uint32_t)rounding << shift) + negative, shift);
}

/*
 * Store the sums of a pair of channels, whose parameters follow its weights; the odd one's brief bias precedes them.
 * Returns the end of the pair's filter.
 */
MLF_KERNEL const int32_t *mlf_store_pair_dsp(int32_t bias, const int32_t *parameters, uint32_t even, uint32_t odd,
                                             int8_t *output, const struct mlf_dot_dsp *dot)
{
    if (dot->rounding == 0) {
        output[0] = mlf_brief_dsp((uint32_t)parameters[0] + (even << 8), parameters[1]);
        output[1] = mlf_brief_dsp((uint32_t)bias + (odd << 8), parameters[2]);
        return parameters + 3;
    }
    output[0] = mlf_store_dsp((uint32_t)parameters[0] + 2 * even, parameters[2], dot->rounding, parameters[4] & 31);
    output[1] = mlf_store_dsp((uint32_t)parameters[1] + 2 * odd, parameters[3], dot->rounding, parameters[4] >> 8);
    return parameters + 5;
}

/* One pixel of one pair of channels; groups of its inputs are `step` apart. Returns the end of the pair's filter. */
MLF_KERNEL const int32_t *mlf_dot_pair_dsp(const int16_t *input, int32_t step, const int32_t *filter, int8_t *output,
                                           const struct mlf_dot_dsp *dot)
{
    const int32_t segment = 126; /* groups */
    const int32_t bias = *filter++;
    uint32_t sums[2] = {0, 0};
    uint32_t odd = 0;
    for (int32_t i = 0; i < dot->groups; i++) {
        mlf_smlad2_dsp(sums, filter[2 * i], input + 4 * step * i);
        mlf_smlad2_dsp(sums, filter[2 * i + 1], input + 4 * step * i + 2 * step);
        if (i % segment == segment - 1 || i == dot->groups - 1) {
            odd += (uint32_t)((int32_t)(sums[1] - sums[0]) >> 8);
            sums[1] = sums[0];
        }
    }
    return mlf_store_pair_dsp(bias, filter + 2 * dot->groups, sums[0], odd, output, dot);
}

MLF_KERNEL const int32_t *mlf_dot_in_c_dsp(int32_t count, const int16_t *rows, const int32_t *filter, int8_t *output,
                                           const struct mlf_dot_dsp *dot)
{
    for (int32_t pair = 0; pair < dot->pairs + dot->others; pair++) {
        const int32_t *end = filter = pair == dot->pairs ? dot->filter_of_others : filter;
        for (int32_t p = 0; p < count; p++) {
            end = mlf_dot_pair_dsp(rows + 2 * p, count, filter, output + p * dot->pitch + 2 * pair, dot);
        }
        filter = end;
    }
    return filter;
}

MLF_SHARED const int32_t *mlf_dot_3x2_dsp(const int16_t *rows, const int32_t *filter, int8_t *output,
                                          const struct mlf_dot_dsp *dot)
{
    return mlf_dot_in_c_dsp(3, rows, filter, output, dot);
}

MLF_SHARED const int32_t *mlf_dot_2x2_dsp(const int16_t *rows, const int32_t *filter, int8_t *output,
                                          const struct mlf_dot_dsp *dot)
{
    return mlf_dot_in_c_dsp(2, rows, filter, output, dot);
}

#endif

#endif /* MLF_DOT_3X2_DSP_H_ */
