/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ADD and SUB of int8 tensors of one shape as one linear function:
 *
 *   output = clamp((first * factor + second * factor + offset) >> shift)
 *
 * The reference rounds three times. The compiler searches for numbers with which this gives the same output for each of
 * the 65,536 pairs of inputs, and uses add.h if there are none. Nine instructions per element on cores with SSAT.
 */
#ifndef MLF_ADD_LINEAR_H_
#define MLF_ADD_LINEAR_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

struct mlf_add_linear {
    int32_t first;
    int32_t second;
    int32_t offset; /* zero points and rounding */
};

MLF_KERNEL int8_t mlf_add_linear_value(struct mlf_add_linear numbers, int32_t shift, int32_t minimum, int32_t maximum,
                                       int32_t first, int32_t second)
{
    const int32_t sum = first * numbers.first + (second * numbers.second + numbers.offset);
    if (minimum == INT8_MIN && maximum == INT8_MAX) {
        return (int8_t)mlf_saturate_int8(sum >> shift);
    }
    return (int8_t)mlf_clamp(sum >> shift, minimum, maximum);
}

/* The output may overwrite an input. */
MLF_SHARED void mlf_add_linear_int8(const struct mlf_add_linear *numbers, int32_t shift, int32_t minimum,
                                    int32_t maximum, int32_t count, const int8_t *first, const int8_t *second,
                                    int8_t *output)
{
    const struct mlf_add_linear fixed = *numbers; /* in registers, whatever is stored */
    int32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const int32_t a[4] = {first[i], first[i + 1], first[i + 2], first[i + 3]};
        const int32_t b[4] = {second[i], second[i + 1], second[i + 2], second[i + 3]};
        output[i] = mlf_add_linear_value(fixed, shift, minimum, maximum, a[0], b[0]);
        output[i + 1] = mlf_add_linear_value(fixed, shift, minimum, maximum, a[1], b[1]);
        output[i + 2] = mlf_add_linear_value(fixed, shift, minimum, maximum, a[2], b[2]);
        output[i + 3] = mlf_add_linear_value(fixed, shift, minimum, maximum, a[3], b[3]);
    }
    for (; i < count; i++) {
        output[i] = mlf_add_linear_value(fixed, shift, minimum, maximum, first[i], second[i]);
    }
}

#endif /* MLF_ADD_LINEAR_H_ */
