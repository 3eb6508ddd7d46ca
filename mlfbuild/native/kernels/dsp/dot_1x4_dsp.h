/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 1x4 of int8, for FULLY_CONNECTED with many weights and few rows on cores with the DSP extension: one
 * row times four output channels, whose weights are read once, from one address on. On a Cortex-M4 the inner loop takes
 * 20 cycles for 16 products, 20.6 with its branch: 5 loads in a row (6 cycles), 6 SXTB16, 8 SMLAD.
 *
 * Layout of a filter, int32, for each four output channels, two pairs as matmul_dsp.h describes them:
 *   the brief bias of each pair's odd channel, otherwise 0
 *   weights: for inputs (0, 2) of the first pair, of the second, (1, 3) of the first, of the second, (4, 6), ...
 *   for the brief requantisation
 *     the bias of each pair's even channel
 *     the multiplier of each channel
 *   otherwise
 *     2 * bias of each channel
 *     the multiplier of each
 *     the shift of each, one per byte
 */
#ifndef MLF_DOT_1X4_DSP_H_
#define MLF_DOT_1X4_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_3x2_dsp.h"
#include "dsp.h"
#include "expand_dsp.h"
#include "matmul_dsp.h"

#if MLF_DSP_ASM

#define MLF_DOT_1X4_PRODUCT_DSP(weights, input, odd, even)                                                             \
    "smlad " odd ", " weights ", " input ", " odd "\n\t"                                                               \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    "smlad " even ", " weights ", " input ", " even "\n\t"

/* r0: inputs, r1: filter, r2, r3: four inputs, r4-r7: their weights, r8: end of the inputs, r10-r12, lr: sums. */
#if MLF_DUAL_ISSUE
#define MLF_DOT_1X4_GROUP_DSP(input, w0, w1, w2, w3)                                                                   \
    "ldr r3, [r0, #" input "]\n\t"                                                                                     \
    "ldr r4, [r1, #" w0 "]\n\t"                                                                                        \
    "ldr r5, [r1, #" w1 "]\n\t"                                                                                        \
    "sxtb16 r2, r3\n\t"                                                                                                \
    "ldr r6, [r1, #" w2 "]\n\t"                                                                                        \
    "sxtb16 r3, r3, ror #8\n\t"                                                                                        \
    "smlad r10, r4, r2, r10\n\t"                                                                                       \
    "sxtb16 r4, r4\n\t"                                                                                                \
    "smlad r12, r5, r2, r12\n\t"                                                                                       \
    "sxtb16 r5, r5\n\t"                                                                                                \
    "smlad r11, r4, r2, r11\n\t"                                                                                       \
    "ldr r7, [r1, #" w3 "]\n\t"                                                                                        \
    "smlad lr, r5, r2, lr\n\t"                                                                                         \
    "smlad r10, r6, r3, r10\n\t"                                                                                       \
    "sxtb16 r6, r6\n\t"                                                                                                \
    "smlad r12, r7, r3, r12\n\t"                                                                                       \
    "sxtb16 r7, r7\n\t"                                                                                                \
    "smlad r11, r6, r3, r11\n\t"                                                                                       \
    "smlad lr, r7, r3, lr\n\t"
#else
#define MLF_DOT_1X4_GROUP_DSP(input, w0, w1, w2, w3)                                                                   \
    "ldr r3, [r0, #" input "]\n\t"                                                                                     \
    "ldr r4, [r1, #" w0 "]\n\t"                                                                                        \
    "ldr r5, [r1, #" w1 "]\n\t"                                                                                        \
    "ldr r6, [r1, #" w2 "]\n\t"                                                                                        \
    "ldr r7, [r1, #" w3 "]\n\t"                                                                                        \
    "sxtb16 r2, r3\n\t"                                                                                                \
    "sxtb16 r3, r3, ror #8\n\t"                                                                                        \
    MLF_DOT_1X4_PRODUCT_DSP("r4", "r2", "r10", "r11")                                                                  \
    MLF_DOT_1X4_PRODUCT_DSP("r5", "r2", "r12", "lr")                                                                   \
    MLF_DOT_1X4_PRODUCT_DSP("r6", "r3", "r10", "r11") MLF_DOT_1X4_PRODUCT_DSP("r7", "r3", "r12", "lr")
#endif

/* As mlf_dot_1x2_int8_dsp for whole fours of channels, whose sums fit in 24 bits. */
MLF_NAKED void mlf_dot_1x4_dsp(const int8_t *row MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                               int8_t *output MLF_UNUSED, const struct mlf_dot_dsp *dot MLF_UNUSED)
{
    __asm__ volatile(
        "push {r4-r8, r10, r11, lr}\n\t"
        "sub sp, sp, #48\n\t"
        "ldmia r3, {r4, r5, r6, r7}\n\t" /* groups, pairs, pitch, rounding */
        "str r7, [sp, #20]\n\t"
        "add r5, r2, r5, lsl #1\n\t"
        "strd r2, r5, [sp, #12]\n\t" /* output, its end */
        "add r8, r0, r4, lsl #2\n\t" /* the end of the inputs */
        "rsb r4, r4, #0\n\t"
        "and r4, r4, #7\n\t" /* groups to leave out of the first round */
        "sub r5, r0, r4, lsl #2\n\t"
        "lsl r6, r4, #4\n\t"
        "rsb r6, r6, #8\n\t" MLF_ENTRY_DSP("r4", "r2", "r7")
        "strd r5, r6, [sp]\n\t"
        "str r4, [sp, #8]\n\t"
        ".balign 4\n" /* loads of 32 bits at word boundaries can overlap */
        "1:\n\t"
        "ldr r10, [r1]\n\t"
        "ldr r12, [r1, #4]\n\t"
        "ldr r0, [sp]\n\t"
        "ldr r3, [sp, #4]\n\t"
        "ldr r2, [sp, #8]\n\t"
        "mov r11, #0\n\t"
        "mov lr, #0\n\t"
        "add r1, r1, r3\n\t"
        "bx r2\n"
        "3:\n\t" MLF_DOT_1X4_GROUP_DSP("0", "0", "4", "8", "12") "4:\n\t"
        MLF_DOT_1X4_GROUP_DSP("4", "16", "20", "24", "28")
        MLF_DOT_1X4_GROUP_DSP("8", "32", "36", "40", "44")
        MLF_DOT_1X4_GROUP_DSP("12", "48", "52", "56", "60")
        MLF_DOT_1X4_GROUP_DSP("16", "64", "68", "72", "76")
        MLF_DOT_1X4_GROUP_DSP("20", "80", "84", "88", "92")
        MLF_DOT_1X4_GROUP_DSP("24", "96", "100", "104", "108")
        MLF_DOT_1X4_GROUP_DSP("28", "112", "116", "120", "124")
        "adds r1, #128\n\t"
        "adds r0, #32\n\t"
        "cmp r0, r8\n\t"
        "bne 3b\n\t"
        "sub r10, r10, r11\n\t"
        "sub r12, r12, lr\n\t"
        "ldr r2, [sp, #20]\n\t"
        "ldr r0, [sp, #12]\n\t"
        "ldr r3, [r1]\n\t"
        "ldr r4, [r1, #4]\n\t"
        "ldr r5, [r1, #8]\n\t"
        "ldr r6, [r1, #12]\n\t"
        "ldr r7, [r1, #16]\n\t"
        "cmp r2, #0\n\t"
        "bne 5f\n\t"
        "ldr r2, [r1, #20]\n\t"
        "add r11, r3, r11, lsl #8\n\t"
        "add lr, r4, lr, lsl #8\n\t"
        MLF_SCALE_BRIEF_DSP("r11", "r5") MLF_SCALE_BRIEF_DSP("r10", "r6") MLF_SCALE_BRIEF_DSP("lr", "r7")
        MLF_SCALE_BRIEF_DSP("r12", "r2") MLF_SATURATE_BRIEF_DSP("r11") MLF_SATURATE_BRIEF_DSP("r10")
        MLF_SATURATE_BRIEF_DSP("lr") MLF_SATURATE_BRIEF_DSP("r12")
        "strb r11, [r0]\n\t"
        "strb r10, [r0, #1]\n\t"
        "strb lr, [r0, #2]\n\t"
        "strb r12, [r0, #3]\n\t"
        "adds r0, #4\n\t"
        "adds r1, #24\n"
        "2:\n\t"
        "ldr r3, [sp, #16]\n\t"
        "str r0, [sp, #12]\n\t"
        "cmp r0, r3\n\t"
        "bne 1b\n\t"
        "add sp, sp, #48\n\t"
        "pop {r4-r8, r10, r11, pc}\n"
        "5:\n\t" /* twice the sums of four channels */
        "lsl r11, r11, #1\n\t"
        "asr r10, r10, #7\n\t"
        "strd r11, r10, [sp, #24]\n\t"
        "lsl lr, lr, #1\n\t"
        "asr r12, r12, #7\n\t"
        "strd lr, r12, [sp, #32]\n\t"
        "add r10, r1, #32\n\t" /* shifts */
        "add r11, sp, #24\n\t"
        "add lr, sp, #40\n\t"
        ".balign 4\n"
        "6:\n\t"
        "ldr r3, [r11], #4\n\t"
        "ldr r4, [r1], #4\n\t"
        "ldrb r6, [r10], #1\n\t"
        "ldr r5, [r1, #12]\n\t"
        "add r3, r3, r4\n\t"
        "lsl r4, r2, r6\n\t"
        MLF_STORE_DSP("r3", "r5", "r4", "r6", "r7", "[r0], #1")
        "cmp r11, lr\n\t"
        "bne 6b\n\t"
        "adds r1, #20\n\t"
        "b 2b");
}

#else /* the same in C */

MLF_SHARED void mlf_dot_1x4_dsp(const int8_t *row, const int32_t *filter, int8_t *output, const struct mlf_dot_dsp *dot)
{
    const int32_t *const end = filter + dot->pairs / 2 * (4 * dot->groups + (dot->rounding == 0 ? 8 : 11));
    for (; filter != end; output += 4) {
        const int32_t *const words = filter + 2;
        const int32_t *const last = words + 4 * dot->groups;
        uint32_t sums[2][2] = {{0, 0}, {0, 0}};
        for (int32_t i = 0; i < dot->groups; i++) {
            int16_t group[4];
            mlf_expand4_dsp(group, row + 4 * i);
            for (int32_t pair = 0; pair < 2; pair++) {
                mlf_smlad2_dsp(sums[pair], words[4 * i + pair], group);
                mlf_smlad2_dsp(sums[pair], words[4 * i + 2 + pair], group + 2);
            }
        }
        for (int32_t pair = 0; pair < 2; pair++) {
            const uint32_t even = sums[pair][0];
            const uint32_t odd = (uint32_t)((int32_t)(sums[pair][1] - even) >> 8);
            if (dot->rounding == 0) {
                const int32_t parameters[3] = {last[pair], last[2 + 2 * pair], last[3 + 2 * pair]};
                (void)mlf_store_pair_dsp(filter[pair], parameters, even, odd, output + 2 * pair, dot);
            } else {
                const int32_t *const of = last + 2 * pair;
                const int32_t shifts = mlf_byte_of_dsp(last[8], 2 * pair) | mlf_byte_of_dsp(last[8], 2 * pair + 1) << 8;
                const int32_t parameters[5] = {of[0], of[1], of[4], of[5], shifts};
                (void)mlf_store_pair_dsp(0, parameters, even, odd, output + 2 * pair, dot);
            }
        }
        filter = last + (dot->rounding == 0 ? 6 : 9);
    }
}

#endif

/* As mlf_matvec_int8_dsp for a filter in fours of channels. */
MLF_SHARED void mlf_matvec4_int8_dsp(const struct mlf_matmul_dsp *matmul, const int8_t *input, const int32_t *filter,
                                     int8_t *output)
{
    const struct mlf_dot_dsp dot = mlf_dot_dsp(matmul->inputs, matmul->outputs, 0, matmul->rounding);
    for (int32_t row = 0; row < matmul->rows; row++) {
        mlf_dot_1x4_dsp(input + row * matmul->inputs, filter, output + row * matmul->outputs, &dot);
    }
    mlf_activate_dsp(matmul, output);
}

#endif /* MLF_DOT_1X4_DSP_H_ */
