/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FLOOR, CEIL and ROUND of float32: `unary.h` has the loop.
 */
#ifndef MLF_FLOOR_H_
#define MLF_FLOOR_H_

#include <stdint.h>

#include "compiler.h"
#include "unary.h"

/* Return the greatest integer that is not greater than x; all floats from 2^23 are integers. */
MLF_KERNEL float mlf_float_floor(float x)
{
    if (!(x < 8388608.0f && x > -8388608.0f)) {
        return x;
    }
    const float whole = (float)(int32_t)x;
    return whole > x ? whole - 1.0f : whole;
}

/* Return the integer nearest to x, ties to even. */
MLF_KERNEL float mlf_float_round(float x)
{
    const float whole = mlf_float_floor(x);
    const float rest = x - whole;
    if (rest < 0.5f || (rest == 0.5f && ((int32_t)whole & 1) == 0)) {
        return whole;
    }
    return rest >= 0.5f ? whole + 1.0f : x;
}

MLF_UNARY(mlf_floor_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_floor(a))
MLF_UNARY(mlf_ceil_float(MLF_UNARY_PARAMETERS(float)), float, -mlf_float_floor(-a))
MLF_UNARY(mlf_round_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_round(a))

#endif /* MLF_FLOOR_H_ */
