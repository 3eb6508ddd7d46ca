/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * MUL of two tensors that broadcast: `binary.h` has the loops.
 */
#ifndef MLF_MUL_H_
#define MLF_MUL_H_

#include <stdint.h>

#include "binary.h"
#include "compiler.h"
#include "requantize.h"

/* The product of stored values minus their zero points is rescaled to the output's scale. */
struct mlf_mul_quantization {
    int32_t first_zero_point;
    int32_t second_zero_point;
    int32_t output_zero_point;
    int32_t minimum;
    int32_t maximum;
    struct mlf_rescale output;
};

MLF_KERNEL int32_t mlf_mul_value(const struct mlf_mul_quantization *quantization, int32_t a, int32_t b)
{
    const int32_t product = (a - quantization->first_zero_point) * (b - quantization->second_zero_point);
    const uint32_t value = (uint32_t)mlf_rescale_value((uint32_t)product, &quantization->output);
    return mlf_clamp((int32_t)(value + (uint32_t)quantization->output_zero_point), quantization->minimum,
                     quantization->maximum);
}

#define MLF_MUL_PARAMETERS(type) const struct mlf_mul_quantization *quantization, MLF_BINARY_PARAMETERS(type, type)

MLF_BINARY(mlf_mul_int8(MLF_MUL_PARAMETERS(int8_t)), int8_t, int8_t, (int8_t)mlf_mul_value(quantization, a, b))
MLF_BINARY(mlf_mul_int16(MLF_MUL_PARAMETERS(int16_t)), int16_t, int16_t, (int16_t)mlf_mul_value(quantization, a, b))

/*
 * MUL without activation, by a factor whose multiplier has 31 bits and whose right shift is at least 1: of tensors of one
 * shape, `rows` = 1, or of matrices [rows][columns] and a row of gates, one for each column. `fixed` is in registers,
 * whatever is stored.
 */
#define MLF_MUL_SCALED(bits)                                                                                           \
    MLF_KERNEL void mlf_mul_scaled_int##bits(const struct mlf_mul_quantization *quantization, int32_t rows,            \
                                             int32_t columns, const int##bits##_t *first, const int##bits##_t *second, \
                                             int##bits##_t *output)                                                    \
    {                                                                                                                  \
        const struct mlf_mul_quantization fixed = *quantization;                                                       \
        for (int32_t column = 0; column < columns; column++) {                                                         \
            const int32_t gate = second[column] - fixed.second_zero_point;                                             \
            const int32_t offset = -fixed.first_zero_point * gate;                                                     \
            const int##bits##_t *from = first + column;                                                                \
            int##bits##_t *to = output + column;                                                                       \
            for (int32_t row = rows; row > 0; row--, from += columns, to += columns) {                                 \
                const int32_t value = mlf_scale_down(*from * gate + offset, fixed.output.multiplier,                   \
                                                     fixed.output.right_shift, fixed.output_zero_point);               \
                *to = (int##bits##_t)mlf_saturate_int##bits(value);                                                    \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_MUL_SCALED(8)
MLF_MUL_SCALED(16)

/* Integers that are not quantised wrap. */
MLF_BINARY(mlf_mul_int32(MLF_WHOLE_PARAMETERS(32)), int32_t, int32_t,
           mlf_clamp_int32((int32_t)((uint32_t)a * (uint32_t)b), range))
MLF_BINARY(mlf_mul_int64(MLF_WHOLE_PARAMETERS(64)), int64_t, int64_t,
           mlf_clamp_int64((int64_t)((uint64_t)a * (uint64_t)b), range))

#define MLF_MUL_FLOAT_PARAMETERS struct mlf_float_range range, MLF_BINARY_PARAMETERS(float, float)

MLF_BINARY(mlf_mul_float(MLF_MUL_FLOAT_PARAMETERS), float, float, mlf_clamp_float(a * b, range))

#endif /* MLF_MUL_H_ */
