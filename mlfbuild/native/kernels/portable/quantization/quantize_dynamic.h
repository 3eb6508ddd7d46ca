/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DYNAMIC_QUANTIZE: float32 to int8 with a scale and a zero point that are computed in each run, so that the range of
 * the numbers and 0 becomes -128 to 127. Two passes: the range, then a division and a rounding for each number.
 */
#ifndef MLF_QUANTIZE_DYNAMIC_H_
#define MLF_QUANTIZE_DYNAMIC_H_

#include <stdint.h>

#include "compiler.h"

/* Return x rounded to nearest, ties to even, clamped to 1024 in magnitude; NaN is 0. */
MLF_KERNEL int32_t mlf_nearest_even(float x)
{
    if (!(x > -1024.0f)) {
        return x <= -1024.0f ? -1024 : 0;
    }
    if (x > 1024.0f) {
        return 1024;
    }
    int32_t whole = (int32_t)x;
    const float rest = x - (float)whole;
    const int32_t odd = whole & 1;
    whole += rest > 0.5f || (rest >= 0.5f && odd != 0) ? 1 : 0;
    whole -= rest < -0.5f || (rest <= -0.5f && odd != 0) ? 1 : 0;
    return whole;
}

MLF_KERNEL int32_t mlf_clamp_to_byte(int32_t value)
{
    return value < 0 ? 0 : (value > 255 ? 255 : value);
}

MLF_KERNEL void mlf_dynamic_quantize_float(int32_t count, const float *input, int8_t *output, float *scale,
                                           int8_t *zero_point)
{
    float least = 0.0f;
    float greatest = 0.0f;
    for (int32_t i = 0; i < count; i++) {
        least = input[i] < least ? input[i] : least;
        greatest = input[i] > greatest ? input[i] : greatest;
    }
    const float step = least < greatest ? (greatest - least) / 255.0f : 1.0f;
    const int32_t zero = mlf_clamp_to_byte(mlf_nearest_even(-least / step));
    for (int32_t i = 0; i < count; i++) {
        output[i] = (int8_t)(mlf_clamp_to_byte(mlf_nearest_even(input[i] / step) + zero) - 128);
    }
    *scale = step;
    *zero_point = (int8_t)(zero - 128);
}

#endif /* MLF_QUANTIZE_DYNAMIC_H_ */
