/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CONV_2D of int8 with a filter of 3x3 and stride 1 for cores with the DSP extension: SMLAL, four products each, where
 * SMLAD has two. It multiplies numbers with two digits, which are pixels or weights, as one multiplies polynomials:
 *
 *   X[i] = x[2i] + x[2i+1] * 2^22    two adjacent pixels of a channel
 *   A = w2 + w1 * 2^22               two adjacent weights of a row of the filter; w0 is multiplied alone
 *
 *   A * X[i] + w0 * X[i-1] =   (w0 * x[2i-2] + w2 * x[2i])
 *                            + (w0 * x[2i-1] + w1 * x[2i] + w2 * x[2i+1]) * 2^22
 *                            + (w1 * x[2i+1]) * 2^44
 *
 * The second digit is the output at 2i-1. The first one belongs to the output at 2i-2, together with the third one of
 * the pair before, which is carried on from block to block. Of the 64 bits of a sum, the digits have 22, 22 and 20; the
 * compiler checks that they fit for any input. A block has six outputs, in three sums.
 *
 * The rows of the output follow each other, with a column of padding between two and two before the first. An output in
 * that column is computed, too, and stored where the next one is stored after it. The last block may begin earlier than
 * where the one before ended; it has no carry, so its first output is not used either.
 *
 * Layout of a filter, int32, for each output channel:
 *   for each 12 inputs, in the order of rows of the filter and channels, 12 words A and 12 bytes w0
 *   2 * bias, with the input's zero point folded in, minus 2^22, because 2^21 is added to the first two digits
 *   multiplier, shift, rounding << shift, as dsp.h describes
 * Of the pairs of a block, the four X of an input are adjacent, in the order of rows of the filter and channels.
 *
 * Cost: 27 cycles for 36 products on a Cortex-M4 (0.75 each), where dot_3x2_dsp.h takes 24 for 24; 12 inputs take 148
 * instructions for 216 products, with the loop. For each input of a block, four pairs are made with 5.25 instructions
 * each, once for all output channels. Outputs have more to do after the sums than in dot_3x2_dsp.h, so that the
 * compiler requires eight input channels. A filter needs 60 bytes where the model has 36, and the outputs in columns of
 * padding are lost: one of each `width` + 1.
 */
#ifndef MLF_CONV2D_LONG_DSP_H_
#define MLF_CONV2D_LONG_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "conv2d_dsp.h"
#include "dsp.h"

/* The parameters of a block; assembly reads them by position. */
struct mlf_dot_6x1_dsp {
    int32_t bytes;      /* of the pairs */
    int32_t channels;   /* of the output */
    int32_t *carry;     /* the high word of the last sum of the block before, for each channel */
    int32_t offsets[5]; /* bytes from the block's first output to the others */
};

#if MLF_DSP_ASM

/*
 * Two inputs: weights in r2, r3 and r6, pairs in r2 and r4-r6; sums in r7 and r8, r10 and r11, r12 and lr. On a
 * Cortex-M4 it takes 27 cycles for 36 products: 12 loads in three rows, 12 SMLAL. Loads of weights come first in a row,
 * because those from flash and from RAM do not overlap.
 */
#define MLF_LONG2_DSP(a0, b0, a1, b1, x0, x1, x2, x3, y0, y1, wide, y2, y3)                                            \
    "ldrsb r3, [r1, #" b0 "]\n\t"                                                                                      \
    "ldr r2, [r1, #" a0 "]\n\t"                                                                                        \
    "ldr r4, [r0, #" x0 "]\n\t"                                                                                        \
    "ldr r5, [r0, #" x1 "]\n\t"                                                                                        \
    "ldr r6, [r0, #" x2 "]\n\t"                                                                                        \
    "smlal r7, r8, r3, r4\n\t"                                                                                         \
    "smlal r10, r11, r3, r5\n\t"                                                                                       \
    "smlal r12, lr, r3, r6\n\t"                                                                                        \
    "smlal r7, r8, r2, r5\n\t"                                                                                         \
    "smlal r10, r11, r2, r6\n\t"                                                                                       \
    "ldrsb r3, [r1, #" b1 "]\n\t"                                                                                      \
    "ldr r6, [r1, #" a1 "]\n\t"                                                                                        \
    "ldr r4, [r0, #" x3 "]\n\t"                                                                                        \
    "ldr r5, [r0, #" y0 "]\n\t"                                                                                        \
    "smlal r12, lr, r2, r4\n\t"                                                                                        \
    "smlal r7, r8, r3, r5\n\t"                                                                                         \
    "ldr r2, [r0, #" y1 "]\n\t"                                                                                        \
    "ldr" wide " r4, [r0, #" y2 "]\n\t"                                                                                \
    "ldr r5, [r0, #" y3 "\n\t"                                                                                         \
    "smlal r10, r11, r3, r2\n\t"                                                                                       \
    "smlal r12, lr, r3, r4\n\t"                                                                                        \
    "smlal r7, r8, r6, r2\n\t"                                                                                         \
    "smlal r10, r11, r6, r4\n\t"                                                                                       \
    "smlal r12, lr, r6, r5\n\t"

/*
 * Six inputs, the first of which is the first or the seventh of twelve. Pairs begin a word behind r0, so that the last
 * load moves it; it has 32 bits, as has the one before, which is at a word boundary.
 */
#define MLF_LONG6_DSP(a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5)                                                  \
    MLF_LONG2_DSP(a0, b0, a1, b1, "4", "8", "12", "16", "20", "24", "", "28", "32]")                                   \
    MLF_LONG2_DSP(a2, b2, a3, b3, "36", "40", "44", "48", "52", "56", "", "60", "64]")                                 \
    MLF_LONG2_DSP(a4, b4, a5, b5, "68", "72", "76", "80", "84", "88", ".w", "92", "96]!")

/* The outputs at 2i-2 and 2i-1 from a sum and, in `above`, the high word of the sum of the pair before. */
#define MLF_DIGITS_DSP(even, odd, low, high, above)                                                                    \
    "lsr " odd ", " low ", #22\n\t"                                                                                    \
    "bfi " odd ", " high ", #10, #12\n\t"                                                                              \
    "ubfx " even ", " low ", #0, #22\n\t"                                                                              \
    "add " even ", " even ", " above ", asr #12\n\t"
#define MLF_DOUBLE_DSP(sum) "add " sum ", r4, " sum ", lsl #1\n\t"
#define MLF_RESCALE_LONG_DSP(sum) MLF_RESCALE_DSP(sum, "r5", "lr", "r11")

/*
 * All output channels of six pixels. On the stack: pairs, output, the ends of both, carry, offsets. The address of the
 * first load of 32 bits in each row is a multiple of four, as must be for loads that overlap.
 */
MLF_NAKED void mlf_dot_6x1_dsp(const int32_t *pairs MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                               int8_t *output MLF_UNUSED, const struct mlf_dot_6x1_dsp *dot MLF_UNUSED)
{
    __asm__ volatile(
        "push {r4-r8, r10, r11, lr}\n\t"
        "ldmia r3, {r4-r8, r10-r12}\n\t"
        "subs r0, #4\n\t"
        "adds r4, r0, r4\n\t"
        "adds r5, r2, r5\n\t"
        "push {r0, r2, r4-r8, r10-r12}\n\t"
        ".balign 4\n"
        "1:\n\t"
        "mov r7, #1 << 21\n\t"
        "mov r8, #1 << 11\n\t"
        "mov r10, r7\n\t"
        "mov r11, r8\n\t"
        "mov r12, r7\n\t"
        "mov lr, r8\n"
        "2:\n\t" MLF_LONG6_DSP("0", "4", "8", "12", "16", "20", "48", "49", "50", "51", "52", "53")
        MLF_LONG6_DSP("24", "28", "32", "36", "40", "44", "54", "55", "56", "57", "58", "59")
        "adds r1, #60\n\t"
        "ldr r2, [sp, #8]\n\t"
        "cmp r0, r2\n\t"
        "bne 2b\n\t"
        "ldr r5, [sp, #16]\n\t"
        "ldr r0, [sp, #4]\n\t"
        "ldr r6, [r5]\n\t"
        "str lr, [r5], #4\n\t"
        "str r5, [sp, #16]\n\t" MLF_DIGITS_DSP("r7", "r2", "r7", "r8", "r6")
        MLF_DIGITS_DSP("r10", "r3", "r10", "r11", "r8") MLF_DIGITS_DSP("r12", "r8", "r12", "lr", "r11")
        "ldmia r1!, {r4-r6, lr}\n\t"
        MLF_DOUBLE_DSP("r7") MLF_DOUBLE_DSP("r2") MLF_DOUBLE_DSP("r10")
        MLF_DOUBLE_DSP("r3") MLF_DOUBLE_DSP("r12") MLF_DOUBLE_DSP("r8")
        MLF_RESCALE_LONG_DSP("r7") MLF_RESCALE_LONG_DSP("r2") MLF_RESCALE_LONG_DSP("r10")
        MLF_RESCALE_LONG_DSP("r3") MLF_RESCALE_LONG_DSP("r12") MLF_RESCALE_LONG_DSP("r8")
        MLF_SHIFT_DSP("r7", "r6") MLF_SHIFT_DSP("r2", "r6") MLF_SHIFT_DSP("r10", "r6")
        MLF_SHIFT_DSP("r3", "r6") MLF_SHIFT_DSP("r12", "r6") MLF_SHIFT_DSP("r8", "r6")
        MLF_SATURATE_DSP("r7") MLF_SATURATE_DSP("r2") MLF_SATURATE_DSP("r10")
        MLF_SATURATE_DSP("r3") MLF_SATURATE_DSP("r12") MLF_SATURATE_DSP("r8")
        "ldr r4, [sp, #20]\n\t"
        "ldr r11, [sp, #32]\n\t"
        "ldr lr, [sp, #36]\n\t"
        "ldr r5, [sp, #24]\n\t"
        "ldr r6, [sp, #28]\n\t" MLF_BYTE_DSP("r7", "[r0]") MLF_BYTE_DSP("r2", "[r0, r4]")
        MLF_BYTE_DSP("r10", "[r0, r5]") MLF_BYTE_DSP("r3", "[r0, r6]") MLF_BYTE_DSP("r12", "[r0, r11]")
        MLF_BYTE_DSP("r8", "[r0, lr]")
        "ldr r5, [sp, #12]\n\t"
        "adds r0, #1\n\t"
        "str r0, [sp, #4]\n\t"
        "cmp r0, r5\n\t"
        "ldr r0, [sp]\n\t"
        "bne.w 1b\n\t"
        "add sp, sp, #40\n\t"
        "pop {r4-r8, r10, r11, pc}");
}

/*
 * Pairs of two pixels, `groups` times four channels; those of other pixels are between them. With more than one pair,
 * all pixels are adjacent.
 */
MLF_NAKED void mlf_pair_pixels_dsp(int32_t *pairs MLF_UNUSED, const int8_t *first MLF_UNUSED,
                                   const int8_t *second MLF_UNUSED, int32_t groups MLF_UNUSED, int32_t count MLF_UNUSED)
{
    __asm__ volatile("push {r4-r8, lr}\n\t"
                     "ldr r12, [sp, #24]\n"
                     "1:\n\t"
                     "mov r8, r0\n\t"
                     "mov lr, r3\n\t"
                     ".balign 4\n"
                     "2:\n\t"
                     "ldr r4, [r1], #4\n\t"
                     "ldr r5, [r2], #4\n\t"
                     "sxtb r6, r4\n\t"
                     "lsls r7, r5, #24\n\t"
                     "add r6, r6, r7, asr #2\n\t"
                     "str r6, [r0]\n\t"
                     "sbfx r6, r4, #8, #8\n\t"
                     "sbfx r7, r5, #8, #8\n\t"
                     "add r6, r6, r7, lsl #22\n\t"
                     "str r6, [r0, #16]\n\t"
                     "sbfx r6, r4, #16, #8\n\t"
                     "sbfx r7, r5, #16, #8\n\t"
                     "add r6, r6, r7, lsl #22\n\t"
                     "str r6, [r0, #32]\n\t"
                     "asrs r4, r4, #24\n\t"
                     "asrs r5, r5, #24\n\t"
                     "add r4, r4, r5, lsl #22\n\t"
                     "str r4, [r0, #48]\n\t"
                     "adds r0, #64\n\t"
                     "subs lr, lr, #1\n\t"
                     "bne 2b\n\t"
                     "add r0, r8, #4\n\t"
                     "mov r1, r2\n\t"
                     "add r2, r2, r3, lsl #2\n\t"
                     "subs r12, r12, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r8, pc}");
}

#else /* the same in C */

MLF_SHARED void mlf_dot_6x1_dsp(const int32_t *pairs, const int32_t *filter, int8_t *output,
                                const struct mlf_dot_6x1_dsp *dot)
{
    for (int32_t channel = 0; channel < dot->channels; channel++, output++) {
        uint64_t sums[3] = {0, 0, 0};
        for (int32_t i = 0; i < dot->bytes / 16; i++) {
            const int32_t *const words = filter + i / 12 * 15;
            const int32_t alone = mlf_byte_of_dsp(words[12 + i % 12 / 4], i % 4);
            for (int32_t p = 0; p < 3; p++) {
                const int32_t *const pair = pairs + 4 * i + p;
                sums[p] += (uint64_t)((int64_t)alone * pair[0]) + (uint64_t)((int64_t)words[i % 12] * pair[1]);
            }
        }
        filter += dot->bytes / 192 * 15;
        int32_t above = dot->carry[channel];
        for (int32_t p = 0; p < 3; p++) {
            const uint64_t sum = sums[p] + (UINT64_C(1) << 21) + (UINT64_C(1) << 43);
            const uint32_t digits[2] = {((uint32_t)sum & 0x3fffffu) + (uint32_t)(above >> 12),
                                        (uint32_t)(sum >> 22) & 0x3fffffu};
            above = (int32_t)(uint32_t)(sum >> 32);
            for (int32_t k = 0; k < 2; k++) {
                const uint32_t doubled = (uint32_t)filter[0] + 2 * digits[k];
                const uint32_t negative = (uint32_t)((int32_t)doubled >> 31);
                int8_t *const to = p + k == 0 ? output : output + dot->offsets[2 * p + k - 1];
                *to = mlf_round_dsp(doubled, filter[1], (uint32_t)filter[3] + negative, filter[2]);
            }
        }
        dot->carry[channel] = above;
        filter += 4;
    }
}

MLF_SHARED void mlf_pair_pixels_dsp(int32_t *pairs, const int8_t *first, const int8_t *second, int32_t groups,
                                    int32_t count)
{
    for (int32_t i = 0; i < 4 * groups * count; i++) {
        const int32_t at = i / (4 * groups) * (8 * groups) + i % (4 * groups);
        pairs[4 * (i % (4 * groups)) + i / (4 * groups)] = first[at] + second[at] * (1 << 22);
    }
}

#endif

/* The pairs for a block of outputs; the windows of the first one begin at (y, x), which may be outside the image. */
MLF_KERNEL void mlf_pairs_of_block_dsp(const struct mlf_window *window, const int8_t *input, const int8_t *padding,
                                       int32_t y, int32_t x, int32_t *pairs)
{
    const int32_t width = window->input.width;
    const int32_t depth = window->input_channels;
    for (int32_t row = 0; row < 3; row++, y++, pairs += 4 * depth) {
        if (x >= 0 && x + 8 <= width && mlf_inside_dsp(y, window->input.height)) {
            const int8_t *const pixel = input + (y * width + x) * depth;
            mlf_pair_pixels_dsp(pairs, pixel, pixel + depth, depth >> 2, 4);
            continue;
        }
        for (int32_t i = 0; i < 4; i++) {
            const int8_t *pixels[2];
            for (int32_t p = 0; p < 2; p++) {
                const int32_t beyond = x + 2 * i + p >= width; /* in the next row of the output */
                const int32_t column = x + 2 * i + p - (beyond ? width + 1 : 0);
                const int inside = column >= 0 && mlf_inside_dsp(y + beyond, window->input.height);
                pixels[p] = inside ? input + ((y + beyond) * width + column) * depth : padding;
            }
            mlf_pair_pixels_dsp(pairs + i, pixels[0], pixels[1], depth >> 2, 1);
        }
    }
}

/*
 * One image with a multiple of four channels, at least six columns, and a column of padding on both sides. `padding` is
 * one pixel of the input's zero point. `scratch` holds the pairs of a block, then a word for each output channel, then
 * the copied filters; `matmul.copied` counts channels.
 */
MLF_SHARED void mlf_conv2d_long_int8_dsp(const struct mlf_conv2d_dsp *conv2d, const int8_t *input,
                                         const int32_t *filter, const int8_t *padding, int8_t *output,
                                         int16_t *scratch)
{
    const struct mlf_window *const window = &conv2d->window;
    const int32_t depth = window->input_channels;
    const int32_t outputs = conv2d->matmul.outputs;
    const int32_t width = window->output.width;
    const int32_t end = window->output.height * (width + 1);
    const int32_t copied = conv2d->matmul.copied;
    const int32_t words = (depth >> 2) * 15 + 4; /* of the filter of an output channel */
    int32_t *const pairs = (int32_t *)(void *)scratch;
    int32_t *const carry = pairs + 12 * depth;
    struct mlf_dot_6x1_dsp dot;
    dot.bytes = 48 * depth;
    if (copied > 0) {
        mlf_copy_words_dsp(carry + outputs, filter, copied * words);
    }
    for (int32_t start = 0; start < end; start += 6) {
        const int32_t first = start < end - 6 ? start : end - 6;
        const int32_t row = first / (width + 1);
        const int32_t column = first - row * (width + 1) - 1; /* of the first output; -1 is that of padding */
        int32_t used = first == start && column >= 0;         /* whether the output is used */
        int32_t offset = 0;
        mlf_pairs_of_block_dsp(window, input, padding, row - window->padding.height, column - 1, pairs);
        int8_t *const to = output + (row * width + column + !used) * outputs;
        for (int32_t k = 0; k < 5; k++) {
            offset += used ? outputs : 0;
            dot.offsets[k] = offset;
            used = column + k + 1 != width;
        }
        for (int32_t channel = 0; channel < outputs; channel += dot.channels) {
            const int32_t *const from = channel < copied ? carry + outputs : filter + channel * words;
            dot.channels = channel < copied ? copied : outputs - channel;
            dot.carry = carry + channel;
            mlf_dot_6x1_dsp(pairs, from, to + channel, &dot);
        }
    }
    mlf_activate_dsp(&conv2d->matmul, output);
}

#endif /* MLF_CONV2D_LONG_DSP_H_ */
