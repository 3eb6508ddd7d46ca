/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * SQRT, RSQRT and SQUARE: `unary.h` has the loop. int8 uses tables.
 */
#ifndef MLF_SQRT_H_
#define MLF_SQRT_H_

#include <stdint.h>

#include "compiler.h"
#include "fixed_point.h"
#include "float_math.h"
#include "requantize.h"
#include "unary.h"

/* Return 1 / sqrt(value) for a stored value, computed with 20 fraction bits. */
MLF_KERNEL int32_t mlf_rsqrt_value(const struct mlf_rescaling *rescaling, int32_t value)
{
    if (value <= 0) {
        return INT16_MAX;
    }
    const struct mlf_rescale inverse = mlf_inverse_square_root(value, 20);
    return mlf_clamp(mlf_rescaled(mlf_rescale_value(1, &inverse), rescaling), INT16_MIN, INT16_MAX);
}

MLF_UNARY(mlf_rsqrt_int16(const struct mlf_rescaling *rescaling, MLF_UNARY_PARAMETERS(int16_t)), int16_t,
          (int16_t)mlf_rsqrt_value(rescaling, a))

/* Return sqrt(scale * value) / output_scale, truncated towards zero; 0 for negative values. */
MLF_KERNEL int16_t mlf_sqrt_value_int16(float scale, float output_scale, int16_t value)
{
    const float root = value > 0 ? mlf_float_sqrt(scale * (float)value) / output_scale : 0.0f;
    return root < 32767.0f ? (int16_t)root : INT16_MAX;
}

MLF_UNARY(mlf_sqrt_int16(float scale, float output_scale, MLF_UNARY_PARAMETERS(int16_t)), int16_t,
          mlf_sqrt_value_int16(scale, output_scale, a))

MLF_UNARY(mlf_square_float(MLF_UNARY_PARAMETERS(float)), float, a * a)
MLF_UNARY(mlf_sqrt_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_sqrt(a))
MLF_UNARY(mlf_rsqrt_float(MLF_UNARY_PARAMETERS(float)), float, 1.0f / mlf_float_sqrt(a))

#endif /* MLF_SQRT_H_ */
