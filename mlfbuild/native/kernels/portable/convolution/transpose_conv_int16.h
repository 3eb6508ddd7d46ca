/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* TRANSPOSE_CONV of int16 activations and int8 weights, with the loops of transpose_conv.h. */
#ifndef MLF_TRANSPOSE_CONV_INT16_H_
#define MLF_TRANSPOSE_CONV_INT16_H_

#include <stdint.h>

#include "compiler.h"
#include "transpose_conv.h"
#include "wide_sums.h"
#include "window.h"

MLF_TRANSPOSE_CONV(mlf_transpose_conv_int16(const struct mlf_window *window, struct mlf_int16_range range,
                                            const int16_t *input, const int8_t *weights,
                                            const struct mlf_wide_channel *channels, int16_t *output),
                   int16_t, int8_t, int64_t, 0, value + a * b, mlf_finish_wide(value, &channels[channel], range))

#endif /* MLF_TRANSPOSE_CONV_INT16_H_ */
