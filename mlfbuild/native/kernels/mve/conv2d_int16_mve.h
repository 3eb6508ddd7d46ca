/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D and FULLY_CONNECTED of int16 activations for Helium (MVE): three pixels, or one, times two output channels.
 * Sums fit in 32 bits, and become outputs as in dot_3x2_int16_dsp.h. The filter is [O, inputs] of int8; `channels` has
 * the bias and the multiplier of each output channel.
 *
 * The inner loop for three pixels spends 12 instructions on 48 products (0.25 each) in VLDRB, VLDRH and VMLADAVA of 8
 * lanes, the one for a single pixel 6 on 16; the last lanes are predicated, so that no padding is needed.
 */
#ifndef MLF_CONV2D_INT16_MVE_H_
#define MLF_CONV2D_INT16_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "conv2d_int16_dsp.h"
#include "copy_mve.h"
#include "dot_3x2_int16_dsp.h"
#include "window.h"

/* The state of a block of pixels; assembly reads and writes it by position. */
struct mlf_dot_int16_mve {
    const int16_t *inputs;
    int32_t row;   /* bytes from one pixel's inputs to the next one's */
    int32_t count; /* of inputs */
    const int8_t *filter;
    const int32_t *channels;
    int16_t *output;
    int32_t pitch; /* bytes from one pixel's output to the next one's */
    int32_t pairs; /* of output channels */
};

#if defined(MLF_MVE)

/*
 * All pairs of output channels: r0 block. Then r11 block; r1, r3, r12 inputs; r7, r5 weights; r0, r2, r4 even sums;
 * r6, r8, r10 odd ones. Vectors of bytes are loaded from low registers, VMLADAVA adds to even ones.
 */
#define MLF_DOT_INT16_MVE(loop, store)                                                                                 \
    "push {r4-r8, r10, r11, lr}\n"                                                                                     \
    "mov r11, r0\n"                                                                                                    \
    "1: ldr r3, [r11, #16]\n"                                                                                          \
    "ldr r0, [r3]\n"                                                                                                   \
    "ldr r6, [r3, #8]\n"                                                                                               \
    "mov r2, r0\n"                                                                                                     \
    "mov r4, r0\n"                                                                                                     \
    "mov r8, r6\n"                                                                                                     \
    "mov r10, r6\n"                                                                                                    \
    "ldrd r1, r12, [r11]\n"                                                                                            \
    "add r3, r1, r12\n"                                                                                                \
    "add r12, r3, r12\n"                                                                                               \
    "ldrd r5, r7, [r11, #8]\n"                                                                                         \
    "wlstp.16 lr, r5, 3f\n"                                                                                            \
    "add r5, r7, r5\n"                                                                                                 \
    "2: " loop "letp lr, 2b\n"                                                                                         \
    "3: ldrd r1, r3, [r11, #12]\n"                                                                                     \
    "ldr r5, [r11, #8]\n"                                                                                              \
    "add r1, r1, r5, lsl #1\n"                                                                                         \
    "ldr r5, [r3, #4]\n"                                                                                               \
    "ldr lr, [r3, #12]\n"                                                                                              \
    "add r3, r3, #16\n"                                                                                                \
    "strd r1, r3, [r11, #12]\n"                                                                                        \
    "ldrd r7, r12, [r11, #20]\n" store                                                                                 \
    "str r7, [r11, #20]\n"                                                                                             \
    "ldr r1, [r11, #28]\n"                                                                                             \
    "subs r1, r1, #1\n"                                                                                                \
    "str r1, [r11, #28]\n"                                                                                             \
    "bne 1b\n"                                                                                                         \
    "pop {r4-r8, r10, r11, pc}"

#define MLF_DOT_3X2_INT16_MVE(saturate, bits)                                                                          \
    MLF_DOT_INT16_MVE("vldrb.s16 q0, [r7], #8\n"                                                                       \
                        "vldrh.u16 q2, [r1], #16\n"                                                                    \
                        "vldrb.s16 q1, [r5], #8\n"                                                                     \
                        "vmladava.s16 r0, q0, q2\n"                                                                    \
                        "vldrh.u16 q3, [r3], #16\n"                                                                    \
                        "vmladava.s16 r6, q1, q2\n"                                                                    \
                        "vldrh.u16 q2, [r12], #16\n"                                                                   \
                        "vmladava.s16 r2, q0, q3\n"                                                                    \
                        "vmladava.s16 r8, q1, q3\n"                                                                    \
                        "vmladava.s16 r4, q0, q2\n"                                                                    \
                        "vmladava.s16 r10, q1, q2\n",                                                                  \
                        MLF_STORE_INT16_DSP("r2", "r5", "[r7, r12]", saturate, bits)                                   \
                        MLF_STORE_INT16_DSP("r4", "r5", "[r7, r12, lsl #1]", saturate, bits)                           \
                        MLF_STORE_INT16_DSP("r0", "r5", "[r7], #2", saturate, bits)                                    \
                        MLF_STORE_INT16_DSP("r8", "lr", "[r7, r12]", saturate, bits)                                   \
                        MLF_STORE_INT16_DSP("r10", "lr", "[r7, r12, lsl #1]", saturate, bits)                          \
                        MLF_STORE_INT16_DSP("r6", "lr", "[r7], #2", saturate, bits))

#define MLF_DOT_1X2_INT16_MVE(saturate, bits)                                                                          \
    MLF_DOT_INT16_MVE("vldrh.u16 q2, [r1], #16\n"                                                                      \
                        "vldrb.s16 q0, [r7], #8\n"                                                                     \
                        "vldrb.s16 q1, [r5], #8\n"                                                                     \
                        "vmladava.s16 r0, q0, q2\n"                                                                    \
                        "vmladava.s16 r6, q1, q2\n",                                                                   \
                        MLF_STORE_INT16_DSP("r0", "r5", "[r7], #2", saturate, bits)                                    \
                        MLF_STORE_INT16_DSP("r6", "lr", "[r7], #2", saturate, bits))

#define MLF_DEFINE_INT16_MVE(name, body)                                                                               \
    MLF_NAKED void name(struct mlf_dot_int16_mve *dot MLF_UNUSED)                                                      \
    {                                                                                                                  \
        __asm__ volatile(body);                                                                                        \
    }

MLF_DEFINE_INT16_MVE(mlf_dot_3x2_int16_mve, MLF_DOT_3X2_INT16_MVE("ssat ", ", #16, "))
MLF_DEFINE_INT16_MVE(mlf_dot_3x2_relu_int16_mve, MLF_DOT_3X2_INT16_MVE("usat ", ", #15, "))
MLF_DEFINE_INT16_MVE(mlf_dot_1x2_int16_mve, MLF_DOT_1X2_INT16_MVE("ssat ", ", #16, "))
MLF_DEFINE_INT16_MVE(mlf_dot_1x2_relu_int16_mve, MLF_DOT_1X2_INT16_MVE("usat ", ", #15, "))

#else /* the same in C */

/* A block of one or three pixels; outputs are at least `least`. */
MLF_KERNEL void mlf_dot_in_c_int16_mve(const struct mlf_dot_int16_mve *dot, int32_t pixels, int32_t least)
{
    for (int32_t p = 0; p < pixels; p++) {
        const int16_t *const input = dot->inputs + p * (dot->row / 2);
        for (int32_t c = 0; c < 2 * dot->pairs; c++) {
            const int8_t *const weights = dot->filter + c * dot->count;
            uint32_t sum = (uint32_t)dot->channels[2 * c];
            for (int32_t i = 0; i < dot->count; i++) {
                sum += (uint32_t)(input[i] * weights[i]);
            }
            dot->output[p * (dot->pitch / 2) + c] = mlf_round_int16_dsp(sum, dot->channels[2 * c + 1], least);
        }
    }
}

#define MLF_DEFINE_INT16_MVE(name, pixels, least)                                                                      \
    MLF_SHARED void name(struct mlf_dot_int16_mve *dot)                                                                \
    {                                                                                                                  \
        mlf_dot_in_c_int16_mve(dot, pixels, least);                                                                    \
    }

MLF_DEFINE_INT16_MVE(mlf_dot_3x2_int16_mve, 3, INT16_MIN)
MLF_DEFINE_INT16_MVE(mlf_dot_3x2_relu_int16_mve, 3, 0)
MLF_DEFINE_INT16_MVE(mlf_dot_1x2_int16_mve, 1, INT16_MIN)
MLF_DEFINE_INT16_MVE(mlf_dot_1x2_relu_int16_mve, 1, 0)

#endif

/* `pairs` pairs of output channels from channel `first`, for one pixel or three with adjacent inputs. */
MLF_KERNEL void mlf_dot_pairs_int16_mve(const struct mlf_matmul_int16_dsp *matmul, int32_t pixels,
                                        const int16_t *inputs, const int8_t *filter, const int32_t *channels,
                                        int16_t *output, int32_t first, int32_t pairs)
{
    struct mlf_dot_int16_mve dot = {
        .inputs = inputs,
        .row = 2 * matmul->inputs,
        .count = matmul->inputs,
        .filter = filter + first * matmul->inputs,
        .channels = channels + 2 * first,
        .output = output + first,
        .pitch = 2 * matmul->outputs,
        .pairs = pairs,
    };
    if (pixels == 3 && matmul->minimum == 0) {
        mlf_dot_3x2_relu_int16_mve(&dot);
    } else if (pixels == 3) {
        mlf_dot_3x2_int16_mve(&dot);
    } else if (matmul->minimum == 0) {
        mlf_dot_1x2_relu_int16_mve(&dot);
    } else {
        mlf_dot_1x2_int16_mve(&dot);
    }
}

/* All output channels; if their number is odd, the last two form the last pair, which repeats one channel. */
MLF_KERNEL void mlf_dot_channels_int16_mve(const struct mlf_matmul_int16_dsp *matmul, int32_t pixels,
                                           const int16_t *inputs, const int8_t *filter, const int32_t *channels,
                                           int16_t *output)
{
    mlf_dot_pairs_int16_mve(matmul, pixels, inputs, filter, channels, output, 0, matmul->outputs / 2);
    if (matmul->outputs % 2 != 0) {
        mlf_dot_pairs_int16_mve(matmul, pixels, inputs, filter, channels, output, matmul->outputs - 2, 1);
    }
}

/* FULLY_CONNECTED and CONV_2D of 1x1 with stride 1: rows of inputs, read in place, times the filter. */
MLF_KERNEL void mlf_matmul_int16_mve(const struct mlf_matmul_int16_dsp *matmul, const int16_t *input,
                                     const int8_t *filter, const int32_t *channels, int16_t *output)
{
    int32_t count;
    for (int32_t row = 0; row < matmul->rows; row += count) {
        count = matmul->rows - row >= 3 ? 3 : 1;
        mlf_dot_channels_int16_mve(matmul, count, input + row * matmul->inputs, filter, channels,
                                   output + row * matmul->outputs);
    }
    mlf_activate_int16_dsp(matmul, output);
}

/* Copy the window of the output pixel (y, x); return the address after the copy. */
MLF_KERNEL int16_t *mlf_copy_window_int16_mve(const struct mlf_window *window, const int16_t *image, int32_t y,
                                              int32_t x, int16_t *to)
{
    const struct mlf_taps rows = mlf_rows(window, y);
    const struct mlf_taps columns = mlf_columns(window, x);
    const int32_t depth = window->input_channels;
    int8_t *at = (int8_t *)(void *)to;
    for (int32_t row = 0; row < window->filter.height; row++) {
        const int inside = row >= rows.first && row < rows.end;
        const int32_t first = inside ? columns.first : window->filter.width;
        const int32_t end = inside ? columns.end : window->filter.width;
        at = mlf_fill_mve(at, 0, 2 * depth * first);
        if (window->dilation.width == 1 && first < end) {
            const int16_t *const from = image + mlf_pixel(window, &rows, &columns, row, first);
            at = mlf_copy_mve(at, (const int8_t *)(const void *)from, 2 * depth * (end - first));
        } else {
            for (int32_t column = first; column < end; column++) {
                const int16_t *const from = image + mlf_pixel(window, &rows, &columns, row, column);
                at = mlf_copy_mve(at, (const int8_t *)(const void *)from, 2 * depth);
            }
        }
        at = mlf_fill_mve(at, 0, 2 * depth * (window->filter.width - end));
    }
    return to + window->filter.height * window->filter.width * depth;
}

/*
 * CONV_2D with any window; `matmul` has a row for each pixel of the output and the inputs of a window. `scratch` holds
 * the windows of a block. The last block of three may overlap the one before.
 */
MLF_KERNEL void mlf_conv2d_int16_mve(const struct mlf_window *window, const struct mlf_matmul_int16_dsp *matmul,
                                     const int16_t *input, const int8_t *filter, const int32_t *channels,
                                     int16_t *output, int16_t *scratch)
{
    const int32_t size = window->input.height * window->input.width * window->input_channels;
    const int32_t count = matmul->rows >= 3 ? 3 : 1;
    for (int32_t done = 0; done < matmul->rows; done += count) {
        const int32_t first = done + count > matmul->rows ? matmul->rows - count : done;
        int16_t *to = scratch;
        for (int32_t p = 0; p < count; p++) {
            const int32_t line = (first + p) / window->output.width;
            const int32_t batch = line / window->output.height;
            to = mlf_copy_window_int16_mve(window, input + batch * size, line - batch * window->output.height,
                                           first + p - line * window->output.width, to);
        }
        mlf_dot_channels_int16_mve(matmul, count, scratch, filter, channels, output + first * matmul->outputs);
    }
    mlf_activate_int16_dsp(matmul, output);
}

#endif /* MLF_CONV2D_INT16_MVE_H_ */
