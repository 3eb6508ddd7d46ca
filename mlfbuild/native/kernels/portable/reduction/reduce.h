/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Reductions over some dimensions: three are kept and three are reduced, in any order in memory.
 *
 * Adjacent dimensions of the same kind must be merged; strides count elements of the input. The output is packed.
 */
#ifndef MLF_REDUCE_H_
#define MLF_REDUCE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

struct mlf_reduction {
    int32_t kept[3];
    int32_t kept_strides[3];
    int32_t reduced[3];
    int32_t reduced_strides[3];
};

/* The elements that are reduced to one. */
MLF_KERNEL int32_t mlf_reduced_count(const struct mlf_reduction *shape)
{
    return shape->reduced[0] * shape->reduced[1] * shape->reduced[2];
}

/*
 * Defines the kernel of this signature: value, of value_type, is start at first, then step for each element a, and
 * finish is stored. In start, from points to the first element.
 */
#define MLF_REDUCE(signature, type, value_type, start, step, finish)                                                   \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < shape->kept[0]; i++) {                                                                 \
            for (int32_t j = 0; j < shape->kept[1]; j++) {                                                             \
                for (int32_t k = 0; k < shape->kept[2]; k++) {                                                         \
                    const type *const from = input + i * shape->kept_strides[0] + j * shape->kept_strides[1] +         \
                                             k * shape->kept_strides[2];                                               \
                    value_type value = (start);                                                                        \
                    for (int32_t l = 0; l < shape->reduced[0]; l++) {                                                  \
                        for (int32_t m = 0; m < shape->reduced[1]; m++) {                                              \
                            for (int32_t n = 0; n < shape->reduced[2]; n++) {                                          \
                                const type a = from[l * shape->reduced_strides[0] + m * shape->reduced_strides[1] +    \
                                                    n * shape->reduced_strides[2]];                                    \
                                value = (step);                                                                        \
                            }                                                                                          \
                        }                                                                                              \
                    }                                                                                                  \
                    *output++ = (finish);                                                                              \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define MLF_REDUCE_PARAMETERS(type) const struct mlf_reduction *shape, const type *input, type *output

/* A reduction of matrices [count][rows][columns] to their rows of sums. */
struct mlf_reduced_columns {
    int32_t count;
    int32_t rows;
    int32_t columns;
};

/*
 * Defines the kernel of this signature, which stores finish, a term of value, for the sum of each column. Four columns
 * share the loop over the rows, and the sums are added in the same order as by MLF_REDUCE.
 */
#define MLF_REDUCE_COLUMNS(signature, type, value_type, start, finish)                                                 \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < shape->count; i++, input += shape->rows * shape->columns) {                            \
            int32_t column = 0;                                                                                        \
            for (; column + 4 <= shape->columns; column += 4) {                                                        \
                value_type sums[4] = {(start), (start), (start), (start)};                                             \
                const type *from = input + column;                                                                     \
                for (int32_t row = 0; row < shape->rows; row++, from += shape->columns) {                              \
                    sums[0] += from[0];                                                                                \
                    sums[1] += from[1];                                                                                \
                    sums[2] += from[2];                                                                                \
                    sums[3] += from[3];                                                                                \
                }                                                                                                      \
                for (int32_t j = 0; j < 4; j++) {                                                                      \
                    const value_type value = sums[j];                                                                  \
                    *output++ = (finish);                                                                              \
                }                                                                                                      \
            }                                                                                                          \
            for (; column < shape->columns; column++) {                                                                \
                value_type value = (start);                                                                            \
                for (int32_t row = 0; row < shape->rows; row++) {                                                      \
                    value += input[row * shape->columns + column];                                                     \
                }                                                                                                      \
                *output++ = (finish);                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }

#define MLF_COLUMNS_PARAMETERS(type) const struct mlf_reduced_columns *shape, const type *input, type *output

/* A sum or a mean: the rescaling includes a division by the number of elements. */
#define MLF_REDUCE_SUM(suffix, type, minimum, maximum)                                                                 \
    MLF_REDUCE(mlf_sum_##suffix(const struct mlf_rescaling *rescaling, MLF_REDUCE_PARAMETERS(type)), type, int32_t,    \
               -mlf_reduced_count(shape) * rescaling->input_zero_point, value + a,                                     \
               (type)mlf_clamp(mlf_rescaled(value, rescaling), minimum, maximum))                                      \
    MLF_REDUCE_COLUMNS(mlf_sum_columns_##suffix(const struct mlf_rescaling *rescaling, MLF_COLUMNS_PARAMETERS(type)),  \
                       type, int32_t, -shape->rows * rescaling->input_zero_point,                                      \
                       (type)mlf_clamp(mlf_rescaled(value, rescaling), minimum, maximum))

MLF_REDUCE_SUM(int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REDUCE_SUM(int16, int16_t, INT16_MIN, INT16_MAX)
MLF_REDUCE(mlf_sum_float(MLF_REDUCE_PARAMETERS(float)), float, float, 0.0f, value + a, value)
MLF_REDUCE(mlf_mean_float(MLF_REDUCE_PARAMETERS(float)), float, float, 0.0f, value + a,
           value / (float)mlf_reduced_count(shape))
MLF_REDUCE_COLUMNS(mlf_sum_columns_float(MLF_COLUMNS_PARAMETERS(float)), float, float, 0.0f, value)
MLF_REDUCE_COLUMNS(mlf_mean_columns_float(MLF_COLUMNS_PARAMETERS(float)), float, float, 0.0f,
                   value / (float)shape->rows)

MLF_REDUCE(mlf_reduce_prod_float(MLF_REDUCE_PARAMETERS(float)), float, float, 1.0f, value * a, value)

/* Integers that are not quantised wrap; the sum for a mean has 64 bits. */
#define MLF_REDUCE_WHOLE(bits)                                                                                         \
    MLF_REDUCE(mlf_sum_int##bits(MLF_REDUCE_PARAMETERS(int##bits##_t)), int##bits##_t, uint##bits##_t, 0,              \
               value + (uint##bits##_t)a, (int##bits##_t)value)                                                        \
    MLF_REDUCE(mlf_reduce_prod_int##bits(MLF_REDUCE_PARAMETERS(int##bits##_t)), int##bits##_t, uint##bits##_t, 1,      \
               value * (uint##bits##_t)a, (int##bits##_t)value)                                                        \
    MLF_REDUCE(mlf_mean_int##bits(MLF_REDUCE_PARAMETERS(int##bits##_t)), int##bits##_t, uint64_t, 0,                   \
               value + (uint64_t)a, (int##bits##_t)((int64_t)value / mlf_reduced_count(shape)))

MLF_REDUCE_WHOLE(32)
MLF_REDUCE_WHOLE(64)

/* Any byte except 0 is true. */
MLF_REDUCE(mlf_reduce_all_uint8(MLF_REDUCE_PARAMETERS(uint8_t)), uint8_t, uint8_t, 1, a != 0 && value != 0 ? 1 : 0,
           value)
MLF_REDUCE(mlf_reduce_any_uint8(MLF_REDUCE_PARAMETERS(uint8_t)), uint8_t, uint8_t, 0, a != 0 || value != 0 ? 1 : 0,
           value)

#define MLF_REDUCE_EXTREMES(suffix, type, least, greatest)                                                             \
    MLF_REDUCE(mlf_reduce_max_##suffix(MLF_REDUCE_PARAMETERS(type)), type, type, least, a > value ? a : value, value)  \
    MLF_REDUCE(mlf_reduce_min_##suffix(MLF_REDUCE_PARAMETERS(type)), type, type, greatest, a < value ? a : value, value)

MLF_REDUCE_EXTREMES(int8, int8_t, *from, *from)
MLF_REDUCE_EXTREMES(int16, int16_t, *from, *from)
MLF_REDUCE_EXTREMES(int32, int32_t, *from, *from)
MLF_REDUCE_EXTREMES(int64, int64_t, *from, *from)
/* Not the first element: if that is NaN, no comparison with it is true, and it would be the result. */
MLF_REDUCE_EXTREMES(float, float, -INFINITY, INFINITY)

#endif /* MLF_REDUCE_H_ */
