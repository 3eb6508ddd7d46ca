/*
 * ADD of two tensors that broadcast, over at most four dimensions.
 *
 * Neighbouring dimensions that broadcast alike are expected to be merged; strides count elements, 0 where an input is
 * repeated along a dimension. The output is packed and may be an input that is not repeated.
 */
#ifndef MLF_ADD_H_
#define MLF_ADD_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

struct mlf_broadcast {
    int32_t sizes[4];
    int32_t first_strides[4];
    int32_t second_strides[4];
};

/* Both inputs, shifted left, are brought to one scale; their sum is brought to the output's. */
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

#define MLF_ADD_LEFT_SHIFT 20

MLF_KERNEL int8_t mlf_add_value_int8(const struct mlf_add_quantization *quantization, int8_t first, int8_t second)
{
    const uint32_t a = (uint32_t)(first - quantization->first_zero_point) << MLF_ADD_LEFT_SHIFT;
    const uint32_t b = (uint32_t)(second - quantization->second_zero_point) << MLF_ADD_LEFT_SHIFT;
    const int32_t sum = mlf_rescale_value(a, &quantization->first) + mlf_rescale_value(b, &quantization->second);
    const int32_t value = mlf_rescale_value((uint32_t)sum, &quantization->output) + quantization->output_zero_point;
    return (int8_t)mlf_clamp(value, quantization->minimum, quantization->maximum);
}

MLF_KERNEL int32_t mlf_broadcast_offset(const int32_t strides[4], int32_t i, int32_t j, int32_t k)
{
    return i * strides[0] + j * strides[1] + k * strides[2];
}

MLF_KERNEL void mlf_add_int8(const struct mlf_broadcast *shape, const struct mlf_add_quantization *quantization,
                             const int8_t *first, const int8_t *second, int8_t *output)
{
    for (int32_t i = 0; i < shape->sizes[0]; i++) {
        for (int32_t j = 0; j < shape->sizes[1]; j++) {
            for (int32_t k = 0; k < shape->sizes[2]; k++) {
                const int8_t *const a = first + mlf_broadcast_offset(shape->first_strides, i, j, k);
                const int8_t *const b = second + mlf_broadcast_offset(shape->second_strides, i, j, k);
                for (int32_t l = 0; l < shape->sizes[3]; l++) {
                    *output++ = mlf_add_value_int8(quantization, a[l * shape->first_strides[3]],
                                                   b[l * shape->second_strides[3]]);
                }
            }
        }
    }
}

MLF_KERNEL void mlf_add_float(const struct mlf_broadcast *shape, struct mlf_float_range range, const float *first,
                              const float *second, float *output)
{
    for (int32_t i = 0; i < shape->sizes[0]; i++) {
        for (int32_t j = 0; j < shape->sizes[1]; j++) {
            for (int32_t k = 0; k < shape->sizes[2]; k++) {
                const float *const a = first + mlf_broadcast_offset(shape->first_strides, i, j, k);
                const float *const b = second + mlf_broadcast_offset(shape->second_strides, i, j, k);
                for (int32_t l = 0; l < shape->sizes[3]; l++) {
                    *output++ =
                        mlf_clamp_float(a[l * shape->first_strides[3]] + b[l * shape->second_strides[3]], range);
                }
            }
        }
    }
}

#endif /* MLF_ADD_H_ */
