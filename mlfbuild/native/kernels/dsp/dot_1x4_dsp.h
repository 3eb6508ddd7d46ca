/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 1x4 of int8, for FULLY_CONNECTED with many weights and few rows on cores with the DSP extension: one
 * row times four output channels, whose weights are read once, from one address on. On a Cortex-M4 the inner loop takes
 * 18 cycles for 16 products, 18.4 with its branch: 5 loads in a row (6 cycles), 6 SXTB16 and SXTAB16, 6 SMLAD.
 *
 * The sums of odd channels are as matmul_dsp.h describes them. Those of even channels need half as many SMLAD, because
 * the extension of weights to 16 bits adds inputs for nothing (Winograd, A New Algorithm for Inner Product, 1968):
 *
 *   x0 * w0 + x1 * w1 = (x0 + w1) * (x1 + w0) - x0 * x1 - w0 * w1
 *
 * The products of inputs are the same for all channels, and are added up once for a row. The sum of the products of
 * weights, `excess`, is in the biases.
 *
 * Layout of a filter, int32, for each four output channels, two pairs as matmul_dsp.h describes them:
 *   the excess of each pair's even channel, plus the brief bias of the odd one
 *   weights: for inputs (0, 2) of the first pair, of the second, (1, 3) of the first, of the second, (4, 6), ...
 *   for the brief requantisation
 *     the bias of each pair's even channel, less 256 * excess
 *     the multiplier of each channel
 *   otherwise
 *     2 * bias of each channel, less 2 * excess of even ones
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

/* r0: inputs, r1: filter, r2, r3: four inputs, r4-r7: their weights, r8: end of the inputs, r10-r12, lr: sums. */
#if MLF_DUAL_ISSUE
/* PLD fills the line of the data cache that is needed four groups later: a Cortex-M7 does not do so on its own. */
#define MLF_DOT_1X4_GROUP_DSP(input, w0, w1, w2, w3)                                                                   \
    "pld [r1, #" w0 " + 64]\n\t"                                                                                       \
    "ldr r3, " input "\n\t"                                                                                            \
    "ldr r4, [r1, #" w0 "]\n\t"                                                                                        \
    "ldr r5, [r1, #" w1 "]\n\t"                                                                                        \
    "ldr r6, [r1, #" w2 "]\n\t"                                                                                        \
    "sxtb16 r2, r3\n\t"                                                                                                \
    "ldr r7, " w3 "\n\t"                                                                                               \
    "sxtb16 r3, r3, ror #8\n\t"                                                                                        \
    "smlad r10, r4, r2, r10\n\t"                                                                                       \
    "sxtab16 r4, r3, r4\n\t"                                                                                           \
    "smlad r10, r6, r3, r10\n\t"                                                                                       \
    "sxtab16 r6, r2, r6\n\t"                                                                                           \
    "smlad r12, r5, r2, r12\n\t"                                                                                       \
    "sxtab16 r5, r3, r5\n\t"                                                                                           \
    "smlad r12, r7, r3, r12\n\t"                                                                                       \
    "sxtab16 r7, r2, r7\n\t"                                                                                           \
    "smlad r11, r4, r6, r11\n\t"                                                                                       \
    "smlad lr, r5, r7, lr\n\t"
#else
#define MLF_DOT_1X4_GROUP_DSP(input, w0, w1, w2, w3)                                                                   \
    "ldr r3, " input "\n\t"                                                                                            \
    "ldr r4, [r1, #" w0 "]\n\t"                                                                                        \
    "ldr r5, [r1, #" w1 "]\n\t"                                                                                        \
    "ldr r6, [r1, #" w2 "]\n\t"                                                                                        \
    "ldr r7, " w3 "\n\t"                                                                                               \
    "sxtb16 r2, r3\n\t"                                                                                                \
    "sxtb16 r3, r3, ror #8\n\t"                                                                                        \
    "smlad r10, r4, r2, r10\n\t"                                                                                       \
    "smlad r10, r6, r3, r10\n\t"                                                                                       \
    "smlad r12, r5, r2, r12\n\t"                                                                                       \
    "smlad r12, r7, r3, r12\n\t"                                                                                       \
    "sxtab16 r6, r2, r6\n\t"                                                                                           \
    "sxtab16 r4, r3, r4\n\t"                                                                                           \
    "sxtab16 r7, r2, r7\n\t"                                                                                           \
    "sxtab16 r5, r3, r5\n\t"                                                                                           \
    "smlad r11, r4, r6, r11\n\t"                                                                                       \
    "smlad lr, r5, r7, lr\n\t"
#endif

/* r3: inputs, r12: the sum of the products of inputs; changes r6 and r7. */
#define MLF_DOT_1X4_INPUTS_DSP                                                                                         \
    "ldr r6, [r3], #4\n\t"                                                                                             \
    "sxtb16 r7, r6\n\t"                                                                                                \
    "sxtb16 r6, r6, ror #8\n\t"                                                                                        \
    "smlad r12, r6, r7, r12\n\t"

/* As mlf_dot_1x2_int8_dsp for whole fours of channels, whose sums fit in 24 bits. */
MLF_NAKED void mlf_dot_1x4_dsp(const int8_t *row MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                               int8_t *output MLF_UNUSED, const struct mlf_dot_dsp *dot MLF_UNUSED)
{
    __asm__ volatile(
        "push {r4-r8, r10, r11, lr}\n\t"
        "sub sp, sp, #32\n\t"
        "ldmia r3, {r4, r5, r6, r7}\n\t" /* groups, pairs, pitch, rounding */
        "str r7, [sp, #20]\n\t"
        "add r5, r2, r5, lsl #1\n\t"
        "strd r2, r5, [sp, #12]\n\t" /* output, its end */
        "add r8, r0, r4, lsl #2\n\t" /* the end of the inputs */
        "mov r12, #0\n\t"
        "mov r3, r0\n\t"
        "lsrs r5, r4, #1\n\t"
        "bcs 8f\n"
        "7:\n\t" MLF_DOT_1X4_INPUTS_DSP "8:\n\t" MLF_DOT_1X4_INPUTS_DSP
        "cmp r3, r8\n\t"
        "bne 7b\n\t"
        "rsb r12, r12, #0\n\t"
        "subs r0, #4\n\t" /* each address is that of the word before */
        "sub r8, r8, #4\n\t"
        "strd r8, r12, [sp, #24]\n\t" /* end of the inputs, minus the products of inputs */
        "rsb r4, r4, #0\n\t"
        "and r4, r4, #7\n\t" /* groups to leave out of the first round */
        "sub r5, r0, r4, lsl #2\n\t"
        "lsl r6, r4, #4\n\t"
        "rsb r6, r6, #4\n\t" MLF_ENTRY_DSP("r4", "r2", "r7")
        "strd r5, r6, [sp]\n\t"
        "str r4, [sp, #8]\n\t"
        ".balign 4\n" /* loads of 32 bits at word boundaries can overlap */
        "1:\n\t"
        "ldr r10, [r1]\n\t"
        "ldr r12, [r1, #4]\n\t"
        "ldr r11, [sp, #28]\n\t"
        "ldr r0, [sp]\n\t"
        "ldr r3, [sp, #4]\n\t"
        "ldr r2, [sp, #8]\n\t"
        "mov lr, r11\n\t"
        "add r1, r3\n\t"
        "bx r2\n\t"
        ".balign 4\n"
        "3:\n\t" MLF_DOT_1X4_GROUP_DSP("[r0, #4]", "4", "8", "12", "[r1, #16]") "4:\n\t"
        MLF_DOT_1X4_GROUP_DSP("[r0, #8]", "20", "24", "28", "[r1, #32]")
        MLF_DOT_1X4_GROUP_DSP("[r0, #12]", "36", "40", "44", "[r1, #48]")
        MLF_DOT_1X4_GROUP_DSP("[r0, #16]", "52", "56", "60", "[r1, #64]")
        MLF_DOT_1X4_GROUP_DSP("[r0, #20]", "68", "72", "76", "[r1, #80]")
        MLF_DOT_1X4_GROUP_DSP("[r0, #24]", "84", "88", "92", "[r1, #96]")
        MLF_DOT_1X4_GROUP_DSP("[r0, #28]", "100", "104", "108", "[r1, #112]")
        MLF_DOT_1X4_GROUP_DSP("[r0, #32]!", "116", "120", "124", "[r1, #128]!")
        "cmp r0, r8\n\t"
        "bne 3b\n\t"
        "sub r10, r10, r11\n\t"
        "sub r12, r12, lr\n\t"
        "ldr r2, [sp, #20]\n\t"
        "ldr r0, [sp, #12]\n\t"
        "ldr r3, [r1, #4]\n\t"
        "ldr r4, [r1, #8]\n\t"
        "ldr r5, [r1, #12]\n\t"
        "ldr r6, [r1, #16]\n\t"
        "ldr r7, [r1, #20]\n\t"
        "cmp r2, #0\n\t"
        "bne 5f\n\t"
        "ldr r2, [r1, #24]\n\t"
        "add r11, r3, r11, lsl #8\n\t"
        "add lr, r4, lr, lsl #8\n\t"
        MLF_SCALE_BRIEF_DSP("r11", "r5") MLF_SCALE_BRIEF_DSP("r10", "r6") MLF_SCALE_BRIEF_DSP("lr", "r7")
        MLF_SCALE_BRIEF_DSP("r12", "r2") MLF_SATURATE_BRIEF_DSP("r11") MLF_SATURATE_BRIEF_DSP("r10")
        MLF_SATURATE_BRIEF_DSP("lr") MLF_SATURATE_BRIEF_DSP("r12")
        MLF_BYTE_DSP("r11", "[r0], #1") MLF_BYTE_DSP("r10", "[r0], #1") MLF_BYTE_DSP("lr", "[r0], #1")
        MLF_BYTE_DSP("r12", "[r0], #1")
        "adds r1, #28\n"
        "2:\n\t"
        "ldr r3, [sp, #16]\n\t"
        "str r0, [sp, #12]\n\t"
        "cmp r0, r3\n\t"
        "bne 1b\n\t"
        "add sp, sp, #32\n\t"
        "pop {r4-r8, r10, r11, pc}\n"
        "5:\n\t" /* from sums to twice the sums with their biases */
        "add r11, r3, r11, lsl #1\n\t"
        "add r10, r4, r10, asr #7\n\t"
        "add lr, r5, lr, lsl #1\n\t"
        "add r12, r6, r12, asr #7\n\t"
        "ldr r3, [r1, #36]\n\t" /* shifts */
        "ldr r4, [r1, #24]\n\t"
        "ldr r5, [r1, #28]\n\t"
        "ldr r6, [r1, #32]\n\t"
        "lsl r8, r2, r3\n\t" MLF_RESCALE_DSP("r11", "r7", "r8", "r8") MLF_SHIFT_DSP("r11", "r3")
        "lsrs r3, r3, #8\n\t"
        "lsl r7, r2, r3\n\t" MLF_RESCALE_DSP("r10", "r4", "r7", "r7") MLF_SATURATE_DSP("r11")
        MLF_SHIFT_DSP("r10", "r3")
        "lsrs r3, r3, #8\n\t"
        "lsl r8, r2, r3\n\t" MLF_RESCALE_DSP("lr", "r5", "r8", "r8") MLF_SATURATE_DSP("r10")
        MLF_SHIFT_DSP("lr", "r3")
        "lsrs r3, r3, #8\n\t"
        "lsl r7, r2, r3\n\t" MLF_RESCALE_DSP("r12", "r6", "r7", "r7") MLF_SATURATE_DSP("lr")
        MLF_SHIFT_DSP("r12", "r3")
        "ldr r8, [sp, #24]\n\t" MLF_SATURATE_DSP("r12")
        MLF_BYTE_DSP("r11", "[r0], #1") MLF_BYTE_DSP("r10", "[r0], #1") MLF_BYTE_DSP("lr", "[r0], #1")
        MLF_BYTE_DSP("r12", "[r0], #1")
        "adds r1, #40\n\t"
        "b 2b");
}

#else /* the same in C */

/* Add the products of a group of inputs to the sums of the even channel of a pair, with its excess, and the odd one. */
MLF_KERNEL void mlf_dot_1x4_group_dsp(uint32_t sums[2], int32_t first, int32_t second, const int16_t *group)
{
    for (int32_t at = 0; at < 2; at++) {
        const int32_t own = mlf_byte_of_dsp(first, 2 * at), other = mlf_byte_of_dsp(second, 2 * at);
        sums[0] += (uint32_t)((group[at] + other) * (group[2 + at] + own) - group[at] * group[2 + at]);
        sums[1] += (uint32_t)((int16_t)(uint16_t)((uint32_t)first >> (16 * at)) * group[at]);
        sums[1] += (uint32_t)((int16_t)(uint16_t)((uint32_t)second >> (16 * at)) * group[2 + at]);
    }
}

MLF_SHARED void mlf_dot_1x4_dsp(const int8_t *row, const int32_t *filter, int8_t *output, const struct mlf_dot_dsp *dot)
{
    const int32_t *const end = filter + dot->pairs / 2 * (4 * dot->groups + (dot->rounding == 0 ? 8 : 11));
    for (; filter != end; output += 4) {
        const int32_t *const words = filter + 2;
        const int32_t *const last = words + 4 * dot->groups;
        uint32_t sums[2][2] = {{0, 0}, {0, 0}}; /* even channels with their excess; odd ones */
        for (int32_t i = 0; i < dot->groups; i++) {
            int16_t group[4];
            mlf_expand4_dsp(group, row + 4 * i);
            for (int32_t pair = 0; pair < 2; pair++) {
                mlf_dot_1x4_group_dsp(sums[pair], words[4 * i + pair], words[4 * i + 2 + pair], group);
            }
        }
        for (int32_t pair = 0; pair < 2; pair++) {
            const uint32_t even = sums[pair][0];
            const uint32_t odd = (uint32_t)filter[pair] + sums[pair][1] - even; /* times 256, with its brief bias */
            if (dot->rounding == 0) {
                const int32_t parameters[3] = {last[pair], last[2 + 2 * pair], last[3 + 2 * pair]};
                (void)mlf_store_pair_dsp((int32_t)odd, parameters, even, 0, output + 2 * pair, dot);
            } else {
                const int32_t *const of = last + 2 * pair;
                const int32_t shifts = mlf_byte_of_dsp(last[8], 2 * pair) | mlf_byte_of_dsp(last[8], 2 * pair + 1) << 8;
                const int32_t parameters[5] = {of[0], of[1], of[4], of[5], shifts};
                (void)mlf_store_pair_dsp(0, parameters, even, (uint32_t)((int32_t)odd >> 8), output + 2 * pair, dot);
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
