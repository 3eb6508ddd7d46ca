/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The Fourier transforms of fourier.h for int16, on cores with the DSP extension: a complex number is one word.
 *
 * Sums and differences of both parts, also turned by 90 degrees, take one instruction each, a product with a root four:
 * SMLSD and SMLADX with the rounding, and a shift and PKHTB, which put the upper halves together.
 */
#ifndef MLF_FOURIER_DSP_H_
#define MLF_FOURIER_DSP_H_

#include <stdint.h>
#include <string.h>

#include "dsp.h"
#include "fourier.h"

/* The real part is the lower half. */
typedef uint32_t mlf_complex_dsp;

MLF_KERNEL mlf_complex_dsp mlf_load_dsp(const int16_t *from)
{
    mlf_complex_dsp value;
    memcpy(&value, from, sizeof value);
    return value;
}

MLF_KERNEL void mlf_store_bin_dsp(int16_t *to, mlf_complex_dsp value)
{
    memcpy(to, &value, sizeof value);
}

#if MLF_DSP_ASM

/* An instruction with two operands and a result. */
#define MLF_HALVES_DSP(name, instruction)                                                                              \
    MLF_KERNEL mlf_complex_dsp name(mlf_complex_dsp one, mlf_complex_dsp two)                                          \
    {                                                                                                                  \
        mlf_complex_dsp result;                                                                                        \
        __asm__(instruction " %0, %1, %2" : "=r"(result) : "r"(one), "r"(two));                                        \
        return result;                                                                                                 \
    }

/* An instruction that adds products to the rounding, 1 << 14. */
#define MLF_PRODUCT_DSP(name, instruction)                                                                             \
    MLF_KERNEL int32_t name(mlf_complex_dsp one, mlf_complex_dsp two)                                                  \
    {                                                                                                                  \
        int32_t result;                                                                                                \
        __asm__(instruction " %0, %1, %2, %3" : "=r"(result) : "r"(one), "r"(two), "r"(1 << 14));                      \
        return result;                                                                                                 \
    }

MLF_HALVES_DSP(mlf_plus_dsp, "sadd16")
MLF_HALVES_DSP(mlf_minus_dsp, "ssub16")
MLF_HALVES_DSP(mlf_plus_quarter_dsp, "ssax")
MLF_HALVES_DSP(mlf_minus_quarter_dsp, "sasx")
MLF_HALVES_DSP(mlf_low_dsp, "shadd16")
MLF_HALVES_DSP(mlf_half_difference_dsp, "shsub16")
MLF_PRODUCT_DSP(mlf_lower_product_dsp, "smlabb")
MLF_PRODUCT_DSP(mlf_upper_product_dsp, "smlatb")
MLF_PRODUCT_DSP(mlf_real_product_dsp, "smlsd")
MLF_PRODUCT_DSP(mlf_imaginary_product_dsp, "smladx")

/* The number of two sums of products with 15 fraction bits. */
MLF_KERNEL mlf_complex_dsp mlf_shifted_dsp(int32_t real, int32_t imaginary)
{
    mlf_complex_dsp result;
    __asm__("pkhtb %0, %1, %2, asr #15" : "=r"(result) : "r"((uint32_t)imaginary << 1), "r"(real));
    return result;
}

MLF_KERNEL mlf_complex_dsp mlf_joined_dsp(mlf_complex_dsp lower, mlf_complex_dsp upper)
{
    mlf_complex_dsp result;
    __asm__("pkhbt %0, %1, %2" : "=r"(result) : "r"(lower), "r"(upper));
    return result;
}

#else /* the same in C */

MLF_KERNEL int32_t mlf_lower_dsp(mlf_complex_dsp value)
{
    return (int16_t)(uint16_t)value;
}

MLF_KERNEL int32_t mlf_upper_dsp(mlf_complex_dsp value)
{
    return (int16_t)(uint16_t)(value >> 16);
}

#define MLF_HALVES_DSP(name, real, imaginary)                                                                          \
    MLF_KERNEL mlf_complex_dsp name(mlf_complex_dsp one, mlf_complex_dsp two)                                          \
    {                                                                                                                  \
        const int32_t a = mlf_lower_dsp(one), b = mlf_upper_dsp(one), c = mlf_lower_dsp(two), d = mlf_upper_dsp(two);  \
        return ((uint32_t)(real) & 0xFFFFu) | (uint32_t)(imaginary) << 16;                                             \
    }

#define MLF_PRODUCT_DSP(name, sum)                                                                                     \
    MLF_KERNEL int32_t name(mlf_complex_dsp one, mlf_complex_dsp two)                                                  \
    {                                                                                                                  \
        const int32_t a = mlf_lower_dsp(one), b = mlf_upper_dsp(one), c = mlf_lower_dsp(two), d = mlf_upper_dsp(two);  \
        (void)a, (void)b, (void)d;                                                                                     \
        return (sum) + (1 << 14);                                                                                      \
    }

MLF_HALVES_DSP(mlf_plus_dsp, a + c, b + d)
MLF_HALVES_DSP(mlf_minus_dsp, a - c, b - d)
MLF_HALVES_DSP(mlf_plus_quarter_dsp, a + d, b - c)
MLF_HALVES_DSP(mlf_minus_quarter_dsp, a - d, b + c)
MLF_HALVES_DSP(mlf_low_dsp, (a + c) >> 1, (b + d) >> 1)
MLF_HALVES_DSP(mlf_half_difference_dsp, (a - c) >> 1, (b - d) >> 1)
MLF_PRODUCT_DSP(mlf_lower_product_dsp, a * c)
MLF_PRODUCT_DSP(mlf_upper_product_dsp, b * c)
MLF_PRODUCT_DSP(mlf_real_product_dsp, a * c - b * d)
MLF_PRODUCT_DSP(mlf_imaginary_product_dsp, a * d + b * c)

MLF_KERNEL mlf_complex_dsp mlf_shifted_dsp(int32_t real, int32_t imaginary)
{
    return ((uint32_t)(real >> 15) & 0xFFFFu) | (uint32_t)(imaginary >> 15) << 16;
}

MLF_KERNEL mlf_complex_dsp mlf_joined_dsp(mlf_complex_dsp lower, mlf_complex_dsp upper)
{
    return (lower & 0xFFFFu) | (upper & 0xFFFF0000u);
}

#endif

MLF_KERNEL mlf_complex_dsp mlf_scaled_bin_dsp(mlf_complex_dsp value, int16_t factor)
{
    const uint32_t word = (uint16_t)factor;
    return mlf_shifted_dsp(mlf_lower_product_dsp(value, word), mlf_upper_product_dsp(value, word));
}

MLF_KERNEL mlf_complex_dsp mlf_divided_dsp(mlf_complex_dsp value, int32_t divisor)
{
    return mlf_scaled_bin_dsp(value, (int16_t)(INT16_MAX / divisor));
}

MLF_KERNEL mlf_complex_dsp mlf_turned_dsp(mlf_complex_dsp value, mlf_complex_dsp root)
{
    return mlf_shifted_dsp(mlf_real_product_dsp(value, root), mlf_imaginary_product_dsp(value, root));
}

MLF_KERNEL mlf_complex_dsp mlf_conjugate_dsp(mlf_complex_dsp value)
{
    return mlf_joined_dsp(value, mlf_minus_dsp(0, value));
}

MLF_KERNEL mlf_complex_dsp mlf_halved_dsp(mlf_complex_dsp value)
{
    return mlf_low_dsp(value, 0);
}

MLF_KERNEL mlf_complex_dsp mlf_high_dsp(mlf_complex_dsp even, mlf_complex_dsp odd)
{
    return mlf_joined_dsp(mlf_half_difference_dsp(even, odd), mlf_half_difference_dsp(odd, even));
}

MLF_FOURIER(dsp, int16_t)

#endif /* MLF_FOURIER_DSP_H_ */
