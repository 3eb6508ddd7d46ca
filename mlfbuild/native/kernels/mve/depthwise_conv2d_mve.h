/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D on int8 for Helium (MVE), one output channel per input channel, filters of at most 16 taps; sums
 * and rescaling are those of depthwise_conv2d.h.
 *
 * depthwise_row_mve.h multiplies one channel at a time, whose window is one vector. For this, the rows under the filter
 * are copied to a ring, planar and interleaved: for every channel, position and row, so that a window of h rows and w
 * columns is h * w adjacent bytes, and the next one starts h * stride bytes later. Row r is in slot r modulo h, and the
 * filter's taps are permuted as its first row moves through the slots.
 *
 * A copied element takes half an instruction. Rows are copied before output is written to their address, so that the
 * output may overwrite the input.
 *
 * The inner axis runs along a row of the ring, the outer axis from row to row: width and height or, for images that are
 * higher than wide, height and width.
 */
#ifndef MLF_DEPTHWISE_CONV2D_MVE_H_
#define MLF_DEPTHWISE_CONV2D_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "copy_mve.h"
#include "depthwise_row_mve.h"
#include "requantize_mve.h"

/* Channels of the ring: 16, and a remainder of less than four. */
#define MLF_DEPTHWISE_BLOCK 16
#define MLF_DEPTHWISE_MOST 19

#if defined(MLF_MVE)

/*
 * Copy `count` pixels of up to 8 channels into a slot of the ring: from `from`, `step` bytes apart, to `to`, `rows`
 * bytes apart; `offsets` are those of the channels.
 */
MLF_KERNEL void mlf_depthwise_insert8(int8_t *to, int32_t rows, const int8_t *from, int32_t step, int32_t count,
                                      int32_t channels, const uint16_t *offsets)
{
    __asm__ volatile("vldrh.u16 q1, [%4]\n"
                     "vctp.16 %5\n"
                     "dls lr, %6\n"
                     "1: vpstt\n"
                     "vldrbt.u16 q0, [%1]\n"
                     "vstrbt.16 q0, [%0, q1]\n"
                     "add %1, %3\n"
                     "add %0, %2\n"
                     "le lr, 1b\n"
                     : "+r"(to), "+l"(from)
                     : "r"(rows), "r"(step), "r"(offsets), "r"(channels), "r"(count)
                     : "lr", "q0", "q1", "memory");
}

MLF_KERNEL void mlf_depthwise_insert16(int8_t *to, int32_t rows, const int8_t *from, int32_t step, int32_t count,
                                       const uint16_t *offsets)
{
    __asm__ volatile("vldrh.u16 q2, [%4]\n"
                     "vldrh.u16 q3, [%4, #16]\n"
                     "dls lr, %5\n"
                     "1: vldrb.u16 q0, [%1]\n"
                     "vstrb.16 q0, [%0, q2]\n"
                     "vldrb.u16 q1, [%1, #8]\n"
                     "vstrb.16 q1, [%0, q3]\n"
                     "add %1, %3\n"
                     "add %0, %2\n"
                     "le lr, 1b\n"
                     : "+r"(to), "+l"(from)
                     : "r"(rows), "r"(step), "r"(offsets), "r"(count)
                     : "lr", "q0", "q1", "q2", "q3", "memory");
}

#else /* the same in C */

MLF_KERNEL void mlf_depthwise_insert8(int8_t *to, int32_t rows, const int8_t *from, int32_t step, int32_t count,
                                      int32_t channels, const uint16_t *offsets)
{
    for (int32_t x = 0; x < count; x++) {
        for (int32_t c = 0; c < (channels < 8 ? channels : 8); c++) {
            to[x * rows + offsets[c]] = from[x * step + c];
        }
    }
}

MLF_KERNEL void mlf_depthwise_insert16(int8_t *to, int32_t rows, const int8_t *from, int32_t step, int32_t count,
                                       const uint16_t *offsets)
{
    mlf_depthwise_insert8(to, rows, from, step, count, 8, offsets);
    mlf_depthwise_insert8(to, rows, from + 8, step, count, 8, offsets + 8);
}

#endif /* MLF_MVE */

/* An axis of the image; steps are bytes from a pixel to the next. */
struct mlf_depthwise_axis {
    int32_t input;
    int32_t output;
    int32_t filter;
    int32_t stride;
    int32_t padding; /* before the image */
    int32_t input_step;
    int32_t output_step;
};

struct mlf_depthwise_image {
    int32_t batches;
    int32_t channels; /* at least 4 */
    struct mlf_depthwise_axis inner; /* of at least two output pixels */
    struct mlf_depthwise_axis outer;
};

/* The state of a block of channels. */
struct mlf_depthwise_block {
    const struct mlf_depthwise_image *image;
    const int8_t *input;
    int8_t *ring;
    const int8_t *fill; /* a pixel of padding */
    int32_t channels;
    int32_t pitch;
    uint16_t offsets[24]; /* of channels in the ring; the others are unused */
};

/* Copy row r of the padded image into its slot. Not inlined, because it changes the predicate, as calls do. */
MLF_SHARED void mlf_depthwise_insert(const struct mlf_depthwise_block *block, int32_t r)
{
    const struct mlf_depthwise_axis *const inner = &block->image->inner;
    const struct mlf_depthwise_axis *const outer = &block->image->outer;
    const int32_t y = r - outer->padding;
    const int inside = y >= 0 && y < outer->input;
    const int8_t *const from = inside ? block->input + y * outer->input_step : block->fill;
    const int32_t step = inside ? inner->input_step : 0;
    int8_t *const to = block->ring + inner->padding * outer->filter + r % outer->filter;
    int32_t c = 0;
    if (block->channels >= 16) {
        mlf_depthwise_insert16(to, outer->filter, from, step, inner->input, block->offsets);
        c = 16;
    }
    for (; c < block->channels; c += 8) {
        mlf_depthwise_insert8(to, outer->filter, from + c, step, inner->input, block->channels - c,
                              block->offsets + c);
    }
}

/* Compute a row of all channels of a block; a remainder of less than four channels is computed with those before. */
MLF_KERNEL void mlf_depthwise_groups(const struct mlf_depthwise_block *block, const struct mlf_depthwise_row *all,
                                     mlf_depthwise_function multiply)
{
    const int32_t rest = block->channels % 4;
    multiply(all);
    if (rest != 0) {
        const int32_t first = block->channels - 4;
        struct mlf_depthwise_row row = *all;
        row.channels += row.groups;
        row.weights += first * row.taps;
        row.ring += first * row.pitch;
        row.output += first;
        row.groups = 1;
        multiply(&row);
    }
}

MLF_KERNEL void mlf_depthwise_block_mve(const struct mlf_depthwise_block *block, struct mlf_depthwise_row *row,
                                        const uint8_t *order, mlf_depthwise_function multiply)
{
    const struct mlf_depthwise_axis *const outer = &block->image->outer;
    int8_t *const output = row->output;
    int32_t next = 0;
    mlf_fill_mve(block->ring, *block->fill, block->channels * block->pitch);
    for (int32_t y = 0; y < outer->output; y++) {
        const int32_t first = y * outer->stride;
        for (next = next < first ? first : next; next < first + outer->filter; next++) {
            mlf_depthwise_insert(block, next);
        }
        row->order = order + 16 * (first % outer->filter);
        row->output = output + y * outer->output_step;
        mlf_depthwise_groups(block, row, multiply);
    }
}

/*
 * Weights are [channel, inner tap, outer tap]. `order` has 16 bytes for each slot of the filter's first row. If the
 * number of channels is not a multiple of four, the last of `channels` has the last four. Scratch memory: 16 bytes,
 * twice MLF_DEPTHWISE_BLOCK for a pixel of padding, and the ring, which has for each of up to MLF_DEPTHWISE_MOST
 * channels the outer filter's rows times the part of the padded image along the inner axis.
 */
MLF_SHARED void mlf_depthwise_conv2d_int8_mve(const struct mlf_depthwise_image *image,
                                              const struct mlf_quantization *quantization, const int8_t *input,
                                              const int8_t *weights, const struct mlf_channels4 *channels,
                                              const uint8_t *order, mlf_depthwise_function multiply, void *scratch,
                                              int8_t *output)
{
    const struct mlf_depthwise_axis *const inner = &image->inner;
    const struct mlf_depthwise_axis *const outer = &image->outer;
    int8_t *const fill = scratch;
    const int32_t wide = (inner->output - 1) * inner->stride + inner->filter;
    const int32_t reach = inner->padding + inner->input;
    struct mlf_depthwise_block block = {
        .image = image,
        .ring = fill + 2 * MLF_DEPTHWISE_BLOCK,
        .fill = fill,
        .pitch = outer->filter * (wide > reach ? wide : reach),
    };
    struct mlf_depthwise_row row = {
        .zero_point = quantization->output_zero_point,
        .minimum = quantization->minimum,
        .maximum = quantization->maximum,
        .taps = inner->filter * outer->filter,
        .pitch = block.pitch,
        .step = inner->stride * outer->filter,
        .output_step = 2 * inner->output_step,
    };
    row.length = inner->output / 2 * 2 * row.step;
    row.back = inner->output % 2 * row.step;
    row.output_back = inner->output_step;
    for (int32_t c = 0; c < 4; c++) {
        row.scatter[2 * c] = (uint16_t)c;
        row.scatter[2 * c + 1] = (uint16_t)(c + inner->output_step);
    }
    for (int32_t c = 0; c < 24; c++) {
        block.offsets[c] = (uint16_t)(c * block.pitch);
    }
    mlf_fill_mve(fill, (int8_t)quantization->input_zero_point, 2 * MLF_DEPTHWISE_BLOCK);
    for (int32_t n = 0; n < image->batches; n++) {
        for (int32_t c = 0; c < image->channels; c += block.channels) {
            const int32_t left = image->channels - c;
            block.channels = left <= MLF_DEPTHWISE_MOST ? left : MLF_DEPTHWISE_BLOCK;
            block.input = input + n * inner->input * outer->input * image->channels + c;
            row.ring = block.ring;
            row.weights = weights + c * row.taps;
            row.channels = channels + c / 4;
            row.output = output + n * inner->output * outer->output * image->channels + c;
            row.groups = block.channels / 4;
            mlf_depthwise_block_mve(&block, &row, order, multiply);
        }
    }
}

#endif /* MLF_DEPTHWISE_CONV2D_MVE_H_ */
