/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ADD, SUB and SQUARED_DIFFERENCE of two tensors that broadcast: `binary.h` has the loops.
 */
#ifndef MLF_ADD_H_
#define MLF_ADD_H_

#include <stdint.h>

#include "binary.h"
#include "compiler.h"
#include "requantize.h"

/* Both inputs, shifted left, are rescaled to a common scale; the result is rescaled to the output's. */
struct mlf_add_quantization {
    int32_t first_zero_point;
    int32_t second_zero_point;
    int32_t output_zero_point;
    int32_t minimum;
    int32_t maximum;
    struct mlf_rescale first;
    struct mlf_rescale second;
    struct mlf_rescale output;
};

MLF_KERNEL int32_t mlf_add_first(const struct mlf_add_quantization *quantization, int32_t value, int32_t left_shift)
{
    return mlf_rescale_value((uint32_t)(value - quantization->first_zero_point) << left_shift, &quantization->first);
}

MLF_KERNEL int32_t mlf_add_second(const struct mlf_add_quantization *quantization, int32_t value, int32_t left_shift)
{
    return mlf_rescale_value((uint32_t)(value - quantization->second_zero_point) << left_shift, &quantization->second);
}

MLF_KERNEL int32_t mlf_add_finish(const struct mlf_add_quantization *quantization, int32_t value)
{
    const uint32_t rescaled = (uint32_t)mlf_rescale_value((uint32_t)value, &quantization->output);
    return mlf_clamp((int32_t)(rescaled + (uint32_t)quantization->output_zero_point), quantization->minimum,
                     quantization->maximum);
}

MLF_KERNEL int32_t mlf_add_value(const struct mlf_add_quantization *quantization, int32_t a, int32_t b, int32_t shift)
{
    return mlf_add_finish(quantization, mlf_add_first(quantization, a, shift) + mlf_add_second(quantization, b, shift));
}

MLF_KERNEL int32_t mlf_sub_value(const struct mlf_add_quantization *quantization, int32_t a, int32_t b, int32_t shift)
{
    return mlf_add_finish(quantization, mlf_add_first(quantization, a, shift) - mlf_add_second(quantization, b, shift));
}

MLF_KERNEL int32_t mlf_squared_difference_value(const struct mlf_add_quantization *quantization, int32_t a, int32_t b,
                                                int32_t shift)
{
    const int32_t difference = mlf_add_first(quantization, a, shift) - mlf_add_second(quantization, b, shift);
    return mlf_add_finish(quantization, difference * difference);
}

#define MLF_ADD_PARAMETERS(type) const struct mlf_add_quantization *quantization, MLF_BINARY_PARAMETERS(type, type)

MLF_BINARY(mlf_add_int8(MLF_ADD_PARAMETERS(int8_t)), int8_t, int8_t, (int8_t)mlf_add_value(quantization, a, b, 20))
MLF_BINARY(mlf_sub_int8(MLF_ADD_PARAMETERS(int8_t)), int8_t, int8_t, (int8_t)mlf_sub_value(quantization, a, b, 20))
MLF_BINARY(mlf_squared_difference_int8(MLF_ADD_PARAMETERS(int8_t)), int8_t, int8_t,
           (int8_t)mlf_squared_difference_value(quantization, a, b, 7))

MLF_BINARY(mlf_add_int16(MLF_ADD_PARAMETERS(int16_t)), int16_t, int16_t, (int16_t)mlf_add_value(quantization, a, b, 15))
MLF_BINARY(mlf_sub_int16(MLF_ADD_PARAMETERS(int16_t)), int16_t, int16_t, (int16_t)mlf_sub_value(quantization, a, b, 15))
MLF_BINARY(mlf_squared_difference_int16(MLF_ADD_PARAMETERS(int16_t)), int16_t, int16_t,
           (int16_t)mlf_squared_difference_value(quantization, a, b, 0))

/*
 * ADD of int16 tensors of one shape, of which the first one has the greater scale: its factor is 1/2, which a shift
 * multiplies by. The second one is shifted left by `shift`, 16 if its scale is the same. All right shifts are at least 1.
 */
MLF_KERNEL void mlf_add_scaled_int16(const struct mlf_add_quantization *quantization, int32_t shift, int32_t count,
                                     const int16_t *first, const int16_t *second, int16_t *output)
{
    const struct mlf_add_quantization fixed = *quantization; /* in registers, whatever is stored */
    for (int32_t i = 0; i < count; i++) {
        const int32_t addend = mlf_scale_down((int32_t)((uint32_t)second[i] << shift), fixed.second.multiplier,
                                              fixed.second.right_shift, 0);
        const int32_t sum = mlf_scale_down(addend + first[i] * (1 << 14), fixed.output.multiplier,
                                           fixed.output.right_shift, 0);
        output[i] = (int16_t)mlf_clamp(mlf_saturate_int16(sum), fixed.minimum, fixed.maximum);
    }
}

/* Integers that are not quantised wrap. */
#define MLF_ADD_WHOLE(bits)                                                                                            \
    MLF_BINARY(mlf_add_int##bits(MLF_WHOLE_PARAMETERS(bits)), int##bits##_t, int##bits##_t,                            \
               mlf_clamp_int##bits((int##bits##_t)((uint##bits##_t)a + (uint##bits##_t)b), range))                     \
    MLF_BINARY(mlf_sub_int##bits(MLF_WHOLE_PARAMETERS(bits)), int##bits##_t, int##bits##_t,                            \
               mlf_clamp_int##bits((int##bits##_t)((uint##bits##_t)a - (uint##bits##_t)b), range))

MLF_ADD_WHOLE(32)
MLF_ADD_WHOLE(64)

MLF_BINARY(mlf_squared_difference_int32(MLF_BINARY_PARAMETERS(int32_t, int32_t)), int32_t, int32_t,
           (int32_t)(((uint32_t)a - (uint32_t)b) * ((uint32_t)a - (uint32_t)b)))

#define MLF_ADD_FLOAT_PARAMETERS struct mlf_float_range range, MLF_BINARY_PARAMETERS(float, float)

MLF_BINARY(mlf_add_float(MLF_ADD_FLOAT_PARAMETERS), float, float, mlf_clamp_float(a + b, range))
MLF_BINARY(mlf_sub_float(MLF_ADD_FLOAT_PARAMETERS), float, float, mlf_clamp_float(a - b, range))
MLF_BINARY(mlf_squared_difference_float(MLF_BINARY_PARAMETERS(float, float)), float, float, (a - b) * (a - b))

#endif /* MLF_ADD_H_ */
