/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ADD of int8 tensors of one shape whose scales are not known when the code is compiled: by a linear function if one
 * is exact for the scales (add_linear.h, 9 instructions for an element on Armv7-M), otherwise by add.h (57).
 */
#ifndef MLF_ADD_EITHER_H_
#define MLF_ADD_EITHER_H_

#include <stdint.h>

#include "add.h"
#include "add_linear.h"
#include "compiler.h"

struct mlf_add_either {
    struct mlf_add_linear linear;
    int32_t shift; /* of the linear function; 0 if none is exact, or the clamp is narrower than int8 */
    struct mlf_add_quantization quantization;
};

/* The output may overwrite an input. */
MLF_STATIC void mlf_add_either_int8(const struct mlf_add_either *numbers, int32_t count, const int8_t *first,
                                    const int8_t *second, int8_t *output)
{
    const struct mlf_add_quantization *const quantization = &numbers->quantization;
    if (numbers->shift != 0) {
        mlf_add_linear_int8(&numbers->linear, numbers->shift, INT8_MIN, INT8_MAX, count, first, second, output);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        output[i] = (int8_t)mlf_add_value(quantization, first[i], second[i], 20);
    }
}

#endif /* MLF_ADD_EITHER_H_ */
