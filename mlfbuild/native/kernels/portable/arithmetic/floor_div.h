/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FLOOR_DIV and FLOOR_MOD of two tensors that broadcast: `binary.h` has the loops.
 */
#ifndef MLF_FLOOR_DIV_H_
#define MLF_FLOOR_DIV_H_

#include <math.h>
#include <stdint.h>

#include "binary.h"
#include "compiler.h"

/* Return a / b rounded down; quotients beyond 64 bits are integers, and the nearest float is returned. In double,
 * because a float quotient just below an integer would round to it. */
MLF_KERNEL float mlf_float_floor_div(float a, float b)
{
    const double quotient = (double)a / (double)b;
    if (!(quotient > -9e18 && quotient < 9e18)) {
        return (float)quotient;
    }
    const int64_t whole = (int64_t)quotient;
    return (float)((double)whole > quotient ? whole - 1 : whole);
}

/* Return the exact remainder of a / b; both are at least 0. */
MLF_KERNEL float mlf_float_rest(float a, float b)
{
    if (!(a <= 3.4028234e38f && b > 0.0f)) {
        return NAN;
    }
    float multiple = b;
    while (multiple <= a * 0.5f) {
        multiple *= 2.0f;
    }
    for (; a >= b; multiple *= 0.5f) {
        a -= a >= multiple ? multiple : 0.0f;
    }
    return a;
}

/* Return a minus b times the quotient rounded down. */
MLF_KERNEL float mlf_float_floor_mod(float a, float b)
{
    const float magnitude = mlf_float_rest(a < 0.0f ? -a : a, b < 0.0f ? -b : b);
    const float rest = a < 0.0f ? -magnitude : magnitude;
    return rest != 0.0f && (b < 0.0f) != (rest < 0.0f) ? rest + b : rest;
}

/* Integers; 0 if b is 0, and the quotient of the least value and -1 is the least value. */
MLF_KERNEL int32_t mlf_floor_div_value_int32(int32_t a, int32_t b)
{
    if (b == -1) {
        return (int32_t)(0u - (uint32_t)a);
    }
    return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

MLF_KERNEL int64_t mlf_floor_mod_value(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) {
        return 0;
    }
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

MLF_BINARY(mlf_floor_div_int32(MLF_BINARY_PARAMETERS(int32_t, int32_t)), int32_t, int32_t,
           mlf_floor_div_value_int32(a, b))
MLF_BINARY(mlf_floor_div_float(MLF_BINARY_PARAMETERS(float, float)), float, float, mlf_float_floor_div(a, b))
MLF_BINARY(mlf_floor_mod_int32(MLF_BINARY_PARAMETERS(int32_t, int32_t)), int32_t, int32_t,
           (int32_t)mlf_floor_mod_value(a, b))
MLF_BINARY(mlf_floor_mod_int64(MLF_BINARY_PARAMETERS(int64_t, int64_t)), int64_t, int64_t, mlf_floor_mod_value(a, b))
MLF_BINARY(mlf_floor_mod_float(MLF_BINARY_PARAMETERS(float, float)), float, float, mlf_float_floor_mod(a, b))

#endif /* MLF_FLOOR_DIV_H_ */
