/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * UNIDIRECTIONAL_SEQUENCE_LSTM. Each step reads a row of inputs and writes a row of units; for each unit
 *
 *   gate = squash(weights * row + recurrent * hidden + bias)      four of them: input, forget, cell, output
 *   cell = clip(forget * cell + input * cell gate)
 *   hidden = output * tanh(cell)                                  which is the result
 *
 * The hidden row of a step is the result of the one before and is read in place, so that a step needs no further
 * memory. Weights are [units, 4, inputs] and [units, 4, units]: the gates of a unit share the loads of a row. Cells and
 * hidden rows may be updated in place or written to other memory.
 *
 * Gates of integers are Q3.12, after squashing Q0.15. The contributions of the row and the hidden row are rescaled,
 * rounded and clamped separately, by 8 factors, first those of the row. Zero points are folded into int32 biases
 * [units, 2, 4].
 *
 * Their table is that of logistic.h minus 1/2 for positive and negative arguments, int16 [513]: element 256 is the one
 * for 0, the outermost repeat their neighbours.
 */
#ifndef MLF_LSTM_H_
#define MLF_LSTM_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dot_1x4.h"
#include "dsp.h"
#include "float_math.h"
#include "logistic.h"
#include "requantize.h"
#include "wide_sums.h"

/* Strides count elements. */
struct mlf_lstm_shape {
    int32_t batches;
    int32_t steps;
    int32_t inputs;
    int32_t units;
    int32_t row_batch;
    int32_t row_step;
    int32_t result_batch;
    int32_t result_step;
};

/* The rescalings from gates to cells and hidden rows, for integers. */
struct mlf_lstm {
    struct mlf_rescale forget; /* of the forget gate times the cell */
    struct mlf_rescale update; /* of the input gate times the cell gate */
    struct mlf_rescale hidden; /* of the output gate times the squashed cell */
    struct mlf_table_scale table;
    int32_t least_cell;
    int32_t greatest_cell;
    int32_t hidden_zero_point;
};

#define MLF_LSTM_PARAMETERS(type, cell_type)                                                                           \
    const type *row, const type *hidden_before, const cell_type *cell_before, type *result, type *hidden_after,       \
        cell_type *cell_after

/* Defines the kernel of this signature, which does step for each unit of each row: a term of hidden, cell and past. */
#define MLF_LSTM(signature, type, cell_type, step)                                                                     \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t batch = 0; batch < shape->batches; batch++) {                                                     \
            const type *input = row + batch * shape->row_batch;                                                        \
            type *output = result + batch * shape->result_batch;                                                       \
            const type *hidden = hidden_before + batch * shape->units;                                                 \
            const cell_type *past = cell_before + batch * shape->units;                                                \
            cell_type *const cell = cell_after + batch * shape->units;                                                 \
            for (int32_t at = 0; at < shape->steps; at++) {                                                            \
                for (int32_t unit = 0; unit < shape->units; unit++) {                                                  \
                    output[unit] = (step);                                                                             \
                }                                                                                                      \
                hidden = output;                                                                                       \
                past = cell;                                                                                           \
                input += shape->row_step;                                                                              \
                output += shape->result_step;                                                                          \
            }                                                                                                          \
            memcpy(hidden_after + batch * shape->units, hidden, (size_t)shape->units * sizeof *hidden);                \
        }                                                                                                              \
    }

/* A gate of Q3.12, the sum of the contributions of the row and the hidden row. */
MLF_KERNEL int32_t mlf_lstm_gate(int32_t from_row, int32_t from_hidden)
{
    return mlf_saturate_int16(mlf_saturate_int16(from_row) + mlf_saturate_int16(from_hidden));
}

/* The sums and products of a layer: any, or only those of less than 2^30, also if their factor shifts them left. */
enum mlf_lstm_sums { MLF_LSTM_ANY, MLF_LSTM_NARROW };

#if MLF_DSP_ASM
#define MLF_LSTM_SATURATE(exponent)                                                                                    \
    case exponent:                                                                                                     \
        __asm__("ssat %0, #16, %1, asr #" #exponent : "=r"(result) : "r"(value) : "cc");                               \
        return result;
#endif

/* Return value / 2^shift, rounded down and clamped to int16; SSAT does both if the shift is a literal of these. */
MLF_KERNEL int32_t mlf_lstm_saturate(int32_t value, int32_t shift)
{
#if MLF_DSP_ASM
    int32_t result;
    switch (shift) {
        MLF_LSTM_SATURATE(1) MLF_LSTM_SATURATE(2) MLF_LSTM_SATURATE(3) MLF_LSTM_SATURATE(4) MLF_LSTM_SATURATE(5)
        MLF_LSTM_SATURATE(6) MLF_LSTM_SATURATE(7) MLF_LSTM_SATURATE(8) MLF_LSTM_SATURATE(14) MLF_LSTM_SATURATE(18)
    default:
        break;
    }
#endif
    return mlf_saturate_int16(value >> shift);
}

/* From a narrow sum, shifted left by its factor, to the product before its shift right, with what rounds that. */
MLF_KERNEL int32_t mlf_lstm_rounded(int32_t shifted, const struct mlf_rescale *rescale)
{
    const int32_t value = mlf_multiply_high(shifted, rescale->multiplier);
    return rescale->right_shift == 0 ? value : value + (value >> 31) + (1 << rescale->right_shift >> 1);
}

MLF_KERNEL int32_t mlf_lstm_rescale(enum mlf_lstm_sums sums, uint32_t value, const struct mlf_rescale *rescale)
{
    if (sums == MLF_LSTM_NARROW) {
        return mlf_lstm_rounded((int32_t)(value << rescale->left_shift), rescale) >> rescale->right_shift;
    }
    return mlf_rescale_value(value, rescale);
}

/* Return a number that the compiler does not know, so that it stays in a register. */
MLF_KERNEL int32_t mlf_lstm_opaque(int32_t number)
{
#if MLF_DSP_ASM
    __asm__("" : "+r"(number));
#endif
    return number;
}

/*
 * Return the table's value at argument, which has this many bits between two entries, plus start; both with these bits
 * as fraction. SMLAD weights both entries. `middle` is the entry for 0.
 */
MLF_KERNEL int32_t mlf_lstm_table(const int16_t *middle, int32_t argument, int32_t bits, int32_t start)
{
    const int16_t *const entry = middle + (argument >> bits);
    const int32_t rest = argument & ((1 << bits) - 1);
    start += argument >> 31; /* a negative tie goes down */
#if MLF_DSP_ASM
    uint32_t entries;
    int32_t result;
    memcpy(&entries, entry, sizeof entries);
    __asm__("smlad %0, %1, %2, %3"
            : "=r"(result)
            : "r"(entries), "r"(((uint32_t)rest << 16) - (uint32_t)rest + (1u << bits)), "r"(start));
    return result;
#else
    return start + entry[0] * ((1 << bits) - rest) + entry[1] * rest;
#endif
}

/* As mlf_logistic_value_int16 of 3 * gate. */
MLF_KERNEL int32_t mlf_lstm_logistic(const int16_t *middle, int32_t gate)
{
    return mlf_lstm_table(middle, 3 * gate, 9, mlf_lstm_opaque((1 << 24) + (1 << 9))) >> 10;
}

/* As mlf_tanh_value_int16. */
MLF_KERNEL int32_t mlf_lstm_tanh(const int16_t *middle, int32_t argument)
{
    int32_t bounded;
#if MLF_DSP_ASM
    __asm__("ssat %0, #17, %1" : "=r"(bounded) : "r"(argument) : "cc");
#else
    bounded = mlf_clamp(argument, -(1 << 16), (1 << 16) - 1);
#endif
    return mlf_lstm_table(middle, bounded, 8, 1 << 7) >> 8;
}

/* A product of two Q0.15 values, or of one and a cell, with the cell's scale. */
MLF_KERNEL int32_t mlf_lstm_product(enum mlf_lstm_sums sums, int32_t a, int32_t b,
                                    const struct mlf_rescale *rescale)
{
    if (sums == MLF_LSTM_NARROW) {
        return mlf_lstm_saturate(mlf_lstm_rounded(a * b, rescale), rescale->right_shift);
    }
    return mlf_saturate_int16(mlf_rescale_value((uint32_t)(a * b), rescale));
}

/* Advance the unit with these gates by a step: return its stored hidden value, not yet clamped to its type. */
MLF_KERNEL int32_t mlf_lstm_unit(enum mlf_lstm_sums sums, const struct mlf_lstm *lstm, const int16_t *table,
                                 const int32_t *gates, int16_t past, int16_t *cell)
{
    const int16_t *middle = table + 256;
#if MLF_DSP_ASM
    __asm__("" : "+r"(middle)); /* keeps it in a register */
#endif
    const int32_t input = mlf_lstm_logistic(middle, gates[0]);
    const int32_t forget = mlf_lstm_logistic(middle, gates[1]);
    const int32_t candidate = mlf_lstm_tanh(middle, 3 * gates[2]);
    const int32_t output = mlf_lstm_logistic(middle, gates[3]);
    const int32_t sum = mlf_lstm_product(sums, forget, past, &lstm->forget) +
                        mlf_lstm_product(sums, input, candidate, &lstm->update);
    *cell = (int16_t)mlf_clamp(sum, lstm->least_cell, lstm->greatest_cell);
    const int32_t squashed = mlf_lstm_tanh(middle, mlf_table_argument(&lstm->table, *cell));
    const uint32_t scaled = (uint32_t)mlf_lstm_rescale(sums, (uint32_t)(squashed * output), &lstm->hidden);
    return (int32_t)(scaled + (uint32_t)lstm->hidden_zero_point);
}

/* The four gates from the sums x over the row and h over the hidden row, by the function that rescales them. */
#define MLF_LSTM_GATES(rescale)                                                                                        \
    {                                                                                                                  \
        mlf_lstm_gate(rescale(x.v0, &rescales[0]), rescale(h.v0, &rescales[4])),                                       \
        mlf_lstm_gate(rescale(x.v1, &rescales[1]), rescale(h.v1, &rescales[5])),                                       \
        mlf_lstm_gate(rescale(x.v2, &rescales[2]), rescale(h.v2, &rescales[6])),                                       \
        mlf_lstm_gate(rescale(x.v3, &rescales[3]), rescale(h.v3, &rescales[7])),                                       \
    }

/* As mlf_lstm_unit from the sums over the row and over the hidden row, for int8. */
MLF_KERNEL int8_t mlf_lstm_finish_int8(const struct mlf_lstm *lstm, const struct mlf_rescale *rescales,
                                       const int16_t *table, struct mlf_int32x4 x, struct mlf_int32x4 h, int16_t past,
                                       int16_t *cell)
{
    const int32_t gates[4] = MLF_LSTM_GATES(mlf_rescale_value);
    return (int8_t)mlf_saturate_int8(mlf_lstm_unit(MLF_LSTM_ANY, lstm, table, gates, past, cell));
}

MLF_KERNEL int8_t mlf_lstm_unit_int8(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                                     const struct mlf_rescale *rescales, const int16_t *table,
                                     const int8_t *weights, const int8_t *recurrent, const int32_t *bias,
                                     const int8_t *row, const int8_t *hidden, int16_t past, int16_t *cell)
{
    struct mlf_int32x4 x = {(uint32_t)bias[0], (uint32_t)bias[1], (uint32_t)bias[2], (uint32_t)bias[3]};
    struct mlf_int32x4 h = {(uint32_t)bias[4], (uint32_t)bias[5], (uint32_t)bias[6], (uint32_t)bias[7]};
    x = mlf_dot_1x4_row_int8(x, row, weights, shape->inputs);
    h = mlf_dot_1x4_row_int8(h, hidden, recurrent, shape->units);
    return mlf_lstm_finish_int8(lstm, rescales, table, x, h, past, cell);
}

MLF_KERNEL int16_t mlf_lstm_unit_int16(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                                       const struct mlf_wide_rescale *rescales, const int16_t *table,
                                       const int8_t *weights, const int8_t *recurrent, const int64_t *bias,
                                       const int16_t *row, const int16_t *hidden, int16_t past, int16_t *cell)
{
    struct mlf_int64x4 x = {bias[0], bias[1], bias[2], bias[3]};
    struct mlf_int64x4 h = {0, 0, 0, 0};
    x = mlf_dot_1x4_row_int16(x, row, weights, shape->inputs);
    h = mlf_dot_1x4_row_int16(h, hidden, recurrent, shape->units);
    const int32_t gates[4] = MLF_LSTM_GATES(mlf_rescale_wide);
    return (int16_t)mlf_saturate_int16(mlf_lstm_unit(MLF_LSTM_ANY, lstm, table, gates, past, cell));
}

MLF_KERNEL float mlf_lstm_unit_float(const struct mlf_lstm_shape *shape, struct mlf_float_range range,
                                     const float *weights, const float *recurrent, const float *bias,
                                     const float *row, const float *hidden, float past, float *cell)
{
    struct mlf_float32x4 gates = {bias[0], bias[1], bias[2], bias[3]};
    gates = mlf_dot_1x4_row_float(gates, row, weights, shape->inputs);
    gates = mlf_dot_1x4_row_float(gates, hidden, recurrent, shape->units);
    const float kept = mlf_float_logistic(gates.v1) * past;
    *cell = mlf_clamp_float(kept + mlf_float_logistic(gates.v0) * mlf_float_tanh(gates.v2), range);
    return mlf_float_logistic(gates.v3) * mlf_float_tanh(*cell);
}

MLF_LSTM(mlf_lstm_int8(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                       const struct mlf_rescale *rescales, const int16_t *table, const int8_t *weights,
                       const int8_t *recurrent, const int32_t *biases, MLF_LSTM_PARAMETERS(int8_t, int16_t)),
         int8_t, int16_t,
         mlf_lstm_unit_int8(shape, lstm, rescales, table, weights + 4 * unit * shape->inputs,
                            recurrent + 4 * unit * shape->units, biases + 8 * unit, input, hidden, past[unit],
                            &cell[unit]))

MLF_LSTM(mlf_lstm_int16(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                        const struct mlf_wide_rescale *rescales, const int16_t *table, const int8_t *weights,
                        const int8_t *recurrent, const int64_t *biases, MLF_LSTM_PARAMETERS(int16_t, int16_t)),
         int16_t, int16_t,
         mlf_lstm_unit_int16(shape, lstm, rescales, table, weights + 4 * unit * shape->inputs,
                             recurrent + 4 * unit * shape->units, biases + 4 * unit, input, hidden, past[unit],
                             &cell[unit]))

MLF_LSTM(mlf_lstm_float(const struct mlf_lstm_shape *shape, struct mlf_float_range range, const float *weights,
                        const float *recurrent, const float *biases, MLF_LSTM_PARAMETERS(float, float)),
         float, float,
         mlf_lstm_unit_float(shape, range, weights + 4 * unit * shape->inputs, recurrent + 4 * unit * shape->units,
                             biases + 4 * unit, input, hidden, past[unit], &cell[unit]))

#endif /* MLF_LSTM_H_ */
