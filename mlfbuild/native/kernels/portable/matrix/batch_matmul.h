/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * BATCH_MATMUL: products of matrices, over at most three dimensions of batches that broadcast. Strides count elements.
 */
#ifndef MLF_BATCH_MATMUL_H_
#define MLF_BATCH_MATMUL_H_

#include <stdint.h>

#include "compiler.h"
#include "mul.h"

struct mlf_batch_matmul {
    int32_t batches[3];
    int32_t first_batch[3];  /* strides */
    int32_t second_batch[3]; /* strides */
    int32_t rows;
    int32_t depth;
    int32_t columns;
    int32_t first[2];  /* strides of rows and depth */
    int32_t second[2]; /* strides of depth and columns */
};

/* Defines the kernel of this signature: sum starts at 0, step is added for each a and b, and finish is stored. */
#define MLF_BATCH_MATMUL(signature, first_type, second_type, sum_type, step, finish)                                   \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < shape->batches[0]; i++) {                                                              \
            for (int32_t j = 0; j < shape->batches[1]; j++) {                                                          \
                for (int32_t k = 0; k < shape->batches[2]; k++) {                                                      \
                    const first_type *const left = first + i * shape->first_batch[0] + j * shape->first_batch[1] +     \
                                                   k * shape->first_batch[2];                                          \
                    const second_type *const right = second + i * shape->second_batch[0] +                             \
                                                     j * shape->second_batch[1] + k * shape->second_batch[2];          \
                    for (int32_t row = 0; row < shape->rows; row++) {                                                  \
                        for (int32_t column = 0; column < shape->columns; column++) {                                  \
                            sum_type sum = 0;                                                                          \
                            for (int32_t at = 0; at < shape->depth; at++) {                                            \
                                const first_type a = left[row * shape->first[0] + at * shape->first[1]];               \
                                const second_type b = right[at * shape->second[0] + column * shape->second[1]];        \
                                sum += (step);                                                                         \
                            }                                                                                          \
                            *output++ = (finish);                                                                      \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_KERNEL int8_t mlf_batch_matmul_finish(const struct mlf_mul_quantization *quantization, uint32_t sum)
{
    const uint32_t value = (uint32_t)mlf_rescale_value(sum, &quantization->output);
    return (int8_t)mlf_clamp((int32_t)(value + (uint32_t)quantization->output_zero_point), quantization->minimum,
                             quantization->maximum);
}

MLF_BATCH_MATMUL(mlf_batch_matmul_int8(const struct mlf_mul_quantization *quantization,
                                       const struct mlf_batch_matmul *shape, const int8_t *first, const int8_t *second,
                                       int8_t *output),
                 int8_t, int8_t, uint32_t,
                 (uint32_t)((a - quantization->first_zero_point) * (b - quantization->second_zero_point)),
                 mlf_batch_matmul_finish(quantization, sum))

MLF_BATCH_MATMUL(mlf_batch_matmul_float(const struct mlf_batch_matmul *shape, const float *first, const float *second,
                                        float *output),
                 float, float, float, a * b, sum)

#endif /* MLF_BATCH_MATMUL_H_ */
