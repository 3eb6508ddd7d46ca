/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Loops over the elements of tensors of several dimensions, and offsets of elements.
 *
 * Strides count elements, may be negative, and are 0 along dimensions in which elements are repeated. Loops of one step
 * cost nothing if sizes are literal.
 */
#ifndef MLF_NEST_H_
#define MLF_NEST_H_

#include <stdint.h>

#include "compiler.h"

/* Begins a statement that runs for all i, j, k, l and m below the first five of `sizes`, m fastest. */
#define MLF_FOR_FIVE(sizes)                                                                                            \
    for (int32_t i = 0; i < (sizes)[0]; i++)                                                                           \
        for (int32_t j = 0; j < (sizes)[1]; j++)                                                                       \
            for (int32_t k = 0; k < (sizes)[2]; k++)                                                                   \
                for (int32_t l = 0; l < (sizes)[3]; l++)                                                               \
                    for (int32_t m = 0; m < (sizes)[4]; m++)

/* Return the offset of the element at these five positions. */
MLF_KERNEL int32_t mlf_offset(const int32_t *strides, int32_t i, int32_t j, int32_t k, int32_t l, int32_t m)
{
    return i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3] + m * strides[4];
}

#endif /* MLF_NEST_H_ */
