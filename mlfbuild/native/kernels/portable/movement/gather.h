/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * GATHER: out[batch][slice][i] = in[batch][slice][index[batch][i]], in runs of elements. An index out of range is
 * replaced by the nearest valid one, so that no input of the network leads to an access outside the tensor.
 */
#ifndef MLF_GATHER_H_
#define MLF_GATHER_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

struct mlf_gather {
    int32_t batches;
    int32_t slices;
    int32_t size;  /* positions of the input */
    int32_t count; /* indices of a batch */
    int32_t run;   /* bytes */
};

#define MLF_GATHER(name, type)                                                                                         \
    MLF_KERNEL void name(const struct mlf_gather *shape, const void *input, const type *indices, void *output)         \
    {                                                                                                                  \
        const uint8_t *from = (const uint8_t *)input;                                                                  \
        uint8_t *to = (uint8_t *)output;                                                                               \
        for (int32_t batch = 0; batch < shape->batches; batch++) {                                                     \
            for (int32_t slice = 0; slice < shape->slices; slice++) {                                                  \
                for (int32_t i = 0; i < shape->count; i++) {                                                           \
                    const type index = indices[batch * shape->count + i];                                              \
                    const int32_t last = shape->size - 1;                                                              \
                    const int32_t at = index < 0 ? 0 : (index > last ? last : (int32_t)index);                         \
                    memcpy(to, from + at * shape->run, (uint32_t)shape->run);                                          \
                    to += shape->run;                                                                                  \
                }                                                                                                      \
                from += shape->size * shape->run;                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_GATHER(mlf_gather_int32, int32_t)
MLF_GATHER(mlf_gather_int64, int64_t)

/* GATHER_ND: out[place] = in[index[place][0]][index[place][1]]..., with the same handling of indices. */
struct mlf_gather_nd {
    int32_t places;
    int32_t depth; /* positions of a place */
    int32_t sizes[8];
    int32_t strides[8]; /* bytes */
    int32_t run;        /* bytes */
};

#define MLF_GATHER_ND(name, type)                                                                                      \
    MLF_KERNEL void name(const struct mlf_gather_nd *shape, const void *input, const type *indices, void *output)      \
    {                                                                                                                  \
        uint8_t *to = (uint8_t *)output;                                                                               \
        for (int32_t place = 0; place < shape->places; place++) {                                                      \
            const uint8_t *from = (const uint8_t *)input;                                                              \
            for (int32_t i = 0; i < shape->depth; i++) {                                                               \
                const type index = *indices++;                                                                         \
                const int32_t last = shape->sizes[i] - 1;                                                              \
                from += (index < 0 ? 0 : (index > last ? last : (int32_t)index)) * shape->strides[i];                  \
            }                                                                                                          \
            memcpy(to, from, (uint32_t)shape->run);                                                                    \
            to += shape->run;                                                                                          \
        }                                                                                                              \
    }

MLF_GATHER_ND(mlf_gather_nd_int32, int32_t)
MLF_GATHER_ND(mlf_gather_nd_int64, int64_t)

#endif /* MLF_GATHER_H_ */
