/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * A line of the output of one channel of a depthwise convolution with a 3x3 filter, for cores without SIMD: two outputs
 * at a time, from words that hold an input of each, as dot_4x1_thumb.h describes.
 *
 * A plane is an array of columns of three words, one for each line of the input under the filter, which may begin with
 * any of them. The low halves of words belong to outputs of the first half of the line, the high ones to those of the
 * second half. A pair of outputs takes 48 instructions (2.7 per product), or 60 if the magnitudes of the weights of a
 * column add up to more than 255; requantisation takes up to 21 per output.
 */
#ifndef MLF_DEPTHWISE_LINE_THUMB_H_
#define MLF_DEPTHWISE_LINE_THUMB_H_

#include <stdint.h>

#include "compiler.h"
#include "thumb.h"

/* The parameters of a line in addition to the plane and the weights; assembly reads them by position. */
struct mlf_line_thumb {
    int32_t *sums; /* memory for one sum per output */
    int32_t *end;
    int32_t advance; /* bytes from the end of the columns of a pair of outputs to those of the next pair */
    int32_t bias;
    int32_t total;      /* bias * 65537 - 0x8000 * number of words that are separated */
    int32_t multiplier; /* the highest bit is set if the products of a column do not fit in 16 bits */
    int32_t shift;      /* right shift + 11 */
    int32_t rounding;   /* 2 * the output's zero point + 1 */
    int32_t minimum;    /* if `positive` */
    int32_t positive;   /* whether sums are below 2^20, and negative sums give `minimum` */
    int32_t step;       /* bytes from one output to the next */
    int8_t *first;      /* outputs of the low halves */
    int8_t *second;     /* outputs of the high halves */
};

#if MLF_THUMB_ASM

#define MLF_LINE_SEPARATE_THUMB(word, scratch)                                                                         \
    "add " word ", r12\n\t"                                                                                            \
    "asrs " scratch ", " word ", #16\n\t"                                                                              \
    "add r8, " word "\n\t"                                                                                             \
    "add lr, " scratch "\n\t"
#define MLF_COLUMN_THUMB                                                                                               \
    "ldmia r0!, {r2-r4}\n\t"                                                                                           \
    "ldmia r1!, {r5-r7}\n\t"                                                                                           \
    "muls r2, r5, r2\n\t" MLF_PRODUCT_THUMB("r2", "r3", "r6") MLF_PRODUCT_THUMB("r2", "r4", "r7")                      \
        MLF_LINE_SEPARATE_THUMB("r2", "r3")
#define MLF_LARGE_COLUMN_THUMB                                                                                         \
    "ldmia r0!, {r2-r4}\n\t"                                                                                           \
    "ldmia r1!, {r5-r7}\n\t"                                                                                           \
    "muls r2, r5, r2\n\t"                                                                                              \
    "muls r4, r7, r4\n\t" MLF_PRODUCT_THUMB("r2", "r3", "r6") MLF_LINE_SEPARATE_THUMB("r2", "r3")                      \
        MLF_LINE_SEPARATE_THUMB("r4", "r5")

/* r0 plane, r1 weights, r8 and lr the sums T and H, r10 and r11 their first values, r12 0x8000. */
#define MLF_PAIR_THUMB(column)                                                                                         \
    "mov r8, r10\n\t"                                                                                                  \
    "mov lr, r11\n\t" column column column                                                                             \
    "mov r3, lr\n\t"                                                                                                   \
    "lsls r4, r3, #16\n\t"                                                                                             \
    "mov r2, r8\n\t"                                                                                                   \
    "subs r2, r2, r4\n\t"                                                                                              \
    "ldr r5, [sp]\n\t"                                                                                                 \
    "stmia r5!, {r2, r3}\n\t"                                                                                          \
    "str r5, [sp]\n\t"                                                                                                 \
    "ldr r2, [sp, #8]\n\t"                                                                                             \
    "adds r0, r0, r2\n\t"                                                                                              \
    "subs r1, r1, #36\n\t"                                                                                             \
    "ldr r3, [sp, #4]\n\t"                                                                                             \
    "cmp r5, r3\n\t"

/* Store r2 as an output, whose address is in `to`. */
#define MLF_LINE_STORE_THUMB(value, to)                                                                                \
    "mov r3, " to "\n\t"                                                                                               \
    "strb " value ", [r3]\n\t"                                                                                         \
    "add " to ", r10\n\t"
#define MLF_LINE_POSITIVE_THUMB(to, low, high, store)                                                                  \
    "ldmia r0!, {r1}\n\t"                                                                                              \
    "cmp r1, #0\n\t"                                                                                                   \
    "blt " low "f\n\t" MLF_RESCALE_THUMB                                                                               \
    "cmp r2, #127\n\t"                                                                                                 \
    "bgt " high "f\n"                                                                                                  \
    store ":\n\t" MLF_LINE_STORE_THUMB("r2", to)
#define MLF_LINE_STUB_THUMB(low, high, store)                                                                          \
    low ":\n\t"                                                                                                        \
    "ldr r2, [sp, #32]\n\t"                                                                                            \
    "b " store "b\n"                                                                                                   \
    high ":\n\t"                                                                                                       \
    "movs r2, #127\n\t"                                                                                                \
    "b " store "b\n"

/*
 * Compute a line. The parameters are copied to the stack: where sums go 0, end 4, advance 8, bias 12, total 16,
 * multiplier 20, shift 24, rounding 28, minimum 32, positive 36, step 40, first 44, second 48; then sums 52.
 */
MLF_NAKED void mlf_depthwise_line_thumb(const int32_t *plane MLF_UNUSED, const int32_t *weights MLF_UNUSED,
                                        const struct mlf_line_thumb *line MLF_UNUSED)
{
    __asm__ volatile(
        MLF_ENTER_THUMB
        "sub sp, sp, #56\n\t"
        "mov r3, sp\n\t"
        "ldmia r2!, {r4-r7}\n\t"
        "stmia r3!, {r4-r7}\n\t"
        "str r4, [sp, #52]\n\t" /* the first sum */
        "mov r11, r7\n\t"
        "ldmia r2!, {r4-r7}\n\t"
        "stmia r3!, {r4-r7}\n\t"
        "mov r10, r4\n\t"
        "mov r8, r5\n\t"
        "ldmia r2!, {r4-r7}\n\t"
        "stmia r3!, {r4-r7}\n\t"
        "ldr r4, [r2]\n\t"
        "str r4, [r3]\n\t"
        "movs r4, #128\n\t"
        "lsls r4, r4, #8\n\t"
        "mov r12, r4\n\t"
        "mov r5, r8\n\t"
        "cmp r5, #0\n\t"
        "blt 2f\n"
        "1:\n\t" MLF_PAIR_THUMB(MLF_COLUMN_THUMB)
        "bne 1b\n\t"
        "b 3f\n"
        "2:\n\t" MLF_PAIR_THUMB(MLF_LARGE_COLUMN_THUMB)
        "bne 2b\n"
        "3:\n\t"
        "mov r11, r5\n\t" /* the end of the sums */
        "ldr r0, [sp, #52]\n\t"
        "ldr r1, [sp, #40]\n\t"
        "mov r10, r1\n\t"
        "ldr r1, [sp, #44]\n\t"
        "mov r8, r1\n\t"
        "ldr r1, [sp, #48]\n\t"
        "mov r12, r1\n\t"
        "ldr r7, [sp, #20]\n\t"
        "ldr r4, [sp, #24]\n\t"
        "ldr r2, [sp, #28]\n\t"
        "ldr r3, [sp, #36]\n\t"
        "cmp r3, #0\n\t"
        "beq 5f\n\t" MLF_PIECES_THUMB
        "4:\n\t" MLF_LINE_POSITIVE_THUMB("r8", "21", "31", "41") MLF_LINE_POSITIVE_THUMB("r12", "22", "32", "42")
        "cmp r0, r11\n\t"
        "bne 4b\n\t"
        "b 7f\n" MLF_LINE_STUB_THUMB("21", "31", "41") MLF_LINE_STUB_THUMB("22", "32", "42")
        "5:\n\t"
        "subs r5, r4, #4\n\t"
        "subs r3, r5, #1\n\t"
        "lsls r2, r2, r3\n\t"
        "movs r6, r2\n\t"
        "adds r6, r6, #64\n\t"
        "movs r4, r7\n"
        "6:\n\t"
        "ldmia r0!, {r1}\n\t"
        "bl 13f\n\t" MLF_LINE_STORE_THUMB("r1", "r8")
        "ldmia r0!, {r1}\n\t"
        "bl 13f\n\t" MLF_LINE_STORE_THUMB("r1", "r12")
        "cmp r0, r11\n\t"
        "bne 6b\n"
        "7:\n\t"
        "add sp, sp, #56\n\t" MLF_LEAVE_THUMB "\n"
        "13:\n\t" MLF_RESCALE_WIDE_THUMB);
}

/*
 * Pack `count` columns, at least 1, of a line of a plane: inputs of one channel, `step` bytes apart, with those
 * `distance` bytes further on.
 */
MLF_NAKED void mlf_fill_plane_thumb(int32_t *plane MLF_UNUSED, const int8_t *input MLF_UNUSED,
                                    const int32_t sizes[3] MLF_UNUSED)
{
    __asm__ volatile(".syntax unified\n\t"
                     "push {r4-r7, lr}\n\t"
                     "ldmia r2!, {r3-r5}\n\t" /* count, step, distance */
                     "movs r2, #0\n\t"
                     "lsrs r3, r3, #1\n\t"
                     "bcc 2f\n\t"
                     "ldrsb r6, [r1, r2]\n\t"
                     "ldrsb r7, [r1, r5]\n\t"
                     "lsls r7, r7, #16\n\t"
                     "adds r6, r6, r7\n\t"
                     "str r6, [r0]\n\t"
                     "adds r0, r0, #12\n\t"
                     "adds r1, r1, r4\n"
                     "2:\n\t"
                     "cmp r3, #0\n\t"
                     "beq 3f\n"
                     "1:\n\t"
                     "ldrsb r6, [r1, r2]\n\t"
                     "ldrsb r7, [r1, r5]\n\t"
                     "lsls r7, r7, #16\n\t"
                     "adds r6, r6, r7\n\t"
                     "str r6, [r0]\n\t"
                     "adds r1, r1, r4\n\t"
                     "ldrsb r6, [r1, r2]\n\t"
                     "ldrsb r7, [r1, r5]\n\t"
                     "lsls r7, r7, #16\n\t"
                     "adds r6, r6, r7\n\t"
                     "str r6, [r0, #12]\n\t"
                     "adds r1, r1, r4\n\t"
                     "adds r0, r0, #24\n\t"
                     "subs r3, r3, #1\n\t"
                     "bne 1b\n"
                     "3:\n\t"
                     "pop {r4-r7, pc}");
}

#else /* the same in C */

MLF_SHARED void mlf_depthwise_line_thumb(const int32_t *plane, const int32_t *weights,
                                         const struct mlf_line_thumb *line)
{
    const int32_t pairs = (int32_t)(line->end - line->sums) / 2;
    for (int32_t half = 0; half < 2; half++) {
        const int32_t *column = plane;
        int8_t *to = half == 0 ? line->first : line->second;
        for (int32_t i = 0; i < pairs; i++, column += 9 + line->advance / 4, to += line->step) {
            uint32_t sum = (uint32_t)line->bias;
            for (int32_t at = 0; at < 9; at++) {
                const int32_t low = (int16_t)(uint16_t)((uint32_t)column[at] & 0xffffu);
                const int32_t high = (int32_t)((uint32_t)column[at] - (uint32_t)low) >> 16;
                sum += (uint32_t)((half == 0 ? low : high) * weights[at]);
            }
            *to = (int8_t)mlf_round_thumb((int32_t)sum, line->multiplier, line->shift, line->rounding);
            if (line->positive && (int32_t)sum < 0) {
                *to = (int8_t)line->minimum;
            }
        }
    }
}

MLF_SHARED void mlf_fill_plane_thumb(int32_t *plane, const int8_t *input, const int32_t sizes[3])
{
    for (int32_t i = 0; i < sizes[0]; i++) {
        plane[3 * i] = input[i * sizes[1]] + input[i * sizes[1] + sizes[2]] * 65536;
    }
}

#endif

#endif /* MLF_DEPTHWISE_LINE_THUMB_H_ */
