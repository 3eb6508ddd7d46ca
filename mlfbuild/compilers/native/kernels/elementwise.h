/*
 * Functions of one tensor that are no activations: `unary.h` has the loop. Those of int8 are tables.
 */
#ifndef MLF_ELEMENTWISE_H_
#define MLF_ELEMENTWISE_H_

#include <stdint.h>

#include "compiler.h"
#include "fixed_point.h"
#include "float_math.h"
#include "requantize.h"
#include "trigonometry.h"
#include "unary.h"

/* Stored int16 values are brought to the output's scale. */
#define MLF_RESCALED_UNARY(name, expression)                                                                           \
    MLF_UNARY(name(const struct mlf_rescaling *rescaling, MLF_UNARY_PARAMETERS(int16_t)), int16_t,                     \
              (int16_t)mlf_clamp(mlf_rescaled(expression, rescaling), INT16_MIN, INT16_MAX))

MLF_RESCALED_UNARY(mlf_abs_int16, a < 0 ? -a : a)
MLF_RESCALED_UNARY(mlf_neg_int16, -a)

/* Return 1 / sqrt(value) for a stored value, by way of 20 fraction bits. */
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

/* Return sqrt(scale * value) / output_scale, cut towards zero; 0 for less than 0. */
MLF_KERNEL int16_t mlf_sqrt_value_int16(float scale, float output_scale, int16_t value)
{
    const float root = value > 0 ? mlf_float_sqrt(scale * (float)value) / output_scale : 0.0f;
    return root < 32767.0f ? (int16_t)root : INT16_MAX;
}

MLF_UNARY(mlf_sqrt_int16(float scale, float output_scale, MLF_UNARY_PARAMETERS(int16_t)), int16_t,
          mlf_sqrt_value_int16(scale, output_scale, a))

/* Integers that are not quantised wrap. */
MLF_UNARY(mlf_abs_int32(MLF_UNARY_PARAMETERS(int32_t)), int32_t, a < 0 ? (int32_t)(0u - (uint32_t)a) : a)
MLF_UNARY(mlf_neg_int32(MLF_UNARY_PARAMETERS(int32_t)), int32_t, (int32_t)(0u - (uint32_t)a))
MLF_UNARY(mlf_neg_int64(MLF_UNARY_PARAMETERS(int64_t)), int64_t, (int64_t)(UINT64_C(0) - (uint64_t)a))
MLF_UNARY(mlf_sign_int32(MLF_UNARY_PARAMETERS(int32_t)), int32_t, (a > 0 ? 1 : 0) - (a < 0 ? 1 : 0))

/* Return the greatest whole number that is not greater than x; from 2^23 on all are whole. */
MLF_KERNEL float mlf_float_floor(float x)
{
    if (!(x < 8388608.0f && x > -8388608.0f)) {
        return x;
    }
    const float whole = (float)(int32_t)x;
    return whole > x ? whole - 1.0f : whole;
}

/* Return the whole number nearest to x, the even one of two. */
MLF_KERNEL float mlf_float_round(float x)
{
    const float whole = mlf_float_floor(x);
    const float rest = x - whole;
    if (rest < 0.5f || (rest == 0.5f && ((int32_t)whole & 1) == 0)) {
        return whole;
    }
    return rest >= 0.5f ? whole + 1.0f : x;
}

MLF_UNARY(mlf_abs_float(MLF_UNARY_PARAMETERS(float)), float, a < 0.0f ? -a : a)
MLF_UNARY(mlf_neg_float(MLF_UNARY_PARAMETERS(float)), float, -a)
MLF_UNARY(mlf_sign_float(MLF_UNARY_PARAMETERS(float)), float, a > 0.0f ? 1.0f : (a < 0.0f ? -1.0f : a))
MLF_UNARY(mlf_square_float(MLF_UNARY_PARAMETERS(float)), float, a * a)
MLF_UNARY(mlf_floor_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_floor(a))
MLF_UNARY(mlf_ceil_float(MLF_UNARY_PARAMETERS(float)), float, -mlf_float_floor(-a))
MLF_UNARY(mlf_round_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_round(a))
MLF_UNARY(mlf_exp_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_exp(a))
MLF_UNARY(mlf_log_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_log(a))
MLF_UNARY(mlf_sqrt_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_sqrt(a))
MLF_UNARY(mlf_rsqrt_float(MLF_UNARY_PARAMETERS(float)), float, 1.0f / mlf_float_sqrt(a))
MLF_UNARY(mlf_sin_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_sin(a))
MLF_UNARY(mlf_cos_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_cos(a))

#endif /* MLF_ELEMENTWISE_H_ */
