/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D of int16 activations for cores with the DSP extension: one output channel for each input channel,
 * a multiple of four channels, any window. For each output pixel, the addresses of its taps are computed once; taps in
 * the padding are read from a pixel of zeros. Four channels then take 9 instructions per tap (2.25 per product, 2.45
 * with the branch, unrolled for four taps), and 3 per output; dot_3x2_int16_dsp.h describes how sums become outputs.
 *
 * The filter holds for every four channels, in words: their biases; for each tap the weights as int16 of channels 0 and
 * 1, and of 2 and 3; their multipliers.
 */
#ifndef MLF_DEPTHWISE_CONV2D_INT16_DSP_H_
#define MLF_DEPTHWISE_CONV2D_INT16_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dot_3x2_int16_dsp.h"
#include "wide_sums.h"
#include "window.h"

#define MLF_TAPS_INT16_DSP 64

/* The taps of a pixel; assembly reads all but the array by position. */
struct mlf_taps_int16_dsp {
    int32_t count;
    int32_t channels;
    const int16_t *taps[MLF_TAPS_INT16_DSP]; /* addresses of their first channels */
};

#if MLF_DSP_ASM

/* One tap of four channels: r0 addresses, r1 filter, r12 bytes of the channels before; r5, r8, r10, r11 sums. */
#define MLF_TAP4_INT16_DSP                                                                                             \
    "ldr r3, [r0], #4\n\t"                                                                                             \
    "ldmia r1!, {r6, r7}\n\t"                                                                                          \
    "add r3, r3, r12\n\t"                                                                                              \
    "ldr r4, [r3]\n\t"                                                                                                 \
    "ldr r3, [r3, #4]\n\t"                                                                                             \
    "smlabb r5, r6, r4, r5\n\t"                                                                                        \
    "smlatt r8, r6, r4, r8\n\t"                                                                                        \
    "smlabb r10, r7, r3, r10\n\t"                                                                                      \
    "smlatt r11, r7, r3, r11\n\t"

/* r0 pixel, r1 filter, r2 output. On the stack: addresses, where the first round of four taps begins, channels. */
#define MLF_DEPTHWISE_INT16_DSP(saturate, bits)                                                                        \
    "push {r4-r8, r10, r11, lr}\n\t"                                                                                   \
    "sub sp, sp, #16\n\t"                                                                                              \
    "ldmia r0!, {r4, r5}\n\t"                                                                                          \
    "add lr, r0, r4, lsl #2\n\t" /* the end of the addresses */                                                        \
    "rsb r4, r4, #0\n\t"                                                                                               \
    "and r4, r4, #3\n\t" MLF_ENTRY_DSP("r4", "r6", "r7")                                                               \
    "strd r0, r4, [sp]\n\t"                                                                                            \
    "lsl r5, r5, #1\n\t"                                                                                               \
    "str r5, [sp, #8]\n\t"                                                                                             \
    "mov r12, #0\n"                                                                                                    \
    "1:\n\t"                                                                                                           \
    "ldmia r1!, {r5, r8, r10, r11}\n\t"                                                                                \
    "ldr r0, [sp]\n\t"                                                                                                 \
    "ldr pc, [sp, #4]\n"                                                                                               \
    "3:\n\t" MLF_TAP4_INT16_DSP "4:\n\t" MLF_TAP4_INT16_DSP MLF_TAP4_INT16_DSP MLF_TAP4_INT16_DSP                      \
    "cmp r0, lr\n\t"                                                                                                   \
    "bne 3b\n\t"                                                                                                       \
    "ldmia r1!, {r3, r4, r6, r7}\n\t"                                                                                  \
    MLF_STORE_INT16_DSP("r5", "r3", "[r2], #2", saturate, bits)                                                        \
    MLF_STORE_INT16_DSP("r8", "r4", "[r2], #2", saturate, bits)                                                        \
    MLF_STORE_INT16_DSP("r10", "r6", "[r2], #2", saturate, bits)                                                       \
    MLF_STORE_INT16_DSP("r11", "r7", "[r2], #2", saturate, bits)                                                       \
    "ldr r3, [sp, #8]\n\t"                                                                                             \
    "add r12, r12, #8\n\t"                                                                                             \
    "cmp r12, r3\n\t"                                                                                                  \
    "bne 1b\n\t"                                                                                                       \
    "add sp, sp, #16\n\t"                                                                                              \
    "pop {r4-r8, r10, r11, pc}"

#define MLF_DEFINE_DEPTHWISE_INT16_DSP(name, body)                                                                     \
    MLF_NAKED void name(const struct mlf_taps_int16_dsp *pixel MLF_UNUSED, const int32_t *filter MLF_UNUSED,           \
                        int16_t *output MLF_UNUSED)                                                                    \
    {                                                                                                                  \
        __asm__ volatile(body);                                                                                        \
    }

MLF_DEFINE_DEPTHWISE_INT16_DSP(mlf_depthwise_pixel_int16_dsp, MLF_DEPTHWISE_INT16_DSP("ssat ", ", #16, "))
MLF_DEFINE_DEPTHWISE_INT16_DSP(mlf_depthwise_pixel_relu_int16_dsp, MLF_DEPTHWISE_INT16_DSP("usat ", ", #15, "))

#else /* the same in C */

MLF_KERNEL void mlf_depthwise_channels_int16_dsp(const struct mlf_taps_int16_dsp *pixel, const int32_t *filter,
                                                 int16_t *output, int32_t least)
{
    for (int32_t c = 0; c < pixel->channels; c++) {
        const int32_t *const four = filter + c / 4 * (8 + 2 * pixel->count);
        uint32_t sum = (uint32_t)four[c % 4];
        for (int32_t tap = 0; tap < pixel->count; tap++) {
            const uint32_t weights = (uint32_t)four[4 + 2 * tap + c % 4 / 2];
            const int32_t weight = (int16_t)(uint16_t)(c % 2 == 0 ? weights : weights >> 16);
            sum += (uint32_t)(pixel->taps[tap][c] * weight);
        }
        output[c] = mlf_round_int16_dsp(sum, four[4 + 2 * pixel->count + c % 4], least);
    }
}

MLF_SHARED void mlf_depthwise_pixel_int16_dsp(const struct mlf_taps_int16_dsp *pixel, const int32_t *filter,
                                              int16_t *output)
{
    mlf_depthwise_channels_int16_dsp(pixel, filter, output, INT16_MIN);
}

MLF_SHARED void mlf_depthwise_pixel_relu_int16_dsp(const struct mlf_taps_int16_dsp *pixel, const int32_t *filter,
                                                   int16_t *output)
{
    mlf_depthwise_channels_int16_dsp(pixel, filter, output, 0);
}

#endif

/* Find the taps of the output pixel whose rows and columns of the filter are given. */
MLF_KERNEL void mlf_find_taps_int16_dsp(const struct mlf_window *window, const struct mlf_taps *rows,
                                        const struct mlf_taps *columns, const int16_t *image, const int16_t *padding,
                                        const int16_t **taps)
{
    for (int32_t row = 0; row < window->filter.height; row++) {
        const int inside = row >= rows->first && row < rows->end;
        for (int32_t column = 0; column < window->filter.width; column++) {
            const int within = inside && column >= columns->first && column < columns->end;
            *taps++ = within ? image + mlf_pixel(window, rows, columns, row, column) : padding;
        }
    }
}

/*
 * `padding` is one pixel of zeros; it is not used for a window without padding. `copied` bytes of the filter, all or none,
 * are copied to `scratch`, so that flash is read once.
 */
MLF_KERNEL void mlf_depthwise_conv2d_int16_dsp(const struct mlf_window *window, struct mlf_int16_range range,
                                               const int16_t *input, const int32_t *filter, const int16_t *padding,
                                               int16_t *output, int32_t copied, int32_t *scratch)
{
    int16_t *const start = output;
    struct mlf_taps_int16_dsp pixel;
    pixel.count = window->filter.height * window->filter.width;
    pixel.channels = window->input_channels;
    if (copied > 0) {
        memcpy(scratch, filter, (size_t)copied);
        filter = scratch;
    }
    for (int32_t batch = 0; batch < window->batches; batch++) {
        for (int32_t y = 0; y < window->output.height; y++) {
            const struct mlf_taps rows = mlf_rows(window, y);
            for (int32_t x = 0; x < window->output.width; x++, output += pixel.channels) {
                const struct mlf_taps columns = mlf_columns(window, x);
                mlf_find_taps_int16_dsp(window, &rows, &columns, input, padding, pixel.taps);
                if (range.minimum == 0) {
                    mlf_depthwise_pixel_relu_int16_dsp(&pixel, filter, output);
                } else {
                    mlf_depthwise_pixel_int16_dsp(&pixel, filter, output);
                }
            }
        }
        input += window->input.height * window->input.width * window->input_channels;
    }
    mlf_clamp_int16_dsp(start, (int32_t)(output - start), range.minimum, range.maximum);
}

#endif /* MLF_DEPTHWISE_CONV2D_INT16_DSP_H_ */
