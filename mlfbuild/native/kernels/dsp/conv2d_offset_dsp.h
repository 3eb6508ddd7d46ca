/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D of int8 whose weights have a zero point, as those of uint8 networks, for cores with the DSP extension: the
 * kernels of conv2d_dsp.h and matmul_dsp.h with more inputs. These are sums of the others, and the weights of each are
 * minus the zero point, so that their products are the sum of all inputs times it.
 *
 * An input of 16 bits is the sum of at most 64 inputs. The weights of a channel are those of its inputs, filled up to a
 * group of four with zeros, then a group for every 64 groups or less.
 */
#ifndef MLF_CONV2D_OFFSET_DSP_H_
#define MLF_CONV2D_OFFSET_DSP_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "conv2d_dsp.h"
#include "dsp.h"
#include "expand_dsp.h"
#include "matmul_dsp.h"

/* Add the halves of two words. */
MLF_KERNEL uint32_t mlf_add_halves_dsp(uint32_t a, uint32_t b)
{
#if MLF_DSP_ASM
    __asm__("sadd16 %0, %0, %1" : "+r"(a) : "r"(b) : "cc");
    return a;
#else
    return ((a + b) & 0xffffU) | ((a >> 16) + (b >> 16)) << 16;
#endif
}

/* Append the groups of sums to the expanded inputs of a block of pixels, `groups` of four for each pixel. */
MLF_SHARED void mlf_append_sums_dsp(int32_t pixels, int16_t *rows, int32_t groups)
{
    const int32_t pitch = 4 * pixels;
    int16_t *to = rows + pitch * groups;
    for (int32_t first = 0; first < (groups + 63) / 64 * 64; first += 32) {
        const int32_t end = first + 32 < groups ? first + 32 : groups;
        for (int32_t p = 0; p < pixels; p++, to += 2) {
            uint32_t sums = 0;
            for (int32_t i = first; i < end; i++) {
                uint32_t even, odd;
                memcpy(&even, rows + pitch * i + 2 * p, sizeof even);
                memcpy(&odd, rows + pitch * i + 2 * (pixels + p), sizeof odd);
                sums = mlf_add_halves_dsp(sums, mlf_add_halves_dsp(even, odd));
            }
            memcpy(to, &sums, sizeof sums);
        }
    }
}

/*
 * As mlf_matmul_int8_dsp on rows of `depth` inputs, a multiple of four, in blocks of three; matmul->inputs includes the
 * sums. Kernels for one row have no room for them in the 24 bits of their sums.
 */
MLF_SHARED void mlf_matmul_offset_int8_dsp(const struct mlf_matmul_dsp *matmul, int32_t depth, const int8_t *input,
                                           const int32_t *filter, int8_t *output, int16_t *scratch)
{
    const int32_t pitch = matmul->outputs;
    const int32_t backward = pitch > depth;
    int32_t count;
    for (int32_t done = 0; done < matmul->rows; done += count) {
        count = matmul->rows - done >= 3 ? 3 : 1;
        const int32_t row = backward ? matmul->rows - done - count : done;
        const int32_t next = count == 3 ? depth : 0; /* a single row is computed three times */
        const int8_t *const first = input + row * depth;
        (void)mlf_expand3_dsp(scratch, first, first + next, first + 2 * next, depth / 4);
        mlf_append_sums_dsp(3, scratch, depth / 4);
        mlf_dot_channels_dsp(matmul, MLF_TILE_3X2, scratch, filter, output + row * pitch, count == 3 ? pitch : 0);
    }
    mlf_activate_dsp(matmul, output);
}

/*
 * As mlf_conv2d_int8_dsp and mlf_conv2d_gather_int8_dsp, which `padding` distinguishes: it is null for the latter, the
 * only one that reads the input's `zero_point`.
 */
MLF_KERNEL void mlf_conv2d_offset_int8_dsp(const struct mlf_conv2d_dsp *conv2d, int32_t pixels, const int8_t *input,
                                           const int32_t *filter, const int8_t *padding, int8_t *output,
                                           int16_t *scratch, int32_t zero_point)
{
    const struct mlf_window *const window = &conv2d->window;
    const int32_t groups = (window->filter.height * window->filter.width * window->input_channels + 3) / 4;
    int8_t *const bytes = (int8_t *)(scratch + pixels * 4 * ((conv2d->matmul.inputs + 3) / 4));
    if (padding == NULL) {
        memset(bytes, 0, (size_t)(3 * 4 * groups));
    }
    for (int32_t pixel = 0; pixel < conv2d->matmul.rows; pixel = mlf_next_dsp(conv2d, pixels, pixel)) {
        struct mlf_corner_dsp corners[3];
        mlf_corners_dsp(conv2d, pixels, input, pixel, corners);
        if (padding == NULL) {
            for (int32_t p = 0; p < 3; p++) {
                mlf_gather_window_dsp(window, &corners[p], zero_point, bytes + 4 * groups * p);
            }
            (void)mlf_expand3_dsp(scratch, bytes, bytes + 4 * groups, bytes + 8 * groups, groups);
        } else {
            mlf_expand_windows_dsp(conv2d, pixels, corners, padding, scratch);
        }
        mlf_append_sums_dsp(pixels, scratch, groups);
        mlf_conv2d_block_dsp(conv2d, pixels, scratch, filter, output, pixel);
    }
    mlf_activate_dsp(&conv2d->matmul, output);
}

#endif /* MLF_CONV2D_OFFSET_DSP_H_ */
