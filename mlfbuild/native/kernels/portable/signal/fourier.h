/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The Fourier transforms of real samples, and back, with the roundings of KISS FFT: integers are divided by the size of
 * a stage before it, every product is rounded, and sums wrap around.
 *
 * The even and the odd samples are the real and the imaginary parts of a transform of half the length. It runs in the
 * output, in stages of 5, 3, 2 and 4, from the one that combines neighbours to the one that combines all: the element i
 * of the input belongs at order[i] before the first stage. A stage of n that makes spectra of `part` elements into
 * spectra of n * part has (n - 1) * part roots of unity, one after the other: those of its second input, of its third
 * one and so on. The first of each is 1, with which inputs are not multiplied: after the division, the rounded product
 * is the same. The roots of 3 and 5 precede those of the stages of these sizes. The roots of the separation of the
 * spectra of even and odd samples are the last ones, or the first ones of the inverse.
 */
#ifndef MLF_FOURIER_H_
#define MLF_FOURIER_H_

#include <stdint.h>

#include "compiler.h"

/* A transform of `size` complex elements, and its number of stages of each size. */
struct mlf_fourier {
    int32_t size;
    int32_t fives;
    int32_t threes;
    int32_t twos;
    int32_t fours;
};

MLF_KERNEL int32_t mlf_wrapped_int16(int32_t value)
{
    return (int16_t)(uint16_t)(uint32_t)value;
}

MLF_KERNEL int32_t mlf_bin_sum_int16(int32_t one, int32_t two)
{
    return mlf_wrapped_int16(one + two);
}

MLF_KERNEL int32_t mlf_difference_int16(int32_t one, int32_t two)
{
    return mlf_wrapped_int16(one - two);
}

MLF_KERNEL int32_t mlf_rounded_int16(int32_t product)
{
    return mlf_wrapped_int16((product + (1 << 14)) >> 15);
}

/* Half of a sum and of a difference, which do not wrap around. */
MLF_KERNEL int32_t mlf_bin_mean_int16(int32_t one, int32_t two)
{
    return mlf_wrapped_int16((one + two) >> 1);
}

MLF_KERNEL int32_t mlf_half_int16(int32_t one, int32_t two)
{
    return mlf_wrapped_int16((one - two) >> 1);
}

MLF_KERNEL int32_t mlf_bin_sum_int32(int32_t one, int32_t two)
{
    return (int32_t)((uint32_t)one + (uint32_t)two);
}

MLF_KERNEL int32_t mlf_difference_int32(int32_t one, int32_t two)
{
    return (int32_t)((uint32_t)one - (uint32_t)two);
}

MLF_KERNEL int32_t mlf_rounded_int32(int64_t product)
{
    return (int32_t)(uint32_t)(uint64_t)((product + (1 << 30)) >> 31);
}

MLF_KERNEL int32_t mlf_bin_mean_int32(int32_t one, int32_t two)
{
    return mlf_bin_sum_int32(one, two) >> 1;
}

MLF_KERNEL int32_t mlf_half_int32(int32_t one, int32_t two)
{
    return mlf_difference_int32(one, two) >> 1;
}

MLF_KERNEL float mlf_bin_sum_float(float one, float two)
{
    return one + two;
}

MLF_KERNEL float mlf_difference_float(float one, float two)
{
    return one - two;
}

MLF_KERNEL float mlf_rounded_float(float product)
{
    return product;
}

MLF_KERNEL float mlf_bin_mean_float(float one, float two)
{
    return (one + two) * 0.5f;
}

MLF_KERNEL float mlf_half_float(float one, float two)
{
    return (one - two) * 0.5f;
}

/*
 * Complex numbers of a type: `element` is that of tensors and roots, `number` that of sums, `wide` that of products.
 */
#define MLF_COMPLEX(type, element, number, wide)                                                                       \
    typedef struct {                                                                                                   \
        number real;                                                                                                   \
        number imaginary;                                                                                              \
    } mlf_complex_##type;                                                                                              \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_complex_of_##type(number real, number imaginary)                                 \
    {                                                                                                                  \
        const mlf_complex_##type result = {real, imaginary};                                                           \
        return result;                                                                                                 \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_load_##type(const element *from)                                                 \
    {                                                                                                                  \
        return mlf_complex_of_##type(from[0], from[1]);                                                                \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_store_bin_##type(element *to, mlf_complex_##type value)                                        \
    {                                                                                                                  \
        to[0] = (element)value.real;                                                                                   \
        to[1] = (element)value.imaginary;                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_scaled_bin_##type(mlf_complex_##type value, element factor)                      \
    {                                                                                                                  \
        return mlf_complex_of_##type(                                                                                  \
            mlf_rounded_##type((wide)value.real * factor), mlf_rounded_##type((wide)value.imaginary * factor));        \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_turned_##type(mlf_complex_##type value, mlf_complex_##type root)                 \
    {                                                                                                                  \
        return mlf_complex_of_##type(                                                                                  \
            mlf_rounded_##type((wide)value.real * root.real - (wide)value.imaginary * root.imaginary),                 \
            mlf_rounded_##type((wide)value.real * root.imaginary + (wide)value.imaginary * root.real));                \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_plus_##type(mlf_complex_##type one, mlf_complex_##type two)                      \
    {                                                                                                                  \
        return mlf_complex_of_##type(                                                                                  \
            mlf_bin_sum_##type(one.real, two.real), mlf_bin_sum_##type(one.imaginary, two.imaginary));                 \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_minus_##type(mlf_complex_##type one, mlf_complex_##type two)                     \
    {                                                                                                                  \
        return mlf_complex_of_##type(                                                                                  \
            mlf_difference_##type(one.real, two.real), mlf_difference_##type(one.imaginary, two.imaginary));           \
    }                                                                                                                  \
                                                                                                                       \
    /* Add or subtract a number that is turned back by 90 degrees. */                                                  \
    MLF_KERNEL mlf_complex_##type mlf_plus_quarter_##type(mlf_complex_##type one, mlf_complex_##type two)              \
    {                                                                                                                  \
        return mlf_complex_of_##type(                                                                                  \
            mlf_bin_sum_##type(one.real, two.imaginary), mlf_difference_##type(one.imaginary, two.real));              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_minus_quarter_##type(mlf_complex_##type one, mlf_complex_##type two)             \
    {                                                                                                                  \
        return mlf_complex_of_##type(                                                                                  \
            mlf_difference_##type(one.real, two.imaginary), mlf_bin_sum_##type(one.imaginary, two.real));              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_conjugate_##type(mlf_complex_##type value)                                       \
    {                                                                                                                  \
        return mlf_complex_of_##type(value.real, mlf_difference_##type(0, value.imaginary));                           \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_halved_##type(mlf_complex_##type value)                                          \
    {                                                                                                                  \
        return mlf_complex_of_##type(mlf_bin_mean_##type(value.real, 0), mlf_bin_mean_##type(value.imaginary, 0));     \
    }                                                                                                                  \
                                                                                                                       \
    /* The means of two numbers, and of the first and the negated second one, conjugate. */                            \
    MLF_KERNEL mlf_complex_##type mlf_low_##type(mlf_complex_##type even, mlf_complex_##type odd)                      \
    {                                                                                                                  \
        return mlf_complex_of_##type(                                                                                  \
            mlf_bin_mean_##type(even.real, odd.real), mlf_bin_mean_##type(even.imaginary, odd.imaginary));             \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL mlf_complex_##type mlf_high_##type(mlf_complex_##type even, mlf_complex_##type odd)                     \
    {                                                                                                                  \
        return mlf_complex_of_##type(                                                                                  \
            mlf_half_##type(even.real, odd.real), mlf_half_##type(odd.imaginary, even.imaginary));                     \
    }

MLF_COMPLEX(int16, int16_t, int32_t, int32_t)
MLF_COMPLEX(int32, int32_t, int32_t, int64_t)
MLF_COMPLEX(float, float, float, float)

MLF_KERNEL mlf_complex_int16 mlf_divided_int16(mlf_complex_int16 value, int32_t divisor)
{
    return mlf_scaled_bin_int16(value, (int16_t)(INT16_MAX / divisor));
}

MLF_KERNEL mlf_complex_int32 mlf_divided_int32(mlf_complex_int32 value, int32_t divisor)
{
    return mlf_scaled_bin_int32(value, INT32_MAX / divisor);
}

MLF_KERNEL mlf_complex_float mlf_divided_float(mlf_complex_float value, int32_t divisor)
{
    (void)divisor;
    return value;
}

/* The transforms with the complex numbers of a type. */
#define MLF_FOURIER(type, element)                                                                                     \
    /* Input number `at` of a stage of `size`, divided, and turned if `turn`. */                                       \
    MLF_KERNEL mlf_complex_##type mlf_operand_##type(                                                                  \
        const element *from, int32_t size, int32_t part, int32_t at, int32_t turn, mlf_complex_##type root)            \
    {                                                                                                                  \
        const mlf_complex_##type value = mlf_divided_##type(mlf_load_##type(from + 2 * at * part), size);              \
        return turn ? mlf_turned_##type(value, root) : value;                                                          \
    }                                                                                                                  \
                                                                                                                       \
    /* A stage for one element of each part. */                                                                        \
    MLF_KERNEL void mlf_bin_pairs_##type(                                                                              \
        int32_t size, int32_t part, int32_t turn, const element *roots, element *data)                                 \
    {                                                                                                                  \
        const mlf_complex_##type root = mlf_load_##type(roots);                                                        \
        for (element *to = data; to < data + 2 * size; to += 4 * part) {                                               \
            const mlf_complex_##type zero = mlf_divided_##type(mlf_load_##type(to), 2);                                \
            const mlf_complex_##type one = mlf_operand_##type(to, 2, part, 1, turn, root);                             \
            mlf_store_bin_##type(to, mlf_plus_##type(zero, one));                                                      \
            mlf_store_bin_##type(to + 2 * part, mlf_minus_##type(zero, one));                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_triples_##type(                                                                                \
        int32_t size, int32_t part, int32_t turn, element sine, const element *roots, element *data)                   \
    {                                                                                                                  \
        const mlf_complex_##type root1 = mlf_load_##type(roots);                                                       \
        const mlf_complex_##type root2 = mlf_load_##type(roots + 2 * part);                                            \
        for (element *to = data; to < data + 2 * size; to += 6 * part) {                                               \
            const mlf_complex_##type zero = mlf_divided_##type(mlf_load_##type(to), 3);                                \
            const mlf_complex_##type one = mlf_operand_##type(to, 3, part, 1, turn, root1);                            \
            const mlf_complex_##type two = mlf_operand_##type(to, 3, part, 2, turn, root2);                            \
            const mlf_complex_##type total = mlf_plus_##type(one, two);                                                \
            const mlf_complex_##type rest = mlf_scaled_bin_##type(mlf_minus_##type(one, two), sine);                   \
            const mlf_complex_##type middle = mlf_minus_##type(zero, mlf_halved_##type(total));                        \
            mlf_store_bin_##type(to, mlf_plus_##type(zero, total));                                                    \
            mlf_store_bin_##type(to + 2 * part, mlf_minus_quarter_##type(middle, rest));                               \
            mlf_store_bin_##type(to + 4 * part, mlf_plus_quarter_##type(middle, rest));                                \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_quadruples_##type(                                                                             \
        int32_t size, int32_t part, int32_t turn, int32_t inverse, const element *roots, element *data)                \
    {                                                                                                                  \
        const mlf_complex_##type root1 = mlf_load_##type(roots);                                                       \
        const mlf_complex_##type root2 = mlf_load_##type(roots + 2 * part);                                            \
        const mlf_complex_##type root3 = mlf_load_##type(roots + 4 * part);                                            \
        for (element *to = data; to < data + 2 * size; to += 8 * part) {                                               \
            const mlf_complex_##type zero = mlf_divided_##type(mlf_load_##type(to), 4);                                \
            const mlf_complex_##type one = mlf_operand_##type(to, 4, part, 1, turn, root1);                            \
            const mlf_complex_##type two = mlf_operand_##type(to, 4, part, 2, turn, root2);                            \
            const mlf_complex_##type three = mlf_operand_##type(to, 4, part, 3, turn, root3);                          \
            const mlf_complex_##type even = mlf_plus_##type(zero, two);                                                \
            const mlf_complex_##type odd = mlf_minus_##type(zero, two);                                                \
            const mlf_complex_##type total = mlf_plus_##type(one, three);                                              \
            const mlf_complex_##type rest = mlf_minus_##type(one, three);                                              \
            mlf_store_bin_##type(to, mlf_plus_##type(even, total));                                                    \
            mlf_store_bin_##type(to + (inverse ? 6 : 2) * part, mlf_plus_quarter_##type(odd, rest));                   \
            mlf_store_bin_##type(to + 4 * part, mlf_minus_##type(even, total));                                        \
            mlf_store_bin_##type(to + (inverse ? 2 : 6) * part, mlf_minus_quarter_##type(odd, rest));                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_quintuples_##type(                                                                             \
        int32_t size, int32_t part, int32_t turn, const element *own, const element *roots, element *data)             \
    {                                                                                                                  \
        const element near_cosine = own[0], near_sine = own[1], far_cosine = own[2], far_sine = own[3];                \
        for (element *to = data; to < data + 2 * size; to += 10 * part) {                                              \
            const mlf_complex_##type zero = mlf_divided_##type(mlf_load_##type(to), 5);                                \
            const mlf_complex_##type one = mlf_operand_##type(to, 5, part, 1, turn, mlf_load_##type(roots));           \
            const mlf_complex_##type two =                                                                             \
                mlf_operand_##type(to, 5, part, 2, turn, mlf_load_##type(roots + 2 * part));                           \
            const mlf_complex_##type three =                                                                           \
                mlf_operand_##type(to, 5, part, 3, turn, mlf_load_##type(roots + 4 * part));                           \
            const mlf_complex_##type four =                                                                            \
                mlf_operand_##type(to, 5, part, 4, turn, mlf_load_##type(roots + 6 * part));                           \
            const mlf_complex_##type outer = mlf_plus_##type(one, four);                                               \
            const mlf_complex_##type inner = mlf_plus_##type(two, three);                                              \
            const mlf_complex_##type outer_rest = mlf_minus_##type(one, four);                                         \
            const mlf_complex_##type inner_rest = mlf_minus_##type(two, three);                                        \
            const mlf_complex_##type first = mlf_plus_##type(                                                          \
                mlf_plus_##type(zero, mlf_scaled_bin_##type(outer, near_cosine)), mlf_scaled_bin_##type(inner, far_cosine));\
            const mlf_complex_##type second = mlf_plus_##type(                                                         \
                mlf_plus_##type(zero, mlf_scaled_bin_##type(outer, far_cosine)), mlf_scaled_bin_##type(inner, near_cosine));\
            const mlf_complex_##type first_rest = mlf_plus_##type(                                                     \
                mlf_scaled_bin_##type(outer_rest, near_sine), mlf_scaled_bin_##type(inner_rest, far_sine));            \
            const mlf_complex_##type second_rest = mlf_minus_##type(                                                   \
                mlf_scaled_bin_##type(inner_rest, near_sine), mlf_scaled_bin_##type(outer_rest, far_sine));            \
            mlf_store_bin_##type(to, mlf_plus_##type(zero, mlf_plus_##type(outer, inner)));                            \
            mlf_store_bin_##type(to + 2 * part, mlf_minus_quarter_##type(first, first_rest));                          \
            mlf_store_bin_##type(to + 4 * part, mlf_plus_quarter_##type(second, second_rest));                         \
            mlf_store_bin_##type(to + 6 * part, mlf_minus_quarter_##type(second, second_rest));                        \
            mlf_store_bin_##type(to + 8 * part, mlf_plus_quarter_##type(first, first_rest));                           \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Stages of all elements: the first of each part is not turned. */                                                \
    MLF_SHARED void mlf_stage_5_##type(int32_t size, int32_t part, const element *roots, element *data)                \
    {                                                                                                                  \
        mlf_quintuples_##type(size, part, 0, roots, roots + 4, data);                                                  \
        for (int32_t i = 2; i < 2 * part; i += 2) {                                                                    \
            mlf_quintuples_##type(size, part, 1, roots, roots + 4 + i, data + i);                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_SHARED void mlf_stage_3_##type(int32_t size, int32_t part, const element *roots, element *data)                \
    {                                                                                                                  \
        mlf_triples_##type(size, part, 0, roots[1], roots + 2, data);                                                  \
        for (int32_t i = 2; i < 2 * part; i += 2) {                                                                    \
            mlf_triples_##type(size, part, 1, roots[1], roots + 2 + i, data + i);                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_SHARED void mlf_stage_2_##type(int32_t size, int32_t part, const element *roots, element *data)                \
    {                                                                                                                  \
        mlf_bin_pairs_##type(size, part, 0, roots, data);                                                              \
        for (int32_t i = 2; i < 2 * part; i += 2) {                                                                    \
            mlf_bin_pairs_##type(size, part, 1, roots + i, data + i);                                                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_SHARED void mlf_stage_4_##type(int32_t size, int32_t part, const element *roots, element *data)                \
    {                                                                                                                  \
        mlf_quadruples_##type(size, part, 0, 0, roots, data);                                                          \
        for (int32_t i = 2; i < 2 * part; i += 2) {                                                                    \
            mlf_quadruples_##type(size, part, 1, 0, roots + i, data + i);                                              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    MLF_SHARED void mlf_inverse_stage_4_##type(int32_t size, int32_t part, const element *roots, element *data)        \
    {                                                                                                                  \
        mlf_quadruples_##type(size, part, 0, 1, roots, data);                                                          \
        for (int32_t i = 2; i < 2 * part; i += 2) {                                                                    \
            mlf_quadruples_##type(size, part, 1, 1, roots + i, data + i);                                              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Run the stages; return the address after their roots. */                                                        \
    MLF_KERNEL const element *mlf_stages_##type(                                                                       \
        const struct mlf_fourier *fourier, int32_t inverse, const element *roots, element *data)                       \
    {                                                                                                                  \
        const int32_t size = fourier->size;                                                                            \
        int32_t part = 1;                                                                                              \
        for (int32_t i = 0; i < fourier->fives; i++, part *= 5) {                                                      \
            mlf_stage_5_##type(size, part, roots, data);                                                               \
            roots += 4 + 8 * part;                                                                                     \
        }                                                                                                              \
        for (int32_t i = 0; i < fourier->threes; i++, part *= 3) {                                                     \
            mlf_stage_3_##type(size, part, roots, data);                                                               \
            roots += 2 + 4 * part;                                                                                     \
        }                                                                                                              \
        if (fourier->twos != 0) {                                                                                      \
            mlf_stage_2_##type(size, part, roots, data);                                                               \
            roots += 2 * part;                                                                                         \
            part *= 2;                                                                                                 \
        }                                                                                                              \
        for (int32_t i = 0; i < fourier->fours; i++, part *= 4) {                                                      \
            if (inverse) {                                                                                             \
                mlf_inverse_stage_4_##type(size, part, roots, data);                                                   \
            } else {                                                                                                   \
                mlf_stage_4_##type(size, part, roots, data);                                                           \
            }                                                                                                          \
            roots += 6 * part;                                                                                         \
        }                                                                                                              \
        return roots;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    /* Write `count` samples, and zeros after them, in the order of the first stage. */                                \
    MLF_KERNEL void mlf_reorder_##type(                                                                                \
        int32_t size, int32_t count, const uint16_t *order, const element *input, element *output)                     \
    {                                                                                                                  \
        const int32_t pairs = count / 2;                                                                               \
        for (int32_t i = 0; i < pairs; i++) {                                                                          \
            mlf_store_bin_##type(output + 2 * order[i], mlf_load_##type(input + 2 * i));                               \
        }                                                                                                              \
        for (int32_t i = pairs; i < size; i++) {                                                                       \
            output[2 * order[i]] = 2 * i < count ? input[2 * i] : 0;                                                   \
            output[2 * order[i] + 1] = 0;                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* From the transform of even and odd samples to the spectrum of all. */                                           \
    MLF_KERNEL void mlf_separate_##type(int32_t size, const element *roots, element *data)                             \
    {                                                                                                                  \
        for (int32_t i = 1; i <= size / 2; i++, roots += 2) {                                                          \
            element *low = data + 2 * i;                                                                               \
            element *high = data + 2 * (size - i);                                                                     \
            const mlf_complex_##type first = mlf_divided_##type(mlf_load_##type(low), 2);                              \
            const mlf_complex_##type last = mlf_divided_##type(mlf_conjugate_##type(mlf_load_##type(high)), 2);        \
            const mlf_complex_##type even = mlf_plus_##type(first, last);                                              \
            const mlf_complex_##type odd = mlf_turned_##type(mlf_minus_##type(first, last), mlf_load_##type(roots));   \
            mlf_store_bin_##type(low, mlf_low_##type(even, odd));                                                      \
            mlf_store_bin_##type(high, mlf_high_##type(even, odd));                                                    \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* The first and the last element of the spectrum, from the first one of the transform. */                         \
    MLF_KERNEL void mlf_ends_##type(int32_t size, mlf_complex_##type first, element *output)                           \
    {                                                                                                                  \
        const mlf_complex_##type ends = mlf_divided_##type(first, 2);                                                  \
        mlf_store_bin_##type(output, mlf_plus_quarter_##type(ends, ends));                                             \
        mlf_store_bin_##type(output + 2 * size, mlf_minus_quarter_##type(ends, ends));                                 \
        output[1] = 0;                                                                                                 \
        output[2 * size + 1] = 0;                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    /* From a spectrum to the transform of even and odd samples, in the order of the stages; return their roots. */    \
    MLF_KERNEL const element *mlf_join_##type(                                                                         \
        int32_t size, const element *roots, const uint16_t *order, const element *input, element *output)              \
    {                                                                                                                  \
        const mlf_complex_##type bottom = mlf_load_##type(input);                                                      \
        const mlf_complex_##type top = mlf_load_##type(input + 2 * size);                                              \
        element sum[2], difference[2];                                                                                 \
        mlf_store_bin_##type(sum, mlf_plus_##type(bottom, top));                                                       \
        mlf_store_bin_##type(difference, mlf_minus_##type(bottom, top));                                               \
        sum[1] = difference[0];                                                                                        \
        mlf_store_bin_##type(output, mlf_divided_##type(mlf_load_##type(sum), 2));                                     \
        for (int32_t i = 1; i <= size / 2; i++, roots += 2) {                                                          \
            const element *low = input + 2 * i;                                                                        \
            const element *high = input + 2 * (size - i);                                                              \
            const mlf_complex_##type first = mlf_divided_##type(mlf_load_##type(low), 2);                              \
            const mlf_complex_##type last = mlf_divided_##type(mlf_conjugate_##type(mlf_load_##type(high)), 2);        \
            const mlf_complex_##type even = mlf_plus_##type(first, last);                                              \
            const mlf_complex_##type odd = mlf_turned_##type(mlf_minus_##type(first, last), mlf_load_##type(roots));   \
            mlf_store_bin_##type(output + 2 * order[i], mlf_plus_##type(even, odd));                                   \
            mlf_store_bin_##type(output + 2 * order[size - i], mlf_conjugate_##type(mlf_minus_##type(even, odd)));     \
        }                                                                                                              \
        return roots;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    /* Input [rows, count], the first samples of each row; output [rows, size + 1, 2]. */                              \
    MLF_KERNEL void mlf_signal_rfft_##type(                                                                            \
        const struct mlf_fourier *fourier, int32_t rows, int32_t count, const element *roots, const uint16_t *order,   \
        const element *input, element *output)                                                                         \
    {                                                                                                                  \
        const int32_t size = fourier->size;                                                                            \
        for (; rows > 0; rows--, input += count, output += 2 * size + 2) {                                             \
            mlf_reorder_##type(size, count, order, input, output);                                                     \
            const element *others = mlf_stages_##type(fourier, 0, roots, output);                                      \
            const mlf_complex_##type first = mlf_load_##type(output);                                                  \
            mlf_separate_##type(size, others, output);                                                                 \
            mlf_ends_##type(size, first, output);                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Input [rows, size + 1, 2], output [rows, 2 * size]. */                                                          \
    MLF_KERNEL void mlf_signal_irfft_##type(                                                                           \
        const struct mlf_fourier *fourier, int32_t rows, const element *roots, const uint16_t *order,                  \
        const element *input, element *output)                                                                         \
    {                                                                                                                  \
        const int32_t size = fourier->size;                                                                            \
        for (; rows > 0; rows--, input += 2 * size + 2, output += 2 * size) {                                          \
            const element *others = mlf_join_##type(size, roots, order, input, output);                                \
            mlf_stages_##type(fourier, 1, others, output);                                                             \
        }                                                                                                              \
    }

MLF_FOURIER(int16, int16_t)
MLF_FOURIER(int32, int32_t)
MLF_FOURIER(float, float)

/* Divide samples of an inverse transform. */
MLF_KERNEL void mlf_divide_samples(int32_t count, float length, float *samples)
{
    for (int32_t i = 0; i < count; i++) {
        samples[i] /= length;
    }
}

#endif /* MLF_FOURIER_H_ */
