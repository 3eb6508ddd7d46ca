/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* The Fourier transform of real int16 samples. Every sum wraps around to 16 bits, and every product is rounded. */
#ifndef MLF_FOURIER_H_
#define MLF_FOURIER_H_

#include <stdint.h>

#include "compiler.h"

struct mlf_complex {
    int32_t real;
    int32_t imaginary;
};

MLF_KERNEL int32_t mlf_wrap(int32_t value)
{
    return (int16_t)(uint16_t)(uint32_t)value;
}

MLF_KERNEL int32_t mlf_round_product(int32_t product)
{
    return mlf_wrap((product + (1 << 14)) >> 15);
}

/* The element at `from`, divided by the inverse of `scale`. */
MLF_KERNEL struct mlf_complex mlf_scaled(const int16_t *from, int32_t scale)
{
    const struct mlf_complex result = {mlf_round_product(from[0] * scale), mlf_round_product(from[1] * scale)};
    return result;
}

MLF_KERNEL struct mlf_complex mlf_turned(struct mlf_complex value, const int16_t *root)
{
    const struct mlf_complex result = {
        mlf_round_product(value.real * root[0] - value.imaginary * root[1]),
        mlf_round_product(value.real * root[1] + value.imaginary * root[0]),
    };
    return result;
}

MLF_KERNEL struct mlf_complex mlf_sum(struct mlf_complex one, struct mlf_complex two)
{
    const struct mlf_complex result = {mlf_wrap(one.real + two.real), mlf_wrap(one.imaginary + two.imaginary)};
    return result;
}

MLF_KERNEL struct mlf_complex mlf_difference(struct mlf_complex one, struct mlf_complex two)
{
    const struct mlf_complex result = {mlf_wrap(one.real - two.real), mlf_wrap(one.imaginary - two.imaginary)};
    return result;
}

MLF_KERNEL void mlf_write(int16_t *to, struct mlf_complex value)
{
    to[0] = (int16_t)value.real;
    to[1] = (int16_t)value.imaginary;
}

/* Transform `size` complex elements, which are in the order of the stages: of 2 if needed, and then of 4. */
MLF_KERNEL void mlf_transform(int32_t size, const int16_t *roots, int16_t *data)
{
    int32_t part = 1;
    while (part * 4 <= size) {
        part *= 4;
    }
    part = size / part;
    if (part == 2) {
        for (int32_t i = 0; i < 2 * size; i += 4) {
            const struct mlf_complex zero = mlf_scaled(data + i, INT16_MAX / 2);
            const struct mlf_complex one = mlf_turned(mlf_scaled(data + i + 2, INT16_MAX / 2), roots);
            mlf_write(data + i, mlf_sum(zero, one));
            mlf_write(data + i + 2, mlf_difference(zero, one));
        }
    }
    for (; part < size; part *= 4) {
        const int32_t step = size / (4 * part);
        for (int32_t i = 0; i < size; i++) {
            const int32_t at = i % (4 * part);
            if (at >= part) {
                continue;
            }
            int16_t *to = data + 2 * i;
            const int16_t *root = roots + 2 * at * step;
            const struct mlf_complex zero = mlf_scaled(to, INT16_MAX / 4);
            const struct mlf_complex one = mlf_turned(mlf_scaled(to + 2 * part, INT16_MAX / 4), root);
            const struct mlf_complex two = mlf_turned(mlf_scaled(to + 4 * part, INT16_MAX / 4), roots + 4 * at * step);
            const struct mlf_complex three =
                mlf_turned(mlf_scaled(to + 6 * part, INT16_MAX / 4), roots + 6 * at * step);
            const struct mlf_complex even = mlf_sum(zero, two);
            const struct mlf_complex odd = mlf_difference(zero, two);
            const struct mlf_complex total = mlf_sum(one, three);
            const struct mlf_complex rest = mlf_difference(one, three);
            const struct mlf_complex quarter = {rest.imaginary, -rest.real};
            mlf_write(to, mlf_sum(even, total));
            mlf_write(to + 2 * part, mlf_sum(odd, quarter));
            mlf_write(to + 4 * part, mlf_difference(even, total));
            mlf_write(to + 6 * part, mlf_difference(odd, quarter));
        }
    }
}

/*
 * Input [rows, count], output [rows, length / 2 + 1, 2]. The even and the odd samples are the real and the imaginary
 * parts of a transform of half the length; roots [length / 2 + length / 4, 2] are its roots of unity, and then those
 * that separate the two spectra.
 */
MLF_KERNEL void mlf_signal_rfft(int32_t rows, int32_t count, int32_t length, const int16_t *roots, const int16_t *input,
                                int16_t *output)
{
    const int32_t half = length / 2;
    for (int32_t row = 0; row < rows; row++) {
        for (int32_t i = 0; i < half; i++) {
            int32_t from = 0;
            int32_t rest = i;
            int32_t stride = 2;
            for (int32_t part = half; part > 1;) {
                const int32_t radix = part % 4 != 0 ? 2 : 4;
                part /= radix;
                from += rest / part * stride;
                rest %= part;
                stride *= radix;
            }
            output[2 * i] = from < count ? input[from] : 0;
            output[2 * i + 1] = from + 1 < count ? input[from + 1] : 0;
        }
        mlf_transform(half, roots, output);
        const struct mlf_complex ends = mlf_scaled(output, INT16_MAX / 2);
        for (int32_t i = 1; i <= half / 2; i++) {
            int16_t *low = output + 2 * i;
            int16_t *high = output + 2 * (half - i);
            const int16_t mirrored[2] = {high[0], (int16_t)mlf_wrap(-high[1])};
            const struct mlf_complex first = mlf_scaled(low, INT16_MAX / 2);
            const struct mlf_complex last = mlf_scaled(mirrored, INT16_MAX / 2);
            const struct mlf_complex even = mlf_sum(first, last);
            const struct mlf_complex odd = mlf_turned(mlf_difference(first, last), roots + 2 * (half + i - 1));
            low[0] = (int16_t)((even.real + odd.real) >> 1);
            low[1] = (int16_t)((even.imaginary + odd.imaginary) >> 1);
            high[0] = (int16_t)((even.real - odd.real) >> 1);
            high[1] = (int16_t)((odd.imaginary - even.imaginary) >> 1);
        }
        output[0] = (int16_t)mlf_wrap(ends.real + ends.imaginary);
        output[1] = 0;
        output[length] = (int16_t)mlf_wrap(ends.real - ends.imaginary);
        output[length + 1] = 0;
        input += count;
        output += length + 2;
    }
}

#endif /* MLF_FOURIER_H_ */
