/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * AVERAGE_POOL_2D and MAX_POOL_2D on int8 for cores with the DSP extension, four channels at a time as the bytes of a
 * word; equal to pool2d.h.
 *
 * SSUB8 and SEL select the greater ones of four pairs of bytes: a load and 2 instructions for four elements. SXTAB16
 * adds two bytes to two sums of 16 bits: also a load and 2 instructions, for averages of at most 255 pixels.
 */
#ifndef MLF_POOL2D_DSP_H_
#define MLF_POOL2D_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dsp.h"
#include "pool2d.h"
#include "requantize.h"
#include "window.h"

MLF_KERNEL uint32_t mlf_load4_dsp(const int8_t *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

#if MLF_DSP_ASM

/* Return the greater one of each pair of signed bytes. */
MLF_KERNEL uint32_t mlf_greater4_dsp(uint32_t a, uint32_t b)
{
    uint32_t result;
    __asm__("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b) : "cc");
    return result;
}

MLF_KERNEL uint32_t mlf_lesser4_dsp(uint32_t a, uint32_t b)
{
    uint32_t result;
    __asm__("ssub8 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(result) : "r"(a), "r"(b) : "cc");
    return result;
}

/* Add the signed bytes 0 and 2 to the halves of `sums`. */
MLF_KERNEL uint32_t mlf_add_even_dsp(uint32_t sums, uint32_t bytes)
{
    __asm__("sxtab16 %0, %0, %1" : "+r"(sums) : "r"(bytes));
    return sums;
}

/* Add the signed bytes 1 and 3 to the halves of `sums`. */
MLF_KERNEL uint32_t mlf_add_odd_dsp(uint32_t sums, uint32_t bytes)
{
    __asm__("sxtab16 %0, %0, %1, ror #8" : "+r"(sums) : "r"(bytes));
    return sums;
}

#else /* the same in C */

MLF_KERNEL uint32_t mlf_greater4_dsp(uint32_t a, uint32_t b)
{
    uint32_t result = 0;
    for (int32_t i = 0; i < 4; i++) {
        const int first = mlf_byte_of_dsp((int32_t)a, i) >= mlf_byte_of_dsp((int32_t)b, i);
        result |= (first ? a : b) & (UINT32_C(0xff) << (8 * i));
    }
    return result;
}

MLF_KERNEL uint32_t mlf_lesser4_dsp(uint32_t a, uint32_t b)
{
    return a ^ b ^ mlf_greater4_dsp(a, b);
}

MLF_KERNEL uint32_t mlf_add_even_dsp(uint32_t sums, uint32_t bytes)
{
    const uint32_t low = sums + (uint32_t)mlf_byte_of_dsp((int32_t)bytes, 0);
    const uint32_t high = (sums >> 16) + (uint32_t)mlf_byte_of_dsp((int32_t)bytes, 2);
    return (low & 0xffffU) | high << 16;
}

MLF_KERNEL uint32_t mlf_add_odd_dsp(uint32_t sums, uint32_t bytes)
{
    return mlf_add_even_dsp(sums, bytes >> 8);
}

#endif

/* Return four times the byte `value`. */
MLF_KERNEL uint32_t mlf_repeat4_dsp(int32_t value)
{
    return (uint32_t)(uint8_t)value * 0x01010101U;
}

/* The greatest values of four channels under a window; input points at the first channel. */
MLF_KERNEL uint32_t mlf_greatest4_dsp(const struct mlf_window *window, const struct mlf_taps *rows,
                                      const struct mlf_taps *columns, const int8_t *input)
{
    uint32_t greatest = mlf_repeat4_dsp(INT8_MIN);
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const int8_t *const pixel = input + mlf_pixel(window, rows, columns, row, column);
            greatest = mlf_greater4_dsp(greatest, mlf_load4_dsp(pixel));
        }
    }
    return greatest;
}

/* Return the means of `count` elements with these sums of 16 bits, in the order of the bytes that were added. */
MLF_KERNEL uint32_t mlf_means_dsp(uint32_t even, uint32_t odd, int32_t count)
{
    uint32_t means = 0;
    for (int32_t c = 0; c < 4; c++) {
        const uint32_t next = even >> 16;
        means = means >> 8 | (uint32_t)mlf_rounded_quotient((int16_t)(uint16_t)even, count) << 24;
        even = odd;
        odd = next;
    }
    return means;
}

/* Sums of 16 bits of four channels under a window, in the order of the bytes that were added. */
struct mlf_sums4 {
    uint32_t even;
    uint32_t odd;
    int32_t count;
};

/* Input points at the first channel. */
MLF_KERNEL struct mlf_sums4 mlf_sums4_dsp(const struct mlf_window *window, const struct mlf_taps *rows,
                                          const struct mlf_taps *columns, const int8_t *input)
{
    struct mlf_sums4 sums = {0, 0, mlf_tap_count(rows, columns)};
    for (int32_t row = rows->first; row < rows->end; row++) {
        for (int32_t column = columns->first; column < columns->end; column++) {
            const uint32_t word = mlf_load4_dsp(input + mlf_pixel(window, rows, columns, row, column));
            sums.even = mlf_add_even_dsp(sums.even, word);
            sums.odd = mlf_add_odd_dsp(sums.odd, word);
        }
    }
    return sums;
}

/* The means of four channels under a window; input points at the first channel. */
MLF_KERNEL uint32_t mlf_average4_dsp(const struct mlf_window *window, const struct mlf_taps *rows,
                                     const struct mlf_taps *columns, const int8_t *input)
{
    const struct mlf_sums4 sums = mlf_sums4_dsp(window, rows, columns, input);
    return mlf_means_dsp(sums.even, sums.odd, sums.count);
}

MLF_KERNEL void mlf_store4_dsp(int8_t *to, uint32_t word, struct mlf_int32_range range)
{
    if (range.minimum > INT8_MIN) {
        word = mlf_greater4_dsp(word, mlf_repeat4_dsp(range.minimum));
    }
    if (range.maximum < INT8_MAX) {
        word = mlf_lesser4_dsp(word, mlf_repeat4_dsp(range.maximum));
    }
    memcpy(to, &word, sizeof word);
}

/* The loops of all pools: `four` and `one` compute four values and one value for a window, `store` and `clamp` both. */
#define MLF_POOL_DSP(name, range_type, four, store, one, clamp)                                                        \
    MLF_KERNEL void name(const struct mlf_window *window, range_type range, const int8_t *input, int8_t *output)       \
    {                                                                                                                  \
        const int32_t depth = window->input_channels;                                                                  \
        for (int32_t batch = 0; batch < window->batches; batch++) {                                                    \
            for (int32_t y = 0; y < window->output.height; y++) {                                                      \
                const struct mlf_taps rows = mlf_rows(window, y);                                                      \
                for (int32_t x = 0; x < window->output.width; x++, output += depth) {                                  \
                    const struct mlf_taps columns = mlf_columns(window, x);                                            \
                    int32_t c = 0;                                                                                     \
                    for (; c + 4 <= depth; c += 4) {                                                                   \
                        store(output + c, four(window, &rows, &columns, input + c), range);                            \
                    }                                                                                                  \
                    for (; c < depth; c++) {                                                                           \
                        output[c] = (int8_t)clamp(one(window, &rows, &columns, input + c), range);                     \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            input += window->input.height * window->input.width * depth;                                               \
        }                                                                                                              \
    }

MLF_POOL_DSP(mlf_average_pool_int8_dsp, struct mlf_int32_range, mlf_average4_dsp, mlf_store4_dsp, mlf_average_int8,
             mlf_clamp_int32)
MLF_POOL_DSP(mlf_max_pool_int8_dsp, struct mlf_int32_range, mlf_greatest4_dsp, mlf_store4_dsp, mlf_greatest_int8,
             mlf_clamp_int32)

#endif /* MLF_POOL2D_DSP_H_ */
