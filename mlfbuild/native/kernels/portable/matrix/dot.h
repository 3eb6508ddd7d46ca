/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Inner products over contiguous memory, for one output channel or for four that share the loads of the input.
 *
 * The weights of output channel c start at weights + c * pitch. Sums of float32 are added in the order of the inputs,
 * or on cores with scalar fused multiply-add in two halves, those of even and of odd inputs.
 */
#ifndef MLF_DOT_H_
#define MLF_DOT_H_

#include <stdint.h>

#include "compiler.h"

/* The FPU of Cortex-M: 32 registers, and fused multiply-add. */
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_FMA) && (__ARM_FP & 4) != 0 &&                   \
    !defined(__SOFTFP__) && !defined(__ARM_BIG_ENDIAN)
#define MLF_VFP_ASM 1
#else
#define MLF_VFP_ASM 0
#endif

MLF_KERNEL uint32_t mlf_dot_int8(uint32_t sum, const int8_t *input, const int8_t *weights, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum += (uint32_t)(input[i] * weights[i]);
    }
    return sum;
}

MLF_KERNEL struct mlf_int32x4 mlf_dot_1x4_int8(struct mlf_int32x4 sum, const int8_t *input, const int8_t *weights,
                                               int32_t pitch, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = input[i];
        sum.v0 += (uint32_t)(value * weights[i]);
        sum.v1 += (uint32_t)(value * weights[i + pitch]);
        sum.v2 += (uint32_t)(value * weights[i + 2 * pitch]);
        sum.v3 += (uint32_t)(value * weights[i + 3 * pitch]);
    }
    return sum;
}

/* As mlf_dot_int8 with an input that is `value` everywhere, for the padding of an image. */
MLF_KERNEL uint32_t mlf_fill_int8(uint32_t sum, int32_t value, const int8_t *weights, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum += (uint32_t)(value * weights[i]);
    }
    return sum;
}

MLF_KERNEL struct mlf_int32x4 mlf_fill_1x4_int8(struct mlf_int32x4 sum, int32_t value, const int8_t *weights,
                                                int32_t pitch, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum.v0 += (uint32_t)(value * weights[i]);
        sum.v1 += (uint32_t)(value * weights[i + pitch]);
        sum.v2 += (uint32_t)(value * weights[i + 2 * pitch]);
        sum.v3 += (uint32_t)(value * weights[i + 3 * pitch]);
    }
    return sum;
}

MLF_KERNEL float mlf_dot_float(float sum, const float *input, const float *weights, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum += input[i] * weights[i];
    }
    return sum;
}

MLF_KERNEL struct mlf_float32x4 mlf_dot_1x4_in_c_float(struct mlf_float32x4 sum, const float *input,
                                                       const float *weights, int32_t pitch, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const float value = input[i];
        sum.v0 += value * weights[i];
        sum.v1 += value * weights[i + pitch];
        sum.v2 += value * weights[i + 2 * pitch];
        sum.v3 += value * weights[i + 3 * pitch];
    }
    return sum;
}

#if MLF_VFP_ASM

/* Input i times its weights of two channels, in s8 to s15 and s16 to s23, added to sums that the next input spares. */
#define MLF_DOT_1X2_VFP(sum, next, i, first, second)                                                                   \
    "vfma.f32 %[" sum "], s" #first ", s" #i "\n\t"                                                                    \
    "vfma.f32 %[" next "], s" #second ", s" #i "\n\t"
#define MLF_DOT_8_INPUTS_VFP(a, b, c, d)                                                                               \
    MLF_DOT_1X2_VFP(a, b, 0, 8, 16) MLF_DOT_1X2_VFP(c, d, 1, 9, 17) MLF_DOT_1X2_VFP(a, b, 2, 10, 18)                   \
    MLF_DOT_1X2_VFP(c, d, 3, 11, 19) MLF_DOT_1X2_VFP(a, b, 4, 12, 20) MLF_DOT_1X2_VFP(c, d, 5, 13, 21)                 \
    MLF_DOT_1X2_VFP(a, b, 6, 14, 22) MLF_DOT_1X2_VFP(c, d, 7, 15, 23)

/*
 * Eight inputs per round of 39 instructions, 1.22 for a product: VLDM loads eight weights of a channel. Odd inputs have
 * sums of their own, so that four products are under way at a time.
 */
MLF_KERNEL struct mlf_float32x4 mlf_dot_1x4_float(struct mlf_float32x4 sum, const float *input, const float *weights,
                                                  int32_t pitch, int32_t count)
{
    int32_t rounds = count / 8;
    if (rounds > 0) {
        struct mlf_float32x4 odd = {0.0f, 0.0f, 0.0f, 0.0f};
        const float *first = weights;
        const float *second = first + pitch;
        const float *third = second + pitch;
        const float *fourth = third + pitch;
        __asm__ volatile("1:\n\t"
                         "vldmia %[input]!, {s0-s7}\n\t"
                         "vldmia %[w0]!, {s8-s15}\n\t"
                         "vldmia %[w1]!, {s16-s23}\n\t"
                         MLF_DOT_8_INPUTS_VFP("v0", "v1", "o0", "o1")
                         "vldmia %[w2]!, {s8-s15}\n\t"
                         "vldmia %[w3]!, {s16-s23}\n\t"
                         MLF_DOT_8_INPUTS_VFP("v2", "v3", "o2", "o3")
                         "subs %[rounds], #1\n\t"
                         "bne 1b"
                         : [v0] "+t"(sum.v0), [v1] "+t"(sum.v1), [v2] "+t"(sum.v2), [v3] "+t"(sum.v3),
                           [o0] "+t"(odd.v0), [o1] "+t"(odd.v1), [o2] "+t"(odd.v2), [o3] "+t"(odd.v3),
                           [input] "+r"(input), [w0] "+r"(first), [w1] "+r"(second), [w2] "+r"(third),
                           [w3] "+r"(fourth), [rounds] "+r"(rounds)
                         :
                         : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
                           "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "cc", "memory");
        sum.v0 += odd.v0;
        sum.v1 += odd.v1;
        sum.v2 += odd.v2;
        sum.v3 += odd.v3;
        weights = first;
    }
    return mlf_dot_1x4_in_c_float(sum, input, weights, pitch, count % 8);
}

#else

MLF_KERNEL struct mlf_float32x4 mlf_dot_1x4_float(struct mlf_float32x4 sum, const float *input, const float *weights,
                                                  int32_t pitch, int32_t count)
{
    return mlf_dot_1x4_in_c_float(sum, input, weights, pitch, count);
}

#endif

#endif /* MLF_DOT_H_ */
