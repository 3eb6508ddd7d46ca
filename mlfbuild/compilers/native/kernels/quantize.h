/*
 * QUANTIZE (float32 to int8, or int8 to another scale) and DEQUANTIZE (int8 to float32).
 *
 * Elements are taken in order, so that an int8 output may start where the input does.
 */
#ifndef MLF_QUANTIZE_H_
#define MLF_QUANTIZE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

/* Return real / scale + zero_point rounded to nearest, ties away from zero, bounded to int8; 0.0 for a NaN. */
MLF_KERNEL int8_t mlf_quantize_value(float real, float scale, int32_t zero_point)
{
    const float value = real / scale;
    if (!(value > -512.0f)) {
        return (int8_t)(value <= -512.0f ? INT8_MIN : zero_point);
    }
    if (value > 512.0f) {
        return INT8_MAX;
    }
    int32_t whole = (int32_t)value;
    const float rest = value - (float)whole;
    whole += rest >= 0.5f ? 1 : 0;
    whole -= rest <= -0.5f ? 1 : 0;
    return (int8_t)mlf_clamp(whole + zero_point, INT8_MIN, INT8_MAX);
}

MLF_KERNEL void mlf_quantize_float(int32_t count, float scale, int32_t zero_point, const float *input, int8_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        output[i] = mlf_quantize_value(input[i], scale, zero_point);
    }
}

MLF_KERNEL void mlf_quantize_int8(int32_t count, const struct mlf_rescaling *rescaling, const int8_t *input,
                                  int8_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        output[i] = mlf_rescale_int8(input[i] - rescaling->input_zero_point, rescaling);
    }
}

MLF_KERNEL void mlf_dequantize_int8(int32_t count, float scale, int32_t zero_point, const int8_t *input, float *output)
{
    for (int32_t i = 0; i < count; i++) {
        output[i] = (float)(input[i] - zero_point) * scale;
    }
}

#endif /* MLF_QUANTIZE_H_ */
