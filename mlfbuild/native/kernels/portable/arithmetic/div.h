/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DIV of two tensors that broadcast: `binary.h` has the loops.
 */
#ifndef MLF_DIV_H_
#define MLF_DIV_H_

#include <stdint.h>

#include "binary.h"
#include "compiler.h"
#include "fixed_point.h"
#include "requantize.h"

/* The quotient of stored values minus their zero points is rescaled to the output's scale. */
struct mlf_div_quantization {
    int32_t first_zero_point;
    int32_t second_zero_point;
    int32_t output_zero_point;
    int32_t minimum;
    int32_t maximum;
    struct mlf_rescale output;
};

/*
 * Return a / b as a stored value, not yet clamped; out of any range if b is 0.
 *
 * Both are shifted left as far as possible; the dividend is multiplied by the reciprocal of the divisor and by the
 * scales, and all shifts are undone at once.
 */
MLF_KERNEL int32_t mlf_div_quotient(const struct mlf_rescale *rescale, int32_t a, int32_t b)
{
    if (b == 0) {
        return a > 0 ? 1 << 16 : (a < 0 ? -(1 << 16) : 0);
    }
    if (a == 0) {
        return 0;
    }
    const int32_t dividend = b < 0 ? -a : a;
    const uint32_t divisor = (uint32_t)(b < 0 ? -b : b);
    const int32_t divisor_headroom = mlf_leading_zeros(divisor);
    const uint32_t magnitude = (uint32_t)(dividend < 0 ? ~dividend : dividend);
    const int32_t headroom = magnitude == 0 ? 31 : mlf_leading_zeros(magnitude) - 1;
    const int32_t inverse = mlf_reciprocal_q31((int32_t)((divisor << divisor_headroom) - (UINT32_C(1) << 31)));
    const int32_t quotient = mlf_high_multiply((int32_t)((uint32_t)dividend << headroom), inverse);
    const int32_t right_shift = headroom + 31 - divisor_headroom + rescale->right_shift - rescale->left_shift;
    return right_shift > 31 ? 0 : mlf_shift_right(mlf_high_multiply(quotient, rescale->multiplier), right_shift);
}

MLF_KERNEL int32_t mlf_div_value(const struct mlf_div_quantization *quantization, int32_t a, int32_t b)
{
    const int32_t quotient = mlf_div_quotient(&quantization->output, a - quantization->first_zero_point,
                                              b - quantization->second_zero_point);
    return mlf_clamp((int32_t)((uint32_t)quotient + (uint32_t)quantization->output_zero_point), quantization->minimum,
                     quantization->maximum);
}

#define MLF_DIV_PARAMETERS(type) const struct mlf_div_quantization *quantization, MLF_BINARY_PARAMETERS(type, type)

MLF_BINARY(mlf_div_int8(MLF_DIV_PARAMETERS(int8_t)), int8_t, int8_t, (int8_t)mlf_div_value(quantization, a, b))
MLF_BINARY(mlf_div_int16(MLF_DIV_PARAMETERS(int16_t)), int16_t, int16_t, (int16_t)mlf_div_value(quantization, a, b))

/* Return a / b, truncated towards zero; 0 if b is 0. The negative of the least value is itself. */
#define MLF_WHOLE_QUOTIENT(name, bits)                                                                                 \
    MLF_KERNEL int##bits##_t name(int##bits##_t a, int##bits##_t b)                                                    \
    {                                                                                                                  \
        if (b == -1) {                                                                                                 \
            return (int##bits##_t)(UINT##bits##_C(0) - (uint##bits##_t)a);                                             \
        }                                                                                                              \
        return b == 0 ? 0 : a / b;                                                                                     \
    }

MLF_WHOLE_QUOTIENT(mlf_whole_quotient, 32)
MLF_WHOLE_QUOTIENT(mlf_wide_quotient, 64)

MLF_BINARY(mlf_div_int32(MLF_WHOLE_PARAMETERS(32)), int32_t, int32_t, mlf_clamp_int32(mlf_whole_quotient(a, b), range))
MLF_BINARY(mlf_div_int64(MLF_WHOLE_PARAMETERS(64)), int64_t, int64_t, mlf_clamp_int64(mlf_wide_quotient(a, b), range))
MLF_BINARY(mlf_div_float(struct mlf_float_range range, MLF_BINARY_PARAMETERS(float, float)), float, float,
           mlf_clamp_float(a / b, range))

#endif /* MLF_DIV_H_ */
