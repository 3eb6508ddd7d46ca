/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * int8 UNIDIRECTIONAL_SEQUENCE_LSTM for cores with the DSP extension: lstm.h with the products of matmul_dsp.h. The
 * rows of a step are expanded to 16 bits once; the products of all gates then take 0.9 instructions each.
 *
 * Layout of the packed weights, int32, for each unit first over the row of inputs, then over the hidden row:
 *   the bias of the input gate, and that plus 256 times the one of the forget gate; those of the cell and output gate
 *   for each group of four elements, the last one filled with zeros, two words of the input and the forget gate, for
 *   elements (0, 2) and (1, 3), then two of the cell and the output gate
 * matmul_dsp.h describes the words. The compiler checks that sums of the second gate of a pair fit in 24 bits, that all
 * sums are narrow, and that no factor shifts them left by more than 8 bits.
 */
#ifndef MLF_LSTM_DSP_H_
#define MLF_LSTM_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dot_3x2_dsp.h"
#include "dsp.h"
#include "expand_dsp.h"
#include "lstm.h"

#if MLF_DSP_ASM

/* r1: weights, r2: rows, r0 and r11: sums of the even gate, r10 and r12: of 256 times the odd one plus the even one. */
#define MLF_GATES_GROUP_DSP                                                                                            \
    "ldmia r2!, {r4, r5}\n\t"                                                                                          \
    "ldmia r1!, {r6-r8, lr}\n\t"                                                                                       \
    "smlad r10, r6, r4, r10\n\t"                                                                                       \
    "sxtb16 r6, r6\n\t"                                                                                                \
    "smlad r0, r6, r4, r0\n\t"                                                                                         \
    "smlad r12, r8, r4, r12\n\t"                                                                                       \
    "sxtb16 r8, r8\n\t"                                                                                                \
    "smlad r11, r8, r4, r11\n\t"                                                                                       \
    "smlad r10, r7, r5, r10\n\t"                                                                                       \
    "sxtb16 r7, r7\n\t"                                                                                                \
    "smlad r0, r7, r5, r0\n\t"                                                                                         \
    "smlad r12, lr, r5, r12\n\t"                                                                                       \
    "sxtb16 lr, lr\n\t"                                                                                                \
    "smlad r11, lr, r5, r11\n\t"

/*
 * Write the sums of a unit's gates over both rows: for each pair of gates the even one's, and 256 times the odd one's.
 * The low half of `groups` has the groups of four inputs, the high half those of hidden values; neither is 0. A group
 * takes 14 instructions for 16 products. Return the end of the unit's weights.
 */
MLF_NAKED const int32_t *mlf_gates_dsp(int32_t sums[8] MLF_UNUSED, const int32_t *weights MLF_UNUSED,
                                       const int16_t *rows MLF_UNUSED, uint32_t groups MLF_UNUSED)
{
    __asm__ volatile("push {r0, r3-r8, r10, r11, lr}\n\t"
                     "uxth r3, r3\n"
                     "1:\n\t"
                     "ldmia r1!, {r0, r10-r12}\n\t"
                     "lsrs r3, r3, #1\n\t"
                     "bcc 2f\n\t" MLF_GATES_GROUP_DSP
                     "2:\n\t"
                     "lsrs r3, r3, #1\n\t"
                     "bcc 3f\n\t" MLF_GATES_GROUP_DSP MLF_GATES_GROUP_DSP
                     "3:\n\t"
                     "beq 5f\n"
                     "4:\n\t" MLF_GATES_GROUP_DSP MLF_GATES_GROUP_DSP MLF_GATES_GROUP_DSP MLF_GATES_GROUP_DSP
                     "subs r3, r3, #1\n\t"
                     "bne 4b\n"
                     "5:\n\t"
                     "ldrd lr, r3, [sp]\n\t"
                     "sub r10, r10, r0\n\t"
                     "sub r12, r12, r11\n\t"
                     "stmia lr!, {r0, r10-r12}\n\t"
                     "lsrs r3, r3, #16\n\t" /* the second time 0 */
                     "strd lr, r3, [sp]\n\t"
                     "bne 1b\n\t"
                     "mov r0, r1\n\t"
                     "pop {r2-r8, r10, r11, pc}");
}

#else /* the same in C */

MLF_SHARED const int32_t *mlf_gates_dsp(int32_t sums[8], const int32_t *weights, const int16_t *rows, uint32_t groups)
{
    for (int32_t part = 0; part < 2; part++, groups >>= 16) {
        uint32_t pairs[2][2];
        memcpy(pairs, weights, sizeof pairs);
        weights += 4;
        for (uint32_t i = 0; i < (groups & UINT32_C(0xffff)); i++, weights += 4, rows += 4) {
            for (int32_t pair = 0; pair < 2; pair++) {
                mlf_smlad2_dsp(pairs[pair], weights[2 * pair], rows);
                mlf_smlad2_dsp(pairs[pair], weights[2 * pair + 1], rows + 2);
            }
        }
        for (int32_t pair = 0; pair < 2; pair++) {
            sums[4 * part + 2 * pair] = (int32_t)pairs[pair][0];
            sums[4 * part + 2 * pair + 1] = (int32_t)(pairs[pair][1] - pairs[pair][0]);
        }
    }
    return weights;
}

#endif

/* The contribution of a sum from mlf_gates_dsp to gate `at`, over the row or over the hidden row. */
MLF_KERNEL int32_t mlf_lstm_part_dsp(const int32_t *sums, const struct mlf_rescale *rescales, int32_t at)
{
    const int32_t left = rescales[at].left_shift;
    const int32_t shifted = at % 2 == 0 ? (int32_t)((uint32_t)sums[at] << left) : sums[at] >> (8 - left);
    return mlf_lstm_saturate(mlf_lstm_rounded(shifted, &rescales[at]), rescales[at].right_shift);
}

MLF_KERNEL int32_t mlf_lstm_gate_dsp(const int32_t *sums, const struct mlf_rescale *rescales, int32_t at)
{
    return mlf_saturate_int16(mlf_lstm_part_dsp(sums, rescales, at) + mlf_lstm_part_dsp(sums, rescales, at + 4));
}

/* As mlf_lstm_int8, with scratch memory for both rows in whole groups of four. */
MLF_KERNEL void mlf_lstm_int8_dsp(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                                  const struct mlf_rescale *rescales, const int16_t *table, const int32_t *weights,
                                  int16_t *scratch, MLF_LSTM_PARAMETERS(int8_t, int16_t))
{
    const uint32_t input_groups = (uint32_t)(shape->inputs + 3) / 4;
    const uint32_t groups = input_groups + ((uint32_t)(shape->units + 3) / 4 << 16);
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int8_t *input = row + batch * shape->row_batch;
        int8_t *output = result + batch * shape->result_batch;
        const int8_t *hidden = hidden_before + batch * shape->units;
        const int16_t *past = cell_before + batch * shape->units;
        int16_t *const cell = cell_after + batch * shape->units;
        for (int32_t at = 0; at < shape->steps; at++) {
            mlf_expand_dsp(scratch, input, shape->inputs);
            mlf_expand_dsp(scratch + 4 * input_groups, hidden, shape->units);
            const int32_t *next = weights;
            for (int32_t unit = 0; unit < shape->units; unit++) {
                int32_t sums[8];
                next = mlf_gates_dsp(sums, next, scratch, groups);
                const int32_t gates[4] = {
                    mlf_lstm_gate_dsp(sums, rescales, 0),
                    mlf_lstm_gate_dsp(sums, rescales, 1),
                    mlf_lstm_gate_dsp(sums, rescales, 2),
                    mlf_lstm_gate_dsp(sums, rescales, 3),
                };
                const int32_t value = mlf_lstm_unit(MLF_LSTM_NARROW, lstm, table, gates, past[unit], &cell[unit]);
                output[unit] = (int8_t)mlf_saturate_int8(value);
            }
            hidden = output;
            past = cell;
            input += shape->row_step;
            output += shape->result_step;
        }
        memcpy(hidden_after + batch * shape->units, hidden, (size_t)shape->units * sizeof *hidden);
    }
}

#endif /* MLF_LSTM_DSP_H_ */
