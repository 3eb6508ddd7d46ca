/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 1x4, four inner products that share the loads of a row: the sums of dot.h and wide_sums.h, those of
 * float32 in another order. The weights of product g start at weights + g * count. Depending on the core:
 *
 *   Helium   16 int8, 8 int16 or 4 float32 per round of 10 instructions, the last round predicated
 *   DSP      4 elements per round: SXTB16 and PKH make words of 16-bit pairs, 0 with 2 and 1 with 3, and SMLAD adds the
 *            products of a pair
 */
#ifndef MLF_DOT_1X4_H_
#define MLF_DOT_1X4_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dot.h"
#include "dsp.h"
#include "wide_sums.h"

#if defined(MLF_MVE)

/* A loop over count elements: `load` loads those of the row, `step` multiplies them with a row of weights. */
#define MLF_DOT_1X4_LOOP(bits, load, step)                                                                             \
    "dlstp." bits " lr, %[count]\n"                                                                                    \
    "1:\n" load " q0, [%[row]], #16\n" step("w0", "s0") step("w1", "s1") step("w2", "s2") step("w3", "s3")             \
    "letp lr, 1b\n"
/* Widening loads take their address from one of the registers r0 to r7, "l". */
#define MLF_DOT_1X4_POINTERS(any)                                                                                      \
    [row] "+r"(row), [w0] "+" any(weights), [w1] "+" any(second), [w2] "+" any(third), [w3] "+" any(fourth)
#define MLF_DOT_1X4_SUMS [s0] "+Te"(v0), [s1] "+Te"(v1), [s2] "+Te"(v2), [s3] "+Te"(v3)

#define MLF_DOT_1X4_STEP_INT8(pointer, sum) "vldrb.u8 q1, [%[" pointer "]], #16\n vmladava.s8 %[" sum "], q0, q1\n"
#define MLF_DOT_1X4_STEP_INT16(pointer, sum) "vldrb.s16 q1, [%[" pointer "]], #8\n vmladava.s16 %[" sum "], q0, q1\n"

MLF_KERNEL struct mlf_int32x4 mlf_dot_1x4_row_int8(struct mlf_int32x4 sum, const int8_t *row, const int8_t *weights,
                                                   int32_t count)
{
    uint32_t v0 = sum.v0;
    uint32_t v1 = sum.v1;
    uint32_t v2 = sum.v2;
    uint32_t v3 = sum.v3;
    const int8_t *second = weights + count;
    const int8_t *third = second + count;
    const int8_t *fourth = third + count;
    __asm__ volatile(MLF_DOT_1X4_LOOP("8", "vldrb.u8", MLF_DOT_1X4_STEP_INT8)
                     : MLF_DOT_1X4_SUMS, MLF_DOT_1X4_POINTERS("r")
                     : [count] "r"(count)
                     : "lr", "q0", "q1", "memory");
    return (struct mlf_int32x4){v0, v1, v2, v3};
}

MLF_KERNEL struct mlf_int64x4 mlf_dot_1x4_row_int16(struct mlf_int64x4 sum, const int16_t *row, const int8_t *weights,
                                                    int32_t count)
{
    const int32_t most = MLF_PRODUCTS_INT16 & ~7;
    const int8_t *second = weights + count;
    const int8_t *third = second + count;
    const int8_t *fourth = third + count;
    for (int32_t rest = count; rest > 0; rest -= most) {
        int32_t v0 = 0;
        int32_t v1 = 0;
        int32_t v2 = 0;
        int32_t v3 = 0;
        __asm__ volatile(MLF_DOT_1X4_LOOP("16", "vldrh.u16", MLF_DOT_1X4_STEP_INT16)
                         : MLF_DOT_1X4_SUMS, MLF_DOT_1X4_POINTERS("l")
                         : [count] "r"(rest < most ? rest : most)
                         : "lr", "q0", "q1", "memory");
        sum.v0 += v0;
        sum.v1 += v1;
        sum.v2 += v2;
        sum.v3 += v3;
    }
    return sum;
}

#elif MLF_DSP_ASM

/* Add four products to sum: even holds the elements 0 and 2 of the row, odd 1 and 3. */
MLF_KERNEL uint32_t mlf_four_products_dsp(uint32_t even, uint32_t odd, const int8_t *weights, uint32_t sum)
{
    uint32_t word;
    uint32_t pair;
    memcpy(&word, weights, sizeof word);
    __asm__("sxtb16 %[pair], %[word]\n\t"
            "smlad %[sum], %[even], %[pair], %[sum]\n\t"
            "sxtb16 %[pair], %[word], ror #8\n\t"
            "smlad %[sum], %[odd], %[pair], %[sum]"
            : [sum] "+r"(sum), [pair] "=&r"(pair)
            : [word] "r"(word), [even] "r"(even), [odd] "r"(odd));
    return sum;
}

MLF_KERNEL struct mlf_int32x4 mlf_dot_1x4_row_int8(struct mlf_int32x4 sum, const int8_t *row, const int8_t *weights,
                                                   int32_t count)
{
    const int32_t whole = count & ~3;
    for (int32_t i = 0; i < whole; i += 4) {
        uint32_t word;
        uint32_t even;
        uint32_t odd;
        memcpy(&word, row + i, sizeof word);
        __asm__("sxtb16 %0, %2\n\t"
                "sxtb16 %1, %2, ror #8"
                : "=&r"(even), "=r"(odd)
                : "r"(word));
        sum.v0 = mlf_four_products_dsp(even, odd, weights + i, sum.v0);
        sum.v1 = mlf_four_products_dsp(even, odd, weights + i + count, sum.v1);
        sum.v2 = mlf_four_products_dsp(even, odd, weights + i + 2 * count, sum.v2);
        sum.v3 = mlf_four_products_dsp(even, odd, weights + i + 3 * count, sum.v3);
    }
    return mlf_dot_1x4_int8(sum, row + whole, weights + whole, count, count - whole);
}

MLF_KERNEL struct mlf_int64x4 mlf_dot_1x4_row_int16(struct mlf_int64x4 sum, const int16_t *row, const int8_t *weights,
                                                    int32_t count)
{
    const int32_t most = MLF_PRODUCTS_INT16 & ~3;
    const int32_t whole = count & ~3;
    for (int32_t start = 0; start < whole; start += most) {
        const int32_t end = whole - start > most ? start + most : whole;
        struct mlf_int32x4 part = {0, 0, 0, 0};
        for (int32_t i = start; i < end; i += 4) {
            uint32_t words[2];
            uint32_t even;
            uint32_t odd;
            memcpy(words, row + i, sizeof words);
            __asm__("pkhbt %0, %2, %3, lsl #16\n\t"
                    "pkhtb %1, %3, %2, asr #16"
                    : "=&r"(even), "=r"(odd)
                    : "r"(words[0]), "r"(words[1]));
            part.v0 = mlf_four_products_dsp(even, odd, weights + i, part.v0);
            part.v1 = mlf_four_products_dsp(even, odd, weights + i + count, part.v1);
            part.v2 = mlf_four_products_dsp(even, odd, weights + i + 2 * count, part.v2);
            part.v3 = mlf_four_products_dsp(even, odd, weights + i + 3 * count, part.v3);
        }
        sum.v0 += (int32_t)part.v0;
        sum.v1 += (int32_t)part.v1;
        sum.v2 += (int32_t)part.v2;
        sum.v3 += (int32_t)part.v3;
    }
    return mlf_dot_1x4_int16(sum, row + whole, weights + whole, count, count - whole);
}

#else

MLF_KERNEL struct mlf_int32x4 mlf_dot_1x4_row_int8(struct mlf_int32x4 sum, const int8_t *row, const int8_t *weights,
                                                   int32_t count)
{
    return mlf_dot_1x4_int8(sum, row, weights, count, count);
}

MLF_KERNEL struct mlf_int64x4 mlf_dot_1x4_row_int16(struct mlf_int64x4 sum, const int16_t *row, const int8_t *weights,
                                                    int32_t count)
{
    return mlf_dot_1x4_int16(sum, row, weights, count, count);
}

#endif

#if defined(MLF_MVE_FLOAT)

#define MLF_DOT_1X4_STEP_FLOAT(pointer, sum) "vldrw.u32 q1, [%[" pointer "]], #16\n vfma.f32 " sum ", q0, q1\n"

MLF_KERNEL struct mlf_float32x4 mlf_dot_1x4_row_float(struct mlf_float32x4 sum, const float *row, const float *weights,
                                                      int32_t count)
{
    const float *second = weights + count;
    const float *third = second + count;
    const float *fourth = third + count;
    float parts[4][4];
    __asm__ volatile("vmov.i32 q2, #0\n vmov.i32 q3, #0\n vmov.i32 q4, #0\n vmov.i32 q5, #0\n"
                     "dlstp.32 lr, %[count]\n"
                     "1:\n vldrw.u32 q0, [%[row]], #16\n"
                     MLF_DOT_1X4_STEP_FLOAT("w0", "q2") MLF_DOT_1X4_STEP_FLOAT("w1", "q3")
                     MLF_DOT_1X4_STEP_FLOAT("w2", "q4") MLF_DOT_1X4_STEP_FLOAT("w3", "q5")
                     "letp lr, 1b\n"
                     "vstrw.32 q2, [%[parts]]\n vstrw.32 q3, [%[parts], #16]\n"
                     "vstrw.32 q4, [%[parts], #32]\n vstrw.32 q5, [%[parts], #48]\n"
                     : MLF_DOT_1X4_POINTERS("r")
                     : [count] "r"(count), [parts] "r"(parts)
                     : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "memory");
    sum.v0 += parts[0][0] + parts[0][1] + parts[0][2] + parts[0][3];
    sum.v1 += parts[1][0] + parts[1][1] + parts[1][2] + parts[1][3];
    sum.v2 += parts[2][0] + parts[2][1] + parts[2][2] + parts[2][3];
    sum.v3 += parts[3][0] + parts[3][1] + parts[3][2] + parts[3][3];
    return sum;
}

#else

MLF_KERNEL struct mlf_float32x4 mlf_dot_1x4_row_float(struct mlf_float32x4 sum, const float *row, const float *weights,
                                                      int32_t count)
{
    return mlf_dot_1x4_float(sum, row, weights, count, count);
}

#endif

#endif /* MLF_DOT_1X4_H_ */
