/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Rescaling of sums with one rounding, half to even, as ONNX quantises real numbers. A sum is shifted left, multiplied
 * and shifted right, so that the product has bits after the point; neither step exceeds 32 bits.
 */
#ifndef MLF_HALF_EVEN_H_
#define MLF_HALF_EVEN_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

/* Return value / 2^exponent, rounded to nearest, ties to even; exponent is 1 to 30, value below 2^30. */
MLF_KERNEL int32_t mlf_shift_right_half_even(int32_t value, int32_t exponent)
{
    const int32_t odd = (value >> exponent) & 1;
    return (value + (1 << (exponent - 1)) - 1 + odd) >> exponent;
}

/* Convert the sum of count stored values to a stored value of the output, not yet clamped to its type. */
MLF_KERNEL int32_t mlf_rescaled_half_even(int32_t sum, int32_t count, const struct mlf_rescaling *rescaling)
{
    const struct mlf_rescale *const rescale = &rescaling->rescale;
    const int32_t value = sum - count * rescaling->input_zero_point;
    const int32_t shifted = (int32_t)((uint32_t)value << rescale->left_shift);
    const int32_t product = mlf_multiply_high(shifted, rescale->multiplier);
    return mlf_shift_right_half_even(product, rescale->right_shift) + rescaling->output_zero_point;
}

#endif /* MLF_HALF_EVEN_H_ */
