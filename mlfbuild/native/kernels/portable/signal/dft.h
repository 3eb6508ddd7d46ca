/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The Fourier transform of float32, of any length: by factors of 4 and 2, and of the odd primes of the length, whose
 * cost grows with the prime. Of real samples whose number is even, the even and the odd ones are the real and imaginary
 * parts of a transform of half the length.
 */
#ifndef MLF_DFT_H_
#define MLF_DFT_H_

#include <stdint.h>

#include "compiler.h"

struct mlf_dft {
    int32_t outer;
    int32_t samples; /* along the transformed dimension of the input */
    int32_t inner;
    int32_t parts; /* of a sample: 1 if it is real, 2 if it is complex */
    int32_t frames;
    int32_t step; /* between frames */
    int32_t length;
    int32_t bins;         /* of the result */
    int32_t result_parts; /* of a bin */
    int32_t mirrored;     /* 1 if samples beyond half of the length are the conjugates of those before */
    float scale;
};

/* Store the product of two complex numbers. */
MLF_KERNEL void mlf_turn(float real, float imaginary, const float *root, float *to)
{
    to[0] = real * root[0] - imaginary * root[1];
    to[1] = real * root[1] + imaginary * root[0];
}

/*
 * Transform one group of `radix` elements, which are `apart` floats apart, and store it with `stride` floats between the
 * results, result j turned by the root of unity j * `turn`. The roots of the radix are `circle` apart.
 */
MLF_KERNEL void mlf_dft_group(int32_t radix, int32_t apart, int32_t stride, int32_t turn, int32_t circle,
                              const float *roots, const float *from, float *to)
{
    if (radix == 4) {
        const float *const two = from + 2 * apart;
        const float quarter = roots[2 * circle + 1]; /* -1, and 1 in the inverse transform */
        const float even[2] = {from[0] + two[0], from[1] + two[1]};
        const float odd[2] = {from[0] - two[0], from[1] - two[1]};
        const float sum[2] = {from[apart] + two[apart], from[apart + 1] + two[apart + 1]};
        const float turned[2] = {quarter * (two[apart + 1] - from[apart + 1]), quarter * (from[apart] - two[apart])};
        to[0] = even[0] + sum[0];
        to[1] = even[1] + sum[1];
        mlf_turn(odd[0] + turned[0], odd[1] + turned[1], roots + 2 * turn, to + stride);
        mlf_turn(even[0] - sum[0], even[1] - sum[1], roots + 4 * turn, to + 2 * stride);
        mlf_turn(odd[0] - turned[0], odd[1] - turned[1], roots + 6 * turn, to + 3 * stride);
        return;
    }
    if (radix == 2) {
        const float difference[2] = {from[0] - from[apart], from[1] - from[apart + 1]};
        to[0] = from[0] + from[apart];
        to[1] = from[1] + from[apart + 1];
        mlf_turn(difference[0], difference[1], roots + 2 * turn, to + stride);
        return;
    }
    for (int32_t j = 0; j < radix; j++) {
        float real = 0.0f;
        float imaginary = 0.0f;
        int32_t at = 0; /* i * j modulo the radix */
        for (int32_t i = 0; i < radix; i++) {
            const float *const root = roots + 2 * at * circle;
            real += from[i * apart] * root[0] - from[i * apart + 1] * root[1];
            imaginary += from[i * apart] * root[1] + from[i * apart + 1] * root[0];
            at = at + j < radix ? at + j : at + j - radix;
        }
        mlf_turn(real, imaginary, roots + 2 * j * turn, to + j * stride);
    }
}

/*
 * Transform `size` complex elements at `from`, with the help of as many at `to`; return where the result is. The root of
 * unity k is at 2 * k * `step` of `roots`. After each stage (of Stockham's algorithm), elements are in order.
 */
MLF_KERNEL float *mlf_dft_whole(int32_t size, int32_t step, const float *roots, float *from, float *to)
{
    int32_t stride = 1;
    int32_t rest = size;
    while (rest > 1) {
        int32_t radix = rest % 4 == 0 ? 4 : 2;
        while (rest % radix != 0) {
            radix++;
        }
        rest /= radix;
        for (int32_t i = 0; i < rest; i++) {
            for (int32_t j = 0; j < stride; j++) {
                mlf_dft_group(radix, 2 * stride * rest, 2 * stride, i * stride * step, size / radix * step, roots,
                              from + 2 * (i * stride + j), to + 2 * (i * stride * radix + j));
            }
        }
        stride *= radix;
        float *const swapped = from;
        from = to;
        to = swapped;
    }
    return from;
}

/* Store part `part` of sample i of a frame, 0 if there is none. */
MLF_KERNEL float mlf_dft_sample(const struct mlf_dft *shape, const float *input, const float *window, int32_t i,
                                int32_t part)
{
    if (i >= shape->samples || part >= shape->parts) {
        return 0.0f;
    }
    const float sample = input[i * shape->inner * shape->parts + part];
    return window ? sample * window[i] : sample;
}

/* Store bin i of the transform of real samples, of which the even and the odd ones are parts of `data`. */
MLF_KERNEL void mlf_dft_unpacked(int32_t length, int32_t i, const float *roots, const float *data, float *to)
{
    const int32_t half = length / 2;
    const int32_t low = i <= half ? i : length - i;
    const float *const one = data + 2 * (low < half ? low : 0);
    const float *const two = data + 2 * (low > 0 ? half - low : 0);
    float turned[2];
    mlf_turn(one[1] + two[1], two[0] - one[0], roots + 2 * low, turned);
    to[0] = 0.5f * (one[0] + two[0] + turned[0]);
    to[1] = 0.5f * (one[1] - two[1] + turned[1]);
    to[1] = i <= half ? to[1] : -to[1];
}

/*
 * Input [outer, samples, inner, parts], output [outer, frames, bins, inner, result_parts]; roots [length, 2]. `window`
 * has a factor for each sample of a frame, or is null. `work` has room for two transforms. With `packed`, samples are
 * real and their number is even.
 */
MLF_KERNEL void mlf_dft_float(const struct mlf_dft *shape, int32_t packed, const float *roots, const float *input,
                              const float *window, float *work, float *output)
{
    const int32_t size = packed != 0 ? shape->length / 2 : shape->length;
    for (int32_t i = 0; i < shape->outer * shape->frames * shape->inner; i++) {
        const int32_t frame = i / shape->inner % shape->frames;
        const int32_t outer = i / shape->inner / shape->frames;
        const float *const from =
            input +
            ((outer * shape->samples + frame * shape->step) * shape->inner + i % shape->inner) * shape->parts;
        float *to =
            output + (i / shape->inner * shape->bins * shape->inner + i % shape->inner) * shape->result_parts;
        for (int32_t j = 0; j < size; j++) {
            if (packed != 0) {
                work[2 * j] = mlf_dft_sample(shape, from, window, 2 * j, 0);
                work[2 * j + 1] = mlf_dft_sample(shape, from, window, 2 * j + 1, 0);
            } else {
                const int32_t beyond = shape->mirrored != 0 && j > size / 2;
                const float part = mlf_dft_sample(shape, from, window, beyond ? size - j : j, 1);
                work[2 * j] = mlf_dft_sample(shape, from, window, beyond ? size - j : j, 0);
                work[2 * j + 1] = beyond ? -part : part;
            }
        }
        const float *const data = mlf_dft_whole(size, packed != 0 ? 2 : 1, roots, work, work + 2 * size);
        for (int32_t j = 0; j < shape->bins; j++) {
            float bin[2];
            if (packed != 0) {
                mlf_dft_unpacked(shape->length, j, roots, data, bin);
            } else {
                bin[0] = data[2 * j];
                bin[1] = data[2 * j + 1];
            }
            to[0] = bin[0] * shape->scale;
            if (shape->result_parts == 2) {
                to[1] = bin[1] * shape->scale;
            }
            to += shape->inner * shape->result_parts;
        }
    }
}

#endif /* MLF_DFT_H_ */
