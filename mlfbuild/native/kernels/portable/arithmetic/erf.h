/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The error function of float32.
 */
#ifndef MLF_ERF_H_
#define MLF_ERF_H_

#include <stdint.h>

#include "compiler.h"
#include "float_math.h"
#include "unary.h"

/*
 * Return erf(x), within 1e-6 of its value.
 *
 * Near 0, the Maclaurin series 2 / sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1)) up to the 17th power; otherwise
 * 1 - p(t) e^-x^2 with t = 1 / (1 + 0.3275911 |x|), p of degree 5 (Abramowitz and Stegun, Handbook of Mathematical
 * Functions, 7.1.26; error at most 1.5e-7).
 */
MLF_KERNEL float mlf_float_erf(float x)
{
    const float magnitude = x < 0.0f ? -x : x;
    const float square = x * x;
    if (magnitude < 0.75f) {
        float series = 1.0f / 685440.0f;
        series = 1.0f / -75600.0f + square * series;
        series = 1.0f / 9360.0f + square * series;
        series = 1.0f / -1320.0f + square * series;
        series = 1.0f / 216.0f + square * series;
        series = 1.0f / -42.0f + square * series;
        series = 1.0f / 10.0f + square * series;
        series = 1.0f / -3.0f + square * series;
        series = 1.0f + square * series;
        return 1.12837917f * x * series;
    }
    if (!(magnitude < 4.0f)) { /* rounds to 1, or NaN */
        return magnitude >= 4.0f ? (x < 0.0f ? -1.0f : 1.0f) : x;
    }
    const float t = 1.0f / (1.0f + 0.3275911f * magnitude);
    float polynomial = 1.061405429f;
    polynomial = polynomial * t - 1.453152027f;
    polynomial = polynomial * t + 1.421413741f;
    polynomial = polynomial * t - 0.284496736f;
    polynomial = polynomial * t + 0.254829592f;
    const float result = 1.0f - polynomial * t * mlf_float_exp_negative(-square);
    return x < 0.0f ? -result : result;
}

MLF_UNARY(mlf_erf_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_erf(a))

#endif /* MLF_ERF_H_ */
