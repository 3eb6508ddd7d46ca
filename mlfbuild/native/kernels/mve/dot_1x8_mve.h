/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 1x8 of int8 matrix products with a vector on Helium (MVE).
 *
 * mlf_dot_1x8_*: one row times all output channels, eight at a time: 9 loads and 8 VMLADAV for 128 products. The order
 * of the weights and the names are those of dot_2x4_mve.h.
 */
#ifndef MLF_DOT_1X8_MVE_H_
#define MLF_DOT_1X8_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_2x4_mve.h"
#include "requantize_mve.h"

/* A row times weights. */
struct mlf_dot_1x8 {
    const int8_t *input;
    int32_t pairs; /* of groups of four channels */
    int32_t vectors;
    int32_t tail;
    const int8_t *weights; /* of the pair's groups */
    const int8_t *second_weights;
    int32_t group; /* bytes of a group's weights */
    const struct mlf_channels4 *channels;
    int32_t second_channels; /* bytes from the end of the channels of the first group to those of the second */
    int8_t *output;
    int32_t zero_point;
    int32_t minimum;
    int32_t maximum;
    uint16_t scatter[8]; /* bytes from `output` to channel c of the first group at 2 * c, of the second after it */
};

typedef void (*mlf_dot_1x8_function)(const struct mlf_dot_1x8 *dot);

#if defined(MLF_MVE)

/* r3 points to the row, r1 and r5 to the weights of two groups. r11 counts vectors; the output is in the struct. */
#define MLF_DOT_1X8_STEP(multiply)                                                                                     \
    "vldrb.u8 q0, [r3], #16\n"                                                                                         \
    "vldrb.u8 q1, [r1], #16\n" multiply " r0, q0, q1\n"                                                                \
    "vldrb.u8 q2, [r5], #16\n" multiply " r8, q0, q2\n"                                                                \
    "vldrb.u8 q1, [r1], #16\n" multiply " r2, q0, q1\n"                                                                \
    "vldrb.u8 q2, [r5], #16\n" multiply " r10, q0, q2\n"                                                               \
    "vldrb.u8 q1, [r1], #16\n" multiply " r4, q0, q1\n"                                                                \
    "vldrb.u8 q2, [r5], #16\n" multiply " r12, q0, q2\n"                                                               \
    "vldrb.u8 q1, [r1], #16\n" multiply " r6, q0, q1\n"                                                                \
    "vldrb.u8 q2, [r5], #16\n" multiply " lr, q0, q2\n"
#define MLF_DOT_1X8_TAIL(multiply)                                                                                     \
    "ldr r11, [sp, #12]\n"                                                                                             \
    "vpst\n"                                                                                                           \
    "vldrbt.u8 q0, [r3]\n"                                                                                             \
    "vldrb.u8 q1, [r1]\n add r1, r11\n" multiply " r0, q0, q1\n"                                                       \
    "vldrb.u8 q2, [r5]\n add r5, r11\n" multiply " r8, q0, q2\n"                                                       \
    "vldrb.u8 q1, [r1]\n add r1, r11\n" multiply " r2, q0, q1\n"                                                       \
    "vldrb.u8 q2, [r5]\n add r5, r11\n" multiply " r10, q0, q2\n"                                                      \
    "vldrb.u8 q1, [r1]\n add r1, r11\n" multiply " r4, q0, q1\n"                                                       \
    "vldrb.u8 q2, [r5]\n add r5, r11\n" multiply " r12, q0, q2\n"                                                      \
    "vldrb.u8 q1, [r1]\n add r1, r11\n" multiply " r6, q0, q1\n"                                                       \
    "vldrb.u8 q2, [r5]\n add r5, r11\n" multiply " lr, q0, q2\n"

#define MLF_DOT_1X8_VECTORS_LOOP                                                                                       \
    "ldr r11, [sp, #64]\n" MLF_DOT_1X8_STEP("vmladav.s8")                                                              \
    "ldr pc, [sp, #68]\n"                                                                                              \
    "4: .rept 4\n" MLF_DOT_1X8_STEP("vmladava.s8") ".endr\n"                                                           \
    "5: subs r11, #1\n bne 4b\n"
#define MLF_DOT_1X8_ENTRIES                                                                                            \
    "ldr r1, [sp, #8]\n subs r1, #1\n"                                                                                 \
    "adr.w r2, 5f\n adds r2, #1\n movs r3, #68\n" /* a step has 17 instructions of 4 bytes */                          \
    "and r5, r1, #3\n mls r5, r5, r3, r2\n lsrs r4, r1, #2\n adds r4, #1\n strd r4, r5, [sp, #64]\n"
#define MLF_DOT_1X8_PREDICATE "ldr r1, [sp, #12]\n vctp.8 r1\n"

#define MLF_DOT_1X8_PREPARE_VECTORS MLF_DOT_1X8_ENTRIES
#define MLF_DOT_1X8_PREPARE_MIXED MLF_DOT_1X8_PREDICATE MLF_DOT_1X8_ENTRIES
#define MLF_DOT_1X8_PREPARE_TAIL MLF_DOT_1X8_PREDICATE

#define MLF_DOT_1X8_SUM_VECTORS MLF_DOT_1X8_VECTORS_LOOP
#define MLF_DOT_1X8_SUM_MIXED MLF_DOT_1X8_VECTORS_LOOP MLF_DOT_1X8_TAIL("vmladava.s8")
#define MLF_DOT_1X8_SUM_TAIL MLF_DOT_1X8_TAIL("vmladav.s8")

/*
 * The sums become outputs in q0: r7 points to the channels of the first group, r0 to those of the second without the
 * 36 bytes between them, q5 and q6 are the clamp. q4 is what RIGHT and ANY add to negative sums.
 */
#define MLF_DOT_1X8_OUTPUTS(rounding, clamp)                                                                           \
    "vmov q0[2], q0[0], r0, r4\n ldr r0, [sp, #32]\n"                                                                  \
    "vmov q0[3], q0[1], r2, r6\n vldrw.u32 q2, [r7]\n add r0, r7\n"                                                    \
    "vmov q1[2], q1[0], r8, r12\n vldrw.u32 q3, [r0, #36]\n"                                                           \
    "vmov q1[3], q1[1], r10, lr\n ldr r2, [sp, #40]\n"                                                                 \
    "vadd.i32 q0, q0, q2\n" MLF_DOT_1X8_LEFT1_##rounding "vldrw.u32 q2, [r7, #16]\n"                                   \
    "vadd.i32 q1, q1, q3\n" MLF_DOT_1X8_LEFT2_##rounding "vqrdmulh.s32 q0, q0, q2\n vldrw.u32 q3, [r0, #52]\n"         \
    "ldr r11, [sp, #36]\n vqrdmulh.s32 q1, q1, q3\n ldr r4, [sp, #24]\n vldrb.s32 q2, [r7, #32]\n ldrd r3, r6, [sp]\n" \
    MLF_DOT_1X8_SHIFT_##rounding("q0", "q2")                                                                           \
    "vldrb.s32 q3, [r0, #68]\n" MLF_DOT_1X8_SHIFT_##rounding("q1", "q3")                                               \
    "mov r1, r5\n vqmovnb.s32 q0, q0\n add r5, r4\n add r8, r11, #8\n vqmovnt.s32 q0, q1\n"                            \
    "str r8, [sp, #36]\n subs r6, #1\n vqadd.s16 q0, q0, r2\n str r6, [sp, #4]\n" clamp                                \
    "add r7, r0, #72\n vstrb.16 q0, [r11, q7]\n"
#define MLF_DOT_1X8_LEFT1_RELU
#define MLF_DOT_1X8_LEFT2_RELU
#define MLF_DOT_1X8_SHIFT_RELU(x, shift) "vrshl.s32 " x ", " x ", " shift "\n"
#define MLF_DOT_1X8_LEFT1_RIGHT
#define MLF_DOT_1X8_LEFT2_RIGHT
#define MLF_DOT_1X8_SHIFT_RIGHT(x, shift)                                                                              \
    "vand q4, " x ", " shift "\n vshr.s32 q4, q4, #31\n vadd.i32 " x ", " x ", q4\n" MLF_DOT_1X8_SHIFT_RELU(x, shift)
#define MLF_DOT_1X8_LEFT1_ANY                                                                                          \
    "vldrb.s32 q2, [r7, #32]\n vmov.i32 q4, #0\n vmax.s32 q2, q2, q4\n vshl.s32 q0, q0, q2\n"
#define MLF_DOT_1X8_LEFT2_ANY "vldrb.s32 q3, [r0, #68]\n vmax.s32 q3, q3, q4\n vshl.s32 q1, q1, q3\n"
#define MLF_DOT_1X8_SHIFT_ANY(x, shift)                                                                                \
    "vmov.i32 q4, #0\n vmin.s32 " shift ", " shift ", q4\n" MLF_DOT_1X8_SHIFT_RIGHT(x, shift)
#define MLF_DOT_1X8_ALL "vqmovnb.s16 q0, q0\n"
#define MLF_DOT_1X8_BOUNDS "vmax.s16 q0, q0, q5\n vmin.s16 q0, q0, q6\n"

#define MLF_DOT_1X8(name, shape, rounding, clamp)                                                                      \
    MLF_NAKED void name(const struct mlf_dot_1x8 *dot MLF_UNUSED)                                                      \
    {                                                                                                                  \
        __asm__(MLF_ENTER "sub sp, #72\n"                                                                              \
                "vldrw.u32 q0, [r0]\n vldrw.u32 q1, [r0, #16]\n vldrw.u32 q2, [r0, #32]\n"                             \
                "vldrh.u16 q7, [r0, #52]\n ldr r3, [r0, #48]\n"                                                        \
                "mov r0, sp\n"                                                                                         \
                "vstrw.32 q0, [r0]\n vstrw.32 q1, [r0, #16]\n vstrw.32 q2, [r0, #32]\n"                                \
                "ldr r2, [sp, #44]\n"                                                                                  \
                "vdup.16 q5, r2\n vdup.16 q6, r3\n" MLF_DOT_1X8_PREPARE_##shape                                        \
                "ldrd r1, r5, [sp, #16]\n"                                                                             \
                "ldr r7, [sp, #28]\n ldr r3, [sp]\n"                                                                   \
                "2:\n" MLF_DOT_1X8_SUM_##shape MLF_DOT_1X8_OUTPUTS(rounding, clamp)                                    \
                "bne 2b\n"                                                                                             \
                "add sp, #72\n" MLF_LEAVE);                                                                            \
    }

#else

/* The same in C, for all shapes and roundings. */
MLF_SHARED void mlf_dot_1x8_in_c(const struct mlf_dot_1x8 *dot)
{
    for (int32_t group = 0; group < 2 * dot->pairs; group++) {
        const int32_t second = group % 2;
        const int32_t pair = group / 2;
        const int8_t *const weights = (second ? dot->second_weights : dot->weights) + 2 * pair * dot->group;
        const struct mlf_channels4 *const channels =
            dot->channels + 2 * pair + (second && dot->second_channels == 0 ? 1 : 0);
        uint32_t sums[4] = {0, 0, 0, 0};
        mlf_dot_1x4_row(sums, dot->input, weights, dot->vectors, dot->tail);
        for (int32_t c = 0; c < 4; c++) {
            dot->output[8 * pair + dot->scatter[2 * c + second]] =
                mlf_requantize_lane(sums[c], channels, c, dot->zero_point, dot->minimum, dot->maximum);
        }
    }
}

#define MLF_DOT_1X8(name, shape, rounding, clamp)                                                                      \
    MLF_KERNEL void name(const struct mlf_dot_1x8 *dot)                                                                \
    {                                                                                                                  \
        mlf_dot_1x8_in_c(dot);                                                                                         \
    }

#endif /* MLF_MVE */

MLF_DOT_1X8(mlf_dot_1x8_vectors_all, VECTORS, RELU, MLF_DOT_1X8_ALL)
MLF_DOT_1X8(mlf_dot_1x8_vectors_relu, VECTORS, RELU, MLF_DOT_1X8_BOUNDS)
MLF_DOT_1X8(mlf_dot_1x8_vectors_right, VECTORS, RIGHT, MLF_DOT_1X8_ALL)
MLF_DOT_1X8(mlf_dot_1x8_vectors_any, VECTORS, ANY, MLF_DOT_1X8_BOUNDS)
MLF_DOT_1X8(mlf_dot_1x8_mixed_all, MIXED, RELU, MLF_DOT_1X8_ALL)
MLF_DOT_1X8(mlf_dot_1x8_mixed_relu, MIXED, RELU, MLF_DOT_1X8_BOUNDS)
MLF_DOT_1X8(mlf_dot_1x8_mixed_right, MIXED, RIGHT, MLF_DOT_1X8_ALL)
MLF_DOT_1X8(mlf_dot_1x8_mixed_any, MIXED, ANY, MLF_DOT_1X8_BOUNDS)
MLF_DOT_1X8(mlf_dot_1x8_tail_all, TAIL, RELU, MLF_DOT_1X8_ALL)
MLF_DOT_1X8(mlf_dot_1x8_tail_relu, TAIL, RELU, MLF_DOT_1X8_BOUNDS)
MLF_DOT_1X8(mlf_dot_1x8_tail_right, TAIL, RIGHT, MLF_DOT_1X8_ALL)
MLF_DOT_1X8(mlf_dot_1x8_tail_any, TAIL, ANY, MLF_DOT_1X8_BOUNDS)

#endif /* MLF_DOT_1X8_MVE_H_ */
