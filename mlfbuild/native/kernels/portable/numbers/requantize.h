/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Integer rescaling with the double rounding of gemmlowp, as in TensorFlow Lite Micro's reference kernels.
 *
 * A real factor is multiplier * 2^(left_shift - right_shift - 31); at most one of the shifts is not 0. Sums are kept
 * modulo 2^32 in unsigned integers, as in the hardware, so that no network can overflow a signed one.
 */
#ifndef MLF_REQUANTIZE_H_
#define MLF_REQUANTIZE_H_

#include <stdint.h>

#include "compiler.h"

/* clang also reports SSAT for Armv8-M Baseline. */
#if defined(__GNUC__) && defined(__ARM_FEATURE_SAT) && __ARM_ARCH_ISA_THUMB == 2
#define MLF_HAS_SSAT 1
#else
#define MLF_HAS_SSAT 0
#endif

/* A rescaling by a real factor. */
struct mlf_rescale {
    int32_t multiplier;
    int16_t left_shift;
    int16_t right_shift;
};

/* The bias of one output channel, and the rescaling of its sum to the output's scale. */
struct mlf_channel {
    int32_t bias;
    struct mlf_rescale rescale;
};

/* The zero points of an operator's input and output, and the clamp of a fused activation on stored values. */
struct mlf_quantization {
    int32_t input_zero_point;
    int32_t output_zero_point;
    int32_t minimum;
    int32_t maximum;
};

/* The rescaling of stored values to another scale. */
struct mlf_rescaling {
    int32_t input_zero_point;
    int32_t output_zero_point;
    struct mlf_rescale rescale;
};

/* Return a * b / 2^31, rounded to nearest, ties towards plus infinity; not both may be INT32_MIN. */
MLF_KERNEL int32_t mlf_high_multiply(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (INT64_C(1) << 30)) >> 31);
}

/*
 * Return value / 2^exponent, rounded to nearest, ties away from zero; exponent is 0 to 31, value above INT32_MIN.
 *
 * Halving last keeps the rounding bit: floor((floor(y / 2^(e-1)) + 1) / 2) = floor((y + 2^(e-1)) / 2^e).
 */
MLF_KERNEL int32_t mlf_shift_right(int32_t value, int32_t exponent)
{
    if (exponent == 0) {
        return value;
    }
    value += value >> 31; /* a negative tie goes down */
    return ((value >> (exponent - 1)) + 1) >> 1;
}

/*
 * As mlf_high_multiply for a multiplier that is not negative. With twice a multiplier of 31 bits, which is 2^32 more
 * than the signed number in its register, SMMLAR returns it at once:
 *   (value * 2^32 + value * (2 * multiplier - 2^32) + 2^31) / 2^32
 */
MLF_KERNEL int32_t mlf_multiply_high(int32_t value, int32_t multiplier)
{
#if MLF_HAS_SSAT && defined(__ARM_FEATURE_DSP)
    const int32_t twice = (int32_t)((uint32_t)multiplier << 1);
    int32_t result;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(value), "r"(twice), "r"(value & (twice >> 31)));
    return result;
#else
    return mlf_high_multiply(value, multiplier);
#endif
}

/*
 * As mlf_multiply_high and mlf_shift_right, plus `added`, for a multiplier of 31 bits and an exponent of at least 1: no
 * mask and no test are necessary.
 */
MLF_KERNEL int32_t mlf_scale_down(int32_t value, int32_t multiplier, int32_t exponent, int32_t added)
{
    int32_t result;
#if MLF_HAS_SSAT && defined(__ARM_FEATURE_DSP)
    __asm__("smmlar %0, %1, %2, %1" : "=r"(result) : "r"(value), "r"((int32_t)((uint32_t)multiplier << 1)));
#else
    result = mlf_high_multiply(value, multiplier);
#endif
    result += result >> 31; /* a negative tie goes down */
    return ((result >> (exponent - 1)) + (2 * added + 1)) >> 1;
}

/* Return value times the factor of rescale. */
MLF_KERNEL int32_t mlf_rescale_value(uint32_t value, const struct mlf_rescale *rescale)
{
    const int32_t shifted = (int32_t)(value << rescale->left_shift);
    return mlf_shift_right(mlf_multiply_high(shifted, rescale->multiplier), rescale->right_shift);
}

MLF_KERNEL int32_t mlf_clamp(int32_t value, int32_t minimum, int32_t maximum)
{
    if (value < minimum) {
        return minimum;
    }
    return value > maximum ? maximum : value;
}

/* The bounds of a fused activation on stored values, or on int32 that are not quantised. */
struct mlf_int32_range {
    int32_t minimum;
    int32_t maximum;
};

struct mlf_int64_range {
    int64_t minimum;
    int64_t maximum;
};

MLF_KERNEL int32_t mlf_clamp_int32(int32_t value, struct mlf_int32_range range)
{
    return mlf_clamp(value, range.minimum, range.maximum);
}

MLF_KERNEL int64_t mlf_clamp_int64(int64_t value, struct mlf_int64_range range)
{
    if (value < range.minimum) {
        return range.minimum;
    }
    return value > range.maximum ? range.maximum : value;
}

/* Define mlf_saturate_int<bits>, which returns value clamped to the type. */
#if MLF_HAS_SSAT
#define MLF_SATURATE(bits)                                                                                             \
    MLF_KERNEL int32_t mlf_saturate_int##bits(int32_t value)                                                           \
    {                                                                                                                  \
        int32_t result;                                                                                                \
        __asm__("ssat %0, #" #bits ", %1" : "=r"(result) : "r"(value) : "cc");                                         \
        return result;                                                                                                 \
    }
#else
#define MLF_SATURATE(bits)                                                                                             \
    MLF_KERNEL int32_t mlf_saturate_int##bits(int32_t value)                                                           \
    {                                                                                                                  \
        return mlf_clamp(value, INT##bits##_MIN, INT##bits##_MAX);                                                     \
    }
#endif

MLF_SATURATE(8)
MLF_SATURATE(16)

/* Convert the sum of an output channel to the stored output. */
MLF_KERNEL int8_t mlf_requantize(uint32_t sum, const struct mlf_rescale *rescale,
                                 const struct mlf_quantization *quantization)
{
    const uint32_t value = (uint32_t)mlf_rescale_value(sum, rescale) + (uint32_t)quantization->output_zero_point;
    return (int8_t)mlf_clamp((int32_t)value, quantization->minimum, quantization->maximum);
}

/* Convert a value minus its zero point to a stored value of the output, not yet clamped to its type. */
MLF_KERNEL int32_t mlf_rescaled(int32_t value, const struct mlf_rescaling *rescaling)
{
    const uint32_t rescaled = (uint32_t)mlf_rescale_value((uint32_t)value, &rescaling->rescale);
    return (int32_t)(rescaled + (uint32_t)rescaling->output_zero_point);
}

/* The biases of four channels. */
MLF_KERNEL struct mlf_int32x4 mlf_biases4(const struct mlf_channel channels[4])
{
    const struct mlf_int32x4 biases = {(uint32_t)channels[0].bias, (uint32_t)channels[1].bias,
                                       (uint32_t)channels[2].bias, (uint32_t)channels[3].bias};
    return biases;
}

/* Store the outputs of four channels. */
MLF_KERNEL void mlf_requantize4(struct mlf_int32x4 sum, const struct mlf_channel channels[4],
                                const struct mlf_quantization *quantization, int8_t *output)
{
    output[0] = mlf_requantize(sum.v0, &channels[0].rescale, quantization);
    output[1] = mlf_requantize(sum.v1, &channels[1].rescale, quantization);
    output[2] = mlf_requantize(sum.v2, &channels[2].rescale, quantization);
    output[3] = mlf_requantize(sum.v3, &channels[3].rescale, quantization);
}

#endif /* MLF_REQUANTIZE_H_ */
