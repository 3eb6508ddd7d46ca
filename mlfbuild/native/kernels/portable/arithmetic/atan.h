/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ASIN, ACOS, ATAN, SINH, COSH, ASINH, ACOSH and ATANH of float32, each with a relative error of at most 1e-6 if the
 * argument and the result are normal numbers: `unary.h` has the loop.
 */
#ifndef MLF_ATAN_H_
#define MLF_ATAN_H_

#include <math.h>
#include <stdint.h>

#include "compiler.h"
#include "float_math.h"
#include "unary.h"

/* Return the arc tangent of x >= 0: pi / 2 - atan(1 / x), pi / 4 + atan((x - 1) / (x + 1)) or a Taylor polynomial of
 * degree 17, whose argument is at most sqrt(2) - 1. */
MLF_KERNEL float mlf_float_atan_positive(float x)
{
    float offset = 0.0f;
    if (x > 2.41421356f) {
        offset = 1.57079633f;
        x = -1.0f / x;
    } else if (x > 0.414213562f) {
        offset = 0.785398163f;
        x = (x - 1.0f) / (x + 1.0f);
    }
    const float x2 = x * x;
    float series = 1.0f / 17.0f;
    series = series * x2 - 1.0f / 15.0f;
    series = series * x2 + 1.0f / 13.0f;
    series = series * x2 - 1.0f / 11.0f;
    series = series * x2 + 1.0f / 9.0f;
    series = series * x2 - 1.0f / 7.0f;
    series = series * x2 + 1.0f / 5.0f;
    series = series * x2 - 1.0f / 3.0f;
    return offset + (x + x * x2 * series);
}

MLF_KERNEL float mlf_float_atan(float x)
{
    return x < 0.0f ? -mlf_float_atan_positive(-x) : mlf_float_atan_positive(x);
}

/* The differences are exact near 1, where the results depend on them most. */
MLF_KERNEL float mlf_float_asin(float x)
{
    return mlf_float_atan(x / mlf_float_sqrt((1.0f - x) * (1.0f + x)));
}

MLF_KERNEL float mlf_float_acos(float x)
{
    return 2.0f * mlf_float_atan_positive(mlf_float_sqrt((1.0f - x) / (1.0f + x)));
}

/* Return e^x / 2 for x >= 0, as e^(x - 1) * e / 2, which is infinite only if the result is. */
MLF_KERNEL float mlf_float_half_exp(float x)
{
    return mlf_float_exp(x - 1.0f) * 1.35914091f;
}

/* Return the hyperbolic sine; near 0 by a Taylor polynomial of degree 9, because a difference would lose digits. */
MLF_KERNEL float mlf_float_sinh(float x)
{
    const float magnitude = x < 0.0f ? -x : x;
    if (magnitude < 1.0f) {
        const float x2 = x * x;
        float series = 1.0f / 362880.0f;
        series = series * x2 + 1.0f / 5040.0f;
        series = series * x2 + 1.0f / 120.0f;
        series = series * x2 + 1.0f / 6.0f;
        return x + x * x2 * series;
    }
    const float half = mlf_float_half_exp(magnitude);
    const float result = half - 0.25f / half;
    return x < 0.0f ? -result : result;
}

MLF_KERNEL float mlf_float_cosh(float x)
{
    const float half = mlf_float_half_exp(x < 0.0f ? -x : x);
    return half + 0.25f / half;
}

/* Return ln(1 + x) for x >= 0; near 0 by the series of `mlf_float_log`, because a sum would lose digits. */
MLF_KERNEL float mlf_float_log1p(float x)
{
    if (!(x < 0.4f)) {
        return mlf_float_log(1.0f + x);
    }
    const float s = x / (2.0f + x);
    const float s2 = s * s;
    float series = 1.0f / 9.0f;
    series = series * s2 + 1.0f / 7.0f;
    series = series * s2 + 1.0f / 5.0f;
    series = series * s2 + 1.0f / 3.0f;
    return 2.0f * s + 2.0f * s * s2 * series;
}

/* Return the inverse hyperbolic sine, ln(x + sqrt(x^2 + 1)); beyond 4096 the 1 is less than a rounding error. */
MLF_KERNEL float mlf_float_asinh(float x)
{
    const float magnitude = x < 0.0f ? -x : x;
    float result;
    if (magnitude > 4096.0f) {
        result = mlf_float_log(magnitude) + 0.693147181f;
    } else {
        const float square = magnitude * magnitude;
        result = mlf_float_log1p(magnitude + square / (1.0f + mlf_float_sqrt(square + 1.0f)));
    }
    return x < 0.0f ? -result : result;
}

/* Return the inverse hyperbolic cosine, ln(x + sqrt(x^2 - 1)), from x - 1, which is exact. */
MLF_KERNEL float mlf_float_acosh(float x)
{
    if (!(x >= 1.0f)) {
        return NAN;
    }
    if (x > 4096.0f) {
        return mlf_float_log(x) + 0.693147181f;
    }
    const float above = x - 1.0f;
    return mlf_float_log1p(above + mlf_float_sqrt(above * (above + 2.0f)));
}

/* Return the inverse hyperbolic tangent, ln((1 + x) / (1 - x)) / 2. */
MLF_KERNEL float mlf_float_atanh(float x)
{
    const float magnitude = x < 0.0f ? -x : x;
    if (!(magnitude <= 1.0f)) {
        return NAN;
    }
    const float result = 0.5f * mlf_float_log1p(2.0f * magnitude / (1.0f - magnitude));
    return x < 0.0f ? -result : result;
}

MLF_UNARY(mlf_asin_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_asin(a))
MLF_UNARY(mlf_acos_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_acos(a))
MLF_UNARY(mlf_atan_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_atan(a))
MLF_UNARY(mlf_sinh_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_sinh(a))
MLF_UNARY(mlf_cosh_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_cosh(a))
MLF_UNARY(mlf_asinh_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_asinh(a))
MLF_UNARY(mlf_acosh_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_acosh(a))
MLF_UNARY(mlf_atanh_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_atanh(a))

#endif /* MLF_ATAN_H_ */
