/*
 * ARG_MAX and ARG_MIN along one dimension: input [outer, size, inner], output [outer, inner]. The first of several
 * counts; what is no number counts least.
 */
#ifndef MLF_ARG_MAX_H_
#define MLF_ARG_MAX_H_

#include <stdint.h>

#include "compiler.h"

#define MLF_ARG(name, type, relation)                                                                                  \
    MLF_KERNEL void name(int32_t outer, int32_t size, int32_t inner, const type *input, int32_t *output)               \
    {                                                                                                                  \
        for (int32_t i = 0; i < outer; i++) {                                                                          \
            for (int32_t j = 0; j < inner; j++) {                                                                      \
                const type *const from = input + i * size * inner + j;                                                 \
                type best = *from;                                                                                     \
                int32_t position = 0;                                                                                  \
                for (int32_t k = 1; k < size; k++) {                                                                   \
                    const type a = from[k * inner];                                                                    \
                    if (a relation best || (best != best && a == a)) {                                                 \
                        best = a;                                                                                      \
                        position = k;                                                                                  \
                    }                                                                                                  \
                }                                                                                                      \
                *output++ = position;                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_ARG(mlf_arg_max_int8, int8_t, >)
MLF_ARG(mlf_arg_max_int16, int16_t, >)
MLF_ARG(mlf_arg_max_int32, int32_t, >)
MLF_ARG(mlf_arg_max_float, float, >)
MLF_ARG(mlf_arg_min_int8, int8_t, <)
MLF_ARG(mlf_arg_min_int16, int16_t, <)
MLF_ARG(mlf_arg_min_int32, int32_t, <)
MLF_ARG(mlf_arg_min_float, float, <)

#endif /* MLF_ARG_MAX_H_ */
