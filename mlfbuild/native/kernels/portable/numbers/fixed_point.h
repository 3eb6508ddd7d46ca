/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Exponential and reciprocal in fixed point, with the constants and the roundings of gemmlowp, as in int8 SOFTMAX of
 * TensorFlow Lite Micro. Qm.n is a signed 32-bit number with n fraction bits.
 */
#ifndef MLF_FIXED_POINT_H_
#define MLF_FIXED_POINT_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

/* Return value * 2^exponent, saturated. */
MLF_KERNEL int32_t mlf_saturating_shift_left(int32_t value, int32_t exponent)
{
    const int32_t limit = INT32_MAX >> exponent;
    if (value > limit) {
        return INT32_MAX;
    }
    return value < -limit ? INT32_MIN : (int32_t)((uint32_t)value << exponent);
}

/* Return the number of leading zero bits of value, which is not 0; of 0, which only a bad blob leads to, 31 or 32. */
MLF_KERNEL int32_t mlf_leading_zeros(uint32_t value)
{
#if defined(__GNUC__) && defined(__ARM_FEATURE_CLZ)
    return __builtin_clz(value);
#else
    int32_t count = 0;
    for (value |= 1u; (value & (UINT32_C(1) << 31)) == 0; value <<= 1) {
        count++;
    }
    return count;
#endif
}

/* Return e^a for a in [-1/4, 0), both Q0.31: a Taylor polynomial of degree 4 around -1/8. */
MLF_KERNEL int32_t mlf_exp_quarter_q31(int32_t a)
{
    const int32_t exp_minus_eighth = 1895147668;
    const int32_t third = 715827883;
    const int32_t x = a + (1 << 28);
    const int32_t x2 = mlf_high_multiply(x, x);
    const int32_t x3 = mlf_high_multiply(x2, x);
    const int32_t x4 = mlf_high_multiply(x2, x2);
    const int32_t x3_and_x4 = mlf_multiply_high(mlf_shift_right(x4, 2) + x3, third);
    const int32_t tail = mlf_shift_right(x3_and_x4 + x2, 1);
    return exp_minus_eighth + mlf_multiply_high(x + tail, exp_minus_eighth);
}

/* Return result times e^-(2^k) if the bit of remainder for 2^k is set. */
MLF_KERNEL int32_t mlf_exp_step(int32_t result, uint32_t remainder, int32_t bit, int32_t factor)
{
    return (remainder >> bit & 1u) != 0 ? mlf_multiply_high(result, factor) : result;
}

/* Return e^a as Q0.31 for a <= 0 in Q5.26. */
MLF_KERNEL int32_t mlf_exp_q31(int32_t a)
{
    const int32_t quarter = 1 << 24;
    if (a == 0) {
        return INT32_MAX;
    }
    const int32_t fraction = (int32_t)((uint32_t)a & (uint32_t)(quarter - 1)) - quarter;
    const uint32_t remainder = (uint32_t)fraction - (uint32_t)a;
    int32_t result = mlf_exp_quarter_q31((int32_t)((uint32_t)fraction << 5));
    result = mlf_exp_step(result, remainder, 24, 1672461947); /* e^-1/4 */
    result = mlf_exp_step(result, remainder, 25, 1302514674); /* e^-1/2 */
    result = mlf_exp_step(result, remainder, 26, 790015084);  /* e^-1 */
    result = mlf_exp_step(result, remainder, 27, 290630308);  /* e^-2 */
    result = mlf_exp_step(result, remainder, 28, 39332535);   /* e^-4 */
    result = mlf_exp_step(result, remainder, 29, 720401);     /* e^-8 */
    return mlf_exp_step(result, remainder, 30, 242);          /* e^-16 */
}

/* Return 1 / (1 + a) for a in [0, 1), both Q0.31: three steps of Newton's division on the half denominator. */
MLF_KERNEL int32_t mlf_reciprocal_q31(int32_t a)
{
    const int32_t half = (int32_t)(((int64_t)a + INT32_MAX + 1) / 2); /* (1 + a) / 2 */
    int32_t x = 1515870810 + mlf_high_multiply(half, -1010580540);    /* Q2.29: 48/17 - 32/17 * half */
    for (int32_t step = 0; step < 3; step++) {
        const int32_t rest = (1 << 29) - mlf_high_multiply(half, x);
        x += mlf_saturating_shift_left(mlf_high_multiply(x, rest), 2);
    }
    return mlf_saturating_shift_left(x, 1);
}

/*
 * Return ln a as Q5.26 for a >= 1 in Q12.19.
 *
 * a is 2^n * r, with r near the fourth root of 1/2; ln r is a quotient of polynomials of r minus that root. Of two ways
 * to choose n, by the leading bit of a and of a * sqrt(1/2), the one with the smaller r is used. Powers are Q6.25.
 */
MLF_KERNEL int32_t mlf_log_q26(int32_t a)
{
    const int32_t half_root = 1518500250; /* sqrt(1/2) */
    const int32_t centre = 1805811301;    /* its root */
    const int32_t quarter = 1 << 23;
    const int32_t headroom = mlf_leading_zeros((uint32_t)a);
    const int32_t scaled_headroom = mlf_leading_zeros((uint32_t)mlf_high_multiply(a, half_root)) - 1;
    const int32_t shifted = (int32_t)((uint32_t)a << (headroom - 1));
    const int32_t first = mlf_saturating_shift_left(mlf_high_multiply(shifted, half_root), 1);
    const int32_t second = mlf_saturating_shift_left(a, scaled_headroom);
    const int32_t first_power = ((12 - headroom) << 25) + quarter;
    const int32_t second_power = (12 - scaled_headroom) * (1 << 25) - quarter;
    const int32_t r = first < second ? first : second;
    const int32_t power = first_power > second_power ? first_power : second_power;

    const int32_t p = (int32_t)(((int64_t)r + centre + 1) / 2);
    const int32_t q = 2 * (r - centre);
    const int32_t square = mlf_high_multiply(q, q);
    const int32_t numerator =
        mlf_high_multiply(q, r) + mlf_high_multiply(mlf_high_multiply(q, square), 117049297); /* 11/240 * 2^(1/4) */
    const int32_t inner = 1057819769 + q + mlf_high_multiply(square, 127690142); /* 2^(3/4) - 2^(1/4), 2^(1/4) / 20 */
    const int32_t denominator = mlf_high_multiply(p, inner) + mlf_high_multiply(q, 638450708); /* 2^(1/4) / 4 */
    const int32_t rest = mlf_high_multiply(mlf_shift_right(numerator, 6), mlf_reciprocal_q31(denominator));
    return mlf_saturating_shift_left(mlf_high_multiply(power, 1488522236 /* ln 2 */) + rest, 1);
}

/*
 * Return the rescaling by 2^fraction_bits / sqrt(value), for a whole value >= 0; 0 counts as 1.
 *
 * Five steps of Newton's method from 1, in Q3.28, on the value brought to [2^27, 2^29) by pairs of bits.
 */
MLF_KERNEL struct mlf_rescale mlf_inverse_square_root(int32_t value, int32_t fraction_bits)
{
    int32_t multiplier = INT32_MAX;
    int32_t right_shift = -fraction_bits;
    if (value > 1) {
        int32_t pairs = (mlf_leading_zeros((uint32_t)value) - 1) / 2 - 1;
        if (value >= 1 << 29) {
            value /= 4;
            pairs = 0;
            right_shift++;
        }
        right_shift += 11 - pairs;
        const int32_t half = mlf_shift_right((int32_t)((uint32_t)value << (2 * pairs)) >> 1, 1);
        int32_t root = 1 << 28;
        for (int32_t step = 0; step < 5; step++) {
            const int32_t square = mlf_high_multiply(root, root);
            const int32_t cube = mlf_saturating_shift_left(mlf_high_multiply(square, root), 6);
            const int32_t rest = mlf_high_multiply(root, (1 << 28) + (1 << 27)) - mlf_high_multiply(half, cube);
            root = mlf_saturating_shift_left(rest, 3);
        }
        multiplier = mlf_high_multiply(root, 1518500250); /* sqrt(1/2) */
    }
    const struct mlf_rescale rescale = {multiplier, (int16_t)(right_shift < 0 ? -right_shift : 0),
                                        (int16_t)(right_shift > 0 ? right_shift : 0)};
    return rescale;
}

#endif /* MLF_FIXED_POINT_H_ */
