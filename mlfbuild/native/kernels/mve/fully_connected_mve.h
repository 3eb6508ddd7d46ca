/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * FULLY_CONNECTED of one row on int8 for Helium (MVE); sums and rescaling are those of fully_connected.h. Weights are
 * in the order of gemm_mve.h.
 */
#ifndef MLF_FULLY_CONNECTED_MVE_H_
#define MLF_FULLY_CONNECTED_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "gemv_mve.h"
#include "requantize_mve.h"

/* Write the outputs of both groups of a pair to the first `count` of eight positions. */
MLF_KERNEL void mlf_gemv_scatter(struct mlf_gemv *gemv, int32_t count)
{
    for (int32_t c = 0; c < 4; c++) {
        const int32_t last = count - 1; /* channels beyond the last one are copies of it */
        gemv->scatter[2 * c] = (uint16_t)(c < count ? c : last);
        gemv->scatter[2 * c + 1] = (uint16_t)(count <= 4 ? gemv->scatter[2 * c] : c + 4 < count ? c + 4 : last);
    }
}

MLF_SHARED void mlf_fully_connected_int8_mve(int32_t inputs, int32_t outputs,
                                             const struct mlf_quantization *quantization, const int8_t *input,
                                             const int8_t *weights, const struct mlf_channels4 *channels,
                                             mlf_gemv_function multiply, int8_t *output)
{
    const int32_t rest = outputs % 8;
    struct mlf_gemv gemv = {
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
    mlf_gemv_scatter(&gemv, 8);
    if (gemv.pairs > 0) {
        multiply(&gemv);
    }
    if (rest > 0) {
        mlf_gemv_scatter(&gemv, rest);
        gemv.weights += 2 * gemv.pairs * gemv.group;
        gemv.second_weights = gemv.weights + (rest > 4 ? gemv.group : 0);
        gemv.channels += 2 * gemv.pairs;
        gemv.second_channels = rest > 4 ? 0 : -(int32_t)sizeof *channels;
        gemv.output += 8 * gemv.pairs;
        gemv.pairs = 1;
        multiply(&gemv);
    }
}

#endif /* MLF_FULLY_CONNECTED_MVE_H_ */
