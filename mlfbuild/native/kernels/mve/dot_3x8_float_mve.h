/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tiles 3x8 and 1x16 of float32 convolutions and matrix products on Helium (MVE with floats).
 *
 * mlf_dot_3x8_float: three pixels times all output channels, eight at a time. Channels are the lanes of the six sums,
 * so that an input is a core register: for two inputs of each pixel 3 LDRD, 4 loads of weights and 12 VFMA, which are
 * 48 multiplications. mlf_dot_1x16_float: a row times 16 channels at a time, 17 instructions for 32 of two inputs.
 *
 * Weights are [groups of eight channels, input, channel]. If the number of channels is not a multiple of eight, the
 * last group has the last eight channels, some of which are computed twice.
 */
#ifndef MLF_DOT_3X8_FLOAT_MVE_H_
#define MLF_DOT_3X8_FLOAT_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize_mve.h"

/* Pixels times weights; assembly accesses the members by position. Distances are in bytes. */
struct mlf_dot_3x8_float {
    const float *pixels[3]; /* windows */
    int32_t triples;        /* of pixels */
    int32_t step;           /* from the windows of a triple to those of the next */
    int32_t rows;           /* of a window */
    int32_t gap;            /* from the end of a row to the next */
    int32_t length;         /* of a row, in elements */
    const float *weights;
    const float *weights_end;
    const float *bias;
    float *output;
    int32_t apart[2];    /* from the output of a pixel of a triple to that of the next */
    int32_t output_step; /* and from triple to triple */
    struct mlf_float_range range;
};

/* A row times weights. */
struct mlf_dot_1x16_float {
    const float *input;
    int32_t length;
    int32_t pairs;           /* of groups of eight channels */
    int32_t group;           /* bytes of a group's weights */
    const float *weights[2]; /* of the groups of a pair */
    const float *bias[2];
    float *output[2];
    struct mlf_float_range range;
};

#if defined(MLF_MVE_FLOAT)

/* An input of each of three pixels, in core registers, times eight channels. */
#define MLF_DOT_3X8_FLOAT_STEP(first, second, third)                                                                   \
    "vldrw.u32 q0, [r11], #16\n vldrw.u32 q1, [r11], #16\n"                                                            \
    "vfma.f32 q2, q0, " first "\n vfma.f32 q3, q1, " first "\n"                                                        \
    "vfma.f32 q4, q0, " second "\n vfma.f32 q5, q1, " second "\n"                                                      \
    "vfma.f32 q6, q0, " third "\n vfma.f32 q7, q1, " third "\n"
#define MLF_FLOAT_BOUND(instruction, bound, x) instruction " " x ", " x ", " bound "\n"
#define MLF_FLOAT_BOUND4(instruction, bound)                                                                           \
    MLF_FLOAT_BOUND(instruction, bound, "q4")                                                                          \
    MLF_FLOAT_BOUND(instruction, bound, "q5")                                                                          \
    MLF_FLOAT_BOUND(instruction, bound, "q6") MLF_FLOAT_BOUND(instruction, bound, "q7")
#define MLF_FLOAT_BOUND6(instruction, bound)                                                                           \
    MLF_FLOAT_BOUND(instruction, bound, "q2")                                                                          \
    MLF_FLOAT_BOUND(instruction, bound, "q3") MLF_FLOAT_BOUND4(instruction, bound)

/*
 * r6 r7 r8 point to the pixels, r11 to the weights, r12 to the output; r10 counts rows. On the stack:
 * the struct, at 64 and 80 the bounds, at 96 the bias, at 100 pairs of inputs in a row, at 104 the remaining inputs.
 */
MLF_NAKED void mlf_dot_3x8_float(const struct mlf_dot_3x8_float *dot MLF_UNUSED)
{
    __asm__(MLF_ENTER "sub sp, #112\n"
            "vldrw.u32 q0, [r0]\n vldrw.u32 q1, [r0, #16]\n vldrw.u32 q2, [r0, #32]\n vldrw.u32 q3, [r0, #48]\n"
            "mov r7, sp\n"
            "vstrw.32 q0, [r7]\n vstrw.32 q1, [r7, #16]\n vstrw.32 q2, [r7, #32]\n vstrw.32 q3, [r7, #48]\n"
            "ldrd r1, r2, [r0, #60]\n vdup.32 q0, r1\n vdup.32 q1, r2\n"
            "vstrw.32 q0, [r7, #64]\n vstrw.32 q1, [r7, #80]\n"
            "ldr r1, [sp, #28]\n lsrs r2, r1, #1\n and r3, r1, #1\n strd r2, r3, [sp, #100]\n"
            "1: ldr r11, [sp, #32]\n ldr r0, [sp, #40]\n str r0, [sp, #96]\n ldr r12, [sp, #44]\n"
            "2: ldrd r6, r7, [sp]\n ldr r8, [sp, #8]\n ldr r10, [sp, #20]\n"
            "ldr r0, [sp, #96]\n vldrw.u32 q2, [r0], #16\n vldrw.u32 q3, [r0], #16\n str r0, [sp, #96]\n"
            "vmov q4, q2\n vmov q5, q3\n vmov q6, q2\n vmov q7, q3\n"
            "3: ldr r0, [sp, #100]\n wls lr, r0, 5f\n"
            "4: ldrd r0, r1, [r6], #8\n ldrd r2, r3, [r7], #8\n"
            "ldrd r4, r5, [r8], #8\n" MLF_DOT_3X8_FLOAT_STEP("r0", "r2", "r4") MLF_DOT_3X8_FLOAT_STEP("r1", "r3", "r5")
            "le lr, 4b\n"
            "5: ldr r0, [sp, #104]\n cbz r0, 6f\n"
            "ldr r0, [r6], #4\n ldr r2, [r7], #4\n ldr r4, [r8], #4\n" MLF_DOT_3X8_FLOAT_STEP("r0", "r2", "r4")
            "6: subs r10, #1\n beq 7f\n"
            "ldr r0, [sp, #24]\n add r6, r0\n add r7, r0\n add r8, r0\n b 3b\n"
            "7: vldrw.u32 q0, [sp, #64]\n vldrw.u32 q1, [sp, #80]\n"
            MLF_FLOAT_BOUND6("vmaxnm.f32", "q0") MLF_FLOAT_BOUND6("vminnm.f32", "q1")
            "ldrd r0, r2, [sp, #48]\n add r1, r12, r0\n add r2, r1\n"
            "vstrw.32 q2, [r12], #16\n vstrw.32 q3, [r12], #16\n"
            "vstrw.32 q4, [r1]\n vstrw.32 q5, [r1, #16]\n"
            "vstrw.32 q6, [r2]\n vstrw.32 q7, [r2, #16]\n"
            "ldr r0, [sp, #36]\n cmp r11, r0\n bne 2b\n"
            "ldrd r0, r1, [sp]\n ldrd r2, r3, [sp, #8]\n ldr r4, [sp, #16]\n"
            "add r0, r4\n add r1, r4\n add r2, r4\n strd r0, r1, [sp]\n"
            "ldr r0, [sp, #44]\n ldr r1, [sp, #56]\n add r0, r1\n str r0, [sp, #44]\n"
            "subs r3, #1\n strd r2, r3, [sp, #8]\n bne 1b\n"
            "add sp, #112\n" MLF_LEAVE);
}

/* An input in a core register times sixteen channels. */
#define MLF_DOT_1X16_FLOAT_STEP(input)                                                                                 \
    "vldrw.u32 q0, [r8], #16\n vfma.f32 q4, q0, " input "\n"                                                           \
    "vldrw.u32 q1, [r8], #16\n vfma.f32 q5, q1, " input "\n"                                                           \
    "vldrw.u32 q2, [r7], #16\n vfma.f32 q6, q2, " input "\n"                                                           \
    "vldrw.u32 q3, [r7], #16\n vfma.f32 q7, q3, " input "\n"

/* r6 points to the input, r8 and r7 to the weights; r12 to the struct, which it changes. */
MLF_NAKED void mlf_dot_1x16_float(struct mlf_dot_1x16_float *dot MLF_UNUSED)
{
    __asm__(MLF_ENTER "mov r12, r0\n"
            "1: ldrd r6, r5, [r12]\n ldrd r8, r7, [r12, #16]\n ldrd r0, r1, [r12, #24]\n"
            "vldrw.u32 q4, [r0], #32\n vldrw.u32 q5, [r0, #-16]\n vldrw.u32 q6, [r1], #32\n vldrw.u32 q7, [r1, #-16]\n"
            "add r0, #32\n add r1, #32\n strd r0, r1, [r12, #24]\n"
            "lsr r4, r5, #2\n and r5, r5, #3\n"
            "wls lr, r4, 3f\n"
            "2: ldm r6!, {r0, r1, r2, r3}\n" MLF_DOT_1X16_FLOAT_STEP("r0") MLF_DOT_1X16_FLOAT_STEP("r1")
            MLF_DOT_1X16_FLOAT_STEP("r2") MLF_DOT_1X16_FLOAT_STEP("r3")
            "le lr, 2b\n"
            "3: wls lr, r5, 5f\n"
            "4: ldr r0, [r6], #4\n" MLF_DOT_1X16_FLOAT_STEP("r0")
            "le lr, 4b\n"
            "5: ldrd r0, r1, [r12, #40]\n vdup.32 q0, r0\n vdup.32 q1, r1\n"
            MLF_FLOAT_BOUND4("vmaxnm.f32", "q0") MLF_FLOAT_BOUND4("vminnm.f32", "q1")
            "ldrd r0, r1, [r12, #32]\n"
            "vstrw.32 q4, [r0], #32\n vstrw.32 q5, [r0, #-16]\n vstrw.32 q6, [r1], #32\n vstrw.32 q7, [r1, #-16]\n"
            "add r0, #32\n add r1, #32\n strd r0, r1, [r12, #32]\n"
            "ldrd r2, r3, [r12, #8]\n add r8, r3\n add r7, r3\n strd r8, r7, [r12, #16]\n"
            "subs r2, #1\n str r2, [r12, #8]\n bne 1b\n" MLF_LEAVE);
}

#else

/* The same in C. */

/* Compute the sums of eight channels after `length` inputs; return the address after their weights. */
MLF_KERNEL const float *mlf_dot_1x8_float_row(float sums[8], const float *input, const float *weights, int32_t length)
{
    for (int32_t i = 0; i < length; i++, weights += 8) {
        for (int32_t c = 0; c < 8; c++) {
            sums[c] += input[i] * weights[c];
        }
    }
    return weights;
}

/* Eight channels of a pixel; return the address after the weights. */
MLF_KERNEL const float *mlf_dot_1x8_float_window(const struct mlf_dot_3x8_float *dot, const float *input,
                                                 const float *weights, const float *bias, float *output)
{
    float sums[8];
    for (int32_t c = 0; c < 8; c++) {
        sums[c] = bias[c];
    }
    for (int32_t row = 0; row < dot->rows; row++) {
        weights = mlf_dot_1x8_float_row(sums, input, weights, dot->length);
        input += dot->length + dot->gap / 4;
    }
    for (int32_t c = 0; c < 8; c++) {
        output[c] = mlf_clamp_float(sums[c], dot->range);
    }
    return weights;
}

MLF_SHARED void mlf_dot_3x8_float(const struct mlf_dot_3x8_float *dot)
{
    for (int32_t pixel = 0; pixel < 3 * dot->triples; pixel++) {
        const int32_t triple = pixel / 3;
        const float *const input = dot->pixels[pixel % 3] + triple * dot->step / 4;
        const int32_t apart = (pixel % 3 > 0 ? dot->apart[0] : 0) + (pixel % 3 > 1 ? dot->apart[1] : 0);
        float *output = dot->output + (triple * dot->output_step + apart) / 4;
        const float *weights = dot->weights;
        for (int32_t group = 0; weights != dot->weights_end; group++, output += 8) {
            weights = mlf_dot_1x8_float_window(dot, input, weights, dot->bias + 8 * group, output);
        }
    }
}

MLF_SHARED void mlf_dot_1x16_float(struct mlf_dot_1x16_float *dot)
{
    for (int32_t group = 0; group < 2 * dot->pairs; group++) {
        const int32_t second = group % 2;
        const int32_t pair = group / 2;
        float sums[8];
        for (int32_t c = 0; c < 8; c++) {
            sums[c] = dot->bias[second][16 * pair + c];
        }
        mlf_dot_1x8_float_row(sums, dot->input, dot->weights[second] + pair * 2 * dot->group / 4, dot->length);
        for (int32_t c = 0; c < 8; c++) {
            dot->output[second][16 * pair + c] = mlf_clamp_float(sums[c], dot->range);
        }
    }
}

#endif /* MLF_MVE_FLOAT */

#endif /* MLF_DOT_3X8_FLOAT_MVE_H_ */
