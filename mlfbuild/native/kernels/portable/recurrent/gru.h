/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * GRU and RNN of ONNX. Each step reads a row of inputs x [batches, inputs] and writes a row of units h' to result
 * [steps, batches, units], from the row h of the step before. For each unit of a GRU
 *
 *   update = sigmoid(Wz x + Rz h + b)        reset = sigmoid(Wr x + Rr h + b)
 *   candidate = tanh(Wn x + b + Rn (reset h) + b')     or, with the reset last, tanh(Wn x + b + reset (Rn h + b'))
 *   h' = candidate + update * (h - candidate)
 *
 * and of an RNN h' = tanh(W x + R h + b), or RELU instead of TANH.
 *
 * The row of a step is read in place by the next one. Weights are [units, gates, inputs] and [units, gates, units], so
 * that the gates of a unit share the loads of a row. The biases of a unit are those of update, of reset, b and b'.
 */
#ifndef MLF_GRU_H_
#define MLF_GRU_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "float_math.h"
#include "logistic.h"

struct mlf_gru_shape {
    int32_t batches;
    int32_t steps;
    int32_t inputs;
    int32_t units;
};

#define MLF_GRU_PARAMETERS                                                                                             \
    const struct mlf_gru_shape *shape, const float *weights, const float *recurrent, const float *biases,             \
        const float *row, const float *hidden_before, float *result, float *hidden_after

/* Defines the kernel of this signature: step writes the row `output` from the rows `input` and `hidden`. */
#define MLF_GRU(signature, step)                                                                                       \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        const float *before = hidden_before;                                                                           \
        for (int32_t at = 0; at < shape->steps; at++) {                                                                \
            for (int32_t batch = 0; batch < shape->batches; batch++) {                                                 \
                const float *const input = row + batch * shape->inputs;                                                \
                const float *const hidden = before + batch * shape->units;                                             \
                float *const output = result + batch * shape->units;                                                   \
                step;                                                                                                  \
            }                                                                                                          \
            before = result;                                                                                           \
            row += shape->batches * shape->inputs;                                                                     \
            result += shape->batches * shape->units;                                                                   \
        }                                                                                                              \
        memcpy(hidden_after, before, (size_t)(shape->batches * shape->units) * sizeof *before);                        \
    }

/* Return start plus the product of a row and weights of count elements. */
MLF_KERNEL float mlf_gru_dot(float start, const float *row, const float *weights, int32_t count)
{
    for (int32_t at = 0; at < count; at++) {
        start += row[at] * weights[at];
    }
    return start;
}

/* Add to three sums the products of a row with weights [3, count]. */
MLF_KERNEL void mlf_gru_dot_1x3(float *sums, const float *row, const float *weights, int32_t count)
{
    float a = sums[0];
    float b = sums[1];
    float c = sums[2];
    for (int32_t at = 0; at < count; at++) {
        a += row[at] * weights[at];
        b += row[at] * weights[count + at];
        c += row[at] * weights[2 * count + at];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
}

/* Return the new value of a unit. */
MLF_KERNEL float mlf_gru_mixed(float update, float candidate, float hidden)
{
    return candidate + update * (hidden - candidate);
}

/* The reset multiplies the state: one pass writes all updates and reset states, which a second one multiplies. */
MLF_KERNEL void mlf_gru_step(const struct mlf_gru_shape *shape, const float *weights, const float *recurrent,
                             const float *biases, const float *input, const float *hidden, float *output,
                             float *scratch)
{
    const int32_t inputs = shape->inputs;
    const int32_t units = shape->units;
    for (int32_t unit = 0; unit < units; unit++) {
        const float *const own = weights + 3 * unit * inputs;
        const float *const state = recurrent + 3 * unit * units;
        const float *const bias = biases + 4 * unit;
        const float update = mlf_gru_dot(mlf_gru_dot(bias[0], input, own, inputs), hidden, state, units);
        const float reset =
            mlf_gru_dot(mlf_gru_dot(bias[1], input, own + inputs, inputs), hidden, state + units, units);
        output[unit] = mlf_float_logistic(update);
        scratch[unit] = mlf_float_logistic(reset) * hidden[unit];
    }
    for (int32_t unit = 0; unit < units; unit++) {
        const float *const bias = biases + 4 * unit;
        const float sum = mlf_gru_dot(bias[2] + bias[3], input, weights + (3 * unit + 2) * inputs, inputs);
        const float candidate = mlf_float_tanh(mlf_gru_dot(sum, scratch, recurrent + (3 * unit + 2) * units, units));
        output[unit] = mlf_gru_mixed(output[unit], candidate, hidden[unit]);
    }
}

MLF_KERNEL void mlf_gru_reset_last_step(const struct mlf_gru_shape *shape, const float *weights,
                                        const float *recurrent, const float *biases, const float *input,
                                        const float *hidden, float *output)
{
    for (int32_t unit = 0; unit < shape->units; unit++) {
        const float *const bias = biases + 4 * unit;
        float own[3] = {bias[0], bias[1], bias[2]};
        float state[3] = {0.0f, 0.0f, bias[3]};
        mlf_gru_dot_1x3(own, input, weights + 3 * unit * shape->inputs, shape->inputs);
        mlf_gru_dot_1x3(state, hidden, recurrent + 3 * unit * shape->units, shape->units);
        const float update = mlf_float_logistic(own[0] + state[0]);
        const float reset = mlf_float_logistic(own[1] + state[1]);
        const float candidate = mlf_float_tanh(own[2] + reset * state[2]);
        output[unit] = mlf_gru_mixed(update, candidate, hidden[unit]);
    }
}

/* Return the sum of a unit of an RNN. */
MLF_KERNEL float mlf_rnn_sum(const struct mlf_gru_shape *shape, const float *weights, const float *recurrent,
                             float bias, const float *input, const float *hidden, int32_t unit)
{
    const float sum = mlf_gru_dot(bias, input, weights + unit * shape->inputs, shape->inputs);
    return mlf_gru_dot(sum, hidden, recurrent + unit * shape->units, shape->units);
}

MLF_GRU(mlf_gru_float(MLF_GRU_PARAMETERS, float *scratch),
        mlf_gru_step(shape, weights, recurrent, biases, input, hidden, output, scratch))

MLF_GRU(mlf_gru_reset_last_float(MLF_GRU_PARAMETERS),
        mlf_gru_reset_last_step(shape, weights, recurrent, biases, input, hidden, output))

MLF_GRU(mlf_rnn_tanh(MLF_GRU_PARAMETERS), for (int32_t unit = 0; unit < shape->units; unit++) {
    output[unit] = mlf_float_tanh(mlf_rnn_sum(shape, weights, recurrent, biases[unit], input, hidden, unit));
})

MLF_GRU(mlf_rnn_relu(MLF_GRU_PARAMETERS), for (int32_t unit = 0; unit < shape->units; unit++) {
    const float sum = mlf_rnn_sum(shape, weights, recurrent, biases[unit], input, hidden, unit);
    output[unit] = sum > 0.0f ? sum : 0.0f;
})

#endif /* MLF_GRU_H_ */
