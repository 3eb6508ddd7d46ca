/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The int8 matrix product of CONV_2D and FULLY_CONNECTED for cores with the DSP extension: SMLAD, two products each.
 *
 * Micro-tile: three pixels (or rows of a matrix) by two output channels, two by two if memory is short. Activations are
 * expanded once to 16 bits into scratch memory; weights stay bytes in flash and cost one SXTB16 for two channels:
 *
 *   Channels 2j and 2j + 1 share a word for two inputs k and l; each half is 256 * odd + even, as a signed number:
 *
 *       word = (256 * odd[k] + even[k]) & 0xffff | (256 * odd[l] + even[l]) << 16
 *
 *   SMLAD with the word itself adds 256 * odd + even, SMLAD with SXTB16(word) adds even; the difference, divided by
 *   256, is the sum of the odd channel. It is exact if that sum fits in 24 bits, which the compiler checks.
 *
 * Layout of a filter, int32, for each pair of output channels, `depth` being the inputs rounded up to four:
 *   the odd channel's bias for the brief requantisation (see dsp.h), otherwise 0
 *   depth / 2 words of weights, for inputs (0, 2), (1, 3), (4, 6), (5, 7), ...: the order in which SXTB16 expands bytes
 *   for the brief requantisation
 *     the even channel's bias
 *     the multipliers of both
 *   otherwise
 *     2 * bias of both channels, with the input's zero point folded in
 *     the multipliers of both
 *     shift of the even channel | shift of the odd one << 8
 * If the number of channels is odd, the last two form the last pair, which repeats one channel.
 *
 * Each block of pixels reads the whole filter. Where flash has wait states, that is slower than reading it from RAM, so
 * the first pairs are copied to scratch memory once: as many as fit in a part of the arena that is free in any case.
 */
#ifndef MLF_MATMUL_DSP_H_
#define MLF_MATMUL_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "dot_1x2_dsp.h"
#include "dot_3x2_dsp.h"
#include "dsp.h"
#include "expand_dsp.h"

/* A matrix product, its requantisation and its activation. */
struct mlf_matmul_dsp {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
    int32_t rounding; /* 2 * the output's zero point + 1; 0 if the filter is for the brief requantisation */
    int32_t minimum;  /* of a fused activation; INT8_MIN and INT8_MAX without one */
    int32_t maximum;
    int32_t copied; /* pairs of channels whose filter is copied to scratch memory; 0 if `outputs` is odd */
};

MLF_KERNEL void mlf_activate_dsp(const struct mlf_matmul_dsp *matmul, int8_t *output)
{
    mlf_clamp_dsp(output, matmul->rows * matmul->outputs, matmul->minimum, matmul->maximum);
}

/* The micro-tile of a block of pixels, and the type of their inputs. */
enum mlf_tile_dsp { MLF_TILE_3X2, MLF_TILE_2X2, MLF_TILE_1X2, MLF_TILE_1X2_INT8 };

MLF_KERNEL const int32_t *mlf_dot_pairs_dsp(enum mlf_tile_dsp tile, const void *rows, const int32_t *filter,
                                            int8_t *output, const struct mlf_dot_dsp *dot)
{
    if (tile == MLF_TILE_3X2) {
        return mlf_dot_3x2_dsp((const int16_t *)rows, filter, output, dot);
    }
    if (tile == MLF_TILE_2X2) {
        return mlf_dot_2x2_dsp((const int16_t *)rows, filter, output, dot);
    }
    if (tile == MLF_TILE_1X2) {
        return mlf_dot_1x2_dsp((const int16_t *)rows, filter, output, dot);
    }
    return mlf_dot_1x2_int8_dsp((const int8_t *)rows, filter, output, dot);
}

/* All output channels of a block of pixels, which are `pitch` bytes apart. */
MLF_KERNEL void mlf_dot_channels_dsp(const struct mlf_matmul_dsp *matmul, enum mlf_tile_dsp tile, const void *rows,
                                     const int32_t *filter, int8_t *output, int32_t pitch)
{
    struct mlf_dot_dsp dot = mlf_dot_dsp(matmul->inputs, matmul->outputs, pitch, matmul->rounding);
    filter = mlf_dot_pairs_dsp(tile, rows, filter, output, &dot);
    if (matmul->outputs % 2 != 0) {
        dot.pairs = 1;
        (void)mlf_dot_pairs_dsp(tile, rows, filter, output + matmul->outputs - 2, &dot);
    }
}

/* All output channels of a block of three pixels. */
MLF_KERNEL void mlf_dot_channels3_dsp(const struct mlf_dot_dsp *dot, int32_t outputs, const int16_t *rows,
                                      const int32_t *filter, int8_t *output)
{
    filter = mlf_dot_3x2_dsp(rows, filter, output, dot);
    if (outputs % 2 != 0) {
        struct mlf_dot_dsp last = *dot;
        last.pairs = 1;
        (void)mlf_dot_3x2_dsp(rows, filter, output + outputs - 2, &last);
    }
}

#if MLF_DSP_ASM

/* Copy an even number of words, at least four. The memcpy of small C libraries copies single bytes. */
MLF_NAKED void mlf_copy_words_dsp(int32_t *to MLF_UNUSED, const int32_t *from MLF_UNUSED, int32_t words MLF_UNUSED)
{
    __asm__ volatile("push {r4-r8, lr}\n\t"
                     "lsrs r2, r2, #2\n\t"
                     "bcc 1f\n\t"
                     "ldmia r1!, {r3, r4}\n\t"
                     "stmia r0!, {r3, r4}\n"
                     "1:\n\t"
                     "lsrs r2, r2, #1\n\t"
                     "bcc 2f\n\t"
                     "ldmia r1!, {r3-r6}\n\t"
                     "stmia r0!, {r3-r6}\n"
                     "2:\n\t"
                     "cbz r2, 4f\n"
                     "3:\n\t"
                     "ldmia r1!, {r3-r8, r12, lr}\n\t"
                     "stmia r0!, {r3-r8, r12, lr}\n\t"
                     "subs r2, r2, #1\n\t"
                     "bne 3b\n"
                     "4:\n\t"
                     "pop {r4-r8, pc}");
}

#else

MLF_KERNEL void mlf_copy_words_dsp(int32_t *to, const int32_t *from, int32_t words)
{
    memcpy(to, from, (size_t)words * sizeof *to);
}

#endif

/*
 * Copy the filter of the first pairs, if any, to `copy`; those in flash become the other pairs of `block`. Return the
 * filter of the first pair.
 */
MLF_KERNEL const int32_t *mlf_copy_pairs_dsp(const struct mlf_matmul_dsp *matmul, const int32_t *filter, int32_t *copy,
                                             struct mlf_dot_dsp *dot)
{
    const int32_t words = matmul->copied * (2 * dot->groups + (matmul->rounding == 0 ? 4 : 6));
    if (words == 0) {
        return filter;
    }
    mlf_copy_words_dsp(copy, filter, words);
    dot->others = dot->pairs - matmul->copied;
    dot->filter_of_others = filter + words;
    dot->pairs = matmul->copied;
    return copy;
}

/* Expand one of the rows of a block of three, and leave the others as they are. */
MLF_SHARED void mlf_expand_one_dsp(int16_t *rows, const int8_t *input, int32_t groups)
{
    for (int32_t i = 0; i < groups; i++, rows += 12, input += 4) {
        int16_t group[4];
        mlf_expand4_dsp(group, input);
        memcpy(rows, group, 4);
        memcpy(rows + 6, group + 2, 4);
    }
}

/*
 * FULLY_CONNECTED and CONV_2D of 1x1 with stride 1 and a multiple of four inputs: rows of inputs times the filter, in
 * blocks of three. `scratch` holds three expanded rows, then the copied pairs.
 *
 * The output may begin at the address of the input: a block is
 * read before it is written, and if the output is larger, blocks are computed from the end to the start.
 *
 * Two rows that are left form a block with the neighbour in the block before, which is still expanded; the output of a
 * single one is computed three times. There are one row or at least three.
 */
MLF_STATIC void mlf_matmul3_int8_dsp(const struct mlf_matmul_dsp *matmul, const int8_t *input, const int32_t *filter,
                                     int8_t *output, int16_t *scratch)
{
    const int32_t depth = matmul->inputs;
    const int32_t pitch = matmul->outputs;
    const int32_t groups = depth / 4;
    const int32_t blocks = matmul->rows / 3;
    const int32_t left = matmul->rows - 3 * blocks;
    const int32_t backward = pitch > depth;
    const int32_t step = backward ? -3 : 3;
    struct mlf_dot_dsp dot = mlf_dot_dsp(depth, pitch, pitch, matmul->rounding);
    const int8_t *from = input + (backward ? (matmul->rows - 3) * depth : 0);
    int8_t *to = output + (backward ? (matmul->rows - 3) * pitch : 0);
    filter = mlf_copy_pairs_dsp(matmul, filter, (int32_t *)(void *)(scratch + 3 * depth), &dot);
    for (int32_t i = 0; i < blocks; i++, from += step * depth, to += step * pitch) {
        (void)mlf_expand3_dsp(scratch, from, from + depth, from + 2 * depth, groups);
        mlf_dot_channels3_dsp(&dot, pitch, scratch, filter, to);
    }
    if (left > 0) {
        const int32_t row = backward ? 0 : 3 * blocks; /* the first one that is left */
        from = input + row * depth;
        to = output + row * pitch;
        if (left == 2) {
            dot.pitch = -pitch;
            to += backward ? 2 * pitch : pitch;
            mlf_expand_one_dsp(scratch + (backward ? 2 : 0), from + depth, groups);
            mlf_expand_one_dsp(scratch + (backward ? 4 : 2), from, groups);
        } else {
            dot.pitch = 0;
            (void)mlf_expand3_dsp(scratch, from, from, from, groups);
        }
        mlf_dot_channels3_dsp(&dot, pitch, scratch, filter, to);
    }
    mlf_activate_dsp(matmul, output);
}

/* The same row by row, for any number of inputs. `scratch` holds one expanded row. */
MLF_SHARED void mlf_matmul_int8_dsp(const struct mlf_matmul_dsp *matmul, const int8_t *input, const int32_t *filter,
                                    int8_t *output, int16_t *scratch)
{
    const int32_t depth = matmul->inputs;
    const int32_t pitch = matmul->outputs;
    const int32_t backward = pitch > depth;
    for (int32_t done = 0; done < matmul->rows; done++) {
        const int32_t row = backward ? matmul->rows - done - 1 : done;
        mlf_expand_dsp(scratch, input + row * depth, depth);
        mlf_dot_channels_dsp(matmul, MLF_TILE_1X2, scratch, filter, output + row * pitch, pitch);
    }
    mlf_activate_dsp(matmul, output);
}

/* As mlf_matmul_int8_dsp without scratch memory, for a multiple of four inputs and an output apart from the input. */
MLF_SHARED void mlf_matvec_int8_dsp(const struct mlf_matmul_dsp *matmul, const int8_t *input, const int32_t *filter,
                                    int8_t *output)
{
    for (int32_t row = 0; row < matmul->rows; row++) {
        mlf_dot_channels_dsp(matmul, MLF_TILE_1X2_INT8, input + row * matmul->inputs, filter,
                             output + row * matmul->outputs, 0);
    }
    mlf_activate_dsp(matmul, output);
}

#endif /* MLF_MATMUL_DSP_H_ */
