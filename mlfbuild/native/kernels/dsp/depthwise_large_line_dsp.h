/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * A line of the output of four channels of a depthwise convolution with larger filters, from planes of 16 bits, one per
 * channel, in which adjacent pixels are adjacent halfwords, times 256. A row of a filter has five or seven taps, as words
 * of two taps each, of which all but one overlap: with w01 = (w[0], w[1]) and so on, four outputs share the loads of a
 * row of five taps and of its inputs d0 to d3:
 *
 *   sum[0] = SMLAD(d0, w01) + SMLAD(d1, w23) + SMLABT(d2, w34), sum[2] the same one word later
 *   sum[1] = SMLATB(d0, w01) + SMLAD(d1, w12) + SMLAD(d2, w34), sum[3] the same one word later
 *
 * That takes 30 cycles for 20 products on a Cortex-M4, and 40 for 28 products of seven taps.
 */
#ifndef MLF_DEPTHWISE_LARGE_LINE_DSP_H_
#define MLF_DEPTHWISE_LARGE_LINE_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "dsp.h"

/* The beginning of an expanded filter; for each row, taps - 1 words follow. Assembly reads it by position. */
struct mlf_large_scale_dsp {
    int32_t bias; /* the brief bias, otherwise 0 */
    int32_t multiplier;
    int32_t addend; /* rounding << shift */
    int32_t shift;
    int32_t doubled; /* twice the bias */
};
#define MLF_LARGE_SCALE_DSP 5

/* The parameters for a line of outputs; assembly reads them by position. */
struct mlf_large_call_dsp {
    int32_t pitch; /* bytes */
    int32_t words; /* bytes of the words of a filter */
    int32_t outputs;
    int32_t step; /* bytes from one output to the next */
    int32_t rounding; /* 0 for the brief requantisation */
    int32_t plane;    /* bytes from the plane of a channel to that of the next one */
    int32_t filter;   /* the same for the expanded filters */
};

#if MLF_DSP_ASM

/* A row for four outputs in r4-r7: r0 inputs, r1 filter, whose end is at [sp], lr pitch; r11, r12 inputs. */
#define MLF_LARGE1_5_DSP                                                                                               \
    "ldmia r1!, {r2, r3, r8, r10}\n\t"                                                                                 \
    "ldr r11, [r0]\n\t"                                                                                                \
    "ldr r12, [r0, #4]\n\t"                                                                                            \
    "smlad r4, r11, r2, r4\n\t"                                                                                        \
    "smlatb r5, r11, r2, r5\n\t"                                                                                       \
    "smlad r4, r12, r8, r4\n\t"                                                                                        \
    "smlad r5, r12, r3, r5\n\t"                                                                                        \
    "smlad r6, r12, r2, r6\n\t"                                                                                        \
    "smlatb r7, r12, r2, r7\n\t"                                                                                       \
    "ldr r11, [r0, #8]\n\t"                                                                                            \
    "ldr r12, [r0, #12]\n\t"                                                                                           \
    "ldr r2, [sp]\n\t"                                                                                                 \
    "smlabt r4, r11, r10, r4\n\t"                                                                                      \
    "smlad r5, r11, r10, r5\n\t"                                                                                       \
    "smlad r6, r11, r8, r6\n\t"                                                                                        \
    "smlad r7, r11, r3, r7\n\t"                                                                                        \
    "smlabt r6, r12, r10, r6\n\t"                                                                                      \
    "smlad r7, r12, r10, r7\n\t"

#define MLF_LARGE1_7_DSP                                                                                               \
    "ldmia r1!, {r2, r3, r8, r10}\n\t"                                                                                 \
    "ldr r11, [r0]\n\t"                                                                                                \
    "ldr r12, [r0, #4]\n\t"                                                                                            \
    "smlad r4, r11, r2, r4\n\t"                                                                                        \
    "smlatb r5, r11, r2, r5\n\t"                                                                                       \
    "ldr r11, [r0, #8]\n\t"                                                                                            \
    "smlad r4, r12, r8, r4\n\t"                                                                                        \
    "smlad r5, r12, r3, r5\n\t"                                                                                        \
    "smlad r6, r12, r2, r6\n\t"                                                                                        \
    "smlatb r7, r12, r2, r7\n\t"                                                                                       \
    "ldr r2, [r1], #4\n\t" /* w45 */                                                                                   \
    "ldr r12, [r0, #12]\n\t"                                                                                           \
    "smlad r5, r11, r10, r5\n\t"                                                                                       \
    "smlad r6, r11, r8, r6\n\t"                                                                                        \
    "smlad r7, r11, r3, r7\n\t"                                                                                        \
    "ldr r3, [r1], #4\n\t" /* w56 */                                                                                   \
    "smlad r4, r11, r2, r4\n\t"                                                                                        \
    "smlad r6, r12, r2, r6\n\t"                                                                                        \
    "smlad r7, r12, r10, r7\n\t"                                                                                       \
    "ldr r11, [r0, #16]\n\t"                                                                                           \
    "ldr r2, [sp]\n\t"                                                                                                 \
    "smlabt r4, r12, r3, r4\n\t"                                                                                       \
    "smlad r5, r12, r3, r5\n\t"                                                                                        \
    "smlabt r6, r11, r3, r6\n\t"                                                                                       \
    "smlad r7, r11, r3, r7\n\t"

#define MLF_LARGE2_5_DSP                                                                                               \
    "ldmia r1!, {r2, r3, r8, r10}\n\t"                                                                                 \
    "ldr r11, [r0]\n\t"                                                                                                \
    "ldr r12, [r0, #4]\n\t"                                                                                            \
    "ldr r3, [r0, #8]\n\t"                                                                                             \
    "smlad r4, r11, r2, r4\n\t"                                                                                        \
    "smlad r4, r12, r8, r4\n\t"                                                                                        \
    "smlad r5, r12, r2, r5\n\t"                                                                                        \
    "smlabt r4, r3, r10, r4\n\t"                                                                                       \
    "smlad r5, r3, r8, r5\n\t"                                                                                         \
    "smlad r6, r3, r2, r6\n\t"                                                                                         \
    "ldr r11, [r0, #12]\n\t"                                                                                           \
    "ldr r12, [r0, #16]\n\t"                                                                                           \
    "ldr r3, [r0, #20]\n\t"                                                                                            \
    "smlabt r5, r11, r10, r5\n\t"                                                                                      \
    "smlad r6, r11, r8, r6\n\t"                                                                                        \
    "smlad r7, r11, r2, r7\n\t"                                                                                        \
    "ldr r2, [sp]\n\t"                                                                                                 \
    "smlabt r6, r12, r10, r6\n\t"                                                                                      \
    "smlad r7, r12, r8, r7\n\t"                                                                                        \
    "smlabt r7, r3, r10, r7\n\t"

#define MLF_LARGE2_7_DSP                                                                                               \
    "ldr r2, [r1]\n\t"       /* w01 */                                                                                 \
    "ldr r3, [r1, #8]\n\t"   /* w23 */                                                                                 \
    "ldr r8, [r1, #16]\n\t"  /* w45 */                                                                                 \
    "ldr r10, [r1, #20]\n\t" /* w56 */                                                                                 \
    "ldr r11, [r0]\n\t"                                                                                                \
    "ldr r12, [r0, #4]\n\t"                                                                                            \
    "add r1, r1, #24\n\t"                                                                                              \
    "smlad r4, r11, r2, r4\n\t"                                                                                        \
    "smlad r4, r12, r3, r4\n\t"                                                                                        \
    "smlad r5, r12, r2, r5\n\t"                                                                                        \
    "ldr r11, [r0, #8]\n\t"                                                                                            \
    "ldr r12, [r0, #12]\n\t"                                                                                           \
    "smlad r4, r11, r8, r4\n\t"                                                                                        \
    "smlad r5, r11, r3, r5\n\t"                                                                                        \
    "smlad r6, r11, r2, r6\n\t"                                                                                        \
    "smlabt r4, r12, r10, r4\n\t"                                                                                      \
    "smlad r5, r12, r8, r5\n\t"                                                                                        \
    "smlad r6, r12, r3, r6\n\t"                                                                                        \
    "smlad r7, r12, r2, r7\n\t"                                                                                        \
    "ldr r11, [r0, #16]\n\t"                                                                                           \
    "ldr r12, [r0, #20]\n\t"                                                                                           \
    "ldr r2, [r0, #24]\n\t"                                                                                            \
    "smlabt r5, r11, r10, r5\n\t"                                                                                      \
    "smlad r6, r11, r8, r6\n\t"                                                                                        \
    "smlad r7, r11, r3, r7\n\t"                                                                                        \
    "smlabt r6, r12, r10, r6\n\t"                                                                                      \
    "smlad r7, r12, r8, r7\n\t"                                                                                        \
    "smlabt r7, r2, r10, r7\n\t"                                                                                       \
    "ldr r2, [sp]\n\t"

/* One of four outputs, after which a line may end. r10: address, r11: step, r12: outputs that are left. */
#define MLF_LARGE_BRIEF_DSP(sum)                                                                                       \
    MLF_BRIEF_DSP(sum, "r2")                                                                                           \
    "subs r12, r12, #1\n\t"                                                                                            \
    "strb " sum ", [r10]\n\t"                                                                                          \
    "add r10, r10, r11\n\t"                                                                                            \
    "beq 9f\n\t"
#define MLF_LARGE_GENERAL_DSP(sum)                                                                                     \
    "add " sum ", r1, " sum ", asr #7\n\t" MLF_STORE_DSP(sum, "r2", "r3", "r8", "lr", "[r10]")                         \
    "subs r12, r12, #1\n\t"                                                                                            \
    "add r10, r10, r11\n\t"                                                                                            \
    "beq 9f\n\t"

/*
 * On the stack: end and begin of the words, inputs, filter, output, outputs that are left, parameters, channels that are
 * left, begin of the inputs, begin of the outputs.
 */
#define MLF_LARGE_BODY_DSP(row, four_inputs)                                                                           \
    "push {r4-r8, r10, r11, lr}\n\t"                                                                                   \
    "sub sp, sp, #40\n\t"                                                                                              \
    "movs r4, #4\n\t"                                                                                                  \
    "strd r3, r4, [sp, #24]\n"                                                                                         \
    "0:\n\t"                                                                                                           \
    "ldrd r4, r6, [r3, #4]\n\t"                                                                                        \
    "add r5, r1, #20\n\t"                                                                                              \
    "add r4, r4, r5\n\t"                                                                                               \
    "strd r4, r5, [sp]\n\t"                                                                                            \
    "strd r0, r1, [sp, #8]\n\t"                                                                                        \
    "strd r2, r6, [sp, #16]\n\t"                                                                                       \
    "strd r0, r2, [sp, #32]\n"                                                                                         \
    "1:\n\t"                                                                                                           \
    "ldrd r0, r1, [sp, #8]\n\t"                                                                                        \
    "ldr r3, [sp, #24]\n\t"                                                                                            \
    "ldr r4, [r1]\n\t"                                                                                                 \
    "ldr lr, [r3]\n\t"                                                                                                 \
    "ldr r1, [sp, #4]\n\t"                                                                                             \
    "mov r5, r4\n\t"                                                                                                   \
    "mov r6, r4\n\t"                                                                                                   \
    "mov r7, r4\n"                                                                                                     \
    "2:\n\t" row "add r0, r0, lr\n\t"                                                                                  \
    "cmp r1, r2\n\t"                                                                                                   \
    "bne 2b\n\t"                                                                                                       \
    "ldrd r0, r1, [sp, #8]\n\t"                                                                                        \
    "ldr r3, [sp, #24]\n\t"                                                                                            \
    "ldrd r10, r12, [sp, #16]\n\t"                                                                                     \
    "adds r0, #" four_inputs "\n\t"                                                                                    \
    "ldrd r11, lr, [r3, #12]\n\t"                                                                                      \
    "str r0, [sp, #8]\n\t"                                                                                             \
    "ldrd r2, r3, [r1, #4]\n\t"                                                                                        \
    "cmp lr, #0\n\t"                                                                                                   \
    "bne 3f\n\t" MLF_LARGE_BRIEF_DSP("r4") MLF_LARGE_BRIEF_DSP("r5") MLF_LARGE_BRIEF_DSP("r6")                         \
    MLF_LARGE_BRIEF_DSP("r7")                                                                                          \
    "strd r10, r12, [sp, #16]\n\t"                                                                                     \
    "b 1b\n"                                                                                                           \
    "3:\n\t"                                                                                                           \
    "ldrd r8, r1, [r1, #12]\n\t" MLF_LARGE_GENERAL_DSP("r4") MLF_LARGE_GENERAL_DSP("r5") MLF_LARGE_GENERAL_DSP("r6")   \
    MLF_LARGE_GENERAL_DSP("r7")                                                                                        \
    "strd r10, r12, [sp, #16]\n\t"                                                                                     \
    "b 1b\n"                                                                                                           \
    "9:\n\t"                                                                                                           \
    "ldrd r3, r4, [sp, #24]\n\t"                                                                                       \
    "subs r4, r4, #1\n\t"                                                                                              \
    "beq 8f\n\t"                                                                                                       \
    "str r4, [sp, #28]\n\t"                                                                                            \
    "ldrd r0, r2, [sp, #32]\n\t"                                                                                       \
    "ldrd r5, r6, [r3, #20]\n\t"                                                                                       \
    "ldr r1, [sp, #12]\n\t"                                                                                            \
    "adds r2, #1\n\t"                                                                                                  \
    "add r0, r0, r5\n\t"                                                                                               \
    "add r1, r1, r6\n\t"                                                                                               \
    "b 0b\n"                                                                                                           \
    "8:\n\t"                                                                                                           \
    "add sp, sp, #40\n\t"                                                                                              \
    "pop {r4-r8, r10, r11, pc}"

/* Compute a line of the output of four channels. */
#define MLF_DEFINE_LARGE_DSP(name, stride, taps, row, four_inputs)                                                     \
    MLF_NAKED void name(const int16_t *plane MLF_UNUSED, const int32_t *filter MLF_UNUSED, int8_t *output MLF_UNUSED,  \
                        const struct mlf_large_call_dsp *call MLF_UNUSED)                                              \
    {                                                                                                                  \
        __asm__ volatile(MLF_LARGE_BODY_DSP(row, four_inputs));                                                        \
    }

#else /* the same in C */

MLF_KERNEL void mlf_depthwise_large_line_dsp(int32_t stride, int32_t taps, const int16_t *plane, const int32_t *filter,
                                             int8_t *output, const struct mlf_large_call_dsp *call)
{
    const int32_t rows = call->words / 4 / (taps - 1);
    for (int32_t i = 0; i < call->outputs; i++) {
        uint32_t sum = (uint32_t)filter[0];
        for (int32_t row = 0; row < rows; row++) {
            const int16_t *const values = plane + row * call->pitch / 2 + stride * i;
            const int32_t *const words = filter + MLF_LARGE_SCALE_DSP + row * (taps - 1);
            for (int32_t tap = 0; tap < taps; tap++) {
                const uint32_t pair = (uint32_t)(tap == 0 ? words[0] : words[tap - 1]);
                const int32_t weight = (int16_t)(uint16_t)(tap == 0 ? pair : pair >> 16);
                sum += (uint32_t)(values[tap] * weight);
            }
        }
        if (call->rounding == 0) {
            output[i * call->step] = mlf_brief_dsp(sum, filter[1]);
        } else {
            sum = (uint32_t)filter[4] + (uint32_t)((int32_t)sum >> 7);
            output[i * call->step] =
                mlf_round_dsp(sum, filter[1], (uint32_t)filter[2] + (uint32_t)((int32_t)sum >> 31), filter[3]);
        }
    }
}

#define MLF_DEFINE_LARGE_DSP(name, stride, taps, row, four_inputs)                                                     \
    MLF_SHARED void name(const int16_t *plane, const int32_t *filter, int8_t *output,                                  \
                         const struct mlf_large_call_dsp *call)                                                        \
    {                                                                                                                  \
        for (int32_t c = 0; c < 4; c++) {                                                                              \
            mlf_depthwise_large_line_dsp(stride, taps, plane + c * call->plane / 2, filter + c * call->filter / 4,     \
                                         output + c, call);                                                            \
        }                                                                                                              \
    }

#endif

MLF_DEFINE_LARGE_DSP(mlf_large_line1_5_dsp, 1, 5, MLF_LARGE1_5_DSP, "8")
MLF_DEFINE_LARGE_DSP(mlf_large_line1_7_dsp, 1, 7, MLF_LARGE1_7_DSP, "8")
MLF_DEFINE_LARGE_DSP(mlf_large_line2_5_dsp, 2, 5, MLF_LARGE2_5_DSP, "16")
MLF_DEFINE_LARGE_DSP(mlf_large_line2_7_dsp, 2, 7, MLF_LARGE2_7_DSP, "16")

#endif /* MLF_DEPTHWISE_LARGE_LINE_DSP_H_ */
