/*
 * Elements from one place to another, over at most five dimensions of runs.
 *
 * Strides count elements, may be negative and are 0 where an element is repeated. The elements of a run lie side by
 * side on both sides. Neighbouring dimensions that can be one are expected to be merged.
 */
#ifndef MLF_COPY_H_
#define MLF_COPY_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

struct mlf_copy {
    int32_t sizes[5];
    int32_t from_strides[5];
    int32_t to_strides[5];
    int32_t run;
};

MLF_KERNEL int32_t mlf_copy_offset(const int32_t strides[5], int32_t i, int32_t j, int32_t k, int32_t l, int32_t m)
{
    return i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3] + m * strides[4];
}

#define MLF_COPY(name, type)                                                                                           \
    MLF_KERNEL void name(const struct mlf_copy *shape, const type *from, type *to)                                     \
    {                                                                                                                  \
        for (int32_t i = 0; i < shape->sizes[0]; i++) {                                                                \
            for (int32_t j = 0; j < shape->sizes[1]; j++) {                                                            \
                for (int32_t k = 0; k < shape->sizes[2]; k++) {                                                        \
                    for (int32_t l = 0; l < shape->sizes[3]; l++) {                                                    \
                        for (int32_t m = 0; m < shape->sizes[4]; m++) {                                                \
                            const type *const source = from + mlf_copy_offset(shape->from_strides, i, j, k, l, m);     \
                            type *const target = to + mlf_copy_offset(shape->to_strides, i, j, k, l, m);               \
                            if (shape->run == 1) {                                                                     \
                                *target = *source;                                                                     \
                            } else {                                                                                   \
                                memcpy(target, source, (uint32_t)shape->run * sizeof(type));                           \
                            }                                                                                          \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_COPY(mlf_copy_int8, int8_t)
MLF_COPY(mlf_copy_uint8, uint8_t)
MLF_COPY(mlf_copy_int16, int16_t)
MLF_COPY(mlf_copy_int32, int32_t)
MLF_COPY(mlf_copy_int64, int64_t)
MLF_COPY(mlf_copy_float, float)

#endif /* MLF_COPY_H_ */
