/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D of 1x1 with stride 1 and FULLY_CONNECTED of several rows, int8, for cores without SIMD. Inputs of four rows,
 * or of two if memory is short, are packed into scratch memory; dot_4x1_thumb.h multiplies them and describes the
 * filter.
 */
#ifndef MLF_MATMUL_THUMB_H_
#define MLF_MATMUL_THUMB_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_4x1_thumb.h"
#include "pack_thumb.h"
#include "thumb.h"

/* A matrix product, its requantisation and its activation. */
struct mlf_matmul_thumb {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
    int32_t rounding; /* 2 * the output's zero point + 1 */
    int32_t minimum;  /* of a fused activation; INT8_MIN and INT8_MAX without one */
    int32_t maximum;
    int32_t positive; /* whether sums are below 2^20, and negative sums give the minimum */
    int32_t pixels;   /* rows of a block: two or four */
};

MLF_KERNEL struct mlf_dot_thumb mlf_dot_of_thumb(const struct mlf_matmul_thumb *matmul)
{
    const struct mlf_dot_thumb dot = {(matmul->inputs + 3) / 4, matmul->outputs, matmul->outputs,
                                      matmul->rounding,         matmul->minimum, matmul->positive};
    return dot;
}

MLF_KERNEL void mlf_activate_thumb(const struct mlf_matmul_thumb *matmul, int8_t *output)
{
    mlf_clamp_thumb(output, matmul->rows * matmul->outputs, matmul->minimum, matmul->maximum);
}

/*
 * The output may begin at the address of the input: a block is read before it is written, and if the output is larger,
 * blocks are computed from the end to the start.
 */
MLF_SHARED void mlf_matmul_int8_thumb(const struct mlf_matmul_thumb *matmul, const int8_t *input,
                                      const int32_t *filter, int8_t *output, int32_t *scratch)
{
    struct mlf_dot_thumb dot = mlf_dot_of_thumb(matmul);
    const int backward = matmul->outputs > matmul->inputs;
    int32_t count;
    for (int32_t done = 0; done < matmul->rows; done += count) {
        const int32_t left = matmul->rows - done;
        count = left >= matmul->pixels ? matmul->pixels : left >= 2 ? 2 : 1;
        const int32_t row = backward ? left - count : done;
        const int8_t *taps[4] = {input + row * matmul->inputs};
        for (int32_t p = 1; p < 4; p++) {
            taps[p] = taps[p - 1] + (p < count ? matmul->inputs : 0);
        }
        int8_t *const to = output + row * matmul->outputs;
        if (count == 4) {
            (void)mlf_pack4_thumb(scratch, taps, matmul->inputs);
            (void)mlf_dot_4x1_thumb(scratch, filter, to, &dot);
        } else {
            dot.pitch = count == 1 ? 0 : matmul->outputs; /* a single row is computed twice */
            (void)mlf_pack2_thumb(scratch, taps, matmul->inputs);
            (void)mlf_dot_2x1_thumb(scratch, filter, to, &dot);
            dot.pitch = matmul->outputs;
        }
    }
    mlf_activate_thumb(matmul, output);
}

#endif /* MLF_MATMUL_THUMB_H_ */
