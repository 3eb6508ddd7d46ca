/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * SELECT_V2: elements of one of two tensors, selected by a third one. All broadcast, over at most six dimensions, as in
 * `binary.h`.
 */
#ifndef MLF_SELECT_H_
#define MLF_SELECT_H_

#include <stdint.h>

#include "compiler.h"
#include "nest.h"

struct mlf_selection {
    int32_t sizes[6];
    int32_t first_strides[6];
    int32_t second_strides[6];
    int32_t third_strides[6];
};

/* The first tensor is the condition. */
#define MLF_SELECT(name, type)                                                                                         \
    MLF_KERNEL void name(const struct mlf_selection *shape, const uint8_t *first, const type *second,                  \
                         const type *third, type *output)                                                              \
    {                                                                                                                  \
        MLF_FOR_FIVE(shape->sizes)                                                                                     \
        {                                                                                                              \
            const int32_t at_first = mlf_offset(shape->first_strides, i, j, k, l, m);                                  \
            const int32_t at_second = mlf_offset(shape->second_strides, i, j, k, l, m);                                \
            const int32_t at_third = mlf_offset(shape->third_strides, i, j, k, l, m);                                  \
            for (int32_t n = 0; n < shape->sizes[5]; n++) {                                                            \
                *output++ = first[at_first + n * shape->first_strides[5]] != 0                                         \
                                ? second[at_second + n * shape->second_strides[5]]                                     \
                                : third[at_third + n * shape->third_strides[5]];                                       \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_SELECT(mlf_select_int8, int8_t)
MLF_SELECT(mlf_select_uint8, uint8_t)
MLF_SELECT(mlf_select_int16, int16_t)
MLF_SELECT(mlf_select_int32, int32_t)
MLF_SELECT(mlf_select_int64, int64_t)
MLF_SELECT(mlf_select_float, float)

#endif /* MLF_SELECT_H_ */
