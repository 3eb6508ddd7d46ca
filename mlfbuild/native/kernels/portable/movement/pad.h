/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * PAD and PADV2 over at most five dimensions: `before` and `after` elements of one value around each.
 *
 * Dimensions that are not padded must be merged into the one before.
 */
#ifndef MLF_PAD_H_
#define MLF_PAD_H_

#include <stdint.h>

#include "compiler.h"

struct mlf_padding {
    int32_t input[5];  /* sizes of the input */
    int32_t output[5]; /* sizes of the output */
    int32_t before[5]; /* elements before the input's first */
};

/* Whether position i of a dimension of the output has an element of the input. */
MLF_KERNEL int mlf_pad_inside(const struct mlf_padding *shape, int32_t dimension, int32_t i)
{
    return i >= shape->before[dimension] && i < shape->before[dimension] + shape->input[dimension];
}

/* Whether a line of the output, along the last dimension, has elements of the input. */
MLF_KERNEL int mlf_pad_line(const struct mlf_padding *shape, int32_t i, int32_t j, int32_t k, int32_t l)
{
    return mlf_pad_inside(shape, 0, i) && mlf_pad_inside(shape, 1, j) && mlf_pad_inside(shape, 2, k) &&
           mlf_pad_inside(shape, 3, l);
}

#define MLF_PAD(name, type)                                                                                            \
    MLF_KERNEL void name(const struct mlf_padding *shape, type value, const type *input, type *output)                 \
    {                                                                                                                  \
        for (int32_t i = 0; i < shape->output[0]; i++) {                                                               \
            for (int32_t j = 0; j < shape->output[1]; j++) {                                                           \
                for (int32_t k = 0; k < shape->output[2]; k++) {                                                       \
                    for (int32_t l = 0; l < shape->output[3]; l++) {                                                   \
                        const int inside = mlf_pad_line(shape, i, j, k, l);                                            \
                        for (int32_t m = 0; m < shape->output[4]; m++) {                                               \
                            *output++ = inside && mlf_pad_inside(shape, 4, m) ? *input++ : value;                      \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_PAD(mlf_pad_int8, int8_t)
MLF_PAD(mlf_pad_int16, int16_t)
MLF_PAD(mlf_pad_int32, int32_t)
MLF_PAD(mlf_pad_float, float)

#endif /* MLF_PAD_H_ */
