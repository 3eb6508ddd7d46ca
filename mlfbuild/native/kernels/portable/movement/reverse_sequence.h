/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * REVERSE_SEQUENCE: the first elements of each sequence in reverse order, the others as they are, in runs of elements.
 * A length out of range is replaced by the nearest valid one, so that no input leads to an access outside the tensor.
 */
#ifndef MLF_REVERSE_SEQUENCE_H_
#define MLF_REVERSE_SEQUENCE_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

/* The tensor has the dimensions [outer, first, middle, second, run]. */
struct mlf_reverse_sequence {
    int32_t outer;
    int32_t first;
    int32_t middle;
    int32_t second;
    int32_t run;            /* bytes */
    int32_t sequence_first; /* 1 if sequences go along `first` and batches along `second`, 0 for the opposite */
};

#define MLF_REVERSE_SEQUENCE(name, type)                                                                               \
    MLF_KERNEL void name(const struct mlf_reverse_sequence *shape, const void *input, const type *lengths,             \
                         void *output)                                                                                 \
    {                                                                                                                  \
        const uint8_t *const from = (const uint8_t *)input;                                                            \
        uint8_t *to = (uint8_t *)output;                                                                               \
        const int32_t size = shape->sequence_first ? shape->first : shape->second;                                     \
        for (int32_t i = 0; i < shape->outer; i++) {                                                                   \
            for (int32_t j = 0; j < shape->first; j++) {                                                               \
                for (int32_t k = 0; k < shape->middle; k++) {                                                          \
                    for (int32_t l = 0; l < shape->second; l++) {                                                      \
                        const type length = lengths[shape->sequence_first ? l : j];                                    \
                        const int32_t count = length < 0 ? 0 : (length > size ? size : (int32_t)length);               \
                        const int32_t at = shape->sequence_first ? j : l;                                              \
                        const int32_t mirrored = at < count ? count - 1 - at : at;                                     \
                        const int32_t row = shape->sequence_first ? mirrored : j;                                      \
                        const int32_t column = shape->sequence_first ? l : mirrored;                                   \
                        const int32_t place =                                                                          \
                            ((i * shape->first + row) * shape->middle + k) * shape->second + column;                   \
                        memcpy(to, from + place * shape->run, (uint32_t)shape->run);                                   \
                        to += shape->run;                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_REVERSE_SEQUENCE(mlf_reverse_sequence_int32, int32_t)
MLF_REVERSE_SEQUENCE(mlf_reverse_sequence_int64, int64_t)

#endif /* MLF_REVERSE_SEQUENCE_H_ */
