/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ATAN2 of float32, within 4e-7: `binary.h` has the loop.
 */
#ifndef MLF_ATAN2_H_
#define MLF_ATAN2_H_

#include <math.h>
#include <stdint.h>

#include "binary.h"
#include "compiler.h"
#include "float_math.h"

/* Return the arc tangent of t from 0 to 1, by a polynomial around 0 or, from tan(pi / 8), around pi / 4. */
MLF_KERNEL float mlf_atan_of_ratio(float t)
{
    const int beyond = t > 0.41421356f;
    const float x = beyond ? (t - 1.0f) / (t + 1.0f) : t;
    const float x2 = x * x;
    float value = 8.05374449538e-2f;
    value = value * x2 - 1.38776856032e-1f;
    value = value * x2 + 1.99777106478e-1f;
    value = value * x2 - 3.33329491539e-1f;
    value = x + x * x2 * value;
    return beyond ? value + 0.78539816f : value;
}

/* Return the angle of the point (x, y); a zero has a sign, and the point (inf, inf) is on the diagonal, as in C. */
MLF_KERNEL float mlf_float_atan2(float y, float x)
{
    if (!(y == y && x == x)) {
        return NAN;
    }
    const uint32_t below = mlf_bits_of_float(y) >> 31;
    const uint32_t left = mlf_bits_of_float(x) >> 31;
    const float height = below != 0 ? -y : y;
    const float width = left != 0 ? -x : x;
    const int steep = height > width;
    const float greater = steep ? height : width;
    const float smaller = steep ? width : height;
    const float ratio = greater == smaller ? (greater > 0.0f ? 1.0f : 0.0f) : smaller / greater;
    float angle = mlf_atan_of_ratio(ratio);
    angle = steep ? 1.57079633f - angle : angle;
    angle = left != 0 ? 3.14159265f - angle : angle;
    return below != 0 ? -angle : angle;
}

MLF_BINARY(mlf_atan2_float(MLF_BINARY_PARAMETERS(float, float)), float, float, mlf_float_atan2(a, b))

#endif /* MLF_ATAN2_H_ */
