/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The loops of operators of two tensors that broadcast, over at most six dimensions.
 *
 * Adjacent dimensions along which the same inputs are repeated must be merged; strides are 0 along dimensions in which
 * an input is repeated. The output is packed and may be an input that is not repeated.
 */
#ifndef MLF_BINARY_H_
#define MLF_BINARY_H_

#include <stdint.h>

#include "compiler.h"
#include "nest.h"

struct mlf_broadcast {
    int32_t sizes[6];
    int32_t first_strides[6];
    int32_t second_strides[6];
};

/* The parameters of every kernel of two tensors. */
#define MLF_BINARY_PARAMETERS(input_type, output_type)                                                                 \
    const struct mlf_broadcast *shape, const input_type *first, const input_type *second, output_type *output

/* The parameters for integers that are not quantised and have a fused activation. */
#define MLF_WHOLE_PARAMETERS(bits)                                                                                     \
    struct mlf_int##bits##_range range, MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)

/* Defines the kernel of this signature, which stores expression, a term of a and b, for each pair of elements. */
#define MLF_BINARY(signature, first_type, second_type, expression)                                                     \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        MLF_FOR_FIVE(shape->sizes)                                                                                     \
        {                                                                                                              \
            const int32_t at_first = mlf_offset(shape->first_strides, i, j, k, l, m);                                  \
            const int32_t at_second = mlf_offset(shape->second_strides, i, j, k, l, m);                                \
            for (int32_t n = 0; n < shape->sizes[5]; n++) {                                                            \
                const first_type a = first[at_first + n * shape->first_strides[5]];                                    \
                const second_type b = second[at_second + n * shape->second_strides[5]];                                \
                *output++ = (expression);                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }

#endif /* MLF_BINARY_H_ */
