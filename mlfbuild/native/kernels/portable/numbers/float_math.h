/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Elementary functions of float32, each with a relative error of at most 1e-6 if the result is a normal number. They
 * need no math library, and their results are the same on every processor.
 */
#ifndef MLF_FLOAT_MATH_H_
#define MLF_FLOAT_MATH_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

MLF_KERNEL float mlf_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

MLF_KERNEL uint32_t mlf_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Return 2^n for n of -126 to 127. */
MLF_KERNEL float mlf_power_of_two(int32_t n)
{
    return mlf_float_of_bits((uint32_t)(n + 127) << 23);
}

/*
 * Return e^(x - n * ln 2), n being the integer nearest to x / ln 2: a Taylor polynomial of degree 7 in the difference,
 * which is at most ln 2 / 2.
 */
MLF_KERNEL float mlf_float_exp_series(float x, int32_t n)
{
    const float r = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f; /* ln 2 in two parts */
    float power = 1.0f / 5040.0f;
    power = power * r + 1.0f / 720.0f;
    power = power * r + 1.0f / 120.0f;
    power = power * r + 1.0f / 24.0f;
    power = power * r + 1.0f / 6.0f;
    power = power * r + 0.5f;
    power = power * r + 1.0f;
    return power * r + 1.0f;
}

/* Return e^x for x <= 0; 0 below the normal range. */
MLF_KERNEL float mlf_float_exp_negative(float x)
{
    if (!(x > -87.0f)) {
        return x <= -87.0f ? 0.0f : x;
    }
    const int32_t n = (int32_t)(x * 1.44269504f - 0.5f);
    return mlf_float_exp_series(x, n) * mlf_power_of_two(n);
}

/* Return e^x; 0 below the normal range, infinity above. It is multiplied by 2^n twice, because 2^128 is not a float. */
MLF_KERNEL float mlf_float_exp(float x)
{
    if (!(x > -87.0f)) {
        return x <= -87.0f ? 0.0f : x;
    }
    if (x > 88.8f) {
        return INFINITY;
    }
    const int32_t n = (int32_t)(x * 1.44269504f + (x < 0.0f ? -0.5f : 0.5f));
    return mlf_float_exp_series(x, n) * mlf_power_of_two(n / 2) * mlf_power_of_two(n - n / 2);
}

/* Return e^x - 1 for x <= 0; near 0 by a Taylor polynomial of degree 7, because a difference would lose digits. */
MLF_KERNEL float mlf_float_expm1(float x)
{
    if (x < -0.5f) {
        return mlf_float_exp_negative(x) - 1.0f;
    }
    float rest = 1.0f + x * (1.0f / 7.0f);
    rest = 1.0f + x * (1.0f / 6.0f) * rest;
    rest = 1.0f + x * (1.0f / 5.0f) * rest;
    rest = 1.0f + x * (1.0f / 4.0f) * rest;
    rest = 1.0f + x * (1.0f / 3.0f) * rest;
    return x * (1.0f + x * 0.5f * rest);
}

/*
 * Return the natural logarithm; minus infinity for 0, NaN for negative numbers.
 *
 * ln x = n * ln 2 + ln m with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| <= 0.172, is a
 * series of odd powers up to the ninth.
 */
MLF_KERNEL float mlf_float_log(float x)
{
    if (!(x > 0.0f)) {
        return x == 0.0f ? -INFINITY : NAN;
    }
    if (x > 3.4028234e38f) {
        return x;
    }
    const int subnormal = x < 1.17549435e-38f;
    const uint32_t bits = mlf_bits_of_float(subnormal ? x * 8388608.0f : x);
    const uint32_t offset = bits - UINT32_C(0x3f3504f3); /* the bits of sqrt(1/2) */
    const int32_t n = ((int32_t)offset >> 23) - (subnormal ? 23 : 0);
    const float m = mlf_float_of_bits((offset & UINT32_C(0x7fffff)) + UINT32_C(0x3f3504f3));
    const float s = (m - 1.0f) / (m + 1.0f);
    const float s2 = s * s;
    float series = 1.0f / 9.0f;
    series = series * s2 + 1.0f / 7.0f;
    series = series * s2 + 1.0f / 5.0f;
    series = series * s2 + 1.0f / 3.0f;
    series = 2.0f * s + 2.0f * s * s2 * series;
    return (float)n * 0.693359375f - ((float)n * 2.12194440e-4f - series);
}

/*
 * Return the square root, rounded to nearest, by the processor's instruction or bit by bit.
 *
 * With x = m * 2^(n - 23), n even and m of 24 or 25 bits, the root is 2^(n/2 - 24) * sqrt(m * 2^25): a whole number of
 * 25 bits, the last of which rounds. Each step subtracts the effect of one more bit of the root from the remainder.
 */
MLF_KERNEL float mlf_float_sqrt(float x)
{
#if defined(__GNUC__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0 && !defined(__SOFTFP__)
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
    return root;
#else
    if (!(x > 0.0f)) {
        return x == 0.0f ? x : NAN;
    }
    if (x > 3.4028234e38f) {
        return x;
    }
    const int subnormal = x < 1.17549435e-38f;
    const uint32_t bits = mlf_bits_of_float(subnormal ? x * 16777216.0f : x);
    const int32_t exponent = (int32_t)(bits >> 23) - 127;
    const uint32_t odd = (uint32_t)exponent & 1u;
    uint32_t rest = ((bits & UINT32_C(0x7fffff)) | UINT32_C(0x800000)) << (odd + 1u);
    uint32_t root = 0;
    uint32_t twice = 0; /* the root so far, shifted for the next bit */
    for (uint32_t bit = UINT32_C(1) << 24; bit != 0; bit >>= 1) {
        if (rest >= twice + bit) {
            rest -= twice + bit;
            twice += 2 * bit;
            root += bit;
        }
        rest *= 2;
    }
    const int32_t half = (exponent - (int32_t)odd) / 2 - (subnormal ? 12 : 0);
    return mlf_float_of_bits(((root + 1u) >> 1) + ((uint32_t)(half + 126) << 23));
#endif
}

/* Return the hyperbolic tangent; near 0 by a Taylor polynomial of degree 9, because a difference would lose digits. */
MLF_KERNEL float mlf_float_tanh(float x)
{
    const float magnitude = x < 0.0f ? -x : x;
    if (magnitude < 0.25f) {
        const float x2 = x * x;
        float series = 62.0f / 2835.0f;
        series = series * x2 - 17.0f / 315.0f;
        series = series * x2 + 2.0f / 15.0f;
        series = series * x2 - 1.0f / 3.0f;
        return x + x * x2 * series;
    }
    const float power = mlf_float_exp_negative(-2.0f * magnitude);
    const float result = (1.0f - power) / (1.0f + power);
    return x < 0.0f ? -result : result;
}

/* Return 1 / (1 + e^-x). */
MLF_KERNEL float mlf_float_logistic(float x)
{
    const float power = mlf_float_exp_negative(x < 0.0f ? x : -x);
    return (x < 0.0f ? power : 1.0f) / (1.0f + power);
}

#endif /* MLF_FLOAT_MATH_H_ */
