/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * RELU and its bounded forms, LEAKY_RELU and PRELU: `unary.h` and `binary.h` have the loops. int8 uses tables or
 * clamps.
 */
#ifndef MLF_RELU_H_
#define MLF_RELU_H_

#include <stdint.h>

#include "binary.h"
#include "compiler.h"
#include "float_math.h"
#include "requantize.h"
#include "unary.h"

/* RELU and its bounded forms if input and output have the same scale. */
MLF_UNARY(mlf_bound_int8(int8_t minimum, int8_t maximum, MLF_UNARY_PARAMETERS(int8_t)), int8_t,
          a < minimum ? minimum : (a > maximum ? maximum : a))

/* The conversion of int16 values: positive and negative ones have separate factors, then they are clamped. */
struct mlf_slopes {
    int32_t minimum;
    int32_t maximum;
    struct mlf_rescale positive;
    struct mlf_rescale negative;
};

MLF_KERNEL int16_t mlf_bounded_int16(const struct mlf_slopes *slopes, int32_t value)
{
    return (int16_t)mlf_clamp(value, slopes->minimum, slopes->maximum);
}

/* RELU, which has no negative slope, and LEAKY_RELU with alpha >= 0. */
MLF_UNARY(mlf_rectify_int16(const struct mlf_slopes *slopes, MLF_UNARY_PARAMETERS(int16_t)), int16_t,
          mlf_bounded_int16(slopes, mlf_rescale_value((uint32_t)(int32_t)a, a >= 0 ? &slopes->positive
                                                                                    : &slopes->negative)))

/* LEAKY_RELU with alpha < 0. */
MLF_UNARY(mlf_fold_int16(const struct mlf_slopes *slopes, MLF_UNARY_PARAMETERS(int16_t)), int16_t,
          mlf_bounded_int16(slopes, a >= 0 ? mlf_rescale_value((uint32_t)(int32_t)a, &slopes->positive)
                                           : -mlf_rescale_value((uint32_t)(int32_t)a, &slopes->negative)))

MLF_UNARY(mlf_relu_float(struct mlf_float_range range, MLF_UNARY_PARAMETERS(float)), float, mlf_clamp_float(a, range))
MLF_UNARY(mlf_leaky_relu_float(float alpha, MLF_UNARY_PARAMETERS(float)), float, a > 0.0f ? a : a * alpha)

/* PRELU: each sign has a factor; negative values are also multiplied by an element of the second tensor. */
struct mlf_prelu_quantization {
    int32_t first_zero_point;
    int32_t second_zero_point;
    int32_t output_zero_point;
    int32_t minimum;
    int32_t maximum;
    struct mlf_rescale positive;
    struct mlf_rescale negative;
};

MLF_KERNEL int32_t mlf_prelu_value(const struct mlf_prelu_quantization *quantization, int32_t a, int32_t b)
{
    const int32_t value = a - quantization->first_zero_point;
    const uint32_t product = (uint32_t)(value * (b - quantization->second_zero_point));
    const int32_t result = value >= 0 ? mlf_rescale_value((uint32_t)value, &quantization->positive)
                                      : mlf_rescale_value(product, &quantization->negative);
    return mlf_clamp((int32_t)((uint32_t)result + (uint32_t)quantization->output_zero_point), quantization->minimum,
                     quantization->maximum);
}

MLF_BINARY(mlf_prelu_int8(const struct mlf_prelu_quantization *quantization, MLF_BINARY_PARAMETERS(int8_t, int8_t)),
           int8_t, int8_t, (int8_t)mlf_prelu_value(quantization, a, b))
MLF_BINARY(mlf_prelu_int16(const struct mlf_prelu_quantization *quantization, const struct mlf_broadcast *shape,
                           const int16_t *first, const int8_t *second, int16_t *output),
           int16_t, int8_t, (int16_t)mlf_prelu_value(quantization, a, b))
MLF_BINARY(mlf_prelu_float(MLF_BINARY_PARAMETERS(float, float)), float, float, a >= 0.0f ? a : a * b)

#endif /* MLF_RELU_H_ */
