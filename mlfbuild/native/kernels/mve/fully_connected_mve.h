/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FULLY_CONNECTED of one row on int8 for Helium (MVE); sums and rescaling are those of fully_connected.h. Weights are
 * in the order of dot_2x4_mve.h.
 */
#ifndef MLF_FULLY_CONNECTED_MVE_H_
#define MLF_FULLY_CONNECTED_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_1x8_mve.h"
#include "requantize_mve.h"

/* Write the outputs of both groups of a pair to the first `count` of eight positions. */
MLF_KERNEL void mlf_dot_1x8_scatter(struct mlf_dot_1x8 *dot, int32_t count)
{
    for (int32_t c = 0; c < 4; c++) {
        const int32_t last = count - 1; /* channels beyond the last one are copies of it */
        dot->scatter[2 * c] = (uint16_t)(c < count ? c : last);
        dot->scatter[2 * c + 1] = (uint16_t)(count <= 4 ? dot->scatter[2 * c] : c + 4 < count ? c + 4 : last);
    }
}

MLF_SHARED void mlf_fully_connected_int8_mve(int32_t inputs, int32_t outputs,
                                             const struct mlf_quantization *quantization, const int8_t *input,
                                             const int8_t *weights, const struct mlf_channels4 *channels,
                                             mlf_dot_1x8_function multiply, int8_t *output)
{
    const int32_t rest = outputs % 8;
    struct mlf_dot_1x8 dot = {
        .input = input,
        .pairs = outputs / 8,
        .vectors = inputs / 16,
        .tail = inputs % 16,
        .weights = weights,
        .second_weights = weights + 4 * inputs,
        .group = 4 * inputs,
        .channels = channels,
        .output = output,
        .zero_point = quantization->output_zero_point,
        .minimum = quantization->minimum,
        .maximum = quantization->maximum,
    };
    mlf_dot_1x8_scatter(&dot, 8);
    if (dot.pairs > 0) {
        multiply(&dot);
    }
    if (rest > 0) {
        mlf_dot_1x8_scatter(&dot, rest);
        dot.weights += 2 * dot.pairs * dot.group;
        dot.second_weights = dot.weights + (rest > 4 ? dot.group : 0);
        dot.channels += 2 * dot.pairs;
        dot.second_channels = rest > 4 ? 0 : -(int32_t)sizeof *channels;
        dot.output += 8 * dot.pairs;
        dot.pairs = 1;
        multiply(&dot);
    }
}

#endif /* MLF_FULLY_CONNECTED_MVE_H_ */
