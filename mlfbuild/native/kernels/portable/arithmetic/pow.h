/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * POW of two tensors that broadcast: `binary.h` has the loops. The relative error of float32 is at most 2e-7 if the
 * result is a normal number; integers wrap.
 */
#ifndef MLF_POW_H_
#define MLF_POW_H_

#include <math.h>
#include <stdint.h>

#include "binary.h"
#include "compiler.h"
#include "float_math.h"

/*
 * Return the natural logarithm of x >= 0, with the method of `mlf_float_log` and a series up to the 15th power. In
 * double, because a power multiplies the error by the exponent.
 */
MLF_KERNEL double mlf_double_log(float x)
{
    if (x == 0.0f || x > 3.4028234e38f) {
        return x == 0.0f ? -(double)INFINITY : (double)INFINITY;
    }
    const int subnormal = x < 1.17549435e-38f;
    const uint32_t bits = mlf_bits_of_float(subnormal ? x * 8388608.0f : x);
    const uint32_t offset = bits - UINT32_C(0x3f3504f3); /* the bits of sqrt(1/2) */
    const int32_t n = ((int32_t)offset >> 23) - (subnormal ? 23 : 0);
    const double m = (double)mlf_float_of_bits((offset & UINT32_C(0x7fffff)) + UINT32_C(0x3f3504f3));
    const double s = (m - 1.0) / (m + 1.0);
    const double s2 = s * s;
    double series = 1.0 / 15.0;
    series = series * s2 + 1.0 / 13.0;
    series = series * s2 + 1.0 / 11.0;
    series = series * s2 + 1.0 / 9.0;
    series = series * s2 + 1.0 / 7.0;
    series = series * s2 + 1.0 / 5.0;
    series = series * s2 + 1.0 / 3.0;
    return (double)n * 0.69314718055994531 + 2.0 * s * (1.0 + s2 * series);
}

/* Return e^x; 0 below the range of floats, infinity above: a Taylor polynomial of degree 9, times 2^n in two steps. */
MLF_KERNEL float mlf_double_exp(double x)
{
    if (x > 89.0) {
        return INFINITY;
    }
    if (x < -104.0) {
        return 0.0f;
    }
    const int32_t n = (int32_t)(x * 1.4426950408889634 + (x < 0.0 ? -0.5 : 0.5));
    const double r = x - (double)n * 0.69314718055994531;
    double power = 1.0;
    for (int32_t i = 9; i > 0; i--) {
        power = 1.0 + power * r / (double)i;
    }
    return (float)power * mlf_power_of_two(n / 2) * mlf_power_of_two(n - n / 2);
}

/* Return x^y with the special values of C's pow. */
MLF_KERNEL float mlf_float_pow(float x, float y)
{
    if (y == 0.0f || x == 1.0f) {
        return 1.0f;
    }
    if (x != x || y != y) {
        return NAN;
    }
    const float magnitude = x < 0.0f ? -x : x;
    const int huge = y >= 16777216.0f || y <= -16777216.0f; /* an even number or infinite */
    const int32_t whole = huge ? 0 : (int32_t)y;
    if (x < 0.0f && magnitude <= 3.4028234e38f && !huge && (float)whole != y) {
        return NAN;
    }
    const float result = magnitude == 1.0f ? 1.0f : mlf_double_exp((double)y * mlf_double_log(magnitude));
    const int odd = !huge && (float)whole == y && (whole & 1) != 0;
    return odd && mlf_bits_of_float(x) >> 31 != 0 ? -result : result;
}

MLF_BINARY(mlf_pow_float(MLF_BINARY_PARAMETERS(float, float)), float, float, mlf_float_pow(a, b))

/* Return x^y, which wraps. If y < 0, the fraction is cut off: 1 for 1, 1 or -1 for -1, and 0 for all others. */
MLF_KERNEL int64_t mlf_whole_pow(int64_t x, int64_t y)
{
    if (y < 0) {
        return x == 1 || (x == -1 && (y & 1) == 0) ? 1 : (x == -1 ? -1 : 0);
    }
    uint64_t result = 1;
    uint64_t square = (uint64_t)x;
    for (uint64_t rest = (uint64_t)y; rest != 0; rest >>= 1) {
        result *= (rest & 1) != 0 ? square : 1;
        square *= square;
    }
    return (int64_t)result;
}

MLF_BINARY(mlf_pow_int32(MLF_BINARY_PARAMETERS(int32_t, int32_t)), int32_t, int32_t, (int32_t)mlf_whole_pow(a, b))
MLF_BINARY(mlf_pow_int64(MLF_BINARY_PARAMETERS(int64_t, int64_t)), int64_t, int64_t, mlf_whole_pow(a, b))

#endif /* MLF_POW_H_ */
