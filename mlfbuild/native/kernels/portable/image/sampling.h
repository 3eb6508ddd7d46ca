/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * GRID_SAMPLE, ROI_ALIGN and DEFORM_CONV of float32: images, with their channels last, between their pixels. Positions
 * are bounded before they become integers, so that no input of the network leads to an access outside an image; those
 * that are not a number are outside.
 */
#ifndef MLF_SAMPLING_H_
#define MLF_SAMPLING_H_

#include <stdint.h>

#include "compiler.h"
#include "floor.h"

/* Return x between two bounds, the lower one if it is not a number. */
MLF_KERNEL float mlf_float_between(float x, float least, float greatest)
{
    return x > least ? (x < greatest ? x : greatest) : least;
}

struct mlf_grid_sample {
    int32_t batches;
    int32_t positions;  /* per image */
    int32_t dimensions; /* of an image: 1 to 3 */
    int32_t sizes[3];
    int32_t channels;
    int32_t taps;    /* in each dimension: 1 for the nearest pixel, 2 for linear and 4 for cubic interpolation */
    int32_t outside; /* 0 for zeros, 1 for the nearest pixel, 2 for reflection */
    int32_t corners; /* 1 if -1 and 1 are the centres of pixels, 0 if they are edges */
};

/* The pixels around a position along one dimension, -1 if one is outside and zero, and their shares. */
struct mlf_grid_line {
    int32_t places[4];
    float shares[4];
};

/* Return x reflected at the centres of the outermost of `size` pixels, or at their edges. */
MLF_KERNEL float mlf_reflected(float x, int32_t size, int32_t corners)
{
    const float least = corners != 0 ? 0.0f : -0.5f;
    const float greatest = corners != 0 ? (float)(size - 1) : (float)size - 0.5f;
    const float span = greatest - least;
    const int below = x < least;
    const float beyond = below ? least - x : x - greatest;
    if (!(span > 0.0f)) {
        return 0.0f;
    }
    if (!(beyond > 0.0f)) {
        return x;
    }
    const int32_t turns = (int32_t)(beyond / span);
    const float rest = mlf_float_between(beyond - (float)turns * span, 0.0f, span);
    return below == (turns % 2 == 0) ? least + rest : greatest - rest;
}

MLF_KERNEL struct mlf_grid_line mlf_grid_taps(const struct mlf_grid_sample *shape, float number, int32_t size)
{
    struct mlf_grid_line taps;
    float x = shape->corners != 0 ? (number + 1.0f) * 0.5f * (float)(size - 1)
                                  : ((number + 1.0f) * (float)size - 1.0f) * 0.5f;
    if (shape->taps == 1) {
        x = mlf_float_round(x);
    }
    if (shape->outside == 1) { /* like ONNX's evaluator, only beyond the edges; it matters if cubic */
        const float edge = shape->corners != 0 ? 0.0f : 0.5f;
        x = x >= -edge && x <= (float)(size - 1) + edge ? x : mlf_float_between(x, 0.0f, (float)(size - 1));
    } else {
        x = mlf_float_between(x, -16777216.0f, 16777216.0f);
        x = shape->outside == 2 ? mlf_reflected(x, size, shape->corners) : x;
    }
    const float whole = mlf_float_floor(x);
    const float t = x - whole;
    const float u = 1.0f - t;
    if (shape->taps == 4) { /* Keys' cubic convolution with the parameter -0.75 */
        taps.shares[0] = ((-0.75f * (t + 1.0f) + 3.75f) * (t + 1.0f) - 6.0f) * (t + 1.0f) + 3.0f;
        taps.shares[1] = (1.25f * t - 2.25f) * t * t + 1.0f;
        taps.shares[2] = (1.25f * u - 2.25f) * u * u + 1.0f;
        taps.shares[3] = ((-0.75f * (u + 1.0f) + 3.75f) * (u + 1.0f) - 6.0f) * (u + 1.0f) + 3.0f;
    } else {
        taps.shares[0] = shape->taps == 1 ? 1.0f : u;
        taps.shares[1] = t;
    }
    for (int32_t i = 0; i < shape->taps; i++) {
        int32_t place = (int32_t)whole + i - (shape->taps == 4 ? 1 : 0);
        if (shape->outside == 2) {
            place = (int32_t)mlf_reflected((float)place, size, shape->corners);
        }
        if (place < 0 || place >= size) {
            place = shape->outside == 0 ? -1 : (place < 0 ? 0 : size - 1);
        }
        taps.places[i] = place;
    }
    return taps;
}

/* Input [batches, sizes, channels], grid [batches, positions, dimensions], output [batches, positions, channels]. */
MLF_KERNEL void mlf_grid_sample_float(const struct mlf_grid_sample *shape, const float *input, const float *grid,
                                      float *output)
{
    int32_t image = shape->channels;
    int32_t combinations = 1;
    for (int32_t i = 0; i < shape->dimensions; i++) {
        image *= shape->sizes[i];
        combinations *= shape->taps;
    }
    for (int32_t i = 0; i < shape->batches * shape->positions; i++) {
        const float *const from = input + i / shape->positions * image;
        struct mlf_grid_line taps[3];
        for (int32_t j = 0; j < shape->dimensions; j++) {
            taps[j] = mlf_grid_taps(shape, grid[shape->dimensions - 1 - j], shape->sizes[j]);
        }
        for (int32_t j = 0; j < shape->channels; j++) {
            output[j] = 0.0f;
        }
        for (int32_t combination = 0; combination < combinations; combination++) {
            int32_t rest = combination;
            int32_t place = 0;
            float share = 1.0f;
            for (int32_t j = 0; j < shape->dimensions; j++) {
                const int32_t tap = rest % shape->taps;
                const int32_t along = taps[j].places[tap];
                rest /= shape->taps;
                place = place < 0 || along < 0 ? -1 : place * shape->sizes[j] + along;
                share *= taps[j].shares[tap];
            }
            if (place >= 0) {
                const float *const pixel = from + place * shape->channels;
                for (int32_t j = 0; j < shape->channels; j++) {
                    output[j] += share * pixel[j];
                }
            }
        }
        grid += shape->dimensions;
        output += shape->channels;
    }
}

/* The four pixels around a position in an image, and their shares; -1 for pixels outside. */
struct mlf_corners {
    int32_t places[4];
    float shares[4];
};

MLF_KERNEL struct mlf_corners mlf_corners_of(float y, float x, int32_t height, int32_t width)
{
    struct mlf_corners corners;
    y = mlf_float_between(y, -2.0f, (float)height);
    x = mlf_float_between(x, -2.0f, (float)width);
    const float top = mlf_float_floor(y);
    const float left = mlf_float_floor(x);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t row = (int32_t)top + i / 2;
        const int32_t column = (int32_t)left + i % 2;
        const float down = i / 2 != 0 ? y - top : 1.0f - (y - top);
        const float right = i % 2 != 0 ? x - left : 1.0f - (x - left);
        corners.shares[i] = down * right;
        corners.places[i] = row < 0 || row >= height || column < 0 || column >= width ? -1 : row * width + column;
    }
    return corners;
}

struct mlf_roi_align {
    int32_t boxes;
    int32_t images;
    int32_t height;
    int32_t width;
    int32_t channels;
    int32_t rows; /* of a result */
    int32_t columns;
    int32_t samples; /* in each direction, 0 if they depend on the box */
    int32_t half_pixel;
    int32_t greatest; /* 1 for the greatest product of a pixel and its share, 0 for the average */
    float scale;
};

/* The samples of a box along one direction. */
struct mlf_roi_line {
    float first;
    float step; /* from one pixel of the result to the next */
    int32_t count;
};

MLF_KERNEL struct mlf_roi_line mlf_roi_line(const struct mlf_roi_align *shape, float begin, float end, int32_t results,
                                            int32_t pixels)
{
    struct mlf_roi_line line;
    const float offset = shape->half_pixel != 0 ? 0.5f : 0.0f;
    line.first = begin * shape->scale - offset;
    float size = end * shape->scale - offset - line.first;
    if (shape->half_pixel == 0 && !(size > 1.0f)) {
        size = 1.0f;
    }
    line.step = size / (float)results;
    /* The bound keeps the time of a box that is much larger than the image finite. */
    const float needed = mlf_float_between(-mlf_float_floor(-line.step), 0.0f, (float)(4 * pixels + 4));
    line.count = shape->samples != 0 ? shape->samples : (int32_t)needed;
    return line;
}

MLF_KERNEL float mlf_roi_place(const struct mlf_roi_line *line, int32_t result, int32_t sample)
{
    return line->first + (float)result * line->step + ((float)sample + 0.5f) * line->step / (float)line->count;
}

/* Add a sample to the channels of a pixel of the result, or take the greatest product; `first` is 1 for the first. */
MLF_KERNEL void mlf_roi_sample(const struct mlf_roi_align *shape, const float *image, float y, float x, int32_t first,
                               float *output)
{
    const int inside = y >= -1.0f && y <= (float)shape->height && x >= -1.0f && x <= (float)shape->width;
    y = mlf_float_between(y, 0.0f, (float)(shape->height - 1));
    x = mlf_float_between(x, 0.0f, (float)(shape->width - 1));
    const struct mlf_corners corners = mlf_corners_of(y, x, shape->height, shape->width);
    for (int32_t i = 0; i < shape->channels; i++) {
        float sum = 0.0f;
        float greatest = 0.0f;
        for (int32_t j = 0; j < 4 && inside; j++) {
            /* A pixel beyond the last one has the share 0, and counts as the last. */
            const float pixel = corners.places[j] < 0 ? 0.0f : image[corners.places[j] * shape->channels + i];
            const float part = corners.shares[j] * pixel;
            sum += part;
            greatest = j == 0 || part > greatest ? part : greatest;
        }
        if (shape->greatest == 0) {
            output[i] += sum;
        } else if (first != 0 || greatest > output[i]) {
            output[i] = greatest;
        }
    }
}

/* Input [images, height, width, channels], boxes [boxes, 4], output [boxes, rows, columns, channels]. */
MLF_KERNEL void mlf_roi_align_float(const struct mlf_roi_align *shape, const float *input, const float *boxes,
                                    const int64_t *images, float *output)
{
    for (int32_t box = 0; box < shape->boxes; box++) {
        const struct mlf_roi_line down = mlf_roi_line(shape, boxes[1], boxes[3], shape->rows, shape->height);
        const struct mlf_roi_line right = mlf_roi_line(shape, boxes[0], boxes[2], shape->columns, shape->width);
        const int known = images[box] >= 0 && images[box] < shape->images;
        const int32_t samples = known ? down.count * right.count : 0;
        const float *const image =
            input + (known ? (int32_t)images[box] : 0) * shape->height * shape->width * shape->channels;
        for (int32_t i = 0; i < shape->rows * shape->columns; i++) {
            for (int32_t j = 0; j < shape->channels; j++) {
                output[j] = 0.0f;
            }
            for (int32_t j = 0; j < samples; j++) {
                const float y = mlf_roi_place(&down, i / shape->columns, j / right.count);
                const float x = mlf_roi_place(&right, i % shape->columns, j % right.count);
                mlf_roi_sample(shape, image, y, x, j == 0, output);
            }
            if (shape->greatest == 0 && samples > 0) {
                for (int32_t j = 0; j < shape->channels; j++) {
                    output[j] /= (float)samples;
                }
            }
            output += shape->channels;
        }
        boxes += 4;
    }
}

struct mlf_deform_conv {
    int32_t batches;
    int32_t height;
    int32_t width;
    int32_t channels;
    int32_t rows; /* of the filter */
    int32_t columns;
    int32_t output_height;
    int32_t output_width;
    int32_t outputs;
    int32_t groups;
    int32_t offset_groups;
    int32_t stride[2];
    int32_t dilation[2];
    int32_t before[2];
};

/*
 * Input [batches, height, width, channels], filter [rows, columns, channels of a group, outputs], offsets [batches,
 * output_height, output_width, offset_groups, rows, columns, 2], and the mask the same without the last dimension, or
 * null. Each pixel is read once for all outputs of its group.
 */
MLF_KERNEL void mlf_deform_conv_float(const struct mlf_deform_conv *shape, const float *input, const float *filter,
                                      const float *offsets, const float *bias, const float *mask, float *output)
{
    const int32_t taps = shape->rows * shape->columns;
    const int32_t depth = shape->channels / shape->groups;
    const int32_t outputs = shape->outputs / shape->groups;
    const int32_t alike = shape->channels / shape->offset_groups;
    const int32_t positions = shape->output_height * shape->output_width;
    for (int32_t i = 0; i < shape->batches * positions; i++) {
        const float *const image = input + i / positions * shape->height * shape->width * shape->channels;
        const int32_t top = i % positions / shape->output_width * shape->stride[0] - shape->before[0];
        const int32_t left = i % shape->output_width * shape->stride[1] - shape->before[1];
        for (int32_t j = 0; j < shape->outputs; j++) {
            output[j] = bias[j];
        }
        for (int32_t j = 0; j < shape->offset_groups * taps; j++) {
            const int32_t tap = j % taps;
            const float y = (float)(top + tap / shape->columns * shape->dilation[0]) + offsets[2 * j];
            const float x = (float)(left + tap % shape->columns * shape->dilation[1]) + offsets[2 * j + 1];
            const struct mlf_corners corners = mlf_corners_of(y, x, shape->height, shape->width);
            for (int32_t channel = j / taps * alike; channel < (j / taps + 1) * alike; channel++) {
                float pixel = 0.0f;
                for (int32_t k = 0; k < 4; k++) {
                    if (corners.places[k] >= 0) {
                        pixel += corners.shares[k] * image[corners.places[k] * shape->channels + channel];
                    }
                }
                if (mask) {
                    pixel *= mask[j];
                }
                const int32_t group = channel / depth;
                const float *const weights =
                    filter + (tap * depth + channel % depth) * shape->outputs + group * outputs;
                for (int32_t k = 0; k < outputs; k++) {
                    output[group * outputs + k] += pixel * weights[k];
                }
            }
        }
        offsets += 2 * shape->offset_groups * taps;
        mask = mask ? mask + shape->offset_groups * taps : mask;
        output += shape->outputs;
    }
}

#endif /* MLF_SAMPLING_H_ */
