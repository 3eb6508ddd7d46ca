/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Three or two pixels times all pairs of output channels, six or four sums in registers; matmul_dsp.h describes the
 * layout of the filter.
 *
 * The inner loop for three spends 17 instructions on 24 products (0.71 each, 0.74 with its branch, unrolled for 16
 * inputs): 1 LDM for weights, 2 LDM for activations, 2 SXTB16, 12 SMLAD.
 */
#ifndef MLF_BLOCK_DSP_H_
#define MLF_BLOCK_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "dsp.h"

/* The parameters of a layer for a block of pixels; assembly reads them by position. */
struct mlf_block_dsp {
    int32_t groups;   /* of four inputs */
    int32_t pairs;    /* of output channels */
    int32_t pitch;    /* bytes from one pixel's output to the next one's */
    int32_t rounding; /* 2 * the output's zero point + 1 */
};

#if MLF_DSP_ASM

/*
 * All pairs of output channels of a block of pixels: r0 expanded inputs, r1 filter, r2 output, r3 block. On the stack:
 * inputs, their end, where the first round of four groups begins, output, pitch, rounding, end of the first pixel's
 * outputs. The first group of a pair precedes the loop.
 */
#define MLF_BLOCK_DSP(group_bytes, first_group, group, recover_sums, store_even, store_odd)                            \
    "push {r4-r8, r10, r11, lr}\n\t"                                                                                   \
    "sub sp, sp, #32\n\t"                                                                                              \
    "ldmia r3, {r4-r7}\n\t"                                                                                            \
    "add r5, r2, r5, lsl #1\n\t"                                                                                       \
    "strd r7, r5, [sp, #20]\n\t"                                                                                       \
    "strd r2, r6, [sp, #12]\n\t"                                                                                       \
    "movs r5, #" group_bytes "\n\t"                                                                                    \
    "mla r5, r4, r5, r0\n\t"                                                                                           \
    "strd r0, r5, [sp]\n\t"                                                                                            \
    "rsbs r5, r4, #1\n\t"                                                                                              \
    "and r5, r5, #3\n\t"                                                                                               \
    "it eq\n\t"                                                                                                        \
    "moveq r5, #4\n\t" /* only one group: go to the end of the loop */ MLF_ENTRY_DSP("r5", "r6", "r7")                 \
    "str r5, [sp, #8]\n"                                                                                               \
    "1:\n\t"                                                                                                           \
    "ldr r0, [sp]\n\t" first_group                                                                                     \
    "ldr pc, [sp, #8]\n"                                                                                               \
    "3:\n\t" group "4:\n\t" group group group                                                                          \
    "ldr r3, [sp, #4]\n\t"                                                                                             \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 3b\n\t"                                                                                                       \
    "ldmia r1!, {r3-r5}\n\t" recover_sums /* biases, multiplier of the even channel */                                 \
    "ldr r7, [r1, #4]\n\t"              /* shifts */                                                                   \
    "ldrd r0, r6, [sp, #12]\n\t"                                                                                       \
    "ldr r3, [sp, #20]\n\t"                                                                                            \
    "lsl r3, r3, r7\n\t" store_even                                                                                    \
    "ldr r5, [r1], #8\n\t" /* multiplier of the odd channel */                                                         \
    "ldr r3, [sp, #20]\n\t"                                                                                            \
    "lsr r7, r7, #8\n\t"                                                                                               \
    "lsl r3, r3, r7\n\t" store_odd                                                                                     \
    "ldr r3, [sp, #24]\n\t"                                                                                            \
    "str r0, [sp, #12]\n\t"                                                                                            \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 1b\n\t"                                                                                                       \
    "mov r0, r1\n\t"                                                                                                   \
    "add sp, sp, #32\n\t"                                                                                              \
    "pop {r4-r8, r10, r11, pc}"

/* From 256 * odd + even and even to twice the sum of each channel; biases are already doubled. */
#define MLF_RECOVER_DSP(even, odd)                                                                                     \
    "sub " odd ", " odd ", " even "\n\t"                                                                               \
    "add " even ", r3, " even ", lsl #1\n\t"                                                                           \
    "add " odd ", r4, " odd ", asr #7\n\t"

/*
 * Three pixels: r3, r4 weights of two channels; r5-r7 inputs; r8, r2, r10 even sums; r11, r12, lr odd and even ones.
 * The instruction adds to sums, and names them, or for the first products it is one that does not.
 */
#define MLF_STEP3_DSP(smlad, weights, r8, r2, r10, r11, r12, lr)                                                       \
    "ldmia r0!, {r5-r7}\n\t"                                                                                           \
    smlad " r11, " weights ", r5" r11 "\n\t"                                                                           \
    smlad " r12, " weights ", r6" r12 "\n\t"                                                                           \
    smlad " lr, " weights ", r7" lr "\n\t"                                                                             \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    smlad " r8, " weights ", r5" r8 "\n\t"                                                                             \
    smlad " r2, " weights ", r6" r2 "\n\t"                                                                             \
    smlad " r10, " weights ", r7" r10 "\n\t"


#define MLF_FIRST3_DSP(weights) MLF_STEP3_DSP("smuad", weights, "", "", "", "", "", "")
#define MLF_NEXT3_DSP(weights)                                                                                         \
    MLF_STEP3_DSP("smlad", weights, ", r8", ", r2", ", r10", ", r11", ", r12", ", lr")

/* All pairs of output channels of three pixels, whose expanded inputs are `rows`. Returns the end of the filter. */
MLF_NAKED const int32_t *mlf_pixels3_dsp(const int16_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                         int8_t *output MLF_UNUSED, const struct mlf_block_dsp *block MLF_UNUSED)
{
    __asm__ volatile(MLF_BLOCK_DSP(
        "24",
        "ldmia r1!, {r3, r4}\n\t" MLF_FIRST3_DSP("r3") MLF_NEXT3_DSP("r4"),
        "ldmia r1!, {r3, r4}\n\t" MLF_NEXT3_DSP("r3") MLF_NEXT3_DSP("r4"),
        MLF_RECOVER_DSP("r8", "r11") MLF_RECOVER_DSP("r2", "r12") MLF_RECOVER_DSP("r10", "lr"),
        MLF_STORE_DSP("r10", "r5", "r3", "r7", "r4", "[r0, r6, lsl #1]")
        MLF_STORE_DSP("r2", "r5", "r3", "r7", "r4", "[r0, r6]")
        MLF_STORE_DSP("r8", "r5", "r3", "r7", "r4", "[r0], #1"),
        MLF_STORE_DSP("lr", "r5", "r3", "r7", "r4", "[r0, r6, lsl #1]")
        MLF_STORE_DSP("r12", "r5", "r3", "r7", "r4", "[r0, r6]")
        MLF_STORE_DSP("r11", "r5", "r3", "r7", "r4", "[r0], #1")));
}

/* Two pixels: r3, r4 weights of two channels; r5-r7, r10 inputs; r8, lr even sums; r11, r12 odd and even ones. */
#define MLF_STEP2_DSP(smlad, weights, first, second, r8, lr, r11, r12)                                                 \
    smlad " r11, " weights ", " first r11 "\n\t"                                                                       \
    smlad " r12, " weights ", " second r12 "\n\t"                                                                      \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    smlad " r8, " weights ", " first r8 "\n\t"                                                                         \
    smlad " lr, " weights ", " second lr "\n\t"


#define MLF_FIRST2_DSP(weights, first, second) MLF_STEP2_DSP("smuad", weights, first, second, "", "", "", "")
#define MLF_NEXT2_DSP(weights, first, second)                                                                          \
    MLF_STEP2_DSP("smlad", weights, first, second, ", r8", ", lr", ", r11", ", r12")

#define MLF_LOAD2_DSP "ldmia r1!, {r3, r4}\n\tldmia r0!, {r5-r7, r10}\n\t"

/* As mlf_pixels3_dsp for two pixels: 12 instructions for 16 products, 0.78 each with the branch. */
MLF_NAKED const int32_t *mlf_pixels2_dsp(const int16_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                         int8_t *output MLF_UNUSED, const struct mlf_block_dsp *block MLF_UNUSED)
{
    __asm__ volatile(MLF_BLOCK_DSP(
        "16",
        MLF_LOAD2_DSP MLF_FIRST2_DSP("r3", "r5", "r6") MLF_NEXT2_DSP("r4", "r7", "r10"),
        MLF_LOAD2_DSP MLF_NEXT2_DSP("r3", "r5", "r6") MLF_NEXT2_DSP("r4", "r7", "r10"),
        MLF_RECOVER_DSP("r8", "r11") MLF_RECOVER_DSP("lr", "r12"),
        MLF_STORE_DSP("lr", "r5", "r3", "r7", "r4", "[r0, r6]")
        MLF_STORE_DSP("r8", "r5", "r3", "r7", "r4", "[r0], #1"),
        MLF_STORE_DSP("r12", "r5", "r3", "r7", "r4", "[r0, r6]")
        MLF_STORE_DSP("r11", "r5", "r3", "r7", "r4", "[r0], #1")));
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

/* Store the sums of a pair of channels, whose parameters follow its weights. */
MLF_KERNEL void mlf_store_pair_dsp(const int32_t *parameters, uint32_t even, uint32_t odd, int8_t *output,
                                   const struct mlf_block_dsp *block)
{
    output[0] = mlf_store_dsp((uint32_t)parameters[0] + 2 * even, parameters[2], block->rounding, parameters[4] & 31);
    output[1] = mlf_store_dsp((uint32_t)parameters[1] + 2 * odd, parameters[3], block->rounding, parameters[4] >> 8);
}

/* One pixel of one pair of channels; groups of its inputs are `step` apart. Returns the end of the pair's filter. */
MLF_KERNEL const int32_t *mlf_pair_dsp(const int16_t *input, int32_t step, const int32_t *filter, int8_t *output,
                                       const struct mlf_block_dsp *block)
{
    const int32_t segment = 126; /* groups */
    const int32_t *const last = filter + 2 * block->groups;
    uint32_t sums[2] = {0, 0};
    uint32_t odd = 0;
    for (int32_t i = 0; i < block->groups; i++) {
        mlf_smlad2_dsp(sums, filter[2 * i], input + 4 * step * i);
        mlf_smlad2_dsp(sums, filter[2 * i + 1], input + 4 * step * i + 2 * step);
        if (i % segment == segment - 1 || i == block->groups - 1) {
            odd += (uint32_t)((int32_t)(sums[1] - sums[0]) >> 8);
            sums[1] = sums[0];
        }
    }
    mlf_store_pair_dsp(last, sums[0], odd, output, block);
    return last + 5;
}

MLF_KERNEL const int32_t *mlf_block_in_c_dsp(int32_t count, const int16_t *rows, const int32_t *filter, int8_t *output,
                                             const struct mlf_block_dsp *block)
{
    for (int32_t pair = 0; pair < block->pairs; pair++) {
        const int32_t *end = filter;
        for (int32_t p = 0; p < count; p++) {
            end = mlf_pair_dsp(rows + 2 * p, count, filter, output + p * block->pitch + 2 * pair, block);
        }
        filter = end;
    }
    return filter;
}

MLF_SHARED const int32_t *mlf_pixels3_dsp(const int16_t *rows, const int32_t *filter, int8_t *output,
                                          const struct mlf_block_dsp *block)
{
    return mlf_block_in_c_dsp(3, rows, filter, output, block);
}

MLF_SHARED const int32_t *mlf_pixels2_dsp(const int16_t *rows, const int32_t *filter, int8_t *output,
                                          const struct mlf_block_dsp *block)
{
    return mlf_block_in_c_dsp(2, rows, filter, output, block);
}

#endif

#endif /* MLF_BLOCK_DSP_H_ */
