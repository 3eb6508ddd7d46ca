/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* One pixel, or row of a matrix, times all pairs of output channels; matmul_dsp.h describes the filter's layout. */
#ifndef MLF_PIXEL_DSP_H_
#define MLF_PIXEL_DSP_H_

#include <stdint.h>

#include "block_dsp.h"
#include "compiler.h"
#include "dsp.h"
#include "expand_dsp.h"

#if MLF_DSP_ASM

/* r0: inputs, r1: filter, r2-r5: eight inputs, r6-r8, lr: their weights for two channels, r10, r11: sums as above. */
#define MLF_SINGLE_DSP(weights, input)                                                                                 \
    "smlad r11, " weights ", " input ", r11\n\t"                                                                       \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    "smlad r10, " weights ", " input ", r10\n\t"

#define MLF_EIGHT_DSP(load_eight)                                                                                      \
    load_eight "ldmia r1!, {r6-r8, lr}\n\t" MLF_SINGLE_DSP("r6", "r2") MLF_SINGLE_DSP("r7", "r3")                      \
        MLF_SINGLE_DSP("r8", "r4") MLF_SINGLE_DSP("lr", "r5")

/* Inputs that were expanded before: 14 instructions for 16 products, 0.91 each with the branch. */
#define MLF_LOAD4_INT16_DSP "ldmia r0!, {r2, r3}\n\t"
#define MLF_LOAD8_INT16_DSP "ldmia r0!, {r2-r5}\n\t"

/* Inputs as they are in memory, possibly not aligned: 19 instructions, 1.22 each. */
#define MLF_LOAD4_INT8_DSP                                                                                             \
    "ldr r2, [r0], #4\n\t"                                                                                             \
    "sxtb16 r3, r2, ror #8\n\t"                                                                                        \
    "sxtb16 r2, r2\n\t"
#define MLF_LOAD8_INT8_DSP                                                                                             \
    MLF_LOAD4_INT8_DSP                                                                                                 \
    "ldr r4, [r0], #4\n\t"                                                                                             \
    "sxtb16 r5, r4, ror #8\n\t"                                                                                        \
    "sxtb16 r4, r4\n\t"

/*
 * As mlf_pixels3_dsp for one pixel. After at most 508 inputs the odd channel's sum is saved, so that 24 bits are enough
 * for any weights.
 */
#define MLF_PIXEL_DSP(load_four, load_eight)                                                                           \
    "push {r4-r8, r10, r11, lr}\n\t"                                                                                   \
    "sub sp, sp, #40\n\t"                                                                                              \
    "ldmia r3, {r4-r7}\n\t"                                                                                            \
    "add r5, r2, r5, lsl #1\n\t"                                                                                       \
    "strd r5, r7, [sp, #16]\n\t" /* the end of the outputs, rounding */                                                \
    "str r2, [sp, #12]\n\t"      /* output */                                                                          \
    "and r5, r4, #7\n\t"                                                                                               \
    "strd r0, r5, [sp]\n\t"      /* row, and groups of the loop for single ones */                                     \
    "lsr r4, r4, #3\n\t"         /* eight groups at a time, 15 times in a segment */                                   \
    "mov r5, #0\n\t"                                                                                                   \
    "b 9f\n"                                                                                                           \
    "8:\n\t"                                                                                                           \
    "sub r4, r4, #15\n\t"                                                                                              \
    "add r5, r5, #1\n"                                                                                                 \
    "9:\n\t"                                                                                                           \
    "cmp r4, #15\n\t"                                                                                                  \
    "bgt 8b\n\t"                                                                                                       \
    "str r4, [sp, #8]\n\t"       /* the first segment */                                                               \
    "cbz r5, 1f\n\t"                                                                                                   \
    "add r5, r5, #1\n"                                                                                                 \
    "1:\n\t"                                                                                                           \
    "strd r5, r5, [sp, #24]\n"   /* several segments, and the remaining ones */                                        \
    "2:\n\t"                                                                                                           \
    "ldrd r0, r12, [sp]\n\t"                                                                                           \
    "ldr r2, [r1], #4\n\t"                                                                                             \
    "mov r10, #0\n\t"                                                                                                  \
    "mov r11, #0\n\t"                                                                                                  \
    "strd r10, r2, [sp, #32]\n\t" /* what was put aside, the odd channel's bias */                                    \
    "cmp r12, #0\n\t"                                                                                                  \
    "beq 4f\n"                                                                                                         \
    "3:\n\t"                                                                                                           \
    load_four "ldmia r1!, {r6, r7}\n\t" MLF_SINGLE_DSP("r6", "r2") MLF_SINGLE_DSP("r7", "r3")                          \
    "subs r12, r12, #1\n\t"                                                                                            \
    "bne 3b\n"                                                                                                         \
    "4:\n\t"                                                                                                           \
    "ldr r12, [sp, #8]\n\t"                                                                                            \
    "cmp r12, #0\n\t"                                                                                                  \
    "beq 7f\n"                                                                                                         \
    "5:\n\t" MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight)   \
    "subs r12, r12, #1\n\t"                                                                                            \
    "bne 5b\n\t"                                                                                                       \
    "ldr r2, [sp, #28]\n\t"                                                                                            \
    "cbz r2, 7f\n\t"                                                                                                   \
    "subs r2, r2, #1\n\t"                                                                                              \
    "beq 6f\n\t"                                                                                                       \
    "str r2, [sp, #28]\n\t"                                                                                            \
    "sub r11, r11, r10\n\t"                                                                                            \
    "ldr lr, [sp, #32]\n\t"                                                                                            \
    "add lr, lr, r11, asr #8\n\t"                                                                                      \
    "str lr, [sp, #32]\n\t"                                                                                            \
    "mov r11, r10\n\t"                                                                                                 \
    "mov r12, #15\n\t"                                                                                                 \
    "b 5b\n"                                                                                                           \
    "6:\n\t"                                                                                                           \
    "ldr r2, [sp, #24]\n\t"                                                                                            \
    "str r2, [sp, #28]\n"                                                                                              \
    "7:\n\t"                                                                                                           \
    "sub r11, r11, r10\n\t"                                                                                            \
    "ldr lr, [sp, #32]\n\t"                                                                                            \
    "ldr r2, [sp, #20]\n\t"                                                                                            \
    "ldr r0, [sp, #12]\n\t"                                                                                            \
    "add lr, lr, r11, asr #8\n\t"                                                                                      \
    "cbz r2, 8f\n\t"                                                                                                   \
    "ldmia r1!, {r3-r7}\n\t"                                                                                           \
    "add r10, r3, r10, lsl #1\n\t"                                                                                     \
    "add r11, r4, lr, lsl #1\n\t"                                                                                      \
    "lsl r3, r2, r7\n\t"                                                                                               \
    MLF_STORE_DSP("r10", "r5", "r3", "r7", "r4", "[r0], #1")                                                           \
    "lsr r7, r7, #8\n\t"                                                                                               \
    "lsl r3, r2, r7\n\t"                                                                                               \
    MLF_STORE_DSP("r11", "r6", "r3", "r7", "r4", "[r0], #1")                                                           \
    "b 9f\n"                                                                                                           \
    "8:\n\t"                                                                                                           \
    "ldmia r1!, {r3-r5}\n\t"                                                                                           \
    "ldr r6, [sp, #36]\n\t"                                                                                            \
    "add r10, r3, r10, lsl #8\n\t"                                                                                     \
    "add r11, r6, lr, lsl #8\n\t"                                                                                      \
    MLF_BRIEF_DSP("r10", "r4") MLF_BRIEF_DSP("r11", "r5")                                                              \
    "strb r10, [r0]\n\t"                                                                                               \
    "strb r11, [r0, #1]\n\t"                                                                                           \
    "adds r0, #2\n"                                                                                                    \
    "9:\n\t"                                                                                                           \
    "ldr r3, [sp, #16]\n\t"                                                                                            \
    "str r0, [sp, #12]\n\t"                                                                                            \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 2b\n\t"                                                                                                       \
    "mov r0, r1\n\t"                                                                                                   \
    "add sp, sp, #40\n\t"                                                                                              \
    "pop {r4-r8, r10, r11, pc}"

/* `row` holds expanded inputs. */
MLF_NAKED const int32_t *mlf_pixel_dsp(const int16_t *row MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                       int8_t *output MLF_UNUSED, const struct mlf_block_dsp *block MLF_UNUSED)
{
    __asm__ volatile(MLF_PIXEL_DSP(MLF_LOAD4_INT16_DSP, MLF_LOAD8_INT16_DSP));
}

/* `row` holds inputs as they are. */
MLF_NAKED const int32_t *mlf_pixel_int8_dsp(const int8_t *row MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                            int8_t *output MLF_UNUSED, const struct mlf_block_dsp *block MLF_UNUSED)
{
    __asm__ volatile(MLF_PIXEL_DSP(MLF_LOAD4_INT8_DSP, MLF_LOAD8_INT8_DSP));
}

#else /* the same in C */

MLF_SHARED const int32_t *mlf_pixel_dsp(const int16_t *row, const int32_t *filter, int8_t *output,
                                        const struct mlf_block_dsp *block)
{
    return mlf_block_in_c_dsp(1, row, filter, output, block);
}

MLF_SHARED const int32_t *mlf_pixel_int8_dsp(const int8_t *row, const int32_t *filter, int8_t *output,
                                             const struct mlf_block_dsp *block)
{
    for (int32_t pair = 0; pair < block->pairs; pair++) {
        const int32_t bias = *filter++;
        uint32_t sums[2] = {0, 0};
        uint32_t odd = 0;
        for (int32_t i = 0; i < block->groups; i++) {
            int16_t group[4];
            mlf_expand4_dsp(group, row + 4 * i);
            mlf_smlad2_dsp(sums, filter[2 * i], group);
            mlf_smlad2_dsp(sums, filter[2 * i + 1], group + 2);
            odd += (uint32_t)((int32_t)(sums[1] - sums[0]) >> 8);
            sums[1] = sums[0];
        }
        filter = mlf_store_pair_dsp(bias, filter + 2 * block->groups, sums[0], odd, output + 2 * pair, block);
    }
    return filter;
}

#endif

#endif /* MLF_PIXEL_DSP_H_ */
