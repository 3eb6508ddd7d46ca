/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Frames of a signal, frames of features, and the signal from frames, with states that connect consecutive runs. */
#ifndef MLF_FRAMING_H_
#define MLF_FRAMING_H_

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

/* Copy two samples at a time, from any address to a lower one, or to other memory. */
MLF_KERNEL void mlf_copy_samples(int16_t *to, const int16_t *from, int32_t count)
{
    for (int32_t i = count / 2; i > 0; i--, from += 2, to += 2) {
        uint32_t pair;
        memcpy(&pair, from, sizeof pair);
        memcpy(to, &pair, sizeof pair);
    }
    if (count % 2 != 0) {
        *to = *from;
    }
}

/* Keep the last `kept` of the samples that are kept, and `count` new ones after them. */
MLF_KERNEL void mlf_keep_samples(int16_t *state, int32_t kept, const int16_t *input, int32_t count)
{
    if (count < kept) {
        mlf_copy_samples(state, state + count, kept - count);
        mlf_copy_samples(state + kept - count, input, count);
    } else {
        mlf_copy_samples(state, input + count - kept, kept);
    }
}

/*
 * Input [rows, frames * step], output [rows, frames, size]; state [rows, kept] and the number of frames that were not
 * full, up to `late`. These are 0.
 */
MLF_KERNEL void mlf_signal_framer(int32_t rows, int32_t frames, int32_t step, int32_t size, int32_t kept, int32_t late,
                                  const int16_t *input, int16_t *state, int16_t *output, bool *full)
{
    int16_t *count = state + rows * kept;
    const int32_t samples = frames * step;
    const int32_t missed = late - *count < frames ? late - *count : frames;
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < frames; j++) {
            const int32_t start = j * step;
            const int32_t held = start >= kept ? 0 : kept - start < size ? kept - start : size;
            if (j < missed) {
                memset(output, 0, (size_t)size * sizeof *output);
            } else {
                mlf_copy_samples(output, state + start, held);
                mlf_copy_samples(output + held, held == size ? input : input + start + held - kept, size - held);
            }
            output += size;
        }
        mlf_keep_samples(state, kept, input, samples);
        input += samples;
        state += kept;
    }
    *count = (int16_t)(*count + missed);
    *full = missed == 0;
}

/*
 * Input [channels], output [kept + 1, channels]; state [kept, channels], and 0 before the first run, otherwise 1 more
 * than the number of runs that are not discarded. The runs before the first one had its input.
 */
MLF_KERNEL void mlf_signal_stacker(int32_t channels, int32_t left, int32_t kept, int32_t step, const int16_t *input,
                                   int16_t *state, int16_t *output, bool *full)
{
    const int32_t size = kept * channels;
    int32_t runs = state[size];
    if (runs == 0) {
        for (int32_t i = 0; i < size; i++) {
            state[i] = input[i % channels];
        }
        runs = left + 1;
    }
    *full = runs > kept;
    if (*full) {
        mlf_copy_samples(output, state, size);
        mlf_copy_samples(output + size, input, channels);
    } else {
        memset(output, 0, (size_t)(size + channels) * sizeof *output);
    }
    mlf_keep_samples(state, size, input, channels);
    state[size] = (int16_t)(runs + 1 - (*full ? step : 0));
}

/* Input [rows, frames, size], output [rows, frames * step], state [rows, size]; the last `step` elements are 0. */
MLF_KERNEL void mlf_signal_overlap_add_int16(int32_t rows, int32_t frames, int32_t size, int32_t step,
                                             const int16_t *input, int16_t *state, int16_t *output)
{
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < frames; j++) {
            for (int32_t k = 0; k < size; k++) {
                const int32_t sum = (int32_t)state[k] + *input++;
                state[k] = (int16_t)(sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum);
            }
            for (int32_t k = 0; k < step; k++) {
                *output++ = state[k];
            }
            for (int32_t k = 0; k < size; k++) {
                state[k] = k + step < size ? state[k + step] : 0;
            }
        }
        state += size;
    }
}

MLF_KERNEL void mlf_signal_overlap_add_float(int32_t rows, int32_t frames, int32_t size, int32_t step,
                                             const float *input, float *state, float *output)
{
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < frames; j++) {
            for (int32_t k = 0; k < size; k++) {
                state[k] += *input++;
            }
            for (int32_t k = 0; k < step; k++) {
                *output++ = state[k];
            }
            for (int32_t k = 0; k < size; k++) {
                state[k] = k + step < size ? state[k + step] : 0.0f;
            }
        }
        state += size;
    }
}

struct mlf_col2im {
    int32_t images;
    int32_t size[3]; /* of an image */
    int32_t filter[3];
    int32_t stride[3];
    int32_t dilation[3];
    int32_t before[3]; /* pixels that windows cover before the image */
    int32_t counts[3]; /* of windows */
};

/* Input [images, filter, counts], output [images, size]: each pixel is the sum of the windows that cover it. */
MLF_KERNEL void mlf_col2im_float(const struct mlf_col2im *shape, const float *input, float *output)
{
    const int32_t *const size = shape->size;
    const int32_t pixels = size[0] * size[1] * size[2];
    const int32_t taps = shape->filter[0] * shape->filter[1] * shape->filter[2];
    const int32_t windows = shape->counts[0] * shape->counts[1] * shape->counts[2];
    for (int32_t i = 0; i < shape->images; i++) {
        for (int32_t j = 0; j < pixels; j++) {
            output[j] = 0.0f;
        }
        for (int32_t j = 0; j < taps * windows; j++) {
            int32_t tap = j / windows;
            int32_t window = j % windows;
            int32_t place = 0;
            int32_t step = 1;
            for (int32_t k = 2; k >= 0; k--) {
                const int32_t along = tap % shape->filter[k] * shape->dilation[k] - shape->before[k] +
                                      window % shape->counts[k] * shape->stride[k];
                tap /= shape->filter[k];
                window /= shape->counts[k];
                place = along < 0 || along >= size[k] ? INT32_MIN : place + along * step;
                if (place < 0) {
                    break;
                }
                step *= size[k];
            }
            if (place >= 0) {
                output[place] += input[j];
            }
        }
        input += taps * windows;
        output += pixels;
    }
}

#endif /* MLF_FRAMING_H_ */
