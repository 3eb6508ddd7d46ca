/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * SIN and COS of float32, within 2e-7 for any argument: `unary.h` has the loop.
 */
#ifndef MLF_SIN_H_
#define MLF_SIN_H_

#include <math.h>
#include <stdint.h>

#include "compiler.h"
#include "float_math.h"
#include "unary.h"

/* quadrant * pi / 2 + rest, without whole turns; |rest| <= pi / 4. */
struct mlf_angle {
    uint32_t quadrant;
    float rest;
};

/*
 * Return the angle of a finite x >= 0.
 *
 * x is m * 2^e with m of 24 bits; its turns are the fraction of m * 2^e / (2 pi). Bits of 1 / (2 pi) that 2^e shifts
 * before the point only add whole turns; the 64 bits after them leave 40 after the product (Payne and Hanek's
 * reduction).
 */
MLF_KERNEL struct mlf_angle mlf_float_angle(float x)
{
    /* 32 bits before the point, then the fraction */
    static const uint32_t inverse[7] = {0,          0x28be60dbu, 0x9391054au, 0x7f09d5f4u,
                                        0x7d4d3770u, 0x36d8a566u, 0x4f10e410u};
    struct mlf_angle angle = {0, x};
    if (x > 0.785f) {
        const uint32_t bits = mlf_bits_of_float(x);
        const uint32_t place = (bits >> 23) - 118; /* e + 32 */
        const uint32_t shift = place & 31u;
        const uint32_t *const words = inverse + (place >> 5);
        uint64_t window = ((uint64_t)words[0] << 32 | words[1]) << shift;
        window |= (uint64_t)words[2] << shift >> 32;
        const uint64_t turns = ((bits & UINT32_C(0x7fffff)) | UINT32_C(0x800000)) * window;
        const uint64_t quadrant = (turns + (UINT64_C(1) << 61)) >> 62;
        angle.quadrant = (uint32_t)quadrant & 3u;
        angle.rest = (float)(int64_t)(turns - (quadrant << 62)) * 3.40612158e-19f; /* 2 pi / 2^64 */
    }
    return angle;
}

/* Return the sine of the angle plus `quarters` of a turn, by Taylor polynomials of degree 9 and 8. */
MLF_KERNEL float mlf_float_wave(struct mlf_angle angle, uint32_t quarters)
{
    const uint32_t quadrant = angle.quadrant + quarters;
    const float r = angle.rest;
    const float r2 = r * r;
    float value;
    if ((quadrant & 1u) != 0) {
        value = 1.0f / 40320.0f;
        value = value * r2 - 1.0f / 720.0f;
        value = value * r2 + 1.0f / 24.0f;
        value = 1.0f - r2 * (0.5f - r2 * value);
    } else {
        value = 1.0f / 362880.0f;
        value = value * r2 - 1.0f / 5040.0f;
        value = value * r2 + 1.0f / 120.0f;
        value = value * r2 - 1.0f / 6.0f;
        value = r + r * r2 * value;
    }
    return (quadrant & 2u) != 0 ? -value : value;
}

MLF_KERNEL float mlf_float_cos(float x)
{
    const float magnitude = x < 0.0f ? -x : x;
    return magnitude <= 3.4028234e38f ? mlf_float_wave(mlf_float_angle(magnitude), 1) : NAN;
}

MLF_KERNEL float mlf_float_sin(float x)
{
    const float magnitude = x < 0.0f ? -x : x;
    if (!(magnitude <= 3.4028234e38f)) {
        return NAN;
    }
    const float value = mlf_float_wave(mlf_float_angle(magnitude), 0);
    return x < 0.0f ? -value : value;
}

MLF_UNARY(mlf_sin_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_sin(a))
MLF_UNARY(mlf_cos_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_cos(a))

#endif /* MLF_SIN_H_ */
