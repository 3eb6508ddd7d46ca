/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * TRANSPOSE_CONV. Input [N, H, W, C], weights [C', h, w, C], output [N, H', W', C']. The window is that of the
 * convolution from output to input.
 *
 * Each output pixel collects the contributions of input pixels: those under taps that are a multiple of the stride
 * away. So only one sum is needed at a time.
 */
#ifndef MLF_TRANSPOSE_CONV_H_
#define MLF_TRANSPOSE_CONV_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"
#include "window.h"

/*
 * Defines the kernel of this signature: value, of value_type, is start at first, then step for each weight b, of
 * weight_type, of the input element a, and finish is stored.
 */
#define MLF_TRANSPOSE_CONV(signature, type, weight_type, value_type, start, step, finish)                              \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        const int32_t depth = window->output_channels;                                                                 \
        const int32_t area = window->filter.height * window->filter.width * depth;                                     \
        for (int32_t batch = 0; batch < window->batches; batch++) {                                                    \
            for (int32_t i = 0; i < window->input.height; i++) {                                                       \
                const int32_t top = i + window->padding.height;                                                        \
                for (int32_t j = 0; j < window->input.width; j++) {                                                    \
                    const int32_t left = j + window->padding.width;                                                    \
                    for (int32_t channel = 0; channel < window->input_channels; channel++) {                           \
                        value_type value = (start);                                                                    \
                        for (int32_t row = top % window->stride.height; row < window->filter.height;                   \
                             row += window->stride.height) {                                                           \
                            const int32_t y = (top - row) / window->stride.height;                                     \
                            if (row > top || y >= window->output.height) {                                             \
                                continue;                                                                              \
                            }                                                                                          \
                            for (int32_t column = left % window->stride.width; column < window->filter.width;          \
                                 column += window->stride.width) {                                                     \
                                const int32_t x = (left - column) / window->stride.width;                              \
                                if (column > left || x >= window->output.width) {                                      \
                                    continue;                                                                          \
                                }                                                                                      \
                                const type *const from = input + (y * window->output.width + x) * depth;               \
                                const weight_type *const weight =                                                      \
                                    weights + channel * area + (row * window->filter.width + column) * depth;          \
                                for (int32_t k = 0; k < depth; k++) {                                                  \
                                    const type a = from[k];                                                            \
                                    const weight_type b = weight[k];                                                   \
                                    value = (step);                                                                    \
                                }                                                                                      \
                            }                                                                                          \
                        }                                                                                              \
                        *output++ = (finish);                                                                          \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            input += window->output.height * window->output.width * depth;                                             \
        }                                                                                                              \
    }

MLF_TRANSPOSE_CONV(mlf_transpose_conv_int8(const struct mlf_window *window, const struct mlf_quantization *quantization,
                                           const int8_t *input, const int8_t *weights,
                                           const struct mlf_channel *channels, int8_t *output),
                   int8_t, int8_t, uint32_t, (uint32_t)channels[channel].bias,
                   value + (uint32_t)((a - quantization->input_zero_point) * b),
                   mlf_requantize(value, &channels[channel].rescale, quantization))

MLF_TRANSPOSE_CONV(mlf_transpose_conv_float(const struct mlf_window *window, struct mlf_float_range range,
                                            const float *input, const float *weights, const float *bias, float *output),
                   float, float, float, bias[channel], value + a * b, mlf_clamp_float(value, range))

#endif /* MLF_TRANSPOSE_CONV_H_ */
