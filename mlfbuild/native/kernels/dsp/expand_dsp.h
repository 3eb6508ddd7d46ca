/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Expand inputs of matrix products to 16 bits for SMLAD, in the order of SXTB16. */
#ifndef MLF_EXPAND_DSP_H_
#define MLF_EXPAND_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dsp.h"

#if MLF_DSP_ASM

/* Words are stored one by one where a store can be issued with an SXTB16, else all at once. */
#if MLF_DUAL_ISSUE
#define MLF_STORE_EXPANDED_DSP(x) "str " x ", [r0], #4\n\t"
#define MLF_STORE_ALL_EXPANDED_DSP(list)
#else
#define MLF_STORE_EXPANDED_DSP(x)
#define MLF_STORE_ALL_EXPANDED_DSP(list) "stmia r0!, " list "\n\t"
#endif

#define MLF_EXPAND3_DSP                                                                                                \
    "ldr r7, [r1], #4\n\t"                                                                                             \
    "ldr r8, [r2], #4\n\t"                                                                                             \
    "ldr r10, [r3], #4\n\t"                                                                                            \
    "sxtb16 r4, r7\n\t"                                                                                                \
    "sxtb16 r5, r8\n\t" MLF_STORE_EXPANDED_DSP("r4")                                                                   \
    "sxtb16 r6, r10\n\t" MLF_STORE_EXPANDED_DSP("r5")                                                                  \
    "sxtb16 r7, r7, ror #8\n\t" MLF_STORE_EXPANDED_DSP("r6")                                                           \
    "sxtb16 r8, r8, ror #8\n\t" MLF_STORE_EXPANDED_DSP("r7")                                                           \
    "sxtb16 r10, r10, ror #8\n\t" MLF_STORE_EXPANDED_DSP("r8") MLF_STORE_EXPANDED_DSP("r10")                           \
    MLF_STORE_ALL_EXPANDED_DSP("{r4-r8, r10}")

/*
 * Expand `groups` times four bytes of three pixels to 16 bits: for each group bytes (0, 2) of every pixel, then (1, 3).
 * Return the end of the output.
 */
MLF_NAKED int16_t *mlf_expand3_dsp(int16_t *rows MLF_UNUSED, const int8_t *first MLF_UNUSED,
                                   const int8_t *second MLF_UNUSED, const int8_t *third MLF_UNUSED,
                                   int32_t groups MLF_UNUSED)
{
    __asm__ volatile("push {r4-r8, r10, lr}\n\t"
                     "ldr lr, [sp, #28]\n\t"
                     "lsrs lr, lr, #1\n\t"
                     "bcs.w 2f\n" /* loads of 32 bits at word boundaries can overlap */
                     "1:\n\t" MLF_EXPAND3_DSP
                     "subs lr, lr, #1\n" /* no other instruction changes flags */
                     "2:\n\t" MLF_EXPAND3_DSP
                     "bne 1b\n\t"
                     "pop {r4-r8, r10, pc}");
}

/* As mlf_expand3_dsp for two pixels. */
MLF_NAKED int16_t *mlf_expand2_dsp(int16_t *rows MLF_UNUSED, const int8_t *first MLF_UNUSED,
                                   const int8_t *second MLF_UNUSED, int32_t groups MLF_UNUSED)
{
    __asm__ volatile("push {r4-r7, lr}\n"
                     "1:\n\t"
                     "ldr r6, [r1]\n\t"
                     "ldr r7, [r2]\n\t"
                     "adds r1, #4\n\t"
                     "adds r2, #4\n\t"
                     "sxtb16 r4, r6\n\t"
                     "sxtb16 r5, r7\n\t"
                     "sxtb16 r6, r6, ror #8\n\t"
                     "sxtb16 r7, r7, ror #8\n\t"
                     "stmia r0!, {r4-r7}\n\t"
                     "subs r3, r3, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r7, pc}");
}

struct mlf_bytes4_dsp {
    int8_t bytes[4];
};

/* Expand four bytes of one pixel: (0, 2), then (1, 3). */
MLF_KERNEL void mlf_expand4_dsp(int16_t *row, const int8_t *input)
{
    uint32_t even, odd;
    __asm__("ldr %1, [%2]\n\t"
            "sxtb16 %0, %1\n\t"
            "sxtb16 %1, %1, ror #8"
            : "=&r"(even), "=&r"(odd)
            : "r"(input), "m"(*(const struct mlf_bytes4_dsp *)(const void *)input));
    memcpy(row, &even, sizeof even);
    memcpy(row + 2, &odd, sizeof odd);
}

#else /* the same in C */

MLF_KERNEL void mlf_expand4_dsp(int16_t *row, const int8_t *input)
{
    row[0] = input[0];
    row[1] = input[2];
    row[2] = input[1];
    row[3] = input[3];
}

MLF_KERNEL int16_t *mlf_expand_pixels_dsp(int16_t *rows, const int8_t *const pixels[], int32_t count, int32_t groups)
{
    for (int32_t i = 0; i < groups; i++, rows += 4 * count) {
        for (int32_t p = 0; p < count; p++) {
            int16_t group[4];
            mlf_expand4_dsp(group, pixels[p] + 4 * i);
            memcpy(rows + 2 * p, group, 4);
            memcpy(rows + 2 * (count + p), group + 2, 4);
        }
    }
    return rows;
}

MLF_SHARED int16_t *mlf_expand3_dsp(int16_t *rows, const int8_t *first, const int8_t *second, const int8_t *third,
                                    int32_t groups)
{
    const int8_t *const pixels[] = {first, second, third};
    return mlf_expand_pixels_dsp(rows, pixels, 3, groups);
}

MLF_SHARED int16_t *mlf_expand2_dsp(int16_t *rows, const int8_t *first, const int8_t *second, int32_t groups)
{
    const int8_t *const pixels[] = {first, second};
    return mlf_expand_pixels_dsp(rows, pixels, 2, groups);
}

#endif

/* Expand one row to 16 bits, in the order of mlf_expand3_dsp, with zeros up to whole groups of four. */
MLF_SHARED void mlf_expand_dsp(int16_t *row, const int8_t *input, int32_t count)
{
    int32_t i = 0;
    for (; i + 4 <= count; i += 4, row += 4) {
        mlf_expand4_dsp(row, input + i);
    }
    if (i < count) {
        row[0] = input[i];
        row[1] = i + 2 < count ? input[i + 2] : 0;
        row[2] = i + 1 < count ? input[i + 1] : 0;
        row[3] = 0;
    }
}

#endif /* MLF_EXPAND_DSP_H_ */
