/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * QUANTIZE (float32 to integers, or integers to another scale or type) and DEQUANTIZE (integers to float32).
 *
 * Elements are processed in order, so that an output whose elements are not larger may overwrite the input.
 */
#ifndef MLF_QUANTIZE_H_
#define MLF_QUANTIZE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

/*
 * Return real / scale + zero_point rounded to nearest, ties away from zero, clamped to minimum and maximum, which are
 * within 16 bits; NaN counts as 0.0.
 */
MLF_KERNEL int32_t mlf_quantize_value(float real, float scale, int32_t zero_point, int32_t minimum, int32_t maximum)
{
    const float value = real / scale;
    if (!(value > -131072.0f)) {
        return value <= -131072.0f ? minimum : zero_point;
    }
    if (value > 131072.0f) {
        return maximum;
    }
    int32_t whole = (int32_t)value;
    const float rest = value - (float)whole;
    whole += rest >= 0.5f ? 1 : 0;
    whole -= rest <= -0.5f ? 1 : 0;
    return mlf_clamp(whole + zero_point, minimum, maximum);
}

#define MLF_QUANTIZE(suffix, type, minimum, maximum)                                                                   \
    MLF_KERNEL void mlf_quantize_float_##suffix(int32_t count, float scale, int32_t zero_point, const float *input,    \
                                                type *output)                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            output[i] = (type)mlf_quantize_value(input[i], scale, zero_point, minimum, maximum);                       \
        }                                                                                                              \
    }

MLF_QUANTIZE(int8, int8_t, INT8_MIN, INT8_MAX)
MLF_QUANTIZE(int16, int16_t, INT16_MIN, INT16_MAX)

#define MLF_REQUANTIZE(from_suffix, from, to_suffix, to, minimum, maximum)                                             \
    MLF_KERNEL void mlf_quantize_##from_suffix##_##to_suffix(int32_t count, const struct mlf_rescaling *rescaling,     \
                                                             const from *input, to *output)                            \
    {                                                                                                                  \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            const int32_t value = input[i] - rescaling->input_zero_point;                                              \
            output[i] = (to)mlf_clamp(mlf_rescaled(value, rescaling), minimum, maximum);                               \
        }                                                                                                              \
    }

MLF_REQUANTIZE(int8, int8_t, int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REQUANTIZE(int8, int8_t, uint8, uint8_t, 0, UINT8_MAX)
MLF_REQUANTIZE(int8, int8_t, int16, int16_t, INT16_MIN, INT16_MAX)
MLF_REQUANTIZE(int8, int8_t, int32, int32_t, INT32_MIN, INT32_MAX)
MLF_REQUANTIZE(uint8, uint8_t, int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REQUANTIZE(int16, int16_t, int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REQUANTIZE(int16, int16_t, int16, int16_t, INT16_MIN, INT16_MAX)
MLF_REQUANTIZE(int16, int16_t, int32, int32_t, INT32_MIN, INT32_MAX)

#define MLF_DEQUANTIZE(suffix, type)                                                                                   \
    MLF_KERNEL void mlf_dequantize_##suffix(int32_t count, float scale, int32_t zero_point, const type *input,         \
                                            float *output)                                                             \
    {                                                                                                                  \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            output[i] = (float)(input[i] - zero_point) * scale;                                                        \
        }                                                                                                              \
    }

MLF_DEQUANTIZE(int8, int8_t)
MLF_DEQUANTIZE(uint8, uint8_t)
MLF_DEQUANTIZE(int16, int16_t)

#endif /* MLF_QUANTIZE_H_ */
