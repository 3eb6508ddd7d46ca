/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D of int8 with 3x3 filters, one output channel per input channel, for cores without SIMD.
 *
 * One channel at a time: the lines of the input that a line of the output needs are packed to a plane, which
 * depthwise_line_thumb.h multiplies. The plane holds three lines in turn, so there are three rotations of the filter.
 * Lines are rows or columns of the image, as the compiler chooses.
 *
 * A channel is completed before the next one is read, and a line is read before its address is written: with stride 1
 * and an output of the input's size, the output may overwrite the input.
 *
 * Layout of a filter, int32, for each channel:
 *   bias, with the input's zero point folded in
 *   multiplier; the highest bit is set if the weights of a position along the line add up to more than 255
 *   three words, [position across lines], of the weights at the positions along a line, the first in the lowest byte;
 *   the highest byte of the first word is the right shift + 11
 */
#ifndef MLF_DEPTHWISE_CONV2D_THUMB_H_
#define MLF_DEPTHWISE_CONV2D_THUMB_H_

#include <stdint.h>

#include "compiler.h"
#include "depthwise_line_thumb.h"
#include "thumb.h"

/* Sizes along a line or across lines; steps are bytes. */
struct mlf_axis_thumb {
    int32_t inputs;
    int32_t outputs;
    int32_t stride;
    int32_t padding; /* before the first input */
    int32_t input_step;
    int32_t output_step;
};

struct mlf_depthwise_thumb {
    struct mlf_axis_thumb along;
    struct mlf_axis_thumb across;
    int32_t batches;
    int32_t channels;
    int32_t zero_point; /* of the input */
    int32_t rounding;   /* 2 * the output's zero point + 1 */
    int32_t minimum;    /* of a fused activation; INT8_MIN and INT8_MAX without one */
    int32_t maximum;
    int32_t positive; /* whether sums are below 2^20, and negative sums give the minimum */
};

/* The words of the filter, in three rotations for lines of the plane that begin with row 0, 2 and 1. */
enum { MLF_ROTATIONS_THUMB = 27 };

/* Expand the filter of a channel: [rotation][position along a line][line of the plane]. */
MLF_SHARED void mlf_expand_filter_thumb(const int32_t *rows, int32_t *weights)
{
    for (int32_t row = 0; row < 3; row++) {
        const uint32_t word = (uint32_t)rows[row];
        int32_t *to = weights + row;
        for (uint32_t shift = 0; shift < 24; shift += 8, to += 3) {
            const int32_t weight = (int8_t)(uint8_t)(word >> shift);
            to[0] = weight;
            to[row < 2 ? 10 : 7] = weight;
            to[row < 1 ? 20 : 17] = weight;
        }
    }
}

/* Fill columns `first` to `end` - 1 of a line of the plane with numbers that may be in the padding. */
MLF_SHARED void mlf_fill_border_thumb(const struct mlf_depthwise_thumb *depthwise, const int8_t *input, int32_t first,
                                      int32_t end, int32_t distance, int32_t *plane)
{
    const struct mlf_axis_thumb *const along = &depthwise->along;
    for (int32_t column = first; column < end; column++) {
        int32_t halves[2];
        int32_t at = column - along->padding;
        for (int32_t half = 0; half < 2; half++, at += distance) {
            const int inside = input != (const int8_t *)0 && at >= 0 && at < along->inputs;
            halves[half] = inside ? input[at * along->input_step] : depthwise->zero_point;
        }
        plane[3 * column] = halves[0] + halves[1] * 65536;
    }
}

/* Pack a line of the input to a line of the plane; `input` is null in the padding. `distance` is counted in inputs. */
MLF_KERNEL void mlf_fill_line_thumb(const struct mlf_depthwise_thumb *depthwise, const int8_t *input, int32_t columns,
                                    int32_t distance, int32_t *plane)
{
    const struct mlf_axis_thumb *const along = &depthwise->along;
    const int32_t inside = along->inputs + along->padding - distance;
    const int32_t end = inside < columns ? inside : columns;
    int32_t done = 0;
    if (input != (const int8_t *)0 && end > along->padding) {
        const int32_t sizes[3] = {end - along->padding, along->input_step, distance * along->input_step};
        mlf_fill_border_thumb(depthwise, input, 0, along->padding, distance, plane);
        mlf_fill_plane_thumb(plane + 3 * along->padding, input, sizes);
        done = end;
    }
    mlf_fill_border_thumb(depthwise, input, done, columns, distance, plane);
}

/* One channel of an image; `scratch` holds the weights, the plane and the sums of a line. */
MLF_SHARED void mlf_depthwise_channel_thumb(const struct mlf_depthwise_thumb *depthwise, const int8_t *input,
                                            const int32_t *filter, int8_t *output, int32_t *scratch)
{
    const struct mlf_axis_thumb *const along = &depthwise->along;
    const struct mlf_axis_thumb *const across = &depthwise->across;
    const int32_t pairs = (along->outputs + 1) / 2;
    const int32_t distance = along->outputs - pairs; /* from an output to the other one of a pair */
    const int32_t columns = (pairs - 1) * along->stride + 3;
    int32_t *const plane = scratch + MLF_ROTATIONS_THUMB;
    int32_t *const sums = plane + 3 * columns;
    const uint32_t bias = (uint32_t)filter[0];
    struct mlf_line_thumb line = {
        sums,
        sums + 2 * pairs,
        12 * along->stride - 36,
        filter[0],
        (int32_t)(bias * 65537u - (filter[1] < 0 ? 0x30000u : 0x18000u)),
        filter[1],
        (int32_t)((uint32_t)filter[2] >> 24),
        depthwise->rounding,
        depthwise->minimum,
        depthwise->positive,
        along->output_step,
        output,
        output + distance * along->output_step,
    };
    int32_t next = 0;  /* the line to pack next, counted from the first one of padding */
    int32_t slot = 0;  /* its place in the plane */
    int32_t first = 0; /* that of the first line under the filter */
    mlf_expand_filter_thumb(filter + 2, scratch);
    for (int32_t y = 0; y < across->outputs; y++) {
        const int32_t top = y * across->stride;
        if (next < top) { /* lines between filters */
            next = top;
            slot = first;
        }
        for (; next < top + 3; next++) {
            const int32_t at = next - across->padding;
            const int inside = at >= 0 && at < across->inputs;
            mlf_fill_line_thumb(depthwise, inside ? input + at * across->input_step : (const int8_t *)0, columns,
                                distance * along->stride, plane + slot);
            slot = slot == 2 ? 0 : slot + 1;
        }
        mlf_depthwise_line_thumb(plane, scratch + 9 * first, &line);
        line.first += across->output_step;
        line.second += across->output_step;
        for (first += across->stride; first >= 3;) {
            first -= 3;
        }
    }
}

MLF_SHARED void mlf_depthwise_conv2d_int8_thumb(const struct mlf_depthwise_thumb *depthwise, const int8_t *input,
                                                const int32_t *filter, int8_t *output, int32_t *scratch)
{
    const int32_t inputs = depthwise->along.inputs * depthwise->across.inputs * depthwise->channels;
    const int32_t outputs = depthwise->along.outputs * depthwise->across.outputs * depthwise->channels;
    for (int32_t batch = 0; batch < depthwise->batches; batch++) {
        for (int32_t c = 0; c < depthwise->channels; c++) {
            mlf_depthwise_channel_thumb(depthwise, input + batch * inputs + c, filter + 5 * c,
                                        output + batch * outputs + c, scratch);
        }
    }
    mlf_clamp_thumb(output, depthwise->batches * outputs, depthwise->minimum, depthwise->maximum);
}

#endif /* MLF_DEPTHWISE_CONV2D_THUMB_H_ */
