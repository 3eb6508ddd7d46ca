/*
 * MEAN over some dimensions: two that stay and two that are averaged, in any order in memory.
 *
 * Neighbouring dimensions of one kind are expected to be merged; strides count elements of the input. The output is
 * packed.
 */
#ifndef MLF_MEAN_H_
#define MLF_MEAN_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

struct mlf_reduction {
    int32_t kept[2];
    int32_t kept_strides[2];
    int32_t reduced[2];
    int32_t reduced_strides[2];
};

/* The rescaling includes the division by the number of elements. */
MLF_KERNEL void mlf_mean_int8(const struct mlf_reduction *shape, const struct mlf_rescaling *rescaling,
                              const int8_t *input, int8_t *output)
{
    const int32_t count = shape->reduced[0] * shape->reduced[1];
    for (int32_t i = 0; i < shape->kept[0]; i++) {
        for (int32_t j = 0; j < shape->kept[1]; j++) {
            const int8_t *const from = input + i * shape->kept_strides[0] + j * shape->kept_strides[1];
            int32_t sum = -count * rescaling->input_zero_point;
            for (int32_t k = 0; k < shape->reduced[0]; k++) {
                for (int32_t l = 0; l < shape->reduced[1]; l++) {
                    sum += from[k * shape->reduced_strides[0] + l * shape->reduced_strides[1]];
                }
            }
            *output++ = mlf_rescale_int8(sum, rescaling);
        }
    }
}

MLF_KERNEL void mlf_mean_float(const struct mlf_reduction *shape, const float *input, float *output)
{
    const float count = (float)(shape->reduced[0] * shape->reduced[1]);
    for (int32_t i = 0; i < shape->kept[0]; i++) {
        for (int32_t j = 0; j < shape->kept[1]; j++) {
            const float *const from = input + i * shape->kept_strides[0] + j * shape->kept_strides[1];
            float sum = 0.0f;
            for (int32_t k = 0; k < shape->reduced[0]; k++) {
                for (int32_t l = 0; l < shape->reduced[1]; l++) {
                    sum += from[k * shape->reduced_strides[0] + l * shape->reduced_strides[1]];
                }
            }
            *output++ = sum / count;
        }
    }
}

#endif /* MLF_MEAN_H_ */
