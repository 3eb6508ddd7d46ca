/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Inner products over contiguous memory, for one output channel or for four that share the loads of the input.
 *
 * The weights of output channel c start at weights + c * pitch.
 */
#ifndef MLF_DOT_H_
#define MLF_DOT_H_

#include <stdint.h>

#include "compiler.h"

MLF_KERNEL uint32_t mlf_dot_int8(uint32_t sum, const int8_t *input, const int8_t *weights, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum += (uint32_t)(input[i] * weights[i]);
    }
    return sum;
}

MLF_KERNEL struct mlf_int32x4 mlf_dot4_int8(struct mlf_int32x4 sum, const int8_t *input, const int8_t *weights,
                                            int32_t pitch, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t value = input[i];
        sum.v0 += (uint32_t)(value * weights[i]);
        sum.v1 += (uint32_t)(value * weights[i + pitch]);
        sum.v2 += (uint32_t)(value * weights[i + 2 * pitch]);
        sum.v3 += (uint32_t)(value * weights[i + 3 * pitch]);
    }
    return sum;
}

/* As mlf_dot_int8 with an input that is `value` everywhere, for the padding of an image. */
MLF_KERNEL uint32_t mlf_fill_int8(uint32_t sum, int32_t value, const int8_t *weights, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum += (uint32_t)(value * weights[i]);
    }
    return sum;
}

MLF_KERNEL struct mlf_int32x4 mlf_fill4_int8(struct mlf_int32x4 sum, int32_t value, const int8_t *weights,
                                             int32_t pitch, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum.v0 += (uint32_t)(value * weights[i]);
        sum.v1 += (uint32_t)(value * weights[i + pitch]);
        sum.v2 += (uint32_t)(value * weights[i + 2 * pitch]);
        sum.v3 += (uint32_t)(value * weights[i + 3 * pitch]);
    }
    return sum;
}

MLF_KERNEL float mlf_dot_float(float sum, const float *input, const float *weights, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sum += input[i] * weights[i];
    }
    return sum;
}

MLF_KERNEL struct mlf_float32x4 mlf_dot4_float(struct mlf_float32x4 sum, const float *input, const float *weights,
                                               int32_t pitch, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const float value = input[i];
        sum.v0 += value * weights[i];
        sum.v1 += value * weights[i + pitch];
        sum.v2 += value * weights[i + 2 * pitch];
        sum.v3 += value * weights[i + 3 * pitch];
    }
    return sum;
}

#endif /* MLF_DOT_H_ */
