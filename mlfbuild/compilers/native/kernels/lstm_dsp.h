/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * int8 UNIDIRECTIONAL_SEQUENCE_LSTM for cores with the DSP extension: lstm.h with the products of matmul_dsp.h.
 *
 * Layout of weights and recurrent weights, int32, for each unit and each group of four inputs: two words of the input
 * and the forget gate, for inputs (0, 2) and (1, 3), then two of the cell and the output gate. matmul_dsp.h describes
 * the words. The compiler checks that sums of the second gate of a pair fit in 24 bits, and that all sums are narrow.
 */
#ifndef MLF_LSTM_DSP_H_
#define MLF_LSTM_DSP_H_

#include <stdint.h>

#include "block_dsp.h"
#include "compiler.h"
#include "dsp.h"
#include "expand_dsp.h"
#include "lstm.h"

#if MLF_DSP_ASM

/* r1: weights, r2: row, r10 and r11: sums of the even gate and of 256 times the odd one plus it, r12 and r0 too. */
#define MLF_GATES_GROUP_DSP                                                                                            \
    "ldr r4, [r2], #4\n\t"                                                                                             \
    "ldmia r1!, {r6-r8, lr}\n\t"                                                                                       \
    "sxtb16 r5, r4, ror #8\n\t"                                                                                        \
    "sxtb16 r4, r4\n\t"                                                                                                \
    "smlad r11, r6, r4, r11\n\t"                                                                                       \
    "sxtb16 r6, r6\n\t"                                                                                                \
    "smlad r10, r6, r4, r10\n\t"                                                                                       \
    "smlad r0, r8, r4, r0\n\t"                                                                                         \
    "sxtb16 r8, r8\n\t"                                                                                                \
    "smlad r12, r8, r4, r12\n\t"                                                                                       \
    "smlad r11, r7, r5, r11\n\t"                                                                                       \
    "sxtb16 r7, r7\n\t"                                                                                                \
    "smlad r10, r7, r5, r10\n\t"                                                                                       \
    "smlad r0, lr, r5, r0\n\t"                                                                                         \
    "sxtb16 lr, lr\n\t"                                                                                                \
    "smlad r12, lr, r5, r12\n\t"

/* Add the products of `groups` times four inputs to the sums of a unit's gates: 17 instructions for 16 products. */
MLF_NAKED void mlf_gates_dsp(struct mlf_int32x4 *sums MLF_UNUSED, const int32_t *weights MLF_UNUSED,
                             const int8_t *row MLF_UNUSED, int32_t groups MLF_UNUSED)
{
    __asm__ volatile("push {r0, r4-r8, r10, r11, lr}\n\t"
                     "mov r10, #0\n\t"
                     "mov r11, #0\n\t"
                     "mov r12, #0\n\t"
                     "mov r0, #0\n\t"
                     "adds r3, r3, #1\n\t"
                     "lsrs r3, r3, #1\n\t" /* rounds; the first of an odd number of groups has one */
                     "bcc 2f\n"
                     "1:\n\t" MLF_GATES_GROUP_DSP
                     "2:\n\t" MLF_GATES_GROUP_DSP
                     "subs r3, r3, #1\n\t"
                     "bne 1b\n\t"
                     "ldr r1, [sp]\n\t"
                     "sub r11, r11, r10\n\t"
                     "sub r0, r0, r12\n\t"
                     "ldmia r1, {r2-r5}\n\t"
                     "add r2, r2, r10\n\t"
                     "add r3, r3, r11, asr #8\n\t"
                     "add r4, r4, r12\n\t"
                     "add r5, r5, r0, asr #8\n\t"
                     "stmia r1, {r2-r5}\n\t"
                     "pop {r0, r4-r8, r10, r11, pc}");
}

#else /* the same in C */

MLF_SHARED void mlf_gates_dsp(struct mlf_int32x4 *sums, const int32_t *weights, const int8_t *row, int32_t groups)
{
    uint32_t first[2] = {0, 0};
    uint32_t second[2] = {0, 0};
    for (int32_t i = 0; i < groups; i++) {
        int16_t group[4];
        mlf_expand4_dsp(group, row + 4 * i);
        mlf_smlad2_dsp(first, weights[4 * i], group);
        mlf_smlad2_dsp(first, weights[4 * i + 1], group + 2);
        mlf_smlad2_dsp(second, weights[4 * i + 2], group);
        mlf_smlad2_dsp(second, weights[4 * i + 3], group + 2);
    }
    sums->v0 += first[0];
    sums->v1 += (uint32_t)((int32_t)(first[1] - first[0]) >> 8);
    sums->v2 += second[0];
    sums->v3 += (uint32_t)((int32_t)(second[1] - second[0]) >> 8);
}

#endif

MLF_KERNEL int8_t mlf_lstm_unit_int8_dsp(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                                         const struct mlf_rescale *rescales, const uint16_t *table,
                                         const int32_t *weights, const int32_t *recurrent, const int32_t *bias,
                                         const int8_t *row, const int8_t *hidden, int16_t past, int16_t *cell)
{
    struct mlf_int32x4 x = {(uint32_t)bias[0], (uint32_t)bias[1], (uint32_t)bias[2], (uint32_t)bias[3]};
    struct mlf_int32x4 h = {(uint32_t)bias[4], (uint32_t)bias[5], (uint32_t)bias[6], (uint32_t)bias[7]};
    mlf_gates_dsp(&x, weights, row, shape->inputs / 4);
    mlf_gates_dsp(&h, recurrent, hidden, shape->units / 4);
    return mlf_lstm_finish_int8(MLF_LSTM_NARROW, lstm, rescales, table, x, h, past, cell);
}

/* As mlf_lstm_int8 for multiples of four inputs and units. */
MLF_LSTM(mlf_lstm_int8_dsp(const struct mlf_lstm_shape *shape, const struct mlf_lstm *lstm,
                           const struct mlf_rescale *rescales, const uint16_t *table, const int32_t *weights,
                           const int32_t *recurrent, const int32_t *biases, MLF_LSTM_PARAMETERS(int8_t, int16_t)),
         int8_t, int16_t,
         mlf_lstm_unit_int8_dsp(shape, lstm, rescales, table, weights + unit * shape->inputs,
                                recurrent + unit * shape->units, biases + 8 * unit, input, hidden, past[unit],
                                &cell[unit]))

#endif /* MLF_LSTM_DSP_H_ */
