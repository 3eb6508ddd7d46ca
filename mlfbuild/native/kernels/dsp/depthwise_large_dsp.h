/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D of int8 with larger filters, one output channel per input channel, for cores with the DSP extension.
 *
 * Four channels at a time: lines of the input are copied to planes of 16 bits, one per channel, and the filters are
 * expanded; depthwise_large_line_dsp.h multiplies them. Lines are rows or columns of the image, as the compiler chooses.
 *
 * A plane has the lines of some output lines, and those that the next ones need as well are moved to its beginning. A
 * group of channels is completed before the next one is read, and lines are read before their addresses are written:
 * with stride 1 and an output of the input's size, the output may overwrite the input.
 *
 * Layout of a filter, int32, for each group of four channels: as in depthwise_conv2d_dsp.h, with as many words of
 * weights as there are taps.
 */
#ifndef MLF_DEPTHWISE_LARGE_DSP_H_
#define MLF_DEPTHWISE_LARGE_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "depthwise_conv2d_dsp.h"
#include "depthwise_large_line_dsp.h"
#include "dsp.h"

/* Sizes that the compiler chooses. */
struct mlf_large_dsp {
    int32_t rows;   /* of the filter */
    int32_t taps;   /* of a row: 5 or 7 */
    int32_t lines;  /* output lines that are computed before lines of planes are moved */
    int32_t pitch;  /* halfwords of a line of a plane, an even number */
    int32_t plane;  /* halfwords of a plane; the fourth is followed by eight more, which are read but not used */
    int32_t filter; /* words of the expanded filter of a channel */
};

#if MLF_DSP_ASM

/* Copy four channels of a pair of pixels, times 256. */
MLF_KERNEL void mlf_fill_large_pair_dsp(const struct mlf_large_dsp *large, const int8_t *input, int32_t step,
                                        int16_t *planes)
{
    const uint32_t high = 0xff00ff00u;
    uint32_t first;
    uint32_t second;
    memcpy(&first, input, sizeof first);
    memcpy(&second, input + step, sizeof second);
    const uint32_t even[2] = {(first << 8) & high, (second << 8) & high};
    const uint32_t odd[2] = {first & high, second & high};
    const uint32_t pairs[4] = {(even[0] & 0xffffu) | even[1] << 16, (odd[0] & 0xffffu) | odd[1] << 16,
                               (even[1] & 0xffff0000u) | even[0] >> 16, (odd[1] & 0xffff0000u) | odd[0] >> 16};
    memcpy(planes, &pairs[0], sizeof pairs[0]);
    memcpy(planes + large->plane, &pairs[1], sizeof pairs[1]);
    memcpy(planes + 2 * large->plane, &pairs[2], sizeof pairs[2]);
    memcpy(planes + 3 * large->plane, &pairs[3], sizeof pairs[3]);
}

#else /* the same in C */

MLF_KERNEL void mlf_fill_large_pair_dsp(const struct mlf_large_dsp *large, const int8_t *input, int32_t step,
                                        int16_t *planes)
{
    for (int32_t c = 0; c < 4; c++) {
        planes[c * large->plane] = (int16_t)(256 * input[c]);
        planes[c * large->plane + 1] = (int16_t)(256 * input[step + c]);
    }
}

#endif

/* Set an even number of halfwords of four planes to the input's zero point, times 256. */
MLF_SHARED void mlf_pad_large_dsp(const struct mlf_large_dsp *large, int32_t zero_point, int16_t *planes, int32_t size)
{
    const int16_t pair[2] = {(int16_t)(256 * zero_point), (int16_t)(256 * zero_point)};
    for (int32_t i = 0; i < size; i += 2, planes += 2) {
        memcpy(planes, pair, sizeof pair);
        memcpy(planes + large->plane, pair, sizeof pair);
        memcpy(planes + 2 * large->plane, pair, sizeof pair);
        memcpy(planes + 3 * large->plane, pair, sizeof pair);
    }
}

/* Copy the inputs of a line, at whose first pixel `input` points; its padding is already set. */
MLF_SHARED void mlf_fill_large_dsp(const struct mlf_axis_dsp *along, const struct mlf_large_dsp *large,
                                   const int8_t *input, int16_t *planes)
{
    const int32_t most = (along->outputs - 1) * along->stride + large->taps - along->padding;
    const int32_t inputs = along->inputs < most ? along->inputs : most;
    planes += along->padding;
    for (int32_t i = 0; i + 1 < inputs; i += 2) {
        mlf_fill_large_pair_dsp(large, input + i * along->input_step, along->input_step, planes + i);
    }
    if (inputs % 2 == 1) {
        for (int32_t c = 0; c < 4; c++) {
            planes[c * large->plane + inputs - 1] = (int16_t)(256 * input[(inputs - 1) * along->input_step + c]);
        }
    }
}

MLF_KERNEL struct mlf_int32x4 mlf_bytes_large_dsp(int32_t word)
{
    const struct mlf_int32x4 bytes = {(uint32_t)mlf_byte_of_dsp(word, 0), (uint32_t)mlf_byte_of_dsp(word, 1),
                                      (uint32_t)mlf_byte_of_dsp(word, 2), (uint32_t)mlf_byte_of_dsp(word, 3)};
    return bytes;
}

/* Expand the filters of a group of four channels. */
MLF_SHARED void mlf_expand_large_dsp(const struct mlf_depthwise_dsp *depthwise, const struct mlf_large_dsp *large,
                                     const int32_t *group, int32_t *filters)
{
    for (int32_t c = 0; c < 4; c++) {
        const int32_t shift = mlf_byte_of_dsp(group[8], c);
        const int32_t brief = depthwise->rounding == 0;
        int32_t *const filter = filters + c * large->filter;
        filter[0] = brief ? group[c] : 0;
        filter[1] = group[4 + c];
        filter[2] = (int32_t)((uint32_t)depthwise->rounding << shift);
        filter[3] = shift;
        filter[4] = group[c];
    }
    int32_t *first = filters + MLF_LARGE_SCALE_DSP;
    int32_t *second = first + large->filter;
    int32_t *third = second + large->filter;
    int32_t *fourth = third + large->filter;
    group += 9;
    for (int32_t row = 0; row < large->rows; row++) {
        struct mlf_int32x4 low = mlf_bytes_large_dsp(*group++);
        for (int32_t tap = 1; tap < large->taps; tap++) {
            const struct mlf_int32x4 high = mlf_bytes_large_dsp(*group++);
            *first++ = (int32_t)((low.v0 & 0xffffu) | high.v0 << 16);
            *second++ = (int32_t)((low.v1 & 0xffffu) | high.v1 << 16);
            *third++ = (int32_t)((low.v2 & 0xffffu) | high.v2 << 16);
            *fourth++ = (int32_t)((low.v3 & 0xffffu) | high.v3 << 16);
            low = high;
        }
    }
}

/* Bring the lines of the input that the output lines from `first` need to the planes, which keep `kept` of them. */
MLF_SHARED void mlf_lines_large_dsp(const struct mlf_depthwise_dsp *depthwise, const struct mlf_large_dsp *large,
                                    int32_t first, int32_t kept, const int8_t *input, int16_t *planes)
{
    const struct mlf_axis_dsp *const across = &depthwise->across;
    const int32_t left = across->outputs - first;
    const int32_t lines = ((left < large->lines ? left : large->lines) - 1) * across->stride + large->rows;
    for (int32_t i = 0; i < 4 * kept; i++) {
        int16_t *const line = planes + i % 4 * large->plane + i / 4 * large->pitch;
        memcpy(line, line + large->lines * across->stride * large->pitch, (size_t)(2 * large->pitch));
    }
    for (int32_t line = kept; line < lines; line++) {
        const int32_t at = first * across->stride + line - across->padding;
        if ((uint32_t)at < (uint32_t)across->inputs) {
            mlf_fill_large_dsp(&depthwise->along, large, input + at * across->input_step, planes + line * large->pitch);
        } else {
            mlf_pad_large_dsp(large, depthwise->zero_point, planes + line * large->pitch, large->pitch);
        }
    }
}

MLF_KERNEL void mlf_line_large_dsp(int32_t stride, int32_t taps, const int16_t *plane, const int32_t *filter,
                                   int8_t *output, const struct mlf_large_call_dsp *call)
{
    if (stride == 1 && taps == 5) {
        mlf_large_line1_5_dsp(plane, filter, output, call);
    } else if (stride == 1) {
        mlf_large_line1_7_dsp(plane, filter, output, call);
    } else if (taps == 5) {
        mlf_large_line2_5_dsp(plane, filter, output, call);
    } else {
        mlf_large_line2_7_dsp(plane, filter, output, call);
    }
}

/* Four channels of an image; stride and taps are literals. */
MLF_KERNEL void mlf_group_large_dsp(int32_t stride, int32_t taps, const struct mlf_depthwise_dsp *depthwise,
                                    const struct mlf_large_dsp *large, const int8_t *input, int8_t *output,
                                    const int32_t *filters, int16_t *planes)
{
    const struct mlf_axis_dsp *const across = &depthwise->across;
    const struct mlf_large_call_dsp call = {2 * large->pitch, 4 * (large->filter - MLF_LARGE_SCALE_DSP),
                                            depthwise->along.outputs, depthwise->along.output_step,
                                            depthwise->rounding, 2 * large->plane, 4 * large->filter};
    for (int32_t first = 0; first < across->outputs; first += large->lines) {
        const int32_t overlap = first == 0 ? 0 : large->rows - across->stride;
        const int32_t end = first + large->lines < across->outputs ? first + large->lines : across->outputs;
        mlf_lines_large_dsp(depthwise, large, first, overlap < 0 ? 0 : overlap, input, planes);
        for (int32_t line = first; line < end; line++, output += across->output_step) {
            const int16_t *const lines = planes + (line - first) * across->stride * large->pitch;
            mlf_line_large_dsp(stride, taps, lines, filters, output, &call);
        }
    }
}

/* `scratch` has four filters, four planes, and eight more halfwords. */
MLF_KERNEL void mlf_depthwise_large_int8_dsp(int32_t stride, int32_t taps, const struct mlf_depthwise_dsp *depthwise,
                                             const struct mlf_large_dsp *large, const int8_t *input,
                                             const int32_t *filter, int8_t *output, int32_t *scratch)
{
    const int32_t pixels = depthwise->along.outputs * depthwise->across.outputs;
    int16_t *const planes = (int16_t *)(scratch + 4 * large->filter);
    int8_t *const start = output;
    mlf_pad_large_dsp(large, depthwise->zero_point, planes, large->plane);
    for (int32_t batch = 0; batch < depthwise->batches; batch++) {
        const int32_t *group = filter;
        for (int32_t c = 0; c < depthwise->channels; c += 4, group += 9 + large->rows * taps) {
            const int32_t channel = c + 4 <= depthwise->channels ? c : depthwise->channels - 4;
            mlf_expand_large_dsp(depthwise, large, group, scratch);
            mlf_group_large_dsp(stride, taps, depthwise, large, input + channel, output + channel, scratch, planes);
        }
        input += depthwise->along.inputs * depthwise->across.inputs * depthwise->channels;
        output += pixels * depthwise->channels;
    }
    mlf_clamp_dsp(start, (int32_t)(output - start), depthwise->minimum, depthwise->maximum);
}

#endif /* MLF_DEPTHWISE_LARGE_DSP_H_ */
