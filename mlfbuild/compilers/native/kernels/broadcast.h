/*
 * The loops of operators of two tensors that broadcast, over at most six dimensions.
 *
 * Neighbouring dimensions that broadcast alike are expected to be merged; strides count elements, 0 where an input is
 * repeated along a dimension. The output is packed and may be an input that is not repeated. Loops of one step cost
 * nothing where sizes are literal.
 */
#ifndef MLF_BROADCAST_H_
#define MLF_BROADCAST_H_

#include <stdint.h>

#include "compiler.h"

struct mlf_broadcast {
    int32_t sizes[6];
    int32_t first_strides[6];
    int32_t second_strides[6];
};

MLF_KERNEL int32_t mlf_broadcast_offset(const int32_t strides[6], int32_t i, int32_t j, int32_t k, int32_t l, int32_t m)
{
    return i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3] + m * strides[4];
}

/* The parameters that every kernel of two tensors has. */
#define MLF_BINARY_PARAMETERS(input_type, output_type)                                                                 \
    const struct mlf_broadcast *shape, const input_type *first, const input_type *second, output_type *output

/* Defines the kernel of this signature, which stores expression, a term of a and b, for each pair of elements. */
#define MLF_BINARY(signature, first_type, second_type, expression)                                                     \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < shape->sizes[0]; i++) {                                                                \
            for (int32_t j = 0; j < shape->sizes[1]; j++) {                                                            \
                for (int32_t k = 0; k < shape->sizes[2]; k++) {                                                        \
                    for (int32_t l = 0; l < shape->sizes[3]; l++) {                                                    \
                        for (int32_t m = 0; m < shape->sizes[4]; m++) {                                                \
                            const int32_t at_first = mlf_broadcast_offset(shape->first_strides, i, j, k, l, m);        \
                            const int32_t at_second = mlf_broadcast_offset(shape->second_strides, i, j, k, l, m);      \
                            for (int32_t n = 0; n < shape->sizes[5]; n++) {                                            \
                                const first_type a = first[at_first + n * shape->first_strides[5]];                    \
                                const second_type b = second[at_second + n * shape->second_strides[5]];                \
                                *output++ = (expression);                                                              \
                            }                                                                                          \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#endif /* MLF_BROADCAST_H_ */
