/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tiles 3x2 and 1x2 of int16 activations and int8 weights for cores with the DSP extension: three pixels, or
 * one, times a pair of output channels, for all pairs. The compiler proves that sums fit in 32 bits. They become
 * outputs in two instructions:
 *
 *   (sum * m + 2^(s - 1)) >> s  =  (sum * (m << (32 - s)) + 2^31) >> 32  =  SMMULR, for shifts s of 16 to 32
 *
 * and SSAT, or USAT for a fused RELU. The filter holds for each pair of output channels, in words:
 *   the multipliers of both, shifted; the biases of both
 *   depth / 2 times the weights of two inputs, alternately of the even and of the odd channel, so that SXTB16 expands
 *   those of one channel; `depth` is the inputs rounded up to four, with weights of 0
 * If the number of channels is odd, the last two form the last pair, which repeats one channel.
 *
 * The inner loop for three pixels spends 20 instructions on 24 products (0.83 each, 0.85 with its branch, unrolled for
 * 32 inputs): 2 LDR for weights, 2 LDM for activations, 4 SXTB16, 12 SMLAD. For one pixel it is 11 for 8 (1.375, 1.47).
 */
#ifndef MLF_DOT_3X2_INT16_DSP_H_
#define MLF_DOT_3X2_INT16_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "dsp.h"

/* The parameters of a layer for a block of pixels; assembly reads them by position. */
struct mlf_dot_int16_dsp {
    int32_t groups; /* of four inputs */
    int32_t pairs;  /* of output channels */
    int32_t pitch;  /* bytes from one pixel's output to the next one's */
};

/* From a sum to the stored output, in C. */
MLF_KERNEL int16_t mlf_round_int16_dsp(uint32_t sum, int32_t multiplier, int32_t least)
{
    const int32_t value = (int32_t)(((int64_t)(int32_t)sum * multiplier + (INT64_C(1) << 31)) >> 32);
    return (int16_t)(value < least ? least : value > INT16_MAX ? INT16_MAX : value);
}

/* From a sum to the stored output; `saturate` and `bits` are "ssat " and ", #16, ", or as in a fused RELU. */
#define MLF_STORE_INT16_DSP(sum, multiplier, place, saturate, bits)                                                    \
    "smmulr " sum ", " sum ", " multiplier "\n\t" saturate sum bits sum "\n\t"                                         \
    "strh " sum ", " place "\n\t"

#if MLF_DSP_ASM

/*
 * All pairs of output channels of a block: r0 inputs, r1 filter, r2 output, r3 block. On the stack: inputs, their end,
 * output, pitch, where the first round of groups begins, end of the first pixel's outputs, multipliers.
 */
#define MLF_DOT_INT16_DSP(group_bytes, copy_biases, groups, group, store)                                              \
    "push {r4-r8, r10, r11, lr}\n\t"                                                                                   \
    "sub sp, sp, #32\n\t"                                                                                              \
    "ldmia r3, {r4-r6}\n\t"                                                                                            \
    "movs r7, #" group_bytes "\n\t"                                                                                    \
    "mla r7, r4, r7, r0\n\t"                                                                                           \
    "strd r0, r7, [sp]\n\t"                                                                                            \
    "strd r2, r6, [sp, #8]\n\t"                                                                                        \
    "add r5, r2, r5, lsl #2\n\t"                                                                                       \
    "rsb r4, r4, #0\n\t"                                                                                               \
    "and r4, r4, #" groups " - 1\n\t" MLF_ENTRY_DSP("r4", "r6", "r7")                                                  \
    "strd r4, r5, [sp, #16]\n"                                                                                         \
    "1:\n\t"                                                                                                           \
    "ldr r0, [sp]\n\t"                                                                                                 \
    "ldmia r1!, {r3, r4, r8, r11}\n\t"                                                                                 \
    "strd r3, r4, [sp, #24]\n\t" copy_biases                                                                           \
    "ldr pc, [sp, #16]\n"                                                                                              \
    "3:\n\t" group "4:\n\t.rept " groups " - 1\n\t" group ".endr\n\t"                                                  \
    "ldr r3, [sp, #4]\n\t"                                                                                             \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 3b\n\t"                                                                                                       \
    "ldrd r3, r4, [sp, #24]\n\t"                                                                                       \
    "ldrd r0, r5, [sp, #8]\n\t" store                                                                                  \
    "ldr r3, [sp, #20]\n\t"                                                                                            \
    "str r0, [sp, #8]\n\t"                                                                                             \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 1b\n\t"                                                                                                       \
    "mov r0, r1\n\t"                                                                                                   \
    "add sp, sp, #32\n\t"                                                                                              \
    "pop {r4-r8, r10, r11, pc}"

/* Three pixels: r3, r4 weights of two channels; r5-r7 inputs; r8, r2, r10 even sums; r11, r12, lr odd ones. */
#define MLF_EVEN3_INT16_DSP(weights)                                                                                   \
    "smlad r8, " weights ", r5, r8\n\t"                                                                                \
    "smlad r2, " weights ", r6, r2\n\t"                                                                                \
    "smlad r10, " weights ", r7, r10\n\t"

#define MLF_ODD3_INT16_DSP(weights)                                                                                    \
    "smlad r11, " weights ", r5, r11\n\t"                                                                              \
    "smlad r12, " weights ", r6, r12\n\t"                                                                              \
    "smlad lr, " weights ", r7, lr\n\t"

#define MLF_HALF3_INT16_DSP                                                                                            \
    "ldr r3, [r1], #4\n\t"                                                                                             \
    "ldmia r0!, {r5-r7}\n\t"                                                                                           \
    "sxtb16 r4, r3\n\t" MLF_EVEN3_INT16_DSP("r4")                                                                      \
    "sxtb16 r3, r3, ror #8\n\t" MLF_ODD3_INT16_DSP("r3")

#define MLF_DOT_3X2_INT16_DSP(saturate, bits)                                                                          \
    MLF_DOT_INT16_DSP("24",                                                                                            \
                        "mov r2, r8\n\t"                                                                               \
                        "mov r10, r8\n\t"                                                                              \
                        "mov r12, r11\n\t"                                                                             \
                        "mov lr, r11\n\t",                                                                             \
                        "8", MLF_HALF3_INT16_DSP MLF_HALF3_INT16_DSP,                                                  \
                        MLF_STORE_INT16_DSP("r2", "r3", "[r0, r5]", saturate, bits)                                    \
                        MLF_STORE_INT16_DSP("r10", "r3", "[r0, r5, lsl #1]", saturate, bits)                           \
                        MLF_STORE_INT16_DSP("r8", "r3", "[r0], #2", saturate, bits)                                    \
                        MLF_STORE_INT16_DSP("r12", "r4", "[r0, r5]", saturate, bits)                                   \
                        MLF_STORE_INT16_DSP("lr", "r4", "[r0, r5, lsl #1]", saturate, bits)                            \
                        MLF_STORE_INT16_DSP("r11", "r4", "[r0], #2", saturate, bits))

/* One pixel, whose inputs may have any int16 address: r3, r4 weights; r5, r6 inputs; r8, r11 sums. */
#define MLF_GROUP1_INT16_DSP                                                                                           \
    "ldmia r1!, {r3, r4}\n\t"                                                                                          \
    "ldr r5, [r0], #4\n\t"                                                                                             \
    "ldr r6, [r0], #4\n\t"                                                                                             \
    "sxtb16 r2, r3\n\t"                                                                                                \
    "smlad r8, r2, r5, r8\n\t"                                                                                         \
    "sxtb16 r3, r3, ror #8\n\t"                                                                                        \
    "smlad r11, r3, r5, r11\n\t"                                                                                       \
    "sxtb16 r2, r4\n\t"                                                                                                \
    "smlad r8, r2, r6, r8\n\t"                                                                                         \
    "sxtb16 r4, r4, ror #8\n\t"                                                                                        \
    "smlad r11, r4, r6, r11\n\t"

#define MLF_DOT_1X2_INT16_DSP(saturate, bits)                                                                          \
    MLF_DOT_INT16_DSP("8", "", "4", MLF_GROUP1_INT16_DSP,                                                              \
                        MLF_STORE_INT16_DSP("r8", "r3", "[r0], #2", saturate, bits)                                    \
                        MLF_STORE_INT16_DSP("r11", "r4", "[r0], #2", saturate, bits))

/* Defines a function of a block of pixels; it returns the end of the filter. */
#define MLF_DEFINE_INT16_DSP(name, body)                                                                               \
    MLF_NAKED const int32_t *name(const int16_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,                    \
                                  int16_t *output MLF_UNUSED, const struct mlf_dot_int16_dsp *dot MLF_UNUSED)          \
    {                                                                                                                  \
        __asm__ volatile(body);                                                                                        \
    }

/* Inputs of three pixels are interleaved: (0, 1) of the first, the second and the third, (2, 3) of the first, ... */
MLF_DEFINE_INT16_DSP(mlf_dot_3x2_int16_dsp, MLF_DOT_3X2_INT16_DSP("ssat ", ", #16, "))
MLF_DEFINE_INT16_DSP(mlf_dot_3x2_relu_int16_dsp, MLF_DOT_3X2_INT16_DSP("usat ", ", #15, "))
MLF_DEFINE_INT16_DSP(mlf_dot_1x2_int16_dsp, MLF_DOT_1X2_INT16_DSP("ssat ", ", #16, "))
MLF_DEFINE_INT16_DSP(mlf_dot_1x2_relu_int16_dsp, MLF_DOT_1X2_INT16_DSP("usat ", ", #15, "))

#else /* the same in C */

/* The products of two inputs and their weights in a word, for the even channel (0) or the odd one (1). */
MLF_KERNEL uint32_t mlf_two_products_int16_dsp(const int16_t *input, int32_t weights, int32_t channel)
{
    return (uint32_t)(input[0] * mlf_byte_of_dsp(weights, channel)) +
           (uint32_t)(input[1] * mlf_byte_of_dsp(weights, channel + 2));
}

/* A block of one or three pixels; outputs are at least `least`. */
MLF_KERNEL const int32_t *mlf_dot_in_c_int16_dsp(int32_t pixels, const int16_t *rows, const int32_t *filter,
                                                 int16_t *output, const struct mlf_dot_int16_dsp *dot, int32_t least)
{
    for (int32_t pair = 0; pair < dot->pairs; pair++, filter += 4 + 2 * dot->groups) {
        for (int32_t p = 0; p < pixels; p++) {
            uint32_t even = (uint32_t)filter[2];
            uint32_t odd = (uint32_t)filter[3];
            for (int32_t word = 0; word < 2 * dot->groups; word++) {
                const int16_t *const input = rows + 2 * (p + pixels * word);
                even += mlf_two_products_int16_dsp(input, filter[4 + word], 0);
                odd += mlf_two_products_int16_dsp(input, filter[4 + word], 1);
            }
            int16_t *const stored = output + p * (dot->pitch / 2) + 2 * pair;
            stored[0] = mlf_round_int16_dsp(even, filter[0], least);
            stored[1] = mlf_round_int16_dsp(odd, filter[1], least);
        }
    }
    return filter;
}

#define MLF_DEFINE_INT16_DSP(name, pixels, least)                                                                      \
    MLF_SHARED const int32_t *name(const int16_t *rows, const int32_t *filter, int16_t *output,                        \
                                   const struct mlf_dot_int16_dsp *dot)                                                \
    {                                                                                                                  \
        return mlf_dot_in_c_int16_dsp(pixels, rows, filter, output, dot, least);                                       \
    }

MLF_DEFINE_INT16_DSP(mlf_dot_3x2_int16_dsp, 3, INT16_MIN)
MLF_DEFINE_INT16_DSP(mlf_dot_3x2_relu_int16_dsp, 3, 0)
MLF_DEFINE_INT16_DSP(mlf_dot_1x2_int16_dsp, 1, INT16_MIN)
MLF_DEFINE_INT16_DSP(mlf_dot_1x2_relu_int16_dsp, 1, 0)

#endif

/* Clamp an output to a fused activation, unless the store already does. */
MLF_KERNEL void mlf_clamp_int16_dsp(int16_t *output, int32_t size, int32_t minimum, int32_t maximum)
{
    const int16_t *const end = output + size;
    const int stored = (minimum == INT16_MIN || minimum == 0) && maximum == INT16_MAX;
    for (; !stored && output != end; output++) {
        const int32_t value = *output < minimum ? minimum : *output;
        *output = (int16_t)(value > maximum ? maximum : value);
    }
}

#endif /* MLF_DOT_3X2_INT16_DSP_H_ */
