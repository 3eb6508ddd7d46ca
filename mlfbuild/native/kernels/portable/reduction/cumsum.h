/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CUMSUM along one dimension, input and output [outer, size, inner].
 *
 * int8 summands minus their zero points have 19 fraction bits, as in ADD; sums of integers wrap. Elements are read
 * before their address is written, so that the output may be an input.
 */
#ifndef MLF_CUMSUM_H_
#define MLF_CUMSUM_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

struct mlf_cumsum {
    int32_t outer;
    int32_t size;
    int32_t inner;
    int32_t exclusive;
    int32_t reverse;
};

MLF_KERNEL uint32_t mlf_summand(const struct mlf_rescaling *rescaling, int32_t value)
{
    return (uint32_t)(value - rescaling->input_zero_point) << 19;
}

MLF_KERNEL int8_t mlf_summed(const struct mlf_rescaling *rescaling, uint32_t sum)
{
    return (int8_t)mlf_clamp(mlf_rescaled((int32_t)sum, rescaling), INT8_MIN, INT8_MAX);
}

/* Defines the kernel of this signature: summand is a term of the element a, finish one of the sum so far. */
#define MLF_CUMSUM(signature, type, sum_type, summand, finish)                                                         \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < shape->outer; i++) {                                                                   \
            for (int32_t j = 0; j < shape->inner; j++) {                                                               \
                const int32_t line = i * shape->size * shape->inner + j;                                               \
                sum_type before = 0;                                                                                   \
                for (int32_t k = 0; k < shape->size; k++) {                                                            \
                    const int32_t at = line + (shape->reverse ? shape->size - 1 - k : k) * shape->inner;               \
                    const type a = input[at];                                                                          \
                    const sum_type after = before + (summand);                                                         \
                    const sum_type sum = shape->exclusive ? before : after;                                            \
                    output[at] = (finish);                                                                             \
                    before = after;                                                                                    \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define MLF_CUMSUM_PARAMETERS(type) const struct mlf_cumsum *shape, const type *input, type *output

MLF_CUMSUM(mlf_cumsum_int8(const struct mlf_rescaling *rescaling, MLF_CUMSUM_PARAMETERS(int8_t)), int8_t, uint32_t,
           mlf_summand(rescaling, a), mlf_summed(rescaling, sum))
MLF_CUMSUM(mlf_cumsum_int32(MLF_CUMSUM_PARAMETERS(int32_t)), int32_t, uint32_t, (uint32_t)a, (int32_t)sum)
MLF_CUMSUM(mlf_cumsum_int64(MLF_CUMSUM_PARAMETERS(int64_t)), int64_t, uint64_t, (uint64_t)a, (int64_t)sum)
MLF_CUMSUM(mlf_cumsum_float(MLF_CUMSUM_PARAMETERS(float)), float, float, a, sum)

#endif /* MLF_CUMSUM_H_ */
