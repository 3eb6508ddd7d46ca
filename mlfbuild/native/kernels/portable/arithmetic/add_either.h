/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ADD of int8 tensors of one shape whose scales are not known when the code is compiled: by a linear function if one
 * is exact for the scales (add_linear.h, 9 instructions for an element on Armv7-M), which is so for 74 of 75 pairs of
 * scales, otherwise as add.h does.
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

/* As mlf_rescale_value for a factor below 1, which all three are. */
MLF_COLD uint32_t mlf_add_rescaled(uint32_t value, const struct mlf_rescale *rescale)
{
    return (uint32_t)mlf_shift_right(mlf_multiply_high((int32_t)value, rescale->multiplier), rescale->right_shift);
}

/* As mlf_add_int8 for tensors of one shape, with little code: the rescaling, which it has three times, is a function. */
MLF_COLD void mlf_add_generally_int8(const struct mlf_add_quantization *quantization, int32_t count,
                                     const int8_t *first, const int8_t *second, int8_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        const uint32_t a = (uint32_t)(first[i] - quantization->first_zero_point) << 20;
        const uint32_t b = (uint32_t)(second[i] - quantization->second_zero_point) << 20;
        const uint32_t sum = mlf_add_rescaled(a, &quantization->first) + mlf_add_rescaled(b, &quantization->second);
        const uint32_t value = mlf_add_rescaled(sum, &quantization->output) + (uint32_t)quantization->output_zero_point;
        output[i] = (int8_t)mlf_clamp((int32_t)value, quantization->minimum, quantization->maximum);
    }
}

/* The output may overwrite an input. */
MLF_SHARED void mlf_add_either_int8(const struct mlf_add_either *numbers, int32_t count, const int8_t *first,
                                    const int8_t *second, int8_t *output)
{
    const struct mlf_add_linear linear = numbers->linear; /* in registers, whatever is stored */
    const int32_t shift = numbers->shift;
    if (shift == 0) {
        mlf_add_generally_int8(&numbers->quantization, count, first, second, output);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        output[i] = mlf_add_linear_value(linear, shift, INT8_MIN, INT8_MAX, first[i], second[i]);
    }
}

#endif /* MLF_ADD_EITHER_H_ */
