/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * What CONV_2D and DEPTHWISE_CONV_2D of int16 activations have in common: the loops over pixels and output channels,
 * four channels at a time. There is a kernel for each way in which sums become outputs, which wide_sums.h describes.
 */
#ifndef MLF_CONVOLUTION_INT16_H_
#define MLF_CONVOLUTION_INT16_H_

#include <stdint.h>

#include "compiler.h"
#include "each_pixel.h"
#include "wide_sums.h"
#include "window.h"

/*
 * Defines mlf_<layer>_int16_<way>. Sums are those of mlf_<layer>_sum4_int16 and mlf_<layer>_sum_int16 for the output
 * channels from c on; `fours` is whether the first one can compute them.
 */
#define MLF_CONVOLUTION_INT16(layer, fours, way, channel_type)                                                         \
    /* All output channels of one pixel. */                                                                            \
    MLF_KERNEL void mlf_##layer##_pixel_int16_##way(const struct mlf_window *window, const struct mlf_taps *rows,      \
                                                    const struct mlf_taps *columns, struct mlf_int16_range range,      \
                                                    const int16_t *input, const int8_t *filter,                        \
                                                    const struct channel_type *channels, int16_t *output)              \
    {                                                                                                                  \
        int32_t c = 0;                                                                                                 \
        for (; (fours) && c + 4 <= window->output_channels; c += 4) {                                                  \
            const struct mlf_int64x4 sum = mlf_##layer##_sum4_int16(window, rows, columns, input, filter, c);          \
            output[c] = mlf_finish_##way(sum.v0, &channels[c], range);                                                 \
            output[c + 1] = mlf_finish_##way(sum.v1, &channels[c + 1], range);                                         \
            output[c + 2] = mlf_finish_##way(sum.v2, &channels[c + 2], range);                                         \
            output[c + 3] = mlf_finish_##way(sum.v3, &channels[c + 3], range);                                         \
        }                                                                                                              \
        for (; c < window->output_channels; c++) {                                                                     \
            const int64_t sum = mlf_##layer##_sum_int16(window, rows, columns, input, filter, c);                      \
            output[c] = mlf_finish_##way(sum, &channels[c], range);                                                    \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_##layer##_int16_##way(const struct mlf_window *window, struct mlf_int16_range range,           \
                                              const int16_t *input, const int8_t *filter,                              \
                                              const struct channel_type *channels, int16_t *output)                    \
    {                                                                                                                  \
        MLF_EACH_PIXEL(window, input, output,                                                                          \
                       mlf_##layer##_pixel_int16_##way(window, &rows, &columns, range, input, filter, channels,        \
                                                       output));                                                       \
    }

#endif /* MLF_CONVOLUTION_INT16_H_ */
