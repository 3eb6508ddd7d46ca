/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D of int8 with 3x3 filters, one output channel per input channel, for cores with the DSP extension.
 *
 * Four channels at a time: the lines of the input that a line of the output needs are copied to planes of 16 bits, one
 * per channel, which depthwise_line_dsp.h multiplies. Copying takes 2.1 instructions per input.
 *
 * A plane holds three lines in turn. Its filter is stored as rows 0, 1, 2, 0, 1, of which three consecutive ones always
 * match the order of the lines. Lines are rows or columns of the image, as the compiler chooses; they differ in the
 * steps in memory along a line and from line to line. Long lines are computed in pieces.
 *
 * A group of four channels is completed before the next one is read, and a line is read before its address is written:
 * with stride 1 and an output of the input's size, the output may overwrite the input.
 *
 * Layout of a filter, int32, for each group of four channels; the last group of a number that is not a multiple of four
 * overlaps the group before:
 *   2 * bias of each channel, the input's zero point folded in, then the multiplier of each (see dsp.h)
 *   the shift of each, one per byte
 *   nine words of weights, [position across lines][position along a line], one channel per byte
 */
#ifndef MLF_DEPTHWISE_CONV2D_DSP_H_
#define MLF_DEPTHWISE_CONV2D_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "depthwise_line_dsp.h"
#include "dsp.h"

/* Sizes along a line or across lines; steps are bytes. */
struct mlf_axis_dsp {
    int32_t inputs;
    int32_t outputs;
    int32_t stride; /* along a line 1 or 2 */
    int32_t padding; /* before the first input */
    int32_t input_step;
    int32_t output_step;
};

struct mlf_depthwise_dsp {
    struct mlf_axis_dsp along;
    struct mlf_axis_dsp across;
    int32_t batches;
    int32_t channels;
    int32_t zero_point; /* of the input */
    int32_t rounding;   /* 2 * the output's zero point + 1; 0 if the filter is for the brief requantisation */
    int32_t minimum;    /* of a fused activation; INT8_MIN and INT8_MAX without one */
    int32_t maximum;
};

/* Memory of the kernel. */
struct mlf_depthwise_scratch_dsp {
    int16_t planes[4][MLF_PLANE_DSP];
    struct mlf_plane_filter_dsp filters[4];
};

/* Expand the filters of a group of four channels. */
MLF_SHARED void mlf_expand_filters_dsp(const struct mlf_depthwise_dsp *depthwise, const int32_t *group,
                                       struct mlf_plane_filter_dsp filters[4])
{
    mlf_spread_filters_dsp(group + 9, filters);
    for (int32_t c = 0; c < 4; c++) {
        struct mlf_plane_filter_dsp *const filter = &filters[c];
        const struct mlf_plane_scale_dsp scale = {depthwise->rounding == 0 ? group[c] : 0, group[4 + c]};
        filter->scales[0] = scale;
        filter->scales[1] = scale;
        filter->scales[2] = scale;
        filter->shift = mlf_byte_of_dsp(group[8], c);
        filter->addend = (int32_t)((uint32_t)depthwise->rounding << filter->shift);
        filter->bias = group[c];
    }
}

/* The part of a long line that is computed at a time, and how its inputs are copied to a plane. */
struct mlf_piece_dsp {
    int32_t outputs;
    int32_t length; /* halfwords of a line of the plane, including padding */
    int32_t before; /* halfwords before the first input */
    int32_t offset; /* bytes from the line's first pixel to that input */
    int32_t head;   /* whether that input is the second of a pair of halfwords */
    int32_t pairs;
    int32_t tail; /* whether another input follows */
};

/* The piece of a line that begins with the output `first`. */
MLF_KERNEL struct mlf_piece_dsp mlf_piece_dsp(const struct mlf_axis_dsp *along, int32_t first)
{
    const int32_t most = (MLF_LINE_DSP - 3) / along->stride + 1;
    const int32_t left = along->outputs - first;
    const int32_t start = first * along->stride - along->padding;
    struct mlf_piece_dsp piece = {left < most ? left : most, 0, start < 0 ? -start : 0, 0, 0, 0, 0};
    piece.length = (piece.outputs - 1) * along->stride + 3;
    const int32_t end = along->inputs - start < piece.length ? along->inputs - start : piece.length;
    const int32_t inputs = end - piece.before;
    if (inputs > 0) {
        piece.offset = (start + piece.before) * along->input_step;
        piece.head = piece.before % 2;
        piece.pairs = (inputs - piece.head) / 2;
        piece.tail = (inputs - piece.head) % 2;
        if (piece.head + piece.tail == 2) { /* pairs that are not aligned take less time */
            piece.head = 0;
            piece.tail = 0;
            piece.pairs++;
        }
    }
    return piece;
}

/* Fill the halfwords of a line in four planes with the input's zero point. */
MLF_SHARED void mlf_fill_padding_dsp(int16_t *planes, int32_t length, int32_t zero_point)
{
    const int16_t pair[2] = {(int16_t)zero_point, (int16_t)zero_point};
    const int16_t *const end = planes + length;
    for (; planes < end; planes += 2) {
        memcpy(planes, pair, sizeof pair);
        memcpy(planes + MLF_PLANE_DSP, pair, sizeof pair);
        memcpy(planes + 2 * MLF_PLANE_DSP, pair, sizeof pair);
        memcpy(planes + 3 * MLF_PLANE_DSP, pair, sizeof pair);
    }
}

MLF_KERNEL void mlf_fill_pixel_dsp(int16_t *planes, const int8_t *input)
{
    for (int32_t c = 0; c < 4; c++) {
        planes[c * MLF_PLANE_DSP] = input[c];
    }
}

/* Copy one line of the input, at whose first pixel `input` points, to four planes. */
MLF_KERNEL void mlf_fill_line_dsp(const struct mlf_piece_dsp *piece, int32_t step, const int8_t *input, int16_t *planes)
{
    input += piece->offset;
    planes += piece->before;
    if (piece->head != 0) {
        mlf_fill_pixel_dsp(planes++, input);
        input += step;
    }
    if (piece->pairs > 0) {
        mlf_fill_planes_dsp(planes, input, step, piece->pairs);
    }
    if (piece->tail != 0) {
        mlf_fill_pixel_dsp(planes + 2 * piece->pairs, input + 2 * piece->pairs * step);
    }
}

/* The part of an image to compute: a piece of the lines from `first` to `end` - 1. */
struct mlf_part_dsp {
    struct mlf_piece_dsp piece;
    int32_t first;
    int32_t end;
};

/* Four channels of a part of an image: `input` points at its first pixel, `output` at the part's first output. */
MLF_STATIC void mlf_depthwise_part_dsp(const struct mlf_depthwise_dsp *depthwise, const struct mlf_part_dsp *part,
                                       const int8_t *input, int8_t *output, struct mlf_depthwise_scratch_dsp *scratch)
{
    const struct mlf_axis_dsp *const across = &depthwise->across;
    const struct mlf_piece_dsp *const piece = &part->piece;
    const int32_t step = depthwise->along.output_step;
    struct mlf_line_call_dsp call = {0,
                                     step,
                                     piece->outputs / MLF_OUTPUTS_DSP * MLF_OUTPUTS_DSP * step,
                                     piece->outputs * step,
                                     2 * (MLF_PLANE_DSP - depthwise->along.stride * piece->outputs),
                                     depthwise->rounding};
    int32_t next = part->first * across->stride; /* the line to copy next, counted from the first one of padding */
    int32_t slot = 0;                            /* its place in the planes */
    int32_t first_slot = 0;                      /* that of the first line under the filter */
    for (int32_t line = part->first; line < part->end; line++, output += across->output_step) {
        const int32_t first = line * across->stride;
        if (next < first) { /* lines between filters */
            next = first;
            slot = first_slot;
        }
        for (; next < first + 3; next++) {
            const int32_t at = next - across->padding;
            int16_t *const planes = scratch->planes[0] + slot * MLF_LINE_DSP;
            if ((uint32_t)at < (uint32_t)across->inputs && piece->head + piece->pairs + piece->tail > 0) {
                mlf_fill_line_dsp(piece, depthwise->along.input_step, input + at * across->input_step, planes);
            } else {
                mlf_fill_padding_dsp(planes, piece->length, depthwise->zero_point);
            }
            slot = slot == 2 ? 0 : slot + 1;
        }
        call.first = first_slot == 0 ? 0 : 8 * (3 - first_slot);
        if (depthwise->along.stride == 1) {
            mlf_depthwise_line1_dsp(scratch->planes[0], scratch->filters, output, &call);
        } else {
            mlf_depthwise_line2_dsp(scratch->planes[0], scratch->filters, output, &call);
        }
        first_slot += across->stride;
        while (first_slot >= 3) {
            first_slot -= 3;
        }
    }
}

/* A part of all channels; `input` and `output` as above. */
MLF_STATIC void mlf_depthwise_channels_dsp(const struct mlf_depthwise_dsp *depthwise, const struct mlf_part_dsp *part,
                                           const int8_t *input, const int32_t *filter, int8_t *output,
                                           struct mlf_depthwise_scratch_dsp *scratch)
{
    for (int32_t c = 0; c < depthwise->channels; c += 4, filter += 18) {
        const int32_t channel = c + 4 <= depthwise->channels ? c : depthwise->channels - 4;
        mlf_expand_filters_dsp(depthwise, filter, scratch->filters);
        mlf_depthwise_part_dsp(depthwise, part, input + channel, output + channel, scratch);
    }
}

/* Set the padding at both ends of lines, which copying lines does not change. */
MLF_KERNEL void mlf_pad_planes_dsp(const struct mlf_depthwise_dsp *depthwise, struct mlf_depthwise_scratch_dsp *scratch)
{
    for (int32_t line = 0; line < 3; line++) {
        mlf_fill_padding_dsp(scratch->planes[0] + line * MLF_LINE_DSP, MLF_LINE_DSP, depthwise->zero_point);
    }
}

MLF_STATIC void mlf_depthwise_conv2d_int8_dsp(const struct mlf_depthwise_dsp *depthwise, const int8_t *input,
                                              const int32_t *filter, int8_t *output,
                                              struct mlf_depthwise_scratch_dsp *scratch)
{
    const struct mlf_axis_dsp *const along = &depthwise->along;
    const struct mlf_axis_dsp *const across = &depthwise->across;
    for (int32_t first = 0; first < along->outputs;) {
        const struct mlf_part_dsp part = {mlf_piece_dsp(along, first), 0, across->outputs};
        mlf_pad_planes_dsp(depthwise, scratch);
        for (int32_t batch = 0; batch < depthwise->batches; batch++) {
            mlf_depthwise_channels_dsp(depthwise, &part,
                                       input + batch * along->inputs * across->inputs * depthwise->channels, filter,
                                       output + batch * along->outputs * across->outputs * depthwise->channels +
                                           first * along->output_step,
                                       scratch);
        }
        first += part.piece.outputs;
    }
    mlf_clamp_dsp(output, depthwise->batches * along->outputs * across->outputs * depthwise->channels,
                  depthwise->minimum, depthwise->maximum);
}

/*
 * As mlf_depthwise_conv2d_int8_dsp for an output that is smaller than the input that it overwrites: all channels of a
 * line are computed before the next line. Lines are rows in one piece, each computed after `scratch` and then moved to
 * its address, which must be before the inputs of the next line.
 */
MLF_STATIC void mlf_depthwise_conv2d_rows_int8_dsp(const struct mlf_depthwise_dsp *depthwise, const int8_t *input,
                                                   const int32_t *filter, int8_t *output,
                                                   struct mlf_depthwise_scratch_dsp *scratch)
{
    const struct mlf_axis_dsp *const across = &depthwise->across;
    const int32_t lines = depthwise->batches * across->outputs;
    int8_t *const held = (int8_t *)(scratch + 1);
    struct mlf_part_dsp part = {mlf_piece_dsp(&depthwise->along, 0), 0, 0};
    mlf_pad_planes_dsp(depthwise, scratch);
    for (int32_t line = 0; line < lines; line++) {
        part.first = line % across->outputs;
        part.end = part.first + 1;
        mlf_depthwise_channels_dsp(depthwise, &part,
                                   input + line / across->outputs * across->inputs * across->input_step, filter, held,
                                   scratch);
        memcpy(output + line * across->output_step, held, (size_t)across->output_step);
    }
    mlf_clamp_dsp(output, lines * across->output_step, depthwise->minimum, depthwise->maximum);
}

#endif /* MLF_DEPTHWISE_CONV2D_DSP_H_ */
