/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ADD of int8 tensors of equal shape on Helium (MVE), 8 elements in 26 instructions.
 *
 * add.h rounds each input twice when it is rescaled to the common scale, a millionth of an output step; this kernel
 * rounds once. The compiler uses it only if the outputs for all 65,536 pairs of inputs are equal.
 * RELU and RIGHT are those of requantize_mve.h.
 */
#ifndef MLF_ADD_MVE_H_
#define MLF_ADD_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize_mve.h"

/* An input x is x * factor + offset times multiplier; their sum is shifted right by -shift. */
struct mlf_add_mve {
    int32_t first_offset;
    int32_t second_offset;
    int32_t first_multiplier;
    int32_t second_multiplier;
    int32_t output_multiplier;
    int32_t shift;
    int32_t zero_point;
    int32_t first_factor;
    int32_t second_factor;
    int32_t minimum;
    int32_t maximum;
};

typedef void (*mlf_add_function)(const struct mlf_add_mve *add, const int8_t *first, const int8_t *second,
                                 int8_t *output, int32_t eights);

MLF_KERNEL int8_t mlf_add_element_mve(const struct mlf_add_mve *add, int8_t first, int8_t second, int32_t away)
{
    const int32_t a = mlf_high_multiply(first * add->first_factor + add->first_offset, add->first_multiplier);
    const int32_t b = mlf_high_multiply(second * add->second_factor + add->second_offset, add->second_multiplier);
    const int32_t sum = mlf_high_multiply(a + b, add->output_multiplier);
    const int32_t lowered = sum + (away ? sum >> 31 : 0);
    const int32_t shifted = ((lowered >> (-add->shift - 1)) + 1) >> 1;
    return (int8_t)mlf_clamp(mlf_clamp(shifted, INT16_MIN, INT16_MAX) + add->zero_point, add->minimum, add->maximum);
}

#if defined(MLF_MVE)

/* Rescaling the sum x; y is scratch. */
#define MLF_ADD_SHIFT_RELU(x, y) "vrshl.s32 " x ", r11\n"
#define MLF_ADD_SHIFT_RIGHT(x, y)                                                                                      \
    "vshr.s32 " y ", " x ", #31\n vadd.i32 " x ", " x ", " y "\n" MLF_ADD_SHIFT_RELU(x, y)
/* Eight sums; loads, multiplications and other arithmetic alternate, because they overlap. */
#define MLF_ADD_EIGHT(shift)                                                                                           \
    "vldrb.s32 q0, [r1], #4\n vmlas.s32 q0, q4, r4\n"                                                                  \
    "vldrb.s32 q1, [r2], #4\n vmlas.s32 q1, q5, r5\n"                                                                  \
    "vldrb.s32 q2, [r1], #4\n vqrdmulh.s32 q0, q0, r6\n vqrdmulh.s32 q1, q1, r7\n vmlas.s32 q2, q4, r4\n"              \
    "vadd.i32 q0, q0, q1\n vldrb.s32 q1, [r2], #4\n vqrdmulh.s32 q0, q0, r8\n vmlas.s32 q1, q5, r5\n"                  \
    "vqrdmulh.s32 q2, q2, r6\n vqrdmulh.s32 q1, q1, r7\n vadd.i32 q2, q2, q1\n"                                        \
    shift("q0", "q1") "vqrdmulh.s32 q2, q2, r8\n vqmovnb.s32 q0, q0\n" shift("q2", "q1") "vqmovnt.s32 q0, q2\n"

#define MLF_ADD(name, rounding, away)                                                                                  \
    MLF_NAKED void name(const struct mlf_add_mve *add MLF_UNUSED, const int8_t *first MLF_UNUSED,                      \
                      const int8_t *second MLF_UNUSED, int8_t *output MLF_UNUSED, int32_t eights MLF_UNUSED)           \
    {                                                                                                                  \
        __asm__(MLF_ENTER "ldr lr, [sp, #104]\n"                                                                       \
                "ldrd r4, r5, [r0, #28]\n vdup.32 q4, r4\n vdup.32 q5, r5\n"                                           \
                "ldrd r4, r5, [r0, #36]\n vdup.16 q6, r4\n vdup.16 q7, r5\n"                                           \
                "ldrd r4, r5, [r0]\n ldrd r6, r7, [r0, #8]\n ldrd r8, r11, [r0, #16]\n ldr r10, [r0, #24]\n"           \
                "movs r0, #0\n vidup.u32 q0, r0, #1\n vmov.i32 q3, #0x40000\n vorr q3, q3, q0\n"                       \
                "vshl.i32 q0, q0, #16\n vorr q3, q3, q0\n" /* 0 4 1 5 2 6 3 7 */                                       \
                "dls lr, lr\n"                                                                                         \
                "1:\n" MLF_ADD_EIGHT(MLF_ADD_SHIFT_##rounding)                                                         \
                "vqadd.s16 q0, q0, r10\n vmax.s16 q0, q0, q6\n vmin.s16 q0, q0, q7\n"                                  \
                "vstrb.16 q0, [r3, q3]\n adds r3, #8\n"                                                                \
                "le lr, 1b\n" MLF_LEAVE);                                                                              \
    }

#else

#define MLF_ADD(name, rounding, away)                                                                                  \
    MLF_KERNEL void name(const struct mlf_add_mve *add, const int8_t *first, const int8_t *second, int8_t *output,     \
                         int32_t eights)                                                                               \
    {                                                                                                                  \
        for (int32_t i = 0; i < 8 * eights; i++) {                                                                     \
            output[i] = mlf_add_element_mve(add, first[i], second[i], away);                                           \
        }                                                                                                              \
    }

#endif /* MLF_MVE */

MLF_ADD(mlf_add_relu, RELU, 0)
MLF_ADD(mlf_add_right, RIGHT, 1)

/* `away` is 0 with mlf_add_relu and 1 with mlf_add_right. */
MLF_SHARED void mlf_add_int8_mve(const struct mlf_add_mve *add, mlf_add_function eights, int32_t away, int32_t count,
                                 const int8_t *first, const int8_t *second, int8_t *output)
{
    if (count >= 8) {
        eights(add, first, second, output, count / 8);
    }
    for (int32_t i = count - count % 8; i < count; i++) {
        output[i] = mlf_add_element_mve(add, first[i], second[i], away);
    }
}

#endif /* MLF_ADD_MVE_H_ */
