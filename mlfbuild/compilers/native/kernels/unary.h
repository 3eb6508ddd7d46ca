/*
 * The loop of operators of one tensor, and int8 functions as tables.
 *
 * Elements are taken in order, so that an output may start where the input does.
 */
#ifndef MLF_UNARY_H_
#define MLF_UNARY_H_

#include <stdint.h>

#include "compiler.h"

#define MLF_UNARY_PARAMETERS(type) int32_t count, const type *input, type *output

/* Defines the kernel of this signature, which stores expression, a term of a, for each element. */
#define MLF_UNARY(signature, type, expression)                                                                         \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            const type a = input[i];                                                                                   \
            output[i] = (expression);                                                                                  \
        }                                                                                                              \
    }

/* Any function of int8: table holds its value for -128, -127 and so on. */
MLF_UNARY(mlf_lookup_int8(const int8_t *table, MLF_UNARY_PARAMETERS(int8_t)), int8_t, table[a - INT8_MIN])

#endif /* MLF_UNARY_H_ */
