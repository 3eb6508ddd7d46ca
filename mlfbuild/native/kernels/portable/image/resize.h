/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR. Input [N, H, W, C], output [N, H', W', C]; tables have the source of
 * each row and column.
 */
#ifndef MLF_RESIZE_H_
#define MLF_RESIZE_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

struct mlf_resize {
    int32_t batches;
    int32_t input[2];  /* height, width */
    int32_t output[2]; /* height, width */
    int32_t channels;
};

/* pixel is the size of all channels in bytes. */
MLF_KERNEL void mlf_resize_nearest(const struct mlf_resize *shape, int32_t pixel, const int32_t *rows,
                                   const int32_t *columns, const void *input, void *output)
{
    const uint8_t *from = (const uint8_t *)input;
    uint8_t *to = (uint8_t *)output;
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        for (int32_t i = 0; i < shape->output[0]; i++) {
            const uint8_t *const line = from + rows[i] * shape->input[1] * pixel;
            for (int32_t j = 0; j < shape->output[1]; j++) {
                memcpy(to, line + columns[j] * pixel, (uint32_t)pixel);
                to += pixel;
            }
        }
        from += shape->input[0] * shape->input[1] * pixel;
    }
}

/* Two lines of the input for one of the output, and the share of the second one: 0 to 1, or more or less at borders. */
struct mlf_line_int8 {
    int32_t lower;
    int32_t upper;
    int32_t share; /* 10 fraction bits */
};

struct mlf_line_int16 {
    int32_t lower;
    int32_t upper;
    int32_t share; /* 10 fraction bits */
};

struct mlf_line_float {
    int32_t lower;
    int32_t upper;
    float share;
};

/* Return sum / 2^20, rounded to nearest, ties away from zero. */
#define MLF_RESIZE_FINISH(sum) (((sum) > 0 ? (sum) + (1 << 19) : (sum) - (1 << 19)) / (1 << 20))

#define MLF_RESIZE_BILINEAR(suffix, type, sum_type, one, finish)                                                       \
    MLF_KERNEL void mlf_resize_bilinear_##suffix(const struct mlf_resize *shape, const struct mlf_line_##suffix *rows, \
                                                 const struct mlf_line_##suffix *columns, const type *input,           \
                                                 type *output)                                                         \
    {                                                                                                                  \
        const int32_t width = shape->input[1] * shape->channels;                                                       \
        for (int32_t batch = 0; batch < shape->batches; batch++) {                                                     \
            for (int32_t i = 0; i < shape->output[0]; i++) {                                                           \
                const type *const above = input + rows[i].lower * width;                                               \
                const type *const below = input + rows[i].upper * width;                                               \
                for (int32_t j = 0; j < shape->output[1]; j++) {                                                       \
                    const int32_t left = columns[j].lower * shape->channels;                                           \
                    const int32_t right = columns[j].upper * shape->channels;                                          \
                    for (int32_t k = 0; k < shape->channels; k++) {                                                    \
                        const sum_type first = above[left + k] * ((one) - rows[i].share) +                             \
                                               below[left + k] * rows[i].share;                                        \
                        const sum_type second = above[right + k] * ((one) - rows[i].share) +                           \
                                                below[right + k] * rows[i].share;                                      \
                        const sum_type sum = first * ((one) - columns[j].share) + second * columns[j].share;           \
                        *output++ = finish;                                                                            \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            input += shape->input[0] * width;                                                                          \
        }                                                                                                              \
    }

MLF_RESIZE_BILINEAR(int8, int8_t, int32_t, 1 << 10, (int8_t)MLF_RESIZE_FINISH(sum))
MLF_RESIZE_BILINEAR(int16, int16_t, int64_t, 1 << 10, (int16_t)MLF_RESIZE_FINISH(sum))
MLF_RESIZE_BILINEAR(float, float, float, 1.0f, sum)

#endif /* MLF_RESIZE_H_ */
