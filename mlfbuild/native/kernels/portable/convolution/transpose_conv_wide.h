/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * TRANSPOSE_CONV as in transpose_conv.h with weights of 9 bits, stored in 16: those of uint8 networks without their
 * zero point.
 */
#ifndef MLF_TRANSPOSE_CONV_WIDE_H_
#define MLF_TRANSPOSE_CONV_WIDE_H_

#include "transpose_conv.h"

MLF_TRANSPOSE_CONV(mlf_transpose_conv_wide_int8(const struct mlf_window *window,
                                                const struct mlf_quantization *quantization, const int8_t *input,
                                                const int16_t *weights, const struct mlf_channel *channels,
                                                int8_t *output),
                   int8_t, int16_t, uint32_t, (uint32_t)channels[channel].bias,
                   value + (uint32_t)((a - quantization->input_zero_point) * b),
                   mlf_requantize(value, &channels[channel].rescale, quantization))

#endif /* MLF_TRANSPOSE_CONV_WIDE_H_ */
