/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D and FULLY_CONNECTED whose weights have a zero point, as those of uint8 networks. Shapes as in conv2d.h.
 *
 *   output(o) = requantize(bias(o) + sum of input * filter(o) - weight zero point * sum of input)
 *
 * The second sum is the same for all output channels of a pixel. The bias contains the product of the input's zero
 * point and the weights without their zero point.
 */
#ifndef MLF_CONV2D_OFFSET_H_
#define MLF_CONV2D_OFFSET_H_

#include <stdint.h>

#include "compiler.h"
#include "conv2d.h"
#include "dot.h"
#include "each_pixel.h"
#include "requantize.h"
#include "window.h"

/* The sum of the inputs under a window; taps in the padding count as zero_point. */
MLF_KERNEL uint32_t mlf_conv2d_inputs_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                           const struct mlf_taps *columns, int32_t zero_point, const int8_t *input)
{
    const int32_t depth = window->input_channels;
    const int32_t inside = (rows->end - rows->first) * (columns->end - columns->first);
    const int32_t outside = window->filter.height * window->filter.width - inside;
    int32_t sum = outside * depth * zero_point;
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int8_t *const from = input + mlf_pixel(window, rows, columns, row, column);
            for (int32_t i = 0; i < depth; i++) {
                sum += from[i];
            }
        }
    }
    return (uint32_t)sum;
}

/* All output channels of one pixel. */
MLF_KERNEL void mlf_conv2d_pixel_offset_int8(const struct mlf_window *window, const struct mlf_taps *rows,
                                             const struct mlf_taps *columns,
                                             const struct mlf_quantization *quantization, int32_t weight_zero_point,
                                             const int8_t *input, const int8_t *filter,
                                             const struct mlf_channel *channels, int8_t *output)
{
    const int32_t pitch = window->filter.height * window->filter.width * window->input_channels;
    const int32_t zero_point = quantization->input_zero_point;
    const uint32_t inputs = mlf_conv2d_inputs_int8(window, rows, columns, zero_point, input);
    const uint32_t offset = (uint32_t)weight_zero_point * inputs;
    int32_t c = 0;
    for (; c + 4 <= window->output_channels; c += 4) {
        const struct mlf_channel *const channel = &channels[c];
        struct mlf_int32x4 sum = {(uint32_t)channel[0].bias - offset, (uint32_t)channel[1].bias - offset,
                                  (uint32_t)channel[2].bias - offset, (uint32_t)channel[3].bias - offset};
        sum = mlf_conv2d_sum4_int8(window, rows, columns, zero_point, input, filter + c * pitch, sum);
        mlf_requantize4(sum, &channels[c], quantization, &output[c]);
    }
    for (; c < window->output_channels; c++) {
        const uint32_t sum = mlf_conv2d_sum_int8(window, rows, columns, zero_point, input, filter + c * pitch,
                                                 (uint32_t)channels[c].bias - offset);
        output[c] = mlf_requantize(sum, &channels[c].rescale, quantization);
    }
}

MLF_KERNEL void mlf_conv2d_offset_int8(const struct mlf_window *window, const struct mlf_quantization *quantization,
                                       int32_t weight_zero_point, const int8_t *input, const int8_t *filter,
                                       const struct mlf_channel *channels, int8_t *output)
{
    MLF_EACH_PIXEL(window, input, output,
                   mlf_conv2d_pixel_offset_int8(window, &rows, &columns, quantization, weight_zero_point, input, filter,
                                                channels, output));
}

#endif /* MLF_CONV2D_OFFSET_H_ */
