/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Copies of elements over at most five dimensions of runs.
 *
 * The elements of a run are contiguous in source and destination. Adjacent dimensions that can be merged must be
 * merged. Single elements are copied four at a time along the fifth dimension, which should be the longest.
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

/* Copy single elements along the fifth dimension of `shape`. */
#define MLF_COPY_SINGLE(type, shape, source, target)                                                                   \
    for (int32_t n = 0; n + 4 <= (shape)->sizes[4]; n += 4) {                                                          \
        const type first = source[0];                                                                                  \
        const type second = source[(shape)->from_strides[4]];                                                          \
        const type third = source[2 * (shape)->from_strides[4]];                                                       \
        const type fourth = source[3 * (shape)->from_strides[4]];                                                      \
        target[0] = first;                                                                                             \
        target[(shape)->to_strides[4]] = second;                                                                       \
        target[2 * (shape)->to_strides[4]] = third;                                                                    \
        target[3 * (shape)->to_strides[4]] = fourth;                                                                   \
        source += 4 * (shape)->from_strides[4];                                                                        \
        target += 4 * (shape)->to_strides[4];                                                                          \
    }                                                                                                                  \
    for (int32_t n = 0; n < (shape)->sizes[4] % 4; n++) {                                                              \
        *target = *source;                                                                                             \
        source += (shape)->from_strides[4];                                                                            \
        target += (shape)->to_strides[4];                                                                              \
    }

#define MLF_COPY(name, type)                                                                                           \
    MLF_KERNEL void name(const struct mlf_copy *shape, const type *from, type *to)                                     \
    {                                                                                                                  \
        const int32_t single[5] = {shape->sizes[0], shape->sizes[1], shape->sizes[2], shape->sizes[3], 1};             \
        const int32_t *const sizes = shape->run == 1 ? single : shape->sizes;                                          \
        MLF_FOR_FIVE(sizes)                                                                                            \
        {                                                                                                              \
            const type *source = from + mlf_offset(shape->from_strides, i, j, k, l, m);                                \
            type *target = to + mlf_offset(shape->to_strides, i, j, k, l, m);                                          \
            if (shape->run == 1) {                                                                                     \
                MLF_COPY_SINGLE(type, shape, source, target)                                                           \
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
