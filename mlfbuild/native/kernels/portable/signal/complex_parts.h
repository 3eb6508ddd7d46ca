/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Real numbers from complex ones, which are pairs of float32. */
#ifndef MLF_COMPLEX_PARTS_H_
#define MLF_COMPLEX_PARTS_H_

#include <stdint.h>

#include "compiler.h"
#include "float_math.h"

/* Store part `part` of each of `count` complex numbers: 0 is the real one, 1 the imaginary one. */
MLF_KERNEL void mlf_complex_parts(int32_t count, int32_t part, const float *input, float *output)
{
    for (int32_t i = 0; i < count; i++) {
        output[i] = input[2 * i + part];
    }
}

/* Store the magnitudes of `count` complex numbers; those whose squares are too large or small are scaled before. */
MLF_KERNEL void mlf_complex_magnitudes(int32_t count, const float *input, float *output)
{
    for (int32_t i = 0; i < count; i++) {
        const float real = input[2 * i];
        const float imaginary = input[2 * i + 1];
        const float square = real * real + imaginary * imaginary;
        float scale = 1.0f;
        if (square > 1e30f) {
            scale = mlf_power_of_two(-70);
        } else if (square < 1e-30f) {
            scale = mlf_power_of_two(70);
        }
        const float scaled_real = real * scale;
        const float scaled_imaginary = imaginary * scale;
        output[i] = mlf_float_sqrt(scaled_real * scaled_real + scaled_imaginary * scaled_imaginary) / scale;
    }
}

#endif /* MLF_COMPLEX_PARTS_H_ */
