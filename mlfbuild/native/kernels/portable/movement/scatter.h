/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * SCATTER_ND: out[index[place][0]][index[place][1]]... += in[place], in runs of elements, from an output of zeros. A
 * place with an index out of range is left out, so that no input of the network leads to an access outside the tensor.
 */
#ifndef MLF_SCATTER_H_
#define MLF_SCATTER_H_

#include <stdint.h>

#include "compiler.h"

struct mlf_scatter_nd {
    int32_t places;
    int32_t depth; /* indices of a place */
    int32_t sizes[8];
    int32_t strides[8];
    int32_t run;
    int32_t size; /* elements of the output */
};

/* Return the offset of the place with these indices, -1 if there is none. */
#define MLF_SCATTER_PLACE(name, type)                                                                                  \
    MLF_KERNEL int32_t name(const struct mlf_scatter_nd *shape, const type *indices)                                   \
    {                                                                                                                  \
        int32_t offset = 0;                                                                                            \
        for (int32_t i = 0; i < shape->depth; i++) {                                                                   \
            if (indices[i] < 0 || indices[i] >= shape->sizes[i]) {                                                     \
                return -1;                                                                                             \
            }                                                                                                          \
            offset += (int32_t)indices[i] * shape->strides[i];                                                         \
        }                                                                                                              \
        return offset;                                                                                                 \
    }

MLF_SCATTER_PLACE(mlf_scatter_place_int32, int32_t)
MLF_SCATTER_PLACE(mlf_scatter_place_int64, int64_t)

/* sum is a term of a, the element of the output, and b, that of the input. */
#define MLF_SCATTER_ND(name, type, bits, sum)                                                                          \
    MLF_KERNEL void name##_int##bits(const struct mlf_scatter_nd *shape, const type *input,                            \
                                     const int##bits##_t *indices, type *output)                                       \
    {                                                                                                                  \
        for (int32_t i = 0; i < shape->size; i++) {                                                                    \
            output[i] = 0;                                                                                             \
        }                                                                                                              \
        for (int32_t place = 0; place < shape->places; place++) {                                                      \
            const int32_t offset = mlf_scatter_place_int##bits(shape, indices + place * shape->depth);                 \
            for (int32_t i = 0; i < shape->run && offset >= 0; i++) {                                                  \
                const type a = output[offset + i];                                                                     \
                const type b = input[place * shape->run + i];                                                          \
                output[offset + i] = (type)(sum);                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define MLF_SCATTER_ND_TYPE(name, type, sum)                                                                           \
    MLF_SCATTER_ND(name, type, 32, sum)                                                                                \
    MLF_SCATTER_ND(name, type, 64, sum)

MLF_SCATTER_ND_TYPE(mlf_scatter_nd_int8, int8_t, (uint8_t)a + (uint8_t)b)
MLF_SCATTER_ND_TYPE(mlf_scatter_nd_int32, int32_t, (uint32_t)a + (uint32_t)b)
MLF_SCATTER_ND_TYPE(mlf_scatter_nd_int64, int64_t, (uint64_t)a + (uint64_t)b)
MLF_SCATTER_ND_TYPE(mlf_scatter_nd_float, float, a + b)
MLF_SCATTER_ND_TYPE(mlf_scatter_nd_uint8, uint8_t, a | b) /* bool */

#endif /* MLF_SCATTER_H_ */
