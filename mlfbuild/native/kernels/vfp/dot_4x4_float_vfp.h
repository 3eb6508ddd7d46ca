/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 4x4 of float32 convolutions for scalar FPUs: four pixels times four output channels.
 *
 * The sixteen sums and the operands of two inputs fill the 32 registers: 16 loaded words and 32 VFMA in 39 instructions
 * for 32 products. All loads are adjacent, because on the Cortex-M7 the first load after a VFMA waits three cycles.
 *
 * Windows are read in runs: pieces of adjacent inputs, at an address of its own for each of the four pixels. Weights
 * are [groups of four channels, input, channel]; if the number of channels is not a multiple of four, the last group
 * has the last four, some of which are computed twice.
 */
#ifndef MLF_DOT_4X4_FLOAT_VFP_H_
#define MLF_DOT_4X4_FLOAT_VFP_H_

#include <stdint.h>

#include "compiler.h"
#include "dot.h"

/* Adjacent inputs of four windows; assembly reads both structs by position. */
struct mlf_run_vfp {
    const float *pixels[4];
    int32_t offset; /* bytes from the weights of the group to those of the run */
    int32_t length; /* inputs */
};

/* Four pixels times groups of four channels. */
struct mlf_dot_4x4_vfp {
    const struct mlf_run_vfp *runs;
    const struct mlf_run_vfp *end;
    const float *weights;
    int32_t group; /* bytes of a group's weights */
    int32_t groups;
    const float *bias;
    float *output;
    int32_t pitch; /* bytes from the output of a pixel to that of the next */
    struct mlf_float_range range;
};

#if MLF_VFP_ASM && defined(MLF_NAKED)

/* Input s(x) of a pixel times the weights w, of four channels. */
#define MLF_DOT_1X4_VFP(x, w0, w1, w2, w3, y0, y1, y2, y3)                                                             \
    "vfma.f32 s" #y0 ", s" #w0 ", s" #x "\n\t"                                                                         \
    "vfma.f32 s" #y1 ", s" #w1 ", s" #x "\n\t"                                                                         \
    "vfma.f32 s" #y2 ", s" #w2 ", s" #x "\n\t"                                                                         \
    "vfma.f32 s" #y3 ", s" #w3 ", s" #x "\n\t"

/* Inputs s(x0) to s(x3) of the four pixels times the weights w. */
#define MLF_DOT_4X4_VFP(x0, x1, x2, x3, w0, w1, w2, w3)                                                                \
    MLF_DOT_1X4_VFP(x0, w0, w1, w2, w3, 16, 17, 18, 19)                                                                \
    MLF_DOT_1X4_VFP(x1, w0, w1, w2, w3, 20, 21, 22, 23)                                                                \
    MLF_DOT_1X4_VFP(x2, w0, w1, w2, w3, 24, 25, 26, 27)                                                                \
    MLF_DOT_1X4_VFP(x3, w0, w1, w2, w3, 28, 29, 30, 31)

/* Bound each sum by s0. */
#define MLF_EACH_SUM_VFP(step)                                                                                         \
    ".irp x, s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31\n\t" step ".endr\n"
#if defined(__ARM_FEATURE_NUMERIC_MAXMIN)
#define MLF_AT_LEAST_VFP "vmaxnm.f32 \\x, \\x, s0\n\t"
#define MLF_AT_MOST_VFP "vminnm.f32 \\x, \\x, s0\n\t"
#else
#define MLF_BOUND_VFP(condition)                                                                                       \
    "vcmp.f32 \\x, s0\n\tvmrs APSR_nzcv, FPSCR\n\tit " condition "\n\tvmov" condition ".f32 \\x, s0\n\t"
#define MLF_AT_LEAST_VFP MLF_BOUND_VFP("mi")
#define MLF_AT_MOST_VFP MLF_BOUND_VFP("gt")
#endif

/*
 * r0-r3: inputs, r4: weights, r5: length, r6: weights of the group, r7: groups, r8: output, r10: tile, r11, r12: runs
 * and their end, lr: pairs of inputs; s0-s7: inputs, s8-s15: weights, s16-s31: sums. `bias` of the tile is changed.
 */
MLF_NAKED void mlf_dot_4x4_vfp(struct mlf_dot_4x4_vfp *tile MLF_UNUSED)
{
    __asm__ volatile("push {r4-r8, r10, r11, lr}\n\t"
                     "vpush {d8-d15}\n\t"
                     "mov r10, r0\n\t"
                     "ldr r6, [r10, #8]\n\t"
                     "ldr r7, [r10, #16]\n\t"
                     "ldr r8, [r10, #24]\n"
                     "1:\n\t"
                     "ldr r0, [r10, #20]\n\t"
                     "ldrd r11, r12, [r10]\n\t"
                     "vldmia r0, {s16-s19}\n\t"
                     "vldmia r0, {s20-s23}\n\t"
                     "vldmia r0, {s24-s27}\n\t"
                     "vldmia r0!, {s28-s31}\n\t"
                     "str r0, [r10, #20]\n\t"
                     "b 5f\n"
                     "2:\n\t"
                     "ldmia r11!, {r0-r5}\n\t"
                     "add r4, r4, r6\n\t"
                     "lsrs lr, r5, #1\n\t"
                     "beq 4f\n"
                     "3:\n\t"
                     "vldmia r4!, {s8-s15}\n\t"
                     "vldmia r0!, {s0, s1}\n\t"
                     "vldmia r1!, {s2, s3}\n\t"
                     "vldmia r2!, {s4, s5}\n\t"
                     "vldmia r3!, {s6, s7}\n\t"
                     MLF_DOT_4X4_VFP(0, 2, 4, 6, 8, 9, 10, 11)
                     MLF_DOT_1X4_VFP(1, 12, 13, 14, 15, 16, 17, 18, 19)
                     MLF_DOT_1X4_VFP(3, 12, 13, 14, 15, 20, 21, 22, 23)
                     "subs lr, lr, #1\n\t"
                     MLF_DOT_1X4_VFP(5, 12, 13, 14, 15, 24, 25, 26, 27)
                     MLF_DOT_1X4_VFP(7, 12, 13, 14, 15, 28, 29, 30, 31)
                     "bne 3b\n"
                     "4:\n\t"
                     "lsls r5, r5, #31\n\t"
                     "beq 5f\n\t"
                     "vldmia r4, {s8-s11}\n\t"
                     "vldr s0, [r0]\n\t"
                     "vldr s2, [r1]\n\t"
                     "vldr s4, [r2]\n\t"
                     "vldr s6, [r3]\n\t"
                     MLF_DOT_4X4_VFP(0, 2, 4, 6, 8, 9, 10, 11)
                     "5:\n\t"
                     "cmp r11, r12\n\t"
                     "bne 2b\n\t"
                     "ldrd r1, r2, [r10, #32]\n\t"
                     "cmn r1, #0x800000\n\t" /* minus infinity */
                     "beq 6f\n\t"
                     "vmov s0, r1\n\t"
                     MLF_EACH_SUM_VFP(MLF_AT_LEAST_VFP)
                     "6:\n\t"
                     "cmp r2, #0x7f800000\n\t" /* infinity */
                     "beq 7f\n\t"
                     "vmov s0, r2\n\t"
                     MLF_EACH_SUM_VFP(MLF_AT_MOST_VFP)
                     "7:\n\t"
                     "ldr r0, [r10, #28]\n\t"
                     "ldr r4, [r10, #12]\n\t"
                     "add r1, r8, r0\n\t"
                     "add r2, r1, r0\n\t"
                     "add r3, r2, r0\n\t"
                     "vstmia r8!, {s16-s19}\n\t"
                     "vstmia r1, {s20-s23}\n\t"
                     "vstmia r2, {s24-s27}\n\t"
                     "vstmia r3, {s28-s31}\n\t"
                     "add r6, r6, r4\n\t"
                     "subs r7, r7, #1\n\t"
                     "bne 1b\n\t"
                     "vpop {d8-d15}\n\t"
                     "pop {r4-r8, r10, r11, pc}");
}

#else /* the same in C */

/* One pixel times the four channels whose weights and biases are given. */
MLF_KERNEL void mlf_dot_1x4_in_c_vfp(const struct mlf_dot_4x4_vfp *tile, int32_t pixel, const float *weights,
                                     const float *bias, float *output)
{
    float sums[4] = {bias[0], bias[1], bias[2], bias[3]};
    for (const struct mlf_run_vfp *run = tile->runs; run != tile->end; run++) {
        const float *weight = weights + run->offset / 4;
        for (int32_t i = 0; i < run->length; i++, weight += 4) {
            for (int32_t c = 0; c < 4; c++) {
                sums[c] += run->pixels[pixel][i] * weight[c];
            }
        }
    }
    for (int32_t c = 0; c < 4; c++) {
        output[c] = mlf_clamp_float(sums[c], tile->range);
    }
}

MLF_SHARED void mlf_dot_4x4_vfp(struct mlf_dot_4x4_vfp *tile)
{
    for (int32_t group = 0; group < tile->groups; group++) {
        for (int32_t pixel = 0; pixel < 4; pixel++) {
            mlf_dot_1x4_in_c_vfp(tile, pixel, tile->weights + group * tile->group / 4, tile->bias + 4 * group,
                                 tile->output + pixel * tile->pitch / 4 + 4 * group);
        }
    }
}

#endif

#endif /* MLF_DOT_4X4_FLOAT_VFP_H_ */
