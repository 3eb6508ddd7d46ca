/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tiles 4x1 and 2x1 of int8 for cores without SIMD: four or two pixels times one output channel, for all
 * channels. Each multiplication gives two products.
 *
 * A word holds an input of two pixels, p + q * 65536. Its product with a weight is p * weight + q * weight * 65536, and
 * the words of several inputs are added as long as the sum of p * weight fits in 16 bits; then both halves are
 * separated. Four inputs always fit if the magnitudes of their weights add up to at most 255, which the compiler
 * checks for each channel; two always fit. The inner loop for four pixels spends 33 instructions on 16 products
 * (2.1 each), or 38 (2.4) if only two inputs fit.
 *
 * A sum of words, to which 0x8000 is added so that its low half is not negative, is separated into
 *   T += word, H += word >> 16; at the end, q's sum is H, and p's sum is T - H * 65536 - 0x8000 * number of words
 * with T and H modulo 2^32 and the bias in the initial values of both.
 *
 * Layout of a filter, int32, for each output channel, `groups` being the number of inputs / 4, rounded up:
 *   256 * bias, with the input's zero point folded in, + right shift + 11
 *   multiplier; the highest bit is set if only two inputs fit
 *   `groups` words of four weights, the first in the lowest byte
 */
#ifndef MLF_DOT_4X1_THUMB_H_
#define MLF_DOT_4X1_THUMB_H_

#include <stdint.h>

#include "compiler.h"
#include "thumb.h"

/* The parameters of a layer for a block of pixels; assembly reads them by position. */
struct mlf_dot_thumb {
    int32_t groups;   /* of four inputs */
    int32_t channels; /* of the output */
    int32_t pitch;    /* bytes from one pixel's output to the next one's */
    int32_t rounding; /* 2 * the output's zero point + 1 */
    int32_t minimum;  /* if `positive` */
    int32_t positive; /* whether sums are below 2^20, and negative sums give `minimum` */
};

#if MLF_THUMB_ASM

/* The place of a loop in the lines that a flash reads ahead, see dot_1x4_thumb.h; up to 1 % slower elsewhere. */
#define MLF_LINE_THUMB ".balign 8\n\tnop\n"

/*
 * r0 inputs, r1 filter; on the stack: inputs, their end, output, pitch, rounding, end of the first pixel's outputs,
 * groups * 0x8000, groups, minimum, multiplier, shift (in the low byte), filter, positive. r8, lr and r10, r11 are T
 * and H of two pixels each, r12 is 0x8000. Then r8, r12, r10 and r11 are the sums, and lr the addend of the
 * requantisation.
 */
#define MLF_DOT_THUMB(log2_group, group, short_group, second_sums, sums)                                               \
    MLF_ENTER_THUMB                                                                                                    \
    "sub sp, sp, #52\n\t"                                                                                              \
    "ldmia r3!, {r4-r7}\n\t"                                                                                           \
    "str r0, [sp]\n\t"                                                                                                 \
    "str r2, [sp, #8]\n\t"                                                                                             \
    "str r6, [sp, #12]\n\t"                                                                                            \
    "str r7, [sp, #16]\n\t"                                                                                            \
    "adds r5, r5, r2\n\t"                                                                                              \
    "str r5, [sp, #20]\n\t"                                                                                            \
    "lsls r5, r4, #15\n\t"                                                                                             \
    "str r5, [sp, #24]\n\t"                                                                                            \
    "str r4, [sp, #28]\n\t"                                                                                            \
    "lsls r5, r4, #" log2_group "\n\t"                                                                                 \
    "adds r0, r0, r5\n\t"                                                                                              \
    "str r0, [sp, #4]\n\t"                                                                                             \
    "ldmia r3!, {r6, r7}\n\t"                                                                                          \
    "str r6, [sp, #32]\n\t"                                                                                            \
    "str r7, [sp, #48]\n"                                                                                              \
    "1:\n\t"                                                                                                           \
    "ldmia r1!, {r2, r3}\n\t"                                                                                          \
    "str r3, [sp, #36]\n\t"                                                                                            \
    "str r2, [sp, #40]\n\t"                                                                                            \
    "asrs r2, r2, #8\n\t"                                                                                              \
    "movs r6, #128\n\t"                                                                                                \
    "lsls r6, r6, #8\n\t"                                                                                              \
    "mov r12, r6\n\t"                                                                                                  \
    "ldr r0, [sp]\n\t"                                                                                                 \
    "mov lr, r2\n\t"                                                                                                   \
    "mov r11, r2\n\t"                                                                                                  \
    "ldr r6, [sp, #24]\n\t"                                                                                            \
    "lsls r5, r2, #16\n\t"                                                                                             \
    "adds r5, r5, r2\n\t"                                                                                              \
    "subs r5, r5, r6\n\t"                                                                                              \
    "ldr r4, [sp, #28]\n\t"                                                                                            \
    "cmp r3, #0\n\t"                                                                                                   \
    "bge 2f\n\t"                                                                                                       \
    "b 5f\n"                                                                                                           \
    "2:\n\t"                                                                                                           \
    "mov r8, r5\n\t"                                                                                                   \
    "mov r10, r5\n\t"                                                                                                  \
    "lsrs r4, r4, #1\n\t"                                                                                              \
    "bcs 4f\n\t" MLF_LINE_THUMB                                                                                        \
    ".irp label, 3, 4\n"                                                                                               \
    "\\label:\n\t" group                                                                                              \
    ".endr\n\t"                                                                                                        \
    "ldr r3, [sp, #4]\n\t"                                                                                             \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 3b\n\t"                                                                                                       \
    "b 8f\n"                                                                                                           \
    "5:\n\t"                                                                                                           \
    "subs r5, r5, r6\n\t"                                                                                              \
    "mov r8, r5\n\t"                                                                                                   \
    "mov r10, r5\n\t"                                                                                                  \
    "lsrs r4, r4, #1\n\t"                                                                                              \
    "bcs 7f\n\t" MLF_LINE_THUMB                                                                                        \
    ".irp label, 6, 7\n"                                                                                               \
    "\\label:\n\t" short_group                                                                                        \
    ".endr\n\t"                                                                                                        \
    "ldr r3, [sp, #4]\n\t"                                                                                             \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 6b\n"                                                                                                         \
    "8:\n\t"                                                                                                           \
    "str r1, [sp, #44]\n\t" MLF_LOW_SUM_THUMB("r8", "lr") "mov r4, lr\n\tmov r12, r4\n\t" second_sums                  \
    "ldr r0, [sp, #8]\n\t"                                                                                             \
    "ldr r7, [sp, #36]\n\t"                                                                                            \
    "ldr r4, [sp, #40]\n\t"                                                                                            \
    "ldr r2, [sp, #16]\n\t"                                                                                            \
    "ldr r3, [sp, #48]\n\t"                                                                                            \
    "cmp r3, #0\n\t"                                                                                                   \
    "bne 9f\n\t"                                                                                                       \
    "b 11f\n"                                                                                                          \
    "9:\n\t" MLF_PIECES_THUMB ".irp sum, " sums "\n\t" MLF_POSITIVE_THUMB ".endr\n"                                    \
    "10:\n\t"                                                                                                          \
    "ldr r0, [sp, #8]\n\t"                                                                                             \
    "adds r0, r0, #1\n\t"                                                                                              \
    "str r0, [sp, #8]\n\t"                                                                                             \
    "ldr r1, [sp, #44]\n\t"                                                                                            \
    "ldr r2, [sp, #20]\n\t"                                                                                            \
    "cmp r0, r2\n\t"                                                                                                   \
    "beq 12f\n\t"                                                                                                      \
    "b 1b\n"                                                                                                           \
    "12:\n\t"                                                                                                          \
    "movs r0, r1\n\t"                                                                                                  \
    "add sp, sp, #52\n\t" MLF_LEAVE_THUMB "\n.irp sum, " sums "\n" MLF_STUB_THUMB ".endr\n"                            \
    "11:\n\t"                                                                                                          \
    "subs r5, r4, #4\n\t"                                                                                              \
    "subs r3, r5, #1\n\t"                                                                                              \
    "lsls r2, r2, r3\n\t"                                                                                              \
    "movs r6, r2\n\t"                                                                                                  \
    "adds r6, r6, #64\n\t"                                                                                             \
    "movs r4, r7\n\t.irp sum, " sums "\n\t" MLF_ANY_THUMB ".endr\n\t"                                                  \
    "b 10b\n"                                                                                                          \
    "13:\n\t" MLF_RESCALE_WIDE_THUMB

/* The sum of the first pixel of a pair, from T and H. */
#define MLF_LOW_SUM_THUMB(t, h)                                                                                        \
    "mov r4, " h "\n\t"                                                                                                \
    "lsls r4, r4, #16\n\t"                                                                                             \
    "mov r5, " t "\n\t"                                                                                                \
    "subs r5, r5, r4\n\t"                                                                                              \
    "mov " t ", r5\n\t"

#define MLF_NEXT_THUMB "ldr r3, [sp, #12]\n\tadds r0, r0, r3\n\t"

/* The output of a sum; its rare cases, a negative sum and an output above 127, are in a stub. */
#define MLF_POSITIVE_THUMB                                                                                             \
    "mov r1, r\\sum\n\t"                                                                                               \
    "cmp r1, #0\n\t"                                                                                                   \
    "blt 2\\sum\\()f\n\t" MLF_RESCALE_THUMB                                                                            \
    "cmp r2, #127\n\t"                                                                                                 \
    "bgt 3\\sum\\()f\n"                                                                                               \
    "4\\sum:\n\t"                                                                                                     \
    "strb r2, [r0]\n\t" MLF_NEXT_THUMB
#define MLF_STUB_THUMB                                                                                                 \
    "2\\sum:\n\t"                                                                                                     \
    "ldr r2, [sp, #32]\n\t"                                                                                            \
    "b 4\\sum\\()b\n"                                                                                                 \
    "3\\sum:\n\t"                                                                                                     \
    "movs r2, #127\n\t"                                                                                                \
    "b 4\\sum\\()b\n"
#define MLF_ANY_THUMB                                                                                                  \
    "mov r1, r\\sum\n\t"                                                                                               \
    "bl 13f\n\t"                                                                                                       \
    "strb r1, [r0]\n\t" MLF_NEXT_THUMB

/* Separate the halves of a sum of words; changes `word` and `high`. */
#define MLF_SEPARATE_THUMB(word, high, t, h)                                                                           \
    "add " word ", r12\n\t"                                                                                            \
    "asrs " high ", " word ", #16\n\t"                                                                                 \
    "add " t ", " word "\n\t"                                                                                          \
    "add " h ", " high "\n\t"

/* Two inputs of four pixels, the weights being r3 and that of `next`; r4 and r5 become the sums. */
#define MLF_TWO_INPUTS4_THUMB(first, next, weight)                                                                     \
    first "ldmia r0!, {r4-r7}\n\t"                                                                                     \
    "muls r4, r3, r4\n\t"                                                                                              \
    "muls r5, r3, r5\n\t" next MLF_PRODUCT_THUMB("r4", "r6", weight) MLF_PRODUCT_THUMB("r5", "r7", weight)
#define MLF_SEPARATE4_THUMB                                                                                            \
    MLF_SEPARATE_THUMB("r4", "r6", "r8", "lr") MLF_SEPARATE_THUMB("r5", "r7", "r10", "r11")

#define MLF_FIRST_BYTE_THUMB "ldmia r1!, {r2}\n\tsxtb r3, r2\n\t"
#define MLF_LAST_BYTE_THUMB "asrs r2, r2, #24\n\t"

#define MLF_GROUP4_THUMB                                                                                               \
    MLF_TWO_INPUTS4_THUMB(MLF_FIRST_BYTE_THUMB, MLF_BYTE1_THUMB("r3", "r2"), "r3") MLF_BYTE2_THUMB("r3", "r2")         \
    "ldmia r0!, {r6, r7}\n\t" MLF_PRODUCT_THUMB("r4", "r6", "r3") MLF_PRODUCT_THUMB("r5", "r7", "r3")                  \
    "ldmia r0!, {r6, r7}\n\t" MLF_LAST_BYTE_THUMB MLF_PRODUCT_THUMB("r4", "r6", "r2")                                  \
        MLF_PRODUCT_THUMB("r5", "r7", "r2") MLF_SEPARATE4_THUMB
#define MLF_SHORT_GROUP4_THUMB                                                                                         \
    MLF_TWO_INPUTS4_THUMB(MLF_FIRST_BYTE_THUMB, MLF_BYTE1_THUMB("r3", "r2"), "r3") MLF_SEPARATE4_THUMB                 \
        MLF_TWO_INPUTS4_THUMB(MLF_BYTE2_THUMB("r3", "r2"), MLF_LAST_BYTE_THUMB, "r2") MLF_SEPARATE4_THUMB

/* All output channels of four pixels, whose inputs are pairs of words in `rows`. Returns the end of the filter. */
MLF_NAKED const int32_t *mlf_dot_4x1_thumb(const int32_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                           int8_t *output MLF_UNUSED, const struct mlf_dot_thumb *dot MLF_UNUSED)
{
    __asm__ volatile(
        MLF_DOT_THUMB("5", MLF_GROUP4_THUMB, MLF_SHORT_GROUP4_THUMB, MLF_LOW_SUM_THUMB("r10", "r11"), "8, 12, 10, 11"));
}

#define MLF_GROUP2_THUMB                                                                                               \
    MLF_FIRST_BYTE_THUMB                                                                                               \
    "ldmia r0!, {r4-r7}\n\t"                                                                                           \
    "muls r4, r3, r4\n\t" MLF_BYTE1_THUMB("r3", "r2") MLF_PRODUCT_THUMB("r4", "r5", "r3")                              \
        MLF_BYTE2_THUMB("r3", "r2") MLF_PRODUCT_THUMB("r4", "r6", "r3") MLF_LAST_BYTE_THUMB                            \
            MLF_PRODUCT_THUMB("r4", "r7", "r2") MLF_SEPARATE_THUMB("r4", "r6", "r8", "lr")
#define MLF_SHORT_GROUP2_THUMB                                                                                         \
    MLF_FIRST_BYTE_THUMB                                                                                               \
    "ldmia r0!, {r4-r7}\n\t"                                                                                           \
    "muls r4, r3, r4\n\t" MLF_BYTE1_THUMB("r3", "r2") MLF_PRODUCT_THUMB("r4", "r5", "r3")                              \
        MLF_SEPARATE_THUMB("r4", "r5", "r8", "lr") MLF_BYTE2_THUMB("r3", "r2")                                         \
    "muls r6, r3, r6\n\t" MLF_LAST_BYTE_THUMB MLF_PRODUCT_THUMB("r6", "r7", "r2")                                      \
        MLF_SEPARATE_THUMB("r6", "r7", "r8", "lr")

/* As mlf_dot_4x1_thumb for two pixels, whose inputs are single words: 21 instructions for 8 products. */
MLF_NAKED const int32_t *mlf_dot_2x1_thumb(const int32_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                           int8_t *output MLF_UNUSED, const struct mlf_dot_thumb *dot MLF_UNUSED)
{
    __asm__ volatile(MLF_DOT_THUMB("4", MLF_GROUP2_THUMB, MLF_SHORT_GROUP2_THUMB, "", "8, 12"));
}

#else /* the same in C */

MLF_KERNEL const int32_t *mlf_dot_in_c_thumb(int32_t words, const int32_t *rows, const int32_t *filter, int8_t *output,
                                             const struct mlf_dot_thumb *dot)
{
    for (int32_t channel = 0; channel < dot->channels; channel++) {
        const int32_t *const weights = filter + 2;
        for (int32_t pixel = 0; pixel < 2 * words; pixel++) {
            uint32_t sum = (uint32_t)(filter[0] >> 8);
            for (int32_t i = 0; i < 4 * dot->groups; i++) {
                const int32_t word = rows[i * words + pixel / 2];
                const int32_t low = (int16_t)(uint16_t)((uint32_t)word & 0xffffu);
                const int32_t high = (int32_t)((uint32_t)word - (uint32_t)low) >> 16;
                const int32_t weight = (int8_t)(uint8_t)((uint32_t)weights[i / 4] >> (8 * (i % 4)));
                sum += (uint32_t)((pixel % 2 == 0 ? low : high) * weight);
            }
            int8_t *const to = &output[pixel * dot->pitch + channel];
            *to =
                (int8_t)mlf_round_thumb((int32_t)sum, filter[1], (int32_t)((uint32_t)filter[0] & 0xffu), dot->rounding);
            if (dot->positive && (int32_t)sum < 0) {
                *to = (int8_t)dot->minimum;
            }
        }
        filter = weights + dot->groups;
    }
    return filter;
}

MLF_SHARED const int32_t *mlf_dot_4x1_thumb(const int32_t *rows, const int32_t *filter, int8_t *output,
                                            const struct mlf_dot_thumb *dot)
{
    return mlf_dot_in_c_thumb(2, rows, filter, output, dot);
}

MLF_SHARED const int32_t *mlf_dot_2x1_thumb(const int32_t *rows, const int32_t *filter, int8_t *output,
                                            const struct mlf_dot_thumb *dot)
{
    return mlf_dot_in_c_thumb(1, rows, filter, output, dot);
}

#endif

#endif /* MLF_DOT_4X1_THUMB_H_ */
