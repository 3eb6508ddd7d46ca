/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-kernels of int8 convolutions on Helium (MVE).
 *
 * mlf_gemm_*: two pixels times all output channels, four channels at a time. The eight sums stay in the even core
 * registers, to which VMLADAVA adds 16 products at once: 2 loads of pixels, 4 of weights and 8 VMLADAVA for 128
 * products, and about 28 further instructions for 8 outputs, 20 of which gather, rescale and store.
 *
 * A pixel's window consists of `rows` pieces of memory of 16 * `vectors` + `tail` bytes, read in place. Weights are in
 * the order in which they are read: for every four channels and every row, first 16 bytes of each channel for each
 * vector, then `tail` bytes of each. Up to 15 bytes after the last tail are read.
 *
 * In names, VECTORS has no tail, TAIL no vector and MIXED both, all with one row; ROWS and MIXED_ROWS have any number
 * of rows. RELU, RIGHT and ANY are those of requantize_mve.h.
 */
#ifndef MLF_GEMM_MVE_H_
#define MLF_GEMM_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize_mve.h"

/* Pixels times weights; assembly accesses the members by position. */
struct mlf_gemm {
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
    uint16_t scatter[8]; /* bytes from `output` to channel c of the first pixel at 2 * c, of the second after it */
};

typedef void (*mlf_gemm_function)(const struct mlf_gemm *gemm);

#if defined(MLF_MVE)

/* r3 and r5 point to the pixels, r1 to the weights; `multiply` is VMLADAV for the first products of a sum. */
#define MLF_GEMM_STEP(multiply)                                                                                        \
    "vldrb.u8 q0, [r3], #16\n"                                                                                         \
    "vldrb.u8 q2, [r1], #16\n" multiply " r0, q0, q2\n"                                                                \
    "vldrb.u8 q1, [r5], #16\n" multiply " r8, q1, q2\n"                                                                \
    "vldrb.u8 q3, [r1], #16\n" multiply " r2, q0, q3\n" multiply " r10, q1, q3\n"                                      \
    "vldrb.u8 q2, [r1], #16\n" multiply " r4, q0, q2\n" multiply " r12, q1, q2\n"                                      \
    "vldrb.u8 q3, [r1], #16\n" multiply " r6, q0, q3\n" multiply " lr, q1, q3\n"

/* Bytes of the pixels beyond the tail count as 0, so that the bytes read as their weights have no effect. */
#define MLF_GEMM_TAIL(multiply)                                                                                        \
    "ldr r9, [sp, #28]\n"                                                                                              \
    "vpstt\n"                                                                                                          \
    "vldrbt.u8 q0, [r3]\n"                                                                                             \
    "vldrbt.u8 q1, [r5]\n"                                                                                             \
    "vldrb.u8 q2, [r1]\n add r1, r9\n" multiply " r0, q0, q2\n" multiply " r8, q1, q2\n"                               \
    "vldrb.u8 q3, [r1]\n add r1, r9\n" multiply " r2, q0, q3\n" multiply " r10, q1, q3\n"                              \
    "vldrb.u8 q2, [r1]\n add r1, r9\n" multiply " r4, q0, q2\n" multiply " r12, q1, q2\n"                              \
    "vldrb.u8 q3, [r1]\n add r1, r9\n" multiply " r6, q0, q3\n" multiply " lr, q1, q3\n"

/*
 * The loop over the vectors of a row is entered in its middle, so that four steps are one iteration. The entry and the
 * number of iterations are at sp + 64 for the first row, whose first step is before the loop, else at sp + 72.
 */
#define MLF_GEMM_VECTORS_LOOP                                                                                          \
    "ldr r9, [sp, #64]\n" MLF_GEMM_STEP("vmladav.s8")                                                                  \
    "ldr pc, [sp, #68]\n"                                                                                              \
    "4: .rept 4\n" MLF_GEMM_STEP("vmladava.s8") ".endr\n"                                                              \
    "5: subs r9, #1\n bne 4b\n"
#define MLF_GEMM_ENTRIES                                                                                               \
    "ldr r1, [sp, #24]\n"                                                                                              \
    "adr.w r2, 5f\n adds r2, #1\n movs r3, #56\n" /* a step has 14 instructions of 4 bytes */                          \
    "and r5, r1, #3\n mls r5, r5, r3, r2\n lsrs r4, r1, #2\n adds r4, #1\n strd r4, r5, [sp, #72]\n"                   \
    "subs r1, #1\n"                                                                                                    \
    "and r5, r1, #3\n mls r5, r5, r3, r2\n lsrs r4, r1, #2\n adds r4, #1\n strd r4, r5, [sp, #64]\n"
#define MLF_GEMM_PREDICATE "ldr r1, [sp, #28]\n vctp.8 r1\n"

/* If r7 and r11 count rows, the channels and the output are saved at sp + 80. */
#define MLF_GEMM_ROWS_BEGIN "ldrd r7, r11, [sp, #16]\n"
#define MLF_GEMM_ROWS_END                                                                                              \
    "subs r7, #1\n beq 6f\n"                                                                                           \
    "add r3, r11\n add r5, r11\n"                                                                                      \
    "ldr r9, [sp, #72]\n ldr pc, [sp, #76]\n"                                                                          \
    "6: ldrd r7, r11, [sp, #80]\n"
#define MLF_GEMM_SAVE "strd r7, r11, [sp, #80]\n"

#define MLF_GEMM_PREPARE_VECTORS MLF_GEMM_ENTRIES
#define MLF_GEMM_PREPARE_MIXED MLF_GEMM_PREDICATE MLF_GEMM_ENTRIES
#define MLF_GEMM_PREPARE_TAIL MLF_GEMM_PREDICATE
#define MLF_GEMM_PREPARE_ROWS MLF_GEMM_ENTRIES
#define MLF_GEMM_PREPARE_MIXED_ROWS MLF_GEMM_PREDICATE MLF_GEMM_ENTRIES

#define MLF_GEMM_SUM_VECTORS MLF_GEMM_VECTORS_LOOP
#define MLF_GEMM_SUM_MIXED MLF_GEMM_VECTORS_LOOP MLF_GEMM_TAIL("vmladava.s8")
#define MLF_GEMM_SUM_TAIL MLF_GEMM_TAIL("vmladav.s8")
#define MLF_GEMM_SUM_ROWS MLF_GEMM_ROWS_BEGIN MLF_GEMM_VECTORS_LOOP MLF_GEMM_ROWS_END
#define MLF_GEMM_SUM_MIXED_ROWS                                                                                        \
    MLF_GEMM_ROWS_BEGIN MLF_GEMM_VECTORS_LOOP MLF_GEMM_TAIL("vmladava.s8") MLF_GEMM_ROWS_END

#define MLF_GEMM_KEEP_VECTORS
#define MLF_GEMM_KEEP_MIXED
#define MLF_GEMM_KEEP_TAIL
#define MLF_GEMM_KEEP_ROWS MLF_GEMM_SAVE
#define MLF_GEMM_KEEP_MIXED_ROWS MLF_GEMM_SAVE

/* r7 points to the channels, r11 to the output, r9 counts vectors. The struct is copied to the stack. */
#define MLF_GEMM(name, shape, rounding)                                                                                \
    MLF_NAKED void name(const struct mlf_gemm *gemm MLF_UNUSED)                                                        \
    {                                                                                                                  \
        __asm__(MLF_ENTER "sub sp, #88\n"                                                                              \
                "vldrw.u32 q0, [r0]\n vldrw.u32 q1, [r0, #16]\n vldrw.u32 q2, [r0, #32]\n vldrw.u32 q3, [r0, #48]\n"   \
                "vldrh.u16 q7, [r0, #64]\n"                                                                            \
                "mov r0, sp\n"                                                                                         \
                "vstrw.32 q0, [r0]\n vstrw.32 q1, [r0, #16]\n vstrw.32 q2, [r0, #32]\n vstrw.32 q3, [r0, #48]\n"       \
                "ldrd r1, r2, [sp, #52]\n ldr r3, [sp, #60]\n"                                                         \
                "vdup.16 q4, r1\n vdup.16 q5, r2\n vdup.16 q6, r3\n" MLF_GEMM_PREPARE_##shape                          \
                "1: ldr r1, [sp, #32]\n"                                                                               \
                "ldrd r7, r11, [sp, #40]\n" MLF_GEMM_KEEP_##shape                                                      \
                "2: ldrd r3, r5, [sp]\n" MLF_GEMM_SUM_##shape MLF_SUMS_TO_VECTORS                                      \
                MLF_RESCALE_##rounding(MLF_BOTH, "r7") MLF_STORE_OUTPUTS                                               \
                "add r11, #4\n" MLF_GEMM_KEEP_##shape                                                                  \
                "ldr r9, [sp, #36]\n cmp r1, r9\n bne 2b\n"                                                            \
                "ldrd r3, r5, [sp]\n ldrd r0, r1, [sp, #8]\n"                                                          \
                "add r3, r1\n add r5, r1\n strd r3, r5, [sp]\n"                                                        \
                "ldrd r2, r3, [sp, #44]\n add r2, r3\n str r2, [sp, #44]\n"                                            \
                "subs r0, #1\n str r0, [sp, #8]\n bne 1b\n"                                                            \
                "add sp, #88\n" MLF_LEAVE);                                                                            \
    }

#else

/* The same in C, for all shapes and roundings. */

/* Add the products of a piece of memory with the weights of four channels; return the address after the weights. */
MLF_KERNEL const int8_t *mlf_gemm_row(uint32_t sums[4], const int8_t *input, const int8_t *weights, int32_t vectors,
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
MLF_KERNEL const int8_t *mlf_gemm_window(uint32_t sums[4], const struct mlf_gemm *gemm, const int8_t *input,
                                         const int8_t *weights)
{
    for (int32_t row = 0; row < gemm->rows; row++) {
        weights = mlf_gemm_row(sums, input, weights, gemm->vectors, gemm->tail);
        input += gemm->vectors * 16 + gemm->gap;
    }
    return weights;
}

MLF_SHARED void mlf_gemm_portable(const struct mlf_gemm *gemm)
{
    for (int32_t pair = 0; pair < gemm->pairs; pair++) {
        const int8_t *weights = gemm->weights;
        const struct mlf_channels4 *channels = gemm->channels;
        int8_t *output = gemm->output + pair * gemm->output_step;
        for (; weights != gemm->weights_end; channels++, output += 4) {
            uint32_t first[4] = {0, 0, 0, 0};
            uint32_t second[4] = {0, 0, 0, 0};
            mlf_gemm_window(first, gemm, gemm->first + pair * gemm->step, weights);
            weights = mlf_gemm_window(second, gemm, gemm->second + pair * gemm->step, weights);
            for (int32_t c = 0; c < 4; c++) {
                output[gemm->scatter[2 * c]] =
                    mlf_requantize_lane(first[c], channels, c, gemm->zero_point, gemm->minimum, gemm->maximum);
                output[gemm->scatter[2 * c + 1]] =
                    mlf_requantize_lane(second[c], channels, c, gemm->zero_point, gemm->minimum, gemm->maximum);
            }
        }
    }
}

#define MLF_GEMM(name, shape, rounding)                                                                                \
    MLF_KERNEL void name(const struct mlf_gemm *gemm)                                                                  \
    {                                                                                                                  \
        mlf_gemm_portable(gemm);                                                                                       \
    }

#endif /* MLF_MVE */

MLF_GEMM(mlf_gemm_vectors_relu, VECTORS, RELU)
MLF_GEMM(mlf_gemm_vectors_right, VECTORS, RIGHT)
MLF_GEMM(mlf_gemm_vectors_any, VECTORS, ANY)
MLF_GEMM(mlf_gemm_mixed_relu, MIXED, RELU)
MLF_GEMM(mlf_gemm_mixed_right, MIXED, RIGHT)
MLF_GEMM(mlf_gemm_mixed_any, MIXED, ANY)
MLF_GEMM(mlf_gemm_tail_relu, TAIL, RELU)
MLF_GEMM(mlf_gemm_tail_right, TAIL, RIGHT)
MLF_GEMM(mlf_gemm_tail_any, TAIL, ANY)
MLF_GEMM(mlf_gemm_rows_relu, ROWS, RELU)
MLF_GEMM(mlf_gemm_rows_right, ROWS, RIGHT)
MLF_GEMM(mlf_gemm_rows_any, ROWS, ANY)
MLF_GEMM(mlf_gemm_mixed_rows_relu, MIXED_ROWS, RELU)
MLF_GEMM(mlf_gemm_mixed_rows_right, MIXED_ROWS, RIGHT)
MLF_GEMM(mlf_gemm_mixed_rows_any, MIXED_ROWS, ANY)


#endif /* MLF_GEMM_MVE_H_ */
