/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ARG_MAX and ARG_MIN along one dimension: input [outer, size, inner], output [outer, inner]. The first of several
 * equal elements is chosen; NaN is less than any number: no relation holds with it, so that `best` of NaN is replaced.
 */
#ifndef MLF_ARG_MAX_H_
#define MLF_ARG_MAX_H_

#include <stdint.h>

#include "compiler.h"

#define MLF_ARG(name, type, position_type, not_better)                                                                 \
    MLF_KERNEL void name(int32_t outer, int32_t size, int32_t inner, const type *input, position_type *output)         \
    {                                                                                                                  \
        for (int32_t i = 0; i < outer; i++) {                                                                          \
            for (int32_t j = 0; j < inner; j++) {                                                                      \
                const type *const from = input + i * size * inner + j;                                                 \
                type best = *from;                                                                                     \
                int32_t position = 0;                                                                                  \
                for (int32_t k = 1; k < size; k++) {                                                                   \
                    const type a = from[k * inner];                                                                    \
                    if (!(a not_better best) && a == a) {                                                              \
                        best = a;                                                                                      \
                        position = k;                                                                                  \
                    }                                                                                                  \
                }                                                                                                      \
                *output++ = position;                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }

#define MLF_ARGS(suffix, type)                                                                                         \
    MLF_ARG(mlf_arg_max_##suffix##_int32, type, int32_t, <=)                                                           \
    MLF_ARG(mlf_arg_max_##suffix##_int64, type, int64_t, <=)                                                           \
    MLF_ARG(mlf_arg_min_##suffix##_int32, type, int32_t, >=)                                                           \
    MLF_ARG(mlf_arg_min_##suffix##_int64, type, int64_t, >=)

MLF_ARGS(int8, int8_t)
MLF_ARGS(int16, int16_t)
MLF_ARGS(int32, int32_t)
MLF_ARGS(float, float)

#endif /* MLF_ARG_MAX_H_ */
