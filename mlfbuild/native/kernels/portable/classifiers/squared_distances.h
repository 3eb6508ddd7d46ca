/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* SQUARED_DISTANCES: rows [count, depth] and points [points, depth]; output [count, points]. */
#ifndef MLF_SQUARED_DISTANCES_H_
#define MLF_SQUARED_DISTANCES_H_

#include <stdint.h>

#include "compiler.h"

MLF_KERNEL void mlf_squared_distances_float(int32_t count, int32_t point_count, int32_t depth, const float *rows,
                                            const float *points, float *output)
{
    for (int32_t row = 0; row < count; row++) {
        const float *point = points;
        for (int32_t j = 0; j < point_count; j++) {
            float sum = 0.0f;
            for (int32_t i = 0; i < depth; i++) {
                const float difference = rows[i] - *point++;
                sum += difference * difference;
            }
            *output++ = sum;
        }
        rows += depth;
    }
}

#endif /* MLF_SQUARED_DISTANCES_H_ */
