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
 */
#ifndef MLF_LSTM_H_
#define MLF_LSTM_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dot4.h"
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

/* As mlf_rescale_value; SMMULR multiplies narrow sums by their factor, rounds and shifts in one instruction. */
MLF_KERNEL int32_t mlf_lstm_rescale(enum mlf_lstm_sums sums, uint32_t value, const struct mlf_rescale *rescale)
{
#if MLF_DSP_ASM
    if (sums == MLF_LSTM_NARROW) {
        int32_t result;
        __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(value << 1 << rescale->left_shift), "r"(rescale->multiplier));
        return mlf_shift_right(result, rescale->right_shift);
    }
#else
    (void)sums;
#endif
    return mlf_rescale_value(value, rescale);
}

/* A product of two Q0.15 values, or of one and a cell, with the cell's scale. */
MLF_KERNEL int32_t mlf_lstm_product(enum mlf_lstm_sums sums, int32_t a, int32_t b,
                                    const struct mlf_rescale *rescale)
{
    return mlf_saturate_int16(mlf_lstm_rescale(sums, (uint32_t)(a * b), rescale));
}

/* Advance the unit with these gates by a step: return its stored hidden value, not yet clamped to its type. */
MLF_KERNEL int32_t mlf_lstm_unit(enum mlf_lstm_sums sums, const struct mlf_lstm *lstm, const uint16_t *table,
                                 const int32_t *gates, int16_t past, int16_t *cell)
{
    const int32_t input = mlf_logistic_value_int16(table, 3 * gates[0]);
    const int32_t forget = mlf_logistic_value_int16(table, 3 * gates[1]);
    const int32_t candidate = mlf_tanh_value_int16(table, 3 * gates[2]);
    const int32_t output = mlf_logistic_value_int16(table, 3 * gates[3]);
    const int32_t sum = mlf_lstm_product(sums, forget, past, &lstm->forget) +
                        mlf_lstm_product(sums, input, candidate, &lstm->update);
    *cell = (int16_t)mlf_clamp(sum, lstm->least_cell, lstm->greatest_cell);
    const int32_t squashed = mlf_tanh_value_int16(table, mlf_table_argument(&lstm->table, *cell));
    const uint32_t scaled = (uint32_t)mlf_lstm_rescale(sums, (uint32_t)(squashed * output), &lstm->hidden);
    return (int32_t)(scaled + (uint32_t)lstm->hidden_zero_point);
}

/* As mlf_lstm_unit from the sums over the row and over the hidden row, for int8. */
MLF_KERNEL int8_t mlf_lstm_finish_int8(enum mlf_lstm_sums sums, const struct mlf_lstm *lstm,
                                       const struct mlf_rescale *rescales, const uint16_t *table,
                                       struct mlf_int32x4 x, struct mlf_int32x4 h, int16_t past, int16_t *cell)
{
    const int32_t gates[4] = {
        mlf_lstm_gate(mlf_lstm_rescale(sums, x.v0, &rescales[0]), mlf_lstm_rescale(sums, h.v0, &rescales[4])),
        mlf_lstm_gate(mlf_lstm_rescale(sums, x.v1, &rescales[1]), mlf_lstm_rescale(sums, h.v1, &rescales[5])),
        mlf_lstm_gate(mlf_lstm_rescale(sums, x.v2, &rescales[2]), mlf_lstm_rescale(sums, h.v2, &rescales[6])),
        mlf_lstm_gate(mlf_lstm_rescale(sums, x.v3, &rescales[3]), mlf_lstm_rescale(sums, h.v3, &rescales[7])),
    };
    return (int8_t)mlf_saturate_int8(mlf_lstm_unit(sums, lstm, table, gates, past, cell));
}

MLF_KERNEL int8_t mlf_lstm_unit_int8(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                                     const struct mlf_rescale *rescales, const uint16_t *table,
                                     const int8_t *weights, const int8_t *recurrent, const int32_t *bias,
                                     const int8_t *row, const int8_t *hidden, int16_t past, int16_t *cell)
{
    struct mlf_int32x4 x = {(uint32_t)bias[0], (uint32_t)bias[1], (uint32_t)bias[2], (uint32_t)bias[3]};
    struct mlf_int32x4 h = {(uint32_t)bias[4], (uint32_t)bias[5], (uint32_t)bias[6], (uint32_t)bias[7]};
    x = mlf_dot4_row_int8(x, row, weights, shape->inputs);
    h = mlf_dot4_row_int8(h, hidden, recurrent, shape->units);
    return mlf_lstm_finish_int8(MLF_LSTM_ANY, lstm, rescales, table, x, h, past, cell);
}

MLF_KERNEL int16_t mlf_lstm_unit_int16(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                                       const struct mlf_wide_rescale *rescales, const uint16_t *table,
                                       const int8_t *weights, const int8_t *recurrent, const int64_t *bias,
                                       const int16_t *row, const int16_t *hidden, int16_t past, int16_t *cell)
{
    struct mlf_int64x4 x = {bias[0], bias[1], bias[2], bias[3]};
    struct mlf_int64x4 h = {0, 0, 0, 0};
    x = mlf_dot4_row_int16(x, row, weights, shape->inputs);
    h = mlf_dot4_row_int16(h, hidden, recurrent, shape->units);
    const int32_t gates[4] = {
        mlf_lstm_gate(mlf_rescale_wide(x.v0, &rescales[0]), mlf_rescale_wide(h.v0, &rescales[4])),
        mlf_lstm_gate(mlf_rescale_wide(x.v1, &rescales[1]), mlf_rescale_wide(h.v1, &rescales[5])),
        mlf_lstm_gate(mlf_rescale_wide(x.v2, &rescales[2]), mlf_rescale_wide(h.v2, &rescales[6])),
        mlf_lstm_gate(mlf_rescale_wide(x.v3, &rescales[3]), mlf_rescale_wide(h.v3, &rescales[7])),
    };
    return (int16_t)mlf_saturate_int16(mlf_lstm_unit(MLF_LSTM_ANY, lstm, table, gates, past, cell));
}

MLF_KERNEL float mlf_lstm_unit_float(const struct mlf_lstm_shape *shape, struct mlf_float_range range,
                                     const float *weights, const float *recurrent, const float *bias,
                                     const float *row, const float *hidden, float past, float *cell)
{
    struct mlf_float32x4 gates = {bias[0], bias[1], bias[2], bias[3]};
    gates = mlf_dot4_row_float(gates, row, weights, shape->inputs);
    gates = mlf_dot4_row_float(gates, hidden, recurrent, shape->units);
    const float kept = mlf_float_logistic(gates.v1) * past;
    *cell = mlf_clamp_float(kept + mlf_float_logistic(gates.v0) * mlf_float_tanh(gates.v2), range);
    return mlf_float_logistic(gates.v3) * mlf_float_tanh(*cell);
}

MLF_LSTM(mlf_lstm_int8(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                       const struct mlf_rescale *rescales, const uint16_t *table, const int8_t *weights,
                       const int8_t *recurrent, const int32_t *biases, MLF_LSTM_PARAMETERS(int8_t, int16_t)),
         int8_t, int16_t,
         mlf_lstm_unit_int8(shape, lstm, rescales, table, weights + 4 * unit * shape->inputs,
                            recurrent + 4 * unit * shape->units, biases + 8 * unit, input, hidden, past[unit],
                            &cell[unit]))

MLF_LSTM(mlf_lstm_int16(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                        const struct mlf_wide_rescale *rescales, const uint16_t *table, const int8_t *weights,
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
