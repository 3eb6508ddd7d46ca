/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 1x4 of int8 for cores without SIMD: one pixel, or row of a matrix, times four output channels, with
 * 3.6 instructions per product, and a loop for eight inputs.
 *
 * A word has the weights a, b, c, d of four channels for one input. It is packed so that one instruction gets each
 * number to multiply:
 *
 *   low half: 256 * b + a, as a signed number    its low byte is a
 *   high half: 256 * d + c + 128                 its high byte is d
 *
 * The four sums of inputs times these numbers, modulo 2^32, and the sum of all inputs give the channels' sums.
 *
 * Layout of a filter, int32, for each four output channels; the last group of a number that is not a multiple of four
 * overlaps the group before:
 *   256 * bias of each channel, with the input's zero point folded in, + right shift + 11
 *   multiplier of each
 *   a word of weights for each input
 */
#ifndef MLF_DOT_1X4_THUMB_H_
#define MLF_DOT_1X4_THUMB_H_

#include <stdint.h>

#include "compiler.h"
#include "thumb.h"

/* Words of a group of four channels before its weights. */
enum { MLF_GROUP_WORDS_THUMB = 8 };

#if MLF_THUMB_ASM

#define MLF_DOT_1X4_STEP_THUMB(word, offset)                                                                           \
    "ldrsb r4, [r0, " offset "]\n\t"                                                                                   \
    "sxtb r5, " word "\n\t" MLF_PRODUCT_HIGH_THUMB("r8", "r5", "r4")                                                   \
    "sxth r5, " word "\n\t" MLF_PRODUCT_HIGH_THUMB("r12", "r5", "r4")                                                  \
    "asrs r5, " word ", #16\n\t" MLF_PRODUCT_HIGH_THUMB("r10", "r5", "r4")                                             \
    "asrs " word ", " word ", #24\n\t" MLF_PRODUCT_HIGH_THUMB("r11", word, "r4")

/*
 * A flash that reads the next 8 bytes of code ahead, as an STM32G0's does, is free for loads at the end of a line:
 * the first instruction behind this is in the last half word of one. Four inputs are 14 lines.
 */
#define MLF_LAST_IN_LINE_THUMB ".balign 8\n\tnop\n\tnop\n\tnop\n"

/* Four inputs. */
#define MLF_DOT_1X4_FOUR_THUMB                                                                                         \
    "ldmia r1!, {r2, r3}\n\t" MLF_DOT_1X4_STEP_THUMB("r2", "r6") MLF_DOT_1X4_STEP_THUMB("r3", "r7")                    \
    "adds r0, r0, #2\n\t"                                                                                              \
    "ldmia r1!, {r2, r3}\n\t" MLF_DOT_1X4_STEP_THUMB("r2", "r6") MLF_DOT_1X4_STEP_THUMB("r3", "r7")                    \
    "adds r0, r0, #2\n\t"

/* Add `count` inputs times their words of weights to four sums. Returns the end of the weights. */
MLF_NAKED const int32_t *mlf_dot_1x4_thumb(const int8_t *input MLF_UNUSED, const int32_t *weights MLF_UNUSED,
                                           int32_t count MLF_UNUSED, uint32_t sums[4] MLF_UNUSED)
{
    __asm__ volatile(MLF_ENTER_THUMB
                     "push {r3}\n\t"
                     "ldmia r3!, {r4-r7}\n\t"
                     "mov r8, r4\n\t"
                     "mov r12, r5\n\t"
                     "mov r10, r6\n\t"
                     "mov r11, r7\n\t"
                     "movs r6, #0\n\t"
                     "movs r7, #1\n\t"
                     "adds r4, r0, r2\n\t"
                     "mov lr, r4\n\t"
                     "movs r4, #3\n\t"
                     "ands r2, r2, r4\n\t"
                     "beq 2f\n\t"
                     "adds r2, r2, r0\n\t"
                     "movs r3, r2\n"
                     "1:\n\t"
                     "ldmia r1!, {r2}\n\t" MLF_DOT_1X4_STEP_THUMB("r2", "r6")
                     "adds r0, r0, #1\n\t"
                     "cmp r0, r3\n\t"
                     "bne 1b\n"
                     "2:\n\t"
                     "cmp r0, lr\n\t"
                     "beq 4f\n"
                     "mov r4, lr\n\t"
                     "subs r4, r4, r0\n\t"
                     "lsls r4, r4, #29\n\t"
                     "bmi 5f\n\t" MLF_LAST_IN_LINE_THUMB "3:\n\t" MLF_DOT_1X4_FOUR_THUMB "5:\n\t" MLF_DOT_1X4_FOUR_THUMB
                     "cmp r0, lr\n\t"
                     "bne 3b\n"
                     "4:\n\t"
                     "pop {r3}\n\t"
                     "mov r4, r8\n\t"
                     "mov r5, r12\n\t"
                     "mov r6, r10\n\t"
                     "mov r7, r11\n\t"
                     "stmia r3!, {r4-r7}\n\t"
                     "movs r0, r1\n\t" MLF_LEAVE_THUMB);
}

#else /* the same in C */

MLF_SHARED const int32_t *mlf_dot_1x4_thumb(const int8_t *input, const int32_t *weights, int32_t count,
                                            uint32_t sums[4])
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t word = weights[i];
        sums[0] += (uint32_t)(input[i] * (int8_t)(uint8_t)((uint32_t)word & 0xffu));
        sums[1] += (uint32_t)(input[i] * (int16_t)(uint16_t)((uint32_t)word & 0xffffu));
        sums[2] += (uint32_t)(input[i] * (word >> 16));
        sums[3] += (uint32_t)(input[i] * (word >> 24));
    }
    return weights + count;
}

#endif

/* Return sum + the sum of `count` inputs. */
MLF_KERNEL int32_t mlf_add_inputs_thumb(const int8_t *input, int32_t count, int32_t sum)
{
    int32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        sum += input[i] + input[i + 1] + input[i + 2] + input[i + 3];
    }
    for (; i < count; i++) {
        sum += input[i];
    }
    return sum;
}

#if MLF_THUMB_ASM && __ARM_ARCH_ISA_THUMB == 1

/* The output of the next sum on the stack: r0: bias and shift, r7: output, r12: rounding; label 13 is a function. */
#define MLF_STORE_NEXT_THUMB                                                                                           \
    "ldmia r0!, {r5}\n\t"                                                                                              \
    "ldr r4, [r0, #12]\n\t"                                                                                            \
    "pop {r1}\n\t"                                                                                                     \
    "asrs r2, r5, #8\n\t"                                                                                              \
    "adds r1, r1, r2\n\t"                                                                                              \
    "subs r5, r5, #5\n\t"                                                                                              \
    "mov r6, r12\n\t"                                                                                                  \
    "lsls r6, r6, r5\n\t"                                                                                              \
    "adds r6, r6, #64\n\t"                                                                                             \
    "adds r5, r5, #1\n\t"                                                                                              \
    "bl 13f\n\t"                                                                                                       \
    "strb r1, [r7]\n\t"                                                                                                \
    "adds r7, r7, #1\n\t"

/* Store the outputs of a group at `filter`; `inputs` is the sum of all inputs. */
MLF_NAKED void mlf_store4_thumb(const int32_t *filter MLF_UNUSED, const uint32_t sums[4] MLF_UNUSED,
                                int32_t inputs MLF_UNUSED, int32_t rounding MLF_UNUSED, int8_t *output MLF_UNUSED)
{
    __asm__ volatile(".syntax unified\n\t"
                     "push {r4-r7, lr}\n\t"
                     "ldr r7, [sp, #20]\n\t"
                     "mov lr, r7\n\t"
                     "mov r12, r3\n\t"
                     "ldmia r1!, {r4-r7}\n\t"
                     "subs r5, r5, r4\n\t"
                     "asrs r5, r5, #8\n\t"
                     "lsls r1, r7, #8\n\t"
                     "subs r6, r6, r1\n\t"
                     "lsls r2, r2, #7\n\t"
                     "subs r6, r6, r2\n\t"
                     "push {r4-r7}\n\t"
                     "mov r7, lr\n\t"
                     MLF_STORE_NEXT_THUMB MLF_STORE_NEXT_THUMB MLF_STORE_NEXT_THUMB MLF_STORE_NEXT_THUMB
                     "pop {r4-r7, pc}\n"
                     "13:\n\t" MLF_RESCALE_WIDE_THUMB);
}

#else

/* Store the outputs of a group at `filter`; `inputs` is the sum of all inputs. */
MLF_SHARED void mlf_store4_thumb(const int32_t *filter, const uint32_t sums[4], int32_t inputs, int32_t rounding,
                                 int8_t *output)
{
    const uint32_t own[4] = {
        sums[0],
        (uint32_t)((int32_t)(sums[1] - sums[0]) >> 8),
        sums[2] - 256u * sums[3] - 128u * (uint32_t)inputs,
        sums[3],
    };
    for (int32_t c = 0; c < 4; c++) {
        const int32_t sum = (int32_t)((uint32_t)(filter[c] >> 8) + own[c]);
        output[c] = (int8_t)mlf_round_thumb(sum, filter[4 + c], (int32_t)((uint32_t)filter[c] & 0xffu), rounding);
    }
}

#endif

#endif /* MLF_DOT_1X4_THUMB_H_ */
