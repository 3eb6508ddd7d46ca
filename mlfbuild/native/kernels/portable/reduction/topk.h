/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * TOPK_V2: the first k elements of each row in descending or ascending order, and their positions: input [rows, size],
 * outputs [rows, k]. Each element is inserted before those that it precedes, so equal elements stay in the order of
 * their positions; NaN is after all numbers.
 */
#ifndef MLF_TOPK_H_
#define MLF_TOPK_H_

#include <stdint.h>

#include "compiler.h"

#define MLF_TOPK(name, type, relation)                                                                                 \
    MLF_KERNEL void name(int32_t rows, int32_t size, int32_t k, const type *input, type *values, int32_t *positions)   \
    {                                                                                                                  \
        for (int32_t row = 0; row < rows; row++) {                                                                     \
            int32_t count = 0;                                                                                         \
            for (int32_t i = 0; i < size; i++) {                                                                       \
                const type a = input[i];                                                                               \
                int32_t at = count;                                                                                    \
                while (at > 0 && (a relation values[at - 1] || (values[at - 1] != values[at - 1] && a == a))) {        \
                    at--;                                                                                              \
                    if (at + 1 < k) {                                                                                  \
                        values[at + 1] = values[at];                                                                   \
                        positions[at + 1] = positions[at];                                                             \
                    }                                                                                                  \
                }                                                                                                      \
                if (at < k) {                                                                                          \
                    values[at] = a;                                                                                    \
                    positions[at] = i;                                                                                 \
                }                                                                                                      \
                if (count < k) {                                                                                       \
                    count++;                                                                                           \
                }                                                                                                      \
            }                                                                                                          \
            input += size;                                                                                             \
            values += k;                                                                                               \
            positions += k;                                                                                            \
        }                                                                                                              \
    }

#define MLF_TOPKS(suffix, type)                                                                                        \
    MLF_TOPK(mlf_topk_greatest_##suffix, type, >)                                                                      \
    MLF_TOPK(mlf_topk_least_##suffix, type, <)

MLF_TOPKS(int8, int8_t)
MLF_TOPKS(int16, int16_t)
MLF_TOPKS(int32, int32_t)
MLF_TOPKS(int64, int64_t)
MLF_TOPKS(uint8, uint8_t)
MLF_TOPKS(float, float)

#endif /* MLF_TOPK_H_ */
