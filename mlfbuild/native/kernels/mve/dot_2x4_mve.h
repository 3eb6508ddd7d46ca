/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 2x4 of int8 convolutions on Helium (MVE).
 *
 * mlf_dot_2x4_*: two pixels times four output channels, for all channels. The eight sums stay in the even core
 * registers, to which VMLADAVA adds 16 products at once: 2 loads of pixels, 4 of weights and 8 VMLADAVA for 128
 * products. The 8 outputs are gathered, rescaled and stored during the first step of the next four channels.
 *
 * A pixel's window consists of `rows` pieces of memory of 16 * `vectors` + `tail` bytes, read in place. Weights are in
 * the order in which they are read: for every four channels and every row, first 16 bytes of each channel for each
 * vector, then `tail` bytes of each. Up to 15 bytes after the last tail are read.
 *
 * In names, VECTORS has no tail, TAIL no vector and MIXED both, all with one row; ROWS and MIXED_ROWS have any number
 * of rows. ALL is RELU of requantize_mve.h with the range of int8 as its clamp, RIGHT has that range too, and RELU and
 * ANY have any clamp.
 */
#ifndef MLF_DOT_2X4_MVE_H_
#define MLF_DOT_2X4_MVE_H_

#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "requantize_mve.h"

/* Further lines of as many pairs. */
struct mlf_dot_2x4_lines {
    int32_t count;
    int32_t step;        /* bytes from the windows of a line to those of the next */
    int32_t output_step; /* the same for outputs */
};

/* Pixels times weights; assembly accesses the members by position. */
struct mlf_dot_2x4 {
    const int8_t *first; /* the windows of two pixels */
    const int8_t *second;
    int32_t pairs;   /* of pixels */
    int32_t step;    /* bytes from the windows of a pair to those of the next */
    int32_t rows;    /* of a window */
    int32_t gap;     /* bytes from the last vector of a row to the next row */
    int32_t vectors; /* of 16 bytes, in a row */
    int32_t tail;    /* bytes after them */
    const int8_t *weights;
    const int8_t *weights_end;
    const struct mlf_channels4 *channels;
    int8_t *output;
    int32_t output_step; /* bytes from the outputs of a pair to those of the next */
    int32_t zero_point;
    int32_t minimum;
    int32_t maximum;
    uint32_t scatter[4]; /* bytes from `output` to channel c of the first pixel, and to that of the second << 16 */
    const struct mlf_dot_2x4_lines *lines; /* or NULL; only dot_2x4_fixed_mve.h */
};

typedef void (*mlf_dot_2x4_function)(const struct mlf_dot_2x4 *dot);

#if defined(MLF_MVE)

/*
 * A step: r3 and r5 point to the pixels, r1 to the weights. Each load is between two VMLADAVA, which it overlaps with.
 * The last product of a step is left to the next one (MLF_DOT_2X4_LAST), so that q0 is loaded meanwhile.
 */
#define MLF_DOT_2X4_STEP                                                                                               \
    "vldrb.u8 q0, [r3], #16\n vmladava.s8 lr, q1, q3\n"                                                                \
    "vldrb.u8 q2, [r1], #16\n vmladava.s8 r0, q0, q2\n"                                                                \
    "vldrb.u8 q1, [r5], #16\n vmladava.s8 r8, q1, q2\n"                                                                \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r2, q0, q3\n"                                                                \
    "vldrb.u8 q2, [r1], #16\n vmladava.s8 r10, q1, q3\n"                                                               \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r4, q0, q2\n"                                                                \
    "vmladava.s8 r12, q1, q2\n vmladava.s8 r6, q0, q3\n"
#define MLF_DOT_2X4_LAST "vmladava.s8 lr, q1, q3\n"

/* Bytes of the pixels beyond the tail count as 0, so that the bytes read as their weights have no effect. */
#define MLF_DOT_2X4_TAIL                                                                                               \
    "ldr r11, [sp, #28]\n"                                                                                             \
    "vpst\n vldrbt.u8 q0, [r3]\n vmladava.s8 lr, q1, q3\n"                                                             \
    "vldrb.u8 q2, [r1]\n add r1, r11\n vmladava.s8 r0, q0, q2\n"                                                       \
    "vpst\n vldrbt.u8 q1, [r5]\n vmladava.s8 r8, q1, q2\n"                                                             \
    "vldrb.u8 q3, [r1]\n add r1, r11\n vmladava.s8 r2, q0, q3\n"                                                       \
    "vldrb.u8 q2, [r1]\n add r1, r11\n vmladava.s8 r10, q1, q3\n"                                                      \
    "vldrb.u8 q3, [r1]\n add r1, r11\n vmladava.s8 r4, q0, q2\n"                                                       \
    "vmladava.s8 r12, q1, q2\n vmladava.s8 r6, q0, q3\n"

/*
 * The first step of four channels, together with the outputs of the four before, which use the integer unit: sums
 * become q4 and q5, and r7 points to the channels, r11 to 4 bytes before the outputs. The spaces between its parts
 * belong to the roundings below.
 */
#define MLF_DOT_2X4_FIRST(load, next, rounding, zero)                                                                  \
    "vmov q4[2], q4[0], r0, r4\n" load("q0", "r3")                                                                     \
    "vmov q4[3], q4[1], r2, r6\n vldrb.u8 q2, [r1]" next                                                               \
    "vmov q5[2], q5[0], r8, r12\n vmladav.s8 r0, q0, q2\n"                                                             \
    "vmov q5[3], q5[1], r10, lr\n" load##_LENGTH load("q1", "r5") "vmladav.s8 r8, q1, q2\n" load##_ADVANCE             \
    "vldrw.u32 q6, [r7], #16\n vadd.i32 q4, q4, q6\n"                                                                  \
    "vldrb.u8 q3, [r1]" next load##_ADVANCE "vadd.i32 q5, q5, q6\n vmladav.s8 r2, q0, q3\n" MLF_DOT_2X4_LEFT_##rounding\
    "vldrw.u32 q6, [r7], #16\n vqrdmulh.s32 q4, q4, q6\n"                                                              \
    "vldrb.u8 q2, [r1]" next load##_ADVANCE "vqrdmulh.s32 q5, q5, q6\n"                                                \
    "vldrb.s32 q6, [r7], #4\n vmladav.s8 r10, q1, q3\n" MLF_DOT_2X4_SHIFT1_##rounding                                  \
    "vmladav.s8 r4, q0, q2\n" MLF_DOT_2X4_SHIFT2_##rounding                                                            \
    "vldrb.u8 q3, [r1]" next load##_ADVANCE MLF_DOT_2X4_SHIFT3_##rounding "vmladav.s8 r12, q1, q2\n"                   \
    MLF_DOT_2X4_SHIFT4_##rounding "add r11, #4\n" MLF_DOT_2X4_SHIFT5_##rounding "vmladav.s8 r6, q0, q3\n"              \
    MLF_DOT_2X4_SHIFT6_##rounding(zero)
#define MLF_DOT_2X4_ZERO "ldr lr, [sp, #52]\n"
#define MLF_DOT_2X4_STORE(clamp)                                                                                       \
    "strd r7, r11, [sp, #80]\n vqadd.s16 q4, q4, lr\n ldr r7, [sp, #36]\n mov lr, #0\n" MLF_DOT_2X4_CLAMP_##clamp      \
    "vstrb.16 q4, [r11, q7]\n"
#define MLF_DOT_2X4_LOAD(x, pointer) "vldrb.u8 " x ", [" pointer "], #16\n"
#define MLF_DOT_2X4_LOAD_LENGTH
#define MLF_DOT_2X4_LOAD_ADVANCE
#define MLF_DOT_2X4_LOAD_TAIL(x, pointer) "vpst\n vldrbt.u8 " x ", [" pointer "]\n"
#define MLF_DOT_2X4_LOAD_TAIL_LENGTH "ldr lr, [sp, #28]\n"
#define MLF_DOT_2X4_LOAD_TAIL_ADVANCE "add r1, lr\n"

/* Roundings other than RELU use q7 for what they add to negative sums. */
#define MLF_DOT_2X4_LEFT_RELU
#define MLF_DOT_2X4_SHIFT1_RELU "vrshl.s32 q4, q4, q6\n"
#define MLF_DOT_2X4_SHIFT2_RELU "vrshl.s32 q5, q5, q6\n"
#define MLF_DOT_2X4_SHIFT3_RELU
#define MLF_DOT_2X4_SHIFT4_RELU "vqmovnb.s32 q4, q4\n"
#define MLF_DOT_2X4_SHIFT5_RELU
#define MLF_DOT_2X4_SHIFT6_RELU(zero) zero "vqmovnt.s32 q4, q5\n"
#define MLF_DOT_2X4_LEFT_RIGHT
#define MLF_DOT_2X4_SHIFT1_RIGHT "vand q7, q4, q6\n"
#define MLF_DOT_2X4_SHIFT2_RIGHT "vshr.s32 q7, q7, #31\n"
#define MLF_DOT_2X4_SHIFT3_RIGHT "vadd.i32 q4, q4, q7\n"
#define MLF_DOT_2X4_SHIFT4_RIGHT "vand q7, q5, q6\n"
#define MLF_DOT_2X4_SHIFT5_RIGHT "vrshl.s32 q4, q4, q6\n"
#define MLF_DOT_2X4_SHIFT6_RIGHT(zero)                                                                                 \
    "vshr.s32 q7, q7, #31\n" zero "vadd.i32 q5, q5, q7\n vldrh.u16 q7, [sp, #112]\n vqmovnb.s32 q4, q4\n"              \
    "vrshl.s32 q5, q5, q6\n vqmovnt.s32 q4, q5\n"
#define MLF_DOT_2X4_LEFT_ANY                                                                                           \
    "vldrb.s32 q6, [r7, #16]\n vmov.i32 q7, #0\n vmax.s32 q6, q6, q7\n vshl.s32 q4, q4, q6\n vshl.s32 q5, q5, q6\n"
#define MLF_DOT_2X4_SHIFT1_ANY "vmov.i32 q7, #0\n vmin.s32 q6, q6, q7\n" MLF_DOT_2X4_SHIFT1_RIGHT
#define MLF_DOT_2X4_SHIFT2_ANY MLF_DOT_2X4_SHIFT2_RIGHT
#define MLF_DOT_2X4_SHIFT3_ANY MLF_DOT_2X4_SHIFT3_RIGHT
#define MLF_DOT_2X4_SHIFT4_ANY MLF_DOT_2X4_SHIFT4_RIGHT
#define MLF_DOT_2X4_SHIFT5_ANY MLF_DOT_2X4_SHIFT5_RIGHT
#define MLF_DOT_2X4_SHIFT6_ANY MLF_DOT_2X4_SHIFT6_RIGHT
/* ALL is the range of int8. */
#define MLF_DOT_2X4_CLAMP_ALL "vqmovnb.s16 q4, q4\n"
#define MLF_DOT_2X4_CLAMP_BOUNDS                                                                                       \
    "vldrh.u16 q6, [sp, #128]\n vmax.s16 q4, q4, q6\n vldrh.u16 q6, [sp, #144]\n vmin.s16 q4, q4, q6\n"

/*
 * After the first step, the other vectors of the row in r11 iterations of four steps, the first of which is entered in
 * its middle. The address is at sp + 92; for the first group of a pair, it is that of label 7, and of label 8 after
 * the last group. Number and address are at sp + 96 for rows other than the first.
 */
#define MLF_DOT_2X4_VECTORS                                                                                            \
    "ldr r11, [sp, #88]\n ldr pc, [sp, #92]\n"                                                                         \
    "4: .rept 4\n" MLF_DOT_2X4_STEP ".endr\n"                                                                          \
    "5: subs r11, #1\n bne 4b\n"
#define MLF_DOT_2X4_ENTRIES                                                                                            \
    "ldr r1, [sp, #24]\n"                                                                                              \
    "adr.w r2, 5f\n adds r2, #1\n movs r3, #56\n" /* a step has 14 instructions of 4 bytes */                          \
    "and r5, r1, #3\n mls r5, r5, r3, r2\n lsrs r4, r1, #2\n adds r4, #1\n strd r4, r5, [sp, #96]\n"                   \
    "subs r1, #1\n"                                                                                                    \
    "and r5, r1, #3\n mls r5, r5, r3, r2\n lsrs r4, r1, #2\n adds r4, #1\n str r4, [sp, #88]\n str r5, [sp, #104]\n"
#define MLF_DOT_2X4_PREDICATE "ldr r1, [sp, #28]\n vctp.8 r1\n"
#define MLF_DOT_2X4_ROWS_BEGIN "ldr r7, [sp, #16]\n"
#define MLF_DOT_2X4_ROWS_END                                                                                           \
    "subs r7, #1\n beq 6f\n"                                                                                           \
    "ldr r11, [sp, #20]\n add r3, r11\n add r5, r11\n"                                                                 \
    "ldr r11, [sp, #96]\n ldr pc, [sp, #100]\n"                                                                        \
    "6: ldr r7, [sp, #36]\n"

#define MLF_DOT_2X4_PREPARE_VECTORS MLF_DOT_2X4_ENTRIES
#define MLF_DOT_2X4_PREPARE_MIXED MLF_DOT_2X4_PREDICATE MLF_DOT_2X4_ENTRIES
#define MLF_DOT_2X4_PREPARE_TAIL MLF_DOT_2X4_PREDICATE
#define MLF_DOT_2X4_PREPARE_ROWS MLF_DOT_2X4_ENTRIES
#define MLF_DOT_2X4_PREPARE_MIXED_ROWS MLF_DOT_2X4_PREDICATE MLF_DOT_2X4_ENTRIES

#define MLF_DOT_2X4_SUM_VECTORS MLF_DOT_2X4_VECTORS
#define MLF_DOT_2X4_SUM_MIXED MLF_DOT_2X4_VECTORS MLF_DOT_2X4_TAIL
#define MLF_DOT_2X4_SUM_TAIL "beq 7f\n 9:\n"
#define MLF_DOT_2X4_SUM_ROWS MLF_DOT_2X4_ROWS_BEGIN MLF_DOT_2X4_VECTORS MLF_DOT_2X4_ROWS_END
#define MLF_DOT_2X4_SUM_MIXED_ROWS MLF_DOT_2X4_ROWS_BEGIN MLF_DOT_2X4_VECTORS MLF_DOT_2X4_TAIL MLF_DOT_2X4_ROWS_END

#define MLF_DOT_2X4_FIRST_VECTORS(rounding) MLF_DOT_2X4_FIRST(MLF_DOT_2X4_LOAD, ", #16\n", rounding, MLF_DOT_2X4_ZERO)
#define MLF_DOT_2X4_FIRST_MIXED MLF_DOT_2X4_FIRST_VECTORS
#define MLF_DOT_2X4_FIRST_TAIL(rounding) MLF_DOT_2X4_FIRST(MLF_DOT_2X4_LOAD_TAIL, "\n", rounding, MLF_DOT_2X4_ZERO)
#define MLF_DOT_2X4_FIRST_ROWS MLF_DOT_2X4_FIRST_VECTORS
#define MLF_DOT_2X4_FIRST_MIXED_ROWS MLF_DOT_2X4_FIRST_VECTORS

/*
 * How the first group of a pair (BEGIN), what follows its first step (BEGUN) and the outputs of the last group (FLUSH)
 * are reached: by the address at sp + 92; without other vectors by the flag Z and by a negative number of pairs.
 */
#define MLF_DOT_2X4_JUMP(label) "adr.w r11, " label "\n add r11, #1\n str r11, [sp, #92]\n"
#define MLF_DOT_2X4_BEGIN_VECTORS MLF_DOT_2X4_JUMP("7f")
#define MLF_DOT_2X4_BEGIN_MIXED MLF_DOT_2X4_JUMP("7f")
#define MLF_DOT_2X4_BEGIN_TAIL "cmp r3, r3\n"
#define MLF_DOT_2X4_BEGIN_ROWS MLF_DOT_2X4_JUMP("7f")
#define MLF_DOT_2X4_BEGIN_MIXED_ROWS MLF_DOT_2X4_JUMP("7f")
#define MLF_DOT_2X4_CONTINUE "ldr r11, [sp, #104]\n str r11, [sp, #92]\n ldr r11, [sp, #88]\n ldr pc, [sp, #92]\n"
#define MLF_DOT_2X4_BEGUN_VECTORS MLF_DOT_2X4_CONTINUE
#define MLF_DOT_2X4_BEGUN_MIXED MLF_DOT_2X4_CONTINUE
#define MLF_DOT_2X4_BEGUN_TAIL "b 9b\n"
#define MLF_DOT_2X4_BEGUN_ROWS MLF_DOT_2X4_ROWS_BEGIN MLF_DOT_2X4_CONTINUE
#define MLF_DOT_2X4_BEGUN_MIXED_ROWS MLF_DOT_2X4_ROWS_BEGIN MLF_DOT_2X4_CONTINUE
#define MLF_DOT_2X4_FLUSH_VECTORS MLF_DOT_2X4_JUMP("8f")
#define MLF_DOT_2X4_FLUSH_MIXED MLF_DOT_2X4_JUMP("8f")
#define MLF_DOT_2X4_FLUSH_TAIL                                                                                         \
    "bmi 8f\n ldr r11, [sp, #28]\n add r11, r1, r11, lsl #2\n str r11, [sp, #36]\n movs r7, #1\n"
#define MLF_DOT_2X4_FLUSH_ROWS MLF_DOT_2X4_JUMP("8f")
#define MLF_DOT_2X4_FLUSH_MIXED_ROWS MLF_DOT_2X4_JUMP("8f")

/*
 * On the stack: the struct; at 80 the channels of the last group and 4 bytes before its outputs; at 104 the address
 * after a first step; at 112 the offsets of its outputs; at 128 and 144 the clamp. The outputs "of the group before the
 * first" are written to sp + 160.
 */
#define MLF_DOT_2X4(name, shape, rounding, clamp)                                                                      \
    MLF_NAKED void name(const struct mlf_dot_2x4 *dot MLF_UNUSED)                                                      \
    {                                                                                                                  \
        __asm__(MLF_ENTER "sub sp, #176\n"                                                                             \
                "vldrw.u32 q0, [r0]\n vldrw.u32 q1, [r0, #16]\n vldrw.u32 q2, [r0, #32]\n vldrw.u32 q3, [r0, #48]\n"   \
                "vldrh.u16 q7, [r0, #64]\n"                                                                            \
                "mov r0, sp\n"                                                                                         \
                "vstrw.32 q0, [r0]\n vstrw.32 q1, [r0, #16]\n vstrw.32 q2, [r0, #32]\n vstrw.32 q3, [r0, #48]\n"       \
                "ldrd r1, r3, [sp, #56]\n vdup.16 q0, r1\n vdup.16 q1, r3\n"                                           \
                "vstrh.16 q7, [r0, #64]\n movs r2, #0\n vidup.u16 q7, r2, #1\n vstrh.16 q7, [r0, #112]\n"              \
                "vstrh.16 q0, [r0, #128]\n vstrh.16 q1, [r0, #144]\n" MLF_DOT_2X4_PREPARE_##shape                      \
                "ldr r7, [sp, #40]\n add r11, sp, #156\n strd r7, r11, [sp, #80]\n"                                    \
                "ldrd r3, r5, [sp]\n"                                                                                  \
                "1: " MLF_DOT_2X4_BEGIN_##shape "ldr r1, [sp, #32]\n ldrd r7, r11, [sp, #80]\n"                        \
                "2: " MLF_DOT_2X4_FIRST_##shape(rounding) MLF_DOT_2X4_STORE(clamp) MLF_DOT_2X4_SUM_##shape             \
                "ldrd r3, r5, [sp]\n" MLF_DOT_2X4_LAST "cmp r1, r7\n ldrd r7, r11, [sp, #80]\n bne 2b\n"               \
                "ldr r11, [sp, #8]\n subs r11, #1\n str r11, [sp, #8]\n ble 3f\n"                                      \
                "ldr r11, [sp, #12]\n add r3, r11\n add r5, r11\n strd r3, r5, [sp]\n"                                 \
                "ldrd r1, r11, [sp, #44]\n add r1, r11\n str r1, [sp, #44]\n b 1b\n"                                   \
                "3: ldr r1, [sp, #32]\n" MLF_DOT_2X4_FLUSH_##shape "ldrd r7, r11, [sp, #80]\n b 2b\n"                  \
                "7: ldrd r7, r11, [sp, #40]\n sub r11, #4\n strd r7, r11, [sp, #80]\n"                                 \
                "vldrh.u16 q7, [sp, #64]\n vstrh.16 q7, [sp, #112]\n ldr r7, [sp, #36]\n" MLF_DOT_2X4_BEGUN_##shape    \
                "8: add sp, #176\n" MLF_LEAVE);                                                                        \
    }

#else

/* The same in C, for all shapes and roundings. */

/* Add the products of a piece of memory with the weights of four channels; return the address after the weights. */
MLF_KERNEL const int8_t *mlf_dot_1x4_row(uint32_t sums[4], const int8_t *input, const int8_t *weights, int32_t vectors,
                                         int32_t tail)
{
    for (int32_t start = 0; start <= vectors * 16; start += 16) {
        const int32_t count = start < vectors * 16 ? 16 : tail;
        for (int32_t channel = 0; channel < 4; channel++, weights += count) {
            for (int32_t i = 0; i < count; i++) {
                sums[channel] += (uint32_t)(input[start + i] * weights[i]);
            }
        }
    }
    return weights;
}

/* Four channels of a pixel; return the address after the weights. */
MLF_KERNEL const int8_t *mlf_dot_1x4_window(uint32_t sums[4], const struct mlf_dot_2x4 *dot, const int8_t *input,
                                            const int8_t *weights)
{
    for (int32_t row = 0; row < dot->rows; row++) {
        weights = mlf_dot_1x4_row(sums, input, weights, dot->vectors, dot->tail);
        input += dot->vectors * 16 + dot->gap;
    }
    return weights;
}

/* One line of pairs. */
MLF_KERNEL void mlf_dot_2x4_line(const struct mlf_dot_2x4 *dot, const int8_t *first_pixel, const int8_t *second_pixel,
                                 int8_t *line)
{
    for (int32_t pair = 0; pair < dot->pairs; pair++) {
        const int8_t *weights = dot->weights;
        const struct mlf_channels4 *channels = dot->channels;
        int8_t *output = line + pair * dot->output_step;
        for (; weights != dot->weights_end; channels++, output += 4) {
            uint32_t first[4] = {0, 0, 0, 0};
            uint32_t second[4] = {0, 0, 0, 0};
            mlf_dot_1x4_window(first, dot, first_pixel + pair * dot->step, weights);
            weights = mlf_dot_1x4_window(second, dot, second_pixel + pair * dot->step, weights);
            for (int32_t c = 0; c < 4; c++) {
                output[dot->scatter[c] & 0xffff] =
                    mlf_requantize_lane(first[c], channels, c, dot->zero_point, dot->minimum, dot->maximum);
                output[dot->scatter[c] >> 16] =
                    mlf_requantize_lane(second[c], channels, c, dot->zero_point, dot->minimum, dot->maximum);
            }
        }
    }
}

MLF_SHARED void mlf_dot_2x4_in_c(const struct mlf_dot_2x4 *dot)
{
    static const struct mlf_dot_2x4_lines single = {0, 0, 0};
    const struct mlf_dot_2x4_lines *const lines = dot->lines != NULL ? dot->lines : &single;
    for (int32_t line = 0; line <= lines->count; line++) {
        mlf_dot_2x4_line(dot, dot->first + line * lines->step, dot->second + line * lines->step,
                         dot->output + line * lines->output_step);
    }
}

#define MLF_DOT_2X4(name, shape, rounding, clamp)                                                                      \
    MLF_KERNEL void name(const struct mlf_dot_2x4 *dot)                                                                \
    {                                                                                                                  \
        mlf_dot_2x4_in_c(dot);                                                                                         \
    }

#endif /* MLF_MVE */

MLF_DOT_2X4(mlf_dot_2x4_vectors_all, VECTORS, RELU, ALL)
MLF_DOT_2X4(mlf_dot_2x4_vectors_relu, VECTORS, RELU, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_vectors_right, VECTORS, RIGHT, ALL)
MLF_DOT_2X4(mlf_dot_2x4_vectors_any, VECTORS, ANY, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_mixed_all, MIXED, RELU, ALL)
MLF_DOT_2X4(mlf_dot_2x4_mixed_relu, MIXED, RELU, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_mixed_right, MIXED, RIGHT, ALL)
MLF_DOT_2X4(mlf_dot_2x4_mixed_any, MIXED, ANY, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_tail_all, TAIL, RELU, ALL)
MLF_DOT_2X4(mlf_dot_2x4_tail_relu, TAIL, RELU, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_tail_right, TAIL, RIGHT, ALL)
MLF_DOT_2X4(mlf_dot_2x4_tail_any, TAIL, ANY, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_rows_all, ROWS, RELU, ALL)
MLF_DOT_2X4(mlf_dot_2x4_rows_relu, ROWS, RELU, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_rows_right, ROWS, RIGHT, ALL)
MLF_DOT_2X4(mlf_dot_2x4_rows_any, ROWS, ANY, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_mixed_rows_all, MIXED_ROWS, RELU, ALL)
MLF_DOT_2X4(mlf_dot_2x4_mixed_rows_relu, MIXED_ROWS, RELU, BOUNDS)
MLF_DOT_2X4(mlf_dot_2x4_mixed_rows_right, MIXED_ROWS, RIGHT, ALL)
MLF_DOT_2X4(mlf_dot_2x4_mixed_rows_any, MIXED_ROWS, ANY, BOUNDS)

#endif /* MLF_DOT_2X4_MVE_H_ */
