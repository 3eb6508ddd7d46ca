/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Copies of elements over at most five dimensions of runs.
 *
 * The elements of a run are contiguous in source and destination. Adjacent dimensions that can be merged must be
 * merged.
 */
#ifndef MLF_MOVEMENT_H_
#define MLF_MOVEMENT_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "nest.h"

struct mlf_copy {
    int32_t sizes[5];
    int32_t from_strides[5];
    int32_t to_strides[5];
    int32_t run;
};

#define MLF_COPY(name, type)                                                                                           \
    MLF_KERNEL void name(const struct mlf_copy *shape, const type *from, type *to)                                     \
    {                                                                                                                  \
        MLF_FOR_FIVE(shape->sizes)                                                                                     \
        {                                                                                                              \
            const type *const source = from + mlf_offset(shape->from_strides, i, j, k, l, m);                          \
            type *const target = to + mlf_offset(shape->to_strides, i, j, k, l, m);                                    \
            if (shape->run == 1) {                                                                                     \
                *target = *source;                                                                                     \
            } else {                                                                                                   \
                memcpy(target, source, (uint32_t)shape->run * sizeof(type));                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_COPY(mlf_copy_int8, int8_t)
MLF_COPY(mlf_copy_uint8, uint8_t)
MLF_COPY(mlf_copy_int16, int16_t)
MLF_COPY(mlf_copy_int32, int32_t)
MLF_COPY(mlf_copy_int64, int64_t)
MLF_COPY(mlf_copy_float, float)

#endif /* MLF_MOVEMENT_H_ */
