/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 1x4 of int8 for cores without SIMD: one pixel, or row of a matrix, times four output channels, with
 * 3.6 instructions per product.
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
                     "3:\n\t"
                     "ldmia r1!, {r2, r3}\n\t" MLF_DOT_1X4_STEP_THUMB("r2", "r6") MLF_DOT_1X4_STEP_THUMB("r3", "r7")
                     "adds r0, r0, #2\n\t"
                     "ldmia r1!, {r2, r3}\n\t" MLF_DOT_1X4_STEP_THUMB("r2", "r6") MLF_DOT_1X4_STEP_THUMB("r3", "r7")
                     "adds r0, r0, #2\n\t"
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
    for (int32_t i = 0; i < count; i++) {
        sum += input[i];
    }
    return sum;
}

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

#endif /* MLF_DOT_1X4_THUMB_H_ */
