/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D on float32 with a 3x3 filter for Helium (MVE with floats), four channels at a time; equal to
 * depthwise_conv2d.h except for the rounding of additions.
 *
 * Nine pointers to the pixels under the filter move along the channels; for the padding, they point to zeros. 36
 * products take 32 instructions in total.
 */
#ifndef MLF_DEPTHWISE_CONV2D_FLOAT_MVE_H_
#define MLF_DEPTHWISE_CONV2D_FLOAT_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "copy_mve.h"
#include "requantize_mve.h"
#include "window.h"

/* One output pixel; assembly accesses the members by position. */
struct mlf_depthwise9_float {
    const float *taps[9];
    const float *weights; /* for every four channels the biases, then the weights of each tap */
    float *output;
    int32_t groups; /* of four channels */
    struct mlf_float_range range;
};

#if defined(MLF_MVE_FLOAT)

#define MLF_DEPTHWISE9_TAP(pointer)                                                                                    \
    "vldrw.u32 q1, [" pointer "], #16\n vldrw.u32 q2, [r1], #16\n vfma.f32 q0, q1, q2\n"

MLF_NAKED void mlf_depthwise9_float(const struct mlf_depthwise9_float *pixel MLF_UNUSED)
{
    __asm__(MLF_ENTER "ldr lr, [r0, #44]\n ldrd r1, r2, [r0, #36]\n"
            "ldrd r3, r4, [r0, #48]\n vdup.32 q3, r3\n vdup.32 q4, r4\n"
            "ldr r3, [r0, #32]\n ldm r0, {r4, r5, r6, r7, r8, r10, r11, r12}\n"
            "dls lr, lr\n"
            "1: vldrw.u32 q0, [r1], #16\n"
            MLF_DEPTHWISE9_TAP("r4") MLF_DEPTHWISE9_TAP("r5") MLF_DEPTHWISE9_TAP("r6")
            MLF_DEPTHWISE9_TAP("r7") MLF_DEPTHWISE9_TAP("r8") MLF_DEPTHWISE9_TAP("r10")
            MLF_DEPTHWISE9_TAP("r11") MLF_DEPTHWISE9_TAP("r12") MLF_DEPTHWISE9_TAP("r3")
            "vmaxnm.f32 q0, q0, q3\n vminnm.f32 q0, q0, q4\n vstrw.32 q0, [r2], #16\n"
            "le lr, 1b\n" MLF_LEAVE);
}

#else

MLF_SHARED void mlf_depthwise9_float(const struct mlf_depthwise9_float *pixel)
{
    for (int32_t c = 0; c < 4 * pixel->groups; c++) {
        const float *const weights = pixel->weights + c / 4 * 40 + c % 4;
        float sum = weights[0];
        for (int32_t tap = 0; tap < 9; tap++) {
            sum += pixel->taps[tap][c] * weights[4 * (tap + 1)];
        }
        pixel->output[c] = mlf_clamp_float(sum, pixel->range);
    }
}

#endif /* MLF_MVE_FLOAT */

/* Let the taps of a filter row point to the pixels from column x, or to zeros; `line` is a row of the image. */
MLF_KERNEL void mlf_depthwise9_row(const struct mlf_window *window, const float *line, int32_t x, const float *zeros,
                                   const float **taps)
{
    for (int32_t column = 0; column < 3; column++, x += window->dilation.width) {
        const int inside = line != zeros && x >= 0 && x < window->input.width;
        taps[column] = inside ? line + x * window->input_channels : zeros;
    }
}

/* `scratch` holds a pixel. Channels are a multiple of four. */
MLF_SHARED void mlf_depthwise_conv2d_float_mve(const struct mlf_window *window, struct mlf_float_range range,
                                               const float *input, const float *filter, void *scratch, float *output)
{
    const int32_t depth = window->input_channels;
    const int32_t pitch = window->input.width * depth;
    float *const zeros = scratch;
    struct mlf_depthwise9_float pixel = {.weights = filter, .output = output, .groups = depth / 4, .range = range};
    (void)mlf_fill_mve(scratch, 0, 4 * depth);
    for (int32_t n = 0; n < window->batches; n++, input += window->input.height * pitch) {
        for (int32_t y = 0; y < window->output.height; y++) {
            const float *lines[3];
            for (int32_t row = 0; row < 3; row++) {
                const int32_t at = y * window->stride.height - window->padding.height + row * window->dilation.height;
                lines[row] = at >= 0 && at < window->input.height ? input + at * pitch : zeros;
            }
            for (int32_t x = 0; x < window->output.width; x++, pixel.output += depth) {
                const int32_t left = x * window->stride.width - window->padding.width;
                for (int32_t row = 0; row < 3; row++) {
                    mlf_depthwise9_row(window, lines[row], left, zeros, &pixel.taps[3 * row]);
                }
                mlf_depthwise9_float(&pixel);
            }
        }
    }
}

#endif /* MLF_DEPTHWISE_CONV2D_FLOAT_MVE_H_ */
