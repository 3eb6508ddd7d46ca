/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FULLY_CONNECTED of one row on float32 for Helium (MVE with floats), at least eight outputs; equal to
 * fully_connected.h except for the rounding of additions. Weights are in the order of dot_3x8_float_mve.h.
 */
#ifndef MLF_FULLY_CONNECTED_FLOAT_MVE_H_
#define MLF_FULLY_CONNECTED_FLOAT_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_3x8_float_mve.h"
#include "requantize_mve.h"

MLF_SHARED void mlf_fully_connected_float_mve(int32_t inputs, int32_t outputs, struct mlf_float_range range,
                                              const float *input, const float *weights, const float *bias,
                                              float *output)
{
    const int32_t whole = outputs / 16;
    const int32_t group = 8 * inputs;
    struct mlf_dot_1x16_float dot = {
        .input = input,
        .length = inputs,
        .pairs = whole,
        .group = 4 * group,
        .weights = {weights, weights + group},
        .bias = {bias, bias + 8},
        .output = {output, output + 8},
        .range = range,
    };
    if (whole > 0) {
        mlf_dot_1x16_float(&dot);
    }
    if (outputs % 16 != 0) { /* one group or two, which end with the last output */
        const int32_t first = outputs % 16 >= 8 ? 16 * whole : outputs - 8;
        dot.pairs = 1;
        dot.weights[0] = weights + 2 * whole * group;
        dot.weights[1] = dot.weights[0] + (outputs % 16 > 8 ? group : 0);
        dot.bias[0] = bias + first;
        dot.bias[1] = bias + outputs - 8;
        dot.output[0] = output + first;
        dot.output[1] = output + outputs - 8;
        mlf_dot_1x16_float(&dot);
    }
}

#endif /* MLF_FULLY_CONNECTED_FLOAT_MVE_H_ */
