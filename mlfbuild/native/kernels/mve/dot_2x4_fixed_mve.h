/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 2x4 of dot_2x4_mve.h for windows with a fixed number of vectors in a row.
 *
 * Steps follow each other without jumps, r7 and r11 stay as they are, and scalar instructions are where VMLADAVA do not
 * overlap with loads. Z is set in the first step of a pair.
 *
 * In names, VECTORS4, ROWS3, ROWS6, ROWS12, MIXED1 and MIXED2 have as many vectors, ROWS3 three rows. The other words
 * are those of dot_2x4_mve.h.
 */
#ifndef MLF_DOT_2X4_FIXED_MVE_H_
#define MLF_DOT_2X4_FIXED_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_2x4_mve.h"

#if defined(MLF_MVE)

#define MLF_DOT_2X4_FIXED_STEP(begin, space1, space2, space3)                                                          \
    "vldrb.u8 q0, [r3], #16\n" begin "vldrb.u8 q2, [r1], #16\n vmladava.s8 r0, q0, q2\n" space1                        \
    "vldrb.u8 q1, [r5], #16\n vmladava.s8 r8, q1, q2\n"                                                                \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r2, q0, q3\n"                                                                \
    "vldrb.u8 q2, [r1], #16\n vmladava.s8 r10, q1, q3\n"                                                               \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r4, q0, q2\n" space2                                                         \
    "vmladava.s8 r12, q1, q2\n" space3 "vmladava.s8 r6, q0, q3\n"
#define MLF_DOT_2X4_FIXED_TAIL(begin, space1, space2, space3)                                                          \
    "vpst\n vldrbt.u8 q0, [r3]\n" begin "ldr r3, [sp, #28]\n"                                                          \
    "vldrb.u8 q2, [r1]\n vmladava.s8 r0, q0, q2\n add r1, r3\n" space1                                                 \
    "vpst\n vldrbt.u8 q1, [r5]\n vmladava.s8 r8, q1, q2\n ldr r5, [sp, #36]\n"                                         \
    "vldrb.u8 q3, [r1]\n vmladava.s8 r2, q0, q3\n add r1, r3\n"                                                        \
    "vldrb.u8 q2, [r1]\n vmladava.s8 r10, q1, q3\n add r1, r3\n"                                                       \
    "vldrb.u8 q3, [r1]\n vmladava.s8 r4, q0, q2\n add r1, r3\n" space2                                                 \
    "vmladava.s8 r12, q1, q2\n" space3 "cmp r1, r5\n vmladava.s8 r6, q0, q3\n"

/* The second step, with the rest of the outputs of the group before. */
#define MLF_DOT_2X4_OUTPUTS "vstrb.16 q4, [r11, q7]\n"
#define MLF_DOT_2X4_BEGINS "beq 7f\n 9:\n"
#define MLF_DOT_2X4_SECOND(step, clamp)                                                                                \
    step("vqadd.s16 q4, q4, q6\n", MLF_DOT_2X4_CLAMP_##clamp, MLF_DOT_2X4_OUTPUTS, MLF_DOT_2X4_BEGINS)
/* The same if a later step has space for the stores. */
#define MLF_DOT_2X4_SECOND_OF_MANY(clamp)                                                                              \
    MLF_DOT_2X4_FIXED_STEP("", "", "vqadd.s16 q4, q4, q6\n", MLF_DOT_2X4_CLAMP_##clamp)
#define MLF_DOT_2X4_FIXED_END "ldrd r3, r5, [sp]\n" MLF_DOT_2X4_LAST "bne 2b\n"
#define MLF_DOT_2X4_LAST_OF_MANY                                                                                       \
    MLF_DOT_2X4_FIXED_STEP(MLF_DOT_2X4_LAST, "", "ldr r5, [sp, #36]\n", "cmp r1, r5\n") MLF_DOT_2X4_FIXED_END
#define MLF_DOT_2X4_REST_VECTORS4(clamp)                                                                               \
    MLF_DOT_2X4_SECOND_OF_MANY(clamp)                                                                                  \
    MLF_DOT_2X4_FIXED_STEP(MLF_DOT_2X4_LAST, "", MLF_DOT_2X4_OUTPUTS, MLF_DOT_2X4_BEGINS) MLF_DOT_2X4_LAST_OF_MANY
#define MLF_DOT_2X4_REST_MIXED1(clamp) MLF_DOT_2X4_SECOND(MLF_DOT_2X4_FIXED_TAIL, clamp) MLF_DOT_2X4_FIXED_END
#define MLF_DOT_2X4_REST_MIXED2(clamp)                                                                                 \
    MLF_DOT_2X4_SECOND(MLF_DOT_2X4_FIXED_STEP, clamp)                                                                  \
    MLF_DOT_2X4_FIXED_TAIL(MLF_DOT_2X4_LAST, "", "", "") MLF_DOT_2X4_FIXED_END

/* An assembler macro, because a string of C99 has at most 4,095 characters (5.2.4.1). */
#define MLF_DOT_2X4_STEP_MACRO                                                                                         \
    ".macro mlf_step one, two\n" MLF_DOT_2X4_FIXED_STEP(MLF_DOT_2X4_LAST, "", "\\one\n", "\\two\n") ".endm\n"
/* Three rows of three vectors: r7 has the bytes between rows, while sp + 80 has the channels of the next group. */
#define MLF_DOT_2X4_REST_ROWS3(clamp)                                                                                  \
    MLF_DOT_2X4_SECOND_OF_MANY(clamp)                                                                                  \
    MLF_DOT_2X4_FIXED_STEP(MLF_DOT_2X4_LAST, "", "str r7, [sp, #80]\n", "ldr r7, [sp, #20]\n")                         \
    "add r3, r7\n" MLF_DOT_2X4_FIXED_STEP(MLF_DOT_2X4_LAST, "add r5, r7\n", MLF_DOT_2X4_OUTPUTS, MLF_DOT_2X4_BEGINS)   \
    MLF_DOT_2X4_STEP_MACRO                                                                                             \
    "mlf_step\n mlf_step \"add r3, r7\", \"add r5, r7\"\n mlf_step \"ldr r7, [sp, #80]\"\n mlf_step\n"                 \
    "mlf_step \"ldr r5, [sp, #36]\", \"cmp r1, r5\"\n .purgem mlf_step\n" MLF_DOT_2X4_FIXED_END

/*
 * Any number of rows: r7 counts them, r11 has the bytes between them, and sp + 80 has both pointers. A row ends before
 * the middle of the loop, which is entered after the second step of the first row.
 */
#define MLF_DOT_2X4_REST_ROWS(clamp, more)                                                                             \
    MLF_DOT_2X4_SECOND(MLF_DOT_2X4_FIXED_STEP, clamp) "strd r7, r11, [sp, #80]\n ldrd r7, r11, [sp, #16]\n"            \
    MLF_DOT_2X4_STEP_MACRO "4: .rept " more "\n mlf_step\n .endr\n mlf_step \"subs r7, #1\"\n"                         \
    "mlf_step \"add r3, r11; add r5, r11\", \"beq 5f\"\n mlf_step\n mlf_step\n b 4b\n .purgem mlf_step\n"              \
    "5: vmladava.s8 r6, q0, q3\n ldr r5, [sp, #36]\n ldrd r7, r11, [sp, #80]\n cmp r1, r5\n" MLF_DOT_2X4_FIXED_END
#define MLF_DOT_2X4_REST_ROWS6(clamp) MLF_DOT_2X4_REST_ROWS(clamp, "2")
#define MLF_DOT_2X4_REST_ROWS12(clamp) MLF_DOT_2X4_REST_ROWS(clamp, "8")
#define MLF_DOT_2X4_PREPARE_VECTORS4
#define MLF_DOT_2X4_PREPARE_MIXED1 MLF_DOT_2X4_PREDICATE
#define MLF_DOT_2X4_PREPARE_MIXED2 MLF_DOT_2X4_PREDICATE
#define MLF_DOT_2X4_PREPARE_ROWS3
#define MLF_DOT_2X4_PREPARE_ROWS6
#define MLF_DOT_2X4_PREPARE_ROWS12
/* What the first group of a pair does besides. */
#define MLF_DOT_2X4_BEGUN_VECTORS4
#define MLF_DOT_2X4_BEGUN_MIXED1
#define MLF_DOT_2X4_BEGUN_MIXED2
#define MLF_DOT_2X4_BEGUN_ROWS3 "str r7, [sp, #80]\n ldr r7, [sp, #20]\n"
#define MLF_DOT_2X4_BEGUN_ROWS6
#define MLF_DOT_2X4_BEGUN_ROWS12
#define MLF_DOT_2X4_FIXED(name, shape, rounding, clamp)                                                                \
    MLF_NAKED void name(const struct mlf_dot_2x4 *dot MLF_UNUSED)                                                      \
    {                                                                                                                  \
        __asm__(MLF_ENTER "sub sp, #192\n"                                                                             \
                "vldrw.u32 q0, [r0]\n vldrw.u32 q1, [r0, #16]\n vldrw.u32 q2, [r0, #32]\n vldrw.u32 q3, [r0, #48]\n"   \
                "vldrh.u16 q7, [r0, #64]\n"                                                                            \
                "mov r0, sp\n"                                                                                         \
                "vstrw.32 q0, [r0]\n vstrw.32 q1, [r0, #16]\n vstrw.32 q2, [r0, #32]\n vstrw.32 q3, [r0, #48]\n"       \
                "ldrd r1, r3, [sp, #56]\n ldr r5, [sp, #52]\n vdup.16 q0, r1\n vdup.16 q1, r3\n vdup.16 q2, r5\n"      \
                "vstrh.16 q7, [r0, #64]\n movs r2, #0\n vidup.u16 q7, r2, #1\n vstrh.16 q7, [r0, #112]\n"              \
                "vstrh.16 q0, [r0, #128]\n vstrh.16 q1, [r0, #144]\n vstrh.16 q2, [r0, #176]\n"                        \
                MLF_DOT_2X4_PREPARE_##shape "ldr r7, [sp, #40]\n add r11, sp, #156\n ldrd r3, r5, [sp]\n b 1f\n"       \
                "2: " MLF_DOT_2X4_FIRST(MLF_DOT_2X4_LOAD, ", #16\n", rounding, "")                                     \
                "vldrh.u16 q6, [sp, #176]\n vmladav.s8 lr, q1, q3\n"                                                   \
                MLF_DOT_2X4_REST_##shape(clamp)                                                                        \
                "ldr r1, [sp, #8]\n subs r1, #1\n str r1, [sp, #8]\n beq 1f\n"                                         \
                "ldrd r3, r5, [sp, #44]\n add r3, r5\n str r3, [sp, #44]\n"                                            \
                "ldr r1, [sp, #12]\n ldrd r3, r5, [sp]\n add r3, r1\n add r5, r1\n strd r3, r5, [sp]\n"                \
                "1: ldr r1, [sp, #32]\n cmp r1, r1\n b 2b\n"                                                           \
                "7: ldr r7, [sp, #8]\n cmp r7, #0\n beq 8f\n" /* were these the last outputs? */                       \
                "ldrd r7, r11, [sp, #40]\n sub r11, #4\n vldrh.u16 q7, [sp, #64]\n vstrh.16 q7, [sp, #112]\n"          \
                MLF_DOT_2X4_BEGUN_##shape "b 9b\n"                                                                     \
                "8: add sp, #192\n" MLF_LEAVE);                                                                        \
    }

#else

#define MLF_DOT_2X4_FIXED MLF_DOT_2X4

#endif /* MLF_MVE */

MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors4_all, VECTORS4, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors4_relu, VECTORS4, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors4_right, VECTORS4, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors4_any, VECTORS4, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed2_all, MIXED2, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed2_relu, MIXED2, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed2_right, MIXED2, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed2_any, MIXED2, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed1_all, MIXED1, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed1_relu, MIXED1, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed1_right, MIXED1, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed1_any, MIXED1, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows3_all, ROWS3, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows3_relu, ROWS3, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows3_right, ROWS3, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows3_any, ROWS3, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows6_relu, ROWS6, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows6_right, ROWS6, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows6_any, ROWS6, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows12_relu, ROWS12, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows12_right, ROWS12, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows12_any, ROWS12, ANY, BOUNDS)

#endif /* MLF_DOT_2X4_FIXED_MVE_H_ */
