/*
 * DEPTHWISE_CONV_2D of int8 with 3x3 filters, one output channel an input channel, for cores with the DSP extension.
 *
 * Four channels at a time: the lines of the input that a line of the output needs are copied to planes of 16 bits, one
 * a channel, where neighbouring pixels are neighbouring halfwords. With w01 = (w[0], w[1]) and w12 = (w[1], w[2]) of a
 * row of the filter, all of it in six registers, and d0 = (x[0], x[1]), d1 = (x[2], x[3]):
 *
 *   stride 1:  sum[0] = SMLAD(d0, w01) + SMLABT(d1, w12), sum[1] = SMLATB(d0, w01) + SMLAD(d1, w12)
 *   stride 2:  sum[0] = SMLAD(d0, w01) + SMLABT(d1, w12), and d1 is the next output's d0
 *
 * A pair of outputs takes 19 instructions (1.1 a product) with stride 1, 22 with stride 2; copying takes 2.1 an input,
 * requantisation 6 an output: 2.0 a product of a long line in all.
 *
 * A plane holds three lines in turn. Its filter comes as rows 0, 1, 2, 0, 1, of which any three that follow each other
 * fit the order of the lines. Lines are rows or columns of the image, whichever the compiler finds better; here they
 * differ in the steps in memory along a line and from line to line. Long lines are done piece by piece.
 *
 * A group of four channels is done before the next one is looked at, and a line is read before its place is written:
 * with stride 1 and an output of the input's size, the output may lie over the input.
 *
 * Layout of a filter, int32, for each group of four channels; the last group of a number that is not a multiple of four
 * begins before the end of the group before it:
 *   2 * bias of each channel, the input's zero point folded in, then the multiplier of each (see matmul_dsp.h)
 *   the shift of each, one a byte
 *   nine words of weights, [position across lines][position along a line], one channel a byte
 */
#ifndef MLF_DEPTHWISE_CONV2D_DSP_H_
#define MLF_DEPTHWISE_CONV2D_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "matmul_dsp.h"

/* The three lines of a plane are this many halfwords apart; assembly knows it as 128 and 384 bytes. */
#define MLF_LINE_DSP 64
#define MLF_PLANE_DSP (3 * MLF_LINE_DSP)

/* Sizes along a line or across lines; steps are bytes. */
struct mlf_axis_dsp {
    int32_t inputs;
    int32_t outputs;
    int32_t stride; /* along a line 1 or 2 */
    int32_t padding; /* before the first input */
    int32_t input_step;
    int32_t output_step;
};

struct mlf_depthwise_dsp {
    struct mlf_axis_dsp along;
    struct mlf_axis_dsp across;
    int32_t batches;
    int32_t channels;
    int32_t zero_point; /* of the input */
    int32_t rounding;   /* 2 * the output's zero point + 1 */
    int32_t minimum;    /* of a fused activation; INT8_MIN and INT8_MAX where there is none */
    int32_t maximum;
};

/* The filter of one channel, rows 0, 1, 2, 0, 1 of (2 w[0], 2 w[1]), (2 w[1], 2 w[2]), and how sums become outputs. */
struct mlf_plane_filter_dsp {
    int16_t weights[5][4];
    int32_t bias;
    int32_t multiplier;
    int32_t addend; /* rounding << shift */
    int32_t shift;
};

/* What the call for a line needs beside the planes; assembly reads it by position. */
struct mlf_line_call_dsp {
    int32_t first; /* row of the filter for the plane's first line, in bytes: 0, 8 or 16 */
    int32_t pairs; /* of outputs */
    int32_t outputs;
    int32_t step; /* bytes from one output to the next */
    int32_t *sums; /* memory for one sum an output, and one more */
};

/* Memory of the kernel. */
struct mlf_depthwise_scratch_dsp {
    int16_t planes[4][MLF_PLANE_DSP];
    int32_t sums[MLF_LINE_DSP];
    struct mlf_plane_filter_dsp filters[4];
};

#if MLF_DSP_ASM

/* Copy pairs of pixels, `step` bytes apart, of four channels to four planes. */
MLF_NAKED void mlf_fill_planes_dsp(int16_t *planes MLF_UNUSED, const int8_t *input MLF_UNUSED, int32_t step MLF_UNUSED,
                                   int32_t pairs MLF_UNUSED)
{
    __asm__ volatile("push {r4-r7, lr}\n"
                     "1:\n\t"
                     "ldr r5, [r1, r2]\n\t"
                     "ldr r4, [r1]\n\t"
                     "add r1, r1, r2, lsl #1\n\t"
                     "sxtb16 r7, r5\n\t"
                     "sxtb16 r6, r4\n\t"
                     "sxtb16 r5, r5, ror #8\n\t"
                     "sxtb16 r4, r4, ror #8\n\t"
                     "pkhtb r12, r7, r6, asr #16\n\t"
                     "pkhbt r6, r6, r7, lsl #16\n\t"
                     "pkhtb lr, r5, r4, asr #16\n\t"
                     "pkhbt r4, r4, r5, lsl #16\n\t"
                     "str r12, [r0, #768]\n\t"
                     "str lr, [r0, #1152]\n\t"
                     "str r4, [r0, #384]\n\t"
                     "str r6, [r0], #4\n\t"
                     "subs r3, r3, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r7, pc}");
}

/* r0: plane, r1: bias, r2, r3: four inputs, r4-r9: filter, r10, r11: two sums, r12: sums, lr: count. */
#define MLF_ROW1_DSP(load, w01, w12)                                                                                   \
    load "smlad r10, r2, " w01 ", r10\n\t"                                                                             \
         "smlatb r11, r2, " w01 ", r11\n\t"                                                                            \
         "smlabt r10, r3, " w12 ", r10\n\t"                                                                            \
         "smlad r11, r3, " w12 ", r11\n\t"

#define MLF_PAIR1_DSP                                                                                                  \
    "mov r10, r1\n\t"                                                                                                  \
    "mov r11, r1\n\t" MLF_ROW1_DSP("ldrd r2, r3, [r0, #256]\n\t", "r8", "r9")                                          \
        MLF_ROW1_DSP("ldrd r2, r3, [r0, #128]\n\t", "r6", "r7")                                                        \
            MLF_ROW1_DSP("ldrd r2, r3, [r0], #4\n\t", "r4", "r5") "strd r10, r11, [r12], #8\n\t"

#define MLF_ROW2_DSP(load, sum, w01, w12)                                                                              \
    load "smlad " sum ", r2, " w01 ", " sum "\n\t"                                                                     \
         "smlabt " sum ", r3, " w12 ", " sum "\n\t"

#define MLF_SUM2_DSP(sum)                                                                                              \
    "mov " sum ", r1\n\t" MLF_ROW2_DSP("ldrd r2, r3, [r0, #256]\n\t", sum, "r8", "r9")                                 \
        MLF_ROW2_DSP("ldrd r2, r3, [r0, #128]\n\t", sum, "r6", "r7")                                                   \
            MLF_ROW2_DSP("ldrd r2, r3, [r0], #4\n\t", sum, "r4", "r5")

#define MLF_PAIR2_DSP MLF_SUM2_DSP("r10") MLF_SUM2_DSP("r11") "strd r10, r11, [r12], #8\n\t"

#define MLF_LINE_BODY_DSP(pair)                                                                                        \
    "push {r4-r11, lr}\n\t"                                                                                            \
    "sub sp, sp, #36\n\t"                                                                                              \
    "strd r0, r1, [sp]\n\t"     /* planes, filters */                                                                  \
    "str r2, [sp, #8]\n\t"      /* output */                                                                           \
    "ldmia r3, {r4-r8}\n\t"                                                                                            \
    "strd r4, r5, [sp, #12]\n\t" /* first row of the filter, pairs */                                                  \
    "strd r6, r7, [sp, #20]\n\t" /* outputs, step */                                                                   \
    "str r8, [sp, #28]\n\t"     /* sums */                                                                             \
    "mov r4, #4\n"                                                                                                     \
    "1:\n\t"                                                                                                           \
    "str r4, [sp, #32]\n\t"     /* channels still to do */                                                             \
    "ldrd r0, r2, [sp]\n\t"                                                                                            \
    "ldrd r3, lr, [sp, #12]\n\t"                                                                                       \
    "ldr r12, [sp, #28]\n\t"                                                                                           \
    "ldr r1, [r2, #40]\n\t"                                                                                            \
    "add r2, r2, r3\n\t"                                                                                               \
    "ldmia r2, {r4-r9}\n\t"                                                                                            \
    "lsrs lr, lr, #1\n\t"                                                                                              \
    "bcc 2f\n\t"                                                                                                       \
    "add lr, lr, #1\n\t"                                                                                               \
    "b 3f\n"                                                                                                           \
    "2:\n\t" pair "3:\n\t" pair                                                                                        \
    "subs lr, lr, #1\n\t"                                                                                              \
    "bne 2b\n\t"                                                                                                       \
    "ldr r0, [sp, #28]\n\t"                                                                                            \
    "ldrd r1, r5, [sp, #4]\n\t"                                                                                        \
    "ldrd r2, r3, [r1, #44]\n\t" /* multiplier, addend */                                                              \
    "ldr r4, [r1, #52]\n\t"     /* shift */                                                                            \
    "ldrd r6, r7, [sp, #20]\n\t"                                                                                       \
    "add r8, r7, r7, lsl #1\n\t"                                                                                       \
    "lsrs r1, r6, #2\n\t"                                                                                              \
    "and r6, r6, #3\n\t"                                                                                               \
    "beq 5f\n"                                                                                                         \
    "4:\n\t"                                                                                                           \
    "ldmia r0!, {r9-r12}\n\t" MLF_OUTPUT_DSP("r9", "[r5]") MLF_OUTPUT_DSP("r10", "[r5, r7]")                           \
        MLF_OUTPUT_DSP("r11", "[r5, r7, lsl #1]") MLF_OUTPUT_DSP("r12", "[r5, r8]")                                    \
    "add r5, r5, r7, lsl #2\n\t"                                                                                       \
    "subs r1, r1, #1\n\t"                                                                                              \
    "bne 4b\n"                                                                                                         \
    "5:\n\t"                                                                                                           \
    "cbz r6, 7f\n"                                                                                                     \
    "6:\n\t"                                                                                                           \
    "ldr r9, [r0], #4\n\t" MLF_OUTPUT_DSP("r9", "[r5]")                                                                \
    "add r5, r5, r7\n\t"                                                                                               \
    "subs r6, r6, #1\n\t"                                                                                              \
    "bne 6b\n"                                                                                                         \
    "7:\n\t"                                                                                                           \
    "ldrd r0, r1, [sp]\n\t"                                                                                            \
    "ldr r2, [sp, #8]\n\t"                                                                                             \
    "ldr r4, [sp, #32]\n\t"                                                                                            \
    "add r0, r0, #384\n\t"                                                                                             \
    "add r1, r1, #56\n\t"                                                                                              \
    "add r2, r2, #1\n\t"                                                                                               \
    "strd r0, r1, [sp]\n\t"                                                                                            \
    "str r2, [sp, #8]\n\t"                                                                                             \
    "subs r4, r4, #1\n\t"                                                                                              \
    "bne 1b\n\t"                                                                                                       \
    "add sp, sp, #36\n\t"                                                                                              \
    "pop {r4-r11, pc}"

#define MLF_OUTPUT_DSP(sum, place)                                                                                     \
    "add lr, r3, " sum ", asr #31\n\t"                                                                                 \
    "smmlar " sum ", " sum ", r2, lr\n\t"                                                                              \
    "asr " sum ", " sum ", r4\n\t"                                                                                     \
    "ssat " sum ", #8, " sum ", asr #1\n\t"                                                                            \
    "strb " sum ", " place "\n\t"

/* Compute a line of the output of four channels. */
MLF_NAKED void mlf_depthwise_line1_dsp(const int16_t *planes MLF_UNUSED,
                                       const struct mlf_plane_filter_dsp *filters MLF_UNUSED, int8_t *output MLF_UNUSED,
                                       const struct mlf_line_call_dsp *call MLF_UNUSED)
{
    __asm__ volatile(MLF_LINE_BODY_DSP(MLF_PAIR1_DSP));
}

MLF_NAKED void mlf_depthwise_line2_dsp(const int16_t *planes MLF_UNUSED,
                                       const struct mlf_plane_filter_dsp *filters MLF_UNUSED, int8_t *output MLF_UNUSED,
                                       const struct mlf_line_call_dsp *call MLF_UNUSED)
{
    __asm__ volatile(MLF_LINE_BODY_DSP(MLF_PAIR2_DSP));
}

#else /* the same in C */

MLF_SHARED void mlf_fill_planes_dsp(int16_t *planes, const int8_t *input, int32_t step, int32_t pairs)
{
    for (int32_t i = 0; i < 2 * pairs; i++) {
        for (int32_t c = 0; c < 4; c++) {
            planes[c * MLF_PLANE_DSP + i] = input[i * step + c];
        }
    }
}

MLF_KERNEL void mlf_depthwise_line_dsp(int32_t stride, const int16_t *planes,
                                       const struct mlf_plane_filter_dsp *filters, int8_t *output,
                                       const struct mlf_line_call_dsp *call)
{
    for (int32_t c = 0; c < 4; c++) {
        const struct mlf_plane_filter_dsp *const filter = &filters[c];
        for (int32_t i = 0; i < call->outputs; i++) {
            const int16_t *const input = planes + c * MLF_PLANE_DSP + stride * i;
            uint32_t sum = (uint32_t)filter->bias;
            for (int32_t line = 0; line < 3; line++) {
                const int16_t *const weights = filter->weights[call->first / 8 + line];
                const int16_t *const values = input + line * MLF_LINE_DSP;
                sum += (uint32_t)(values[0] * weights[0] + values[1] * weights[1] + values[2] * weights[3]);
            }
            const uint32_t addend = (uint32_t)filter->addend + (uint32_t)((int32_t)sum >> 31);
            output[i * call->step + c] = mlf_round_dsp(sum, filter->multiplier, addend, filter->shift);
        }
    }
}

MLF_SHARED void mlf_depthwise_line1_dsp(const int16_t *planes, const struct mlf_plane_filter_dsp *filters,
                                        int8_t *output, const struct mlf_line_call_dsp *call)
{
    mlf_depthwise_line_dsp(1, planes, filters, output, call);
}

MLF_SHARED void mlf_depthwise_line2_dsp(const int16_t *planes, const struct mlf_plane_filter_dsp *filters,
                                        int8_t *output, const struct mlf_line_call_dsp *call)
{
    mlf_depthwise_line_dsp(2, planes, filters, output, call);
}

#endif

/* Expand the filters of a group of four channels. */
MLF_SHARED void mlf_expand_filters_dsp(const struct mlf_depthwise_dsp *depthwise, const int32_t *group,
                                       struct mlf_plane_filter_dsp filters[4])
{
    for (int32_t c = 0; c < 4; c++) {
        struct mlf_plane_filter_dsp *const filter = &filters[c];
        for (int32_t line = 0; line < 5; line++) {
            const int32_t *const row = group + 9 + 3 * (line % 3);
            filter->weights[line][0] = (int16_t)(2 * mlf_byte_of_dsp(row[0], c));
            filter->weights[line][1] = (int16_t)(2 * mlf_byte_of_dsp(row[1], c));
            filter->weights[line][2] = filter->weights[line][1];
            filter->weights[line][3] = (int16_t)(2 * mlf_byte_of_dsp(row[2], c));
        }
        filter->bias = group[c];
        filter->multiplier = group[4 + c];
        filter->shift = mlf_byte_of_dsp(group[8], c);
        filter->addend = (int32_t)((uint32_t)depthwise->rounding << filter->shift);
    }
}

/* The part of a long line that is computed at a time: outputs `first` to `first + outputs - 1`. */
struct mlf_piece_dsp {
    int32_t first;
    int32_t outputs;
    int32_t start;  /* the input that its first halfword stands for, perhaps before the image */
    int32_t before; /* halfwords before the first input inside the image */
    int32_t after;  /* halfwords up to the end of the last one */
    int32_t length; /* halfwords in all */
};

MLF_KERNEL struct mlf_piece_dsp mlf_piece_dsp(const struct mlf_axis_dsp *along, int32_t first)
{
    const int32_t most = (MLF_LINE_DSP - 3) / along->stride + 1;
    const int32_t left = along->outputs - first;
    struct mlf_piece_dsp piece = {first, left < most ? left : most, first * along->stride - along->padding, 0, 0, 0};
    const int32_t end = along->inputs - piece.start;
    piece.length = (piece.outputs - 1) * along->stride + 3;
    piece.before = piece.start < 0 ? -piece.start : 0;
    piece.after = end < piece.length ? end : piece.length;
    return piece;
}

/* Fill the halfwords of a line in four planes with the input's zero point. */
MLF_SHARED void mlf_fill_padding_dsp(int16_t *planes, int32_t length, int32_t zero_point)
{
    for (int32_t c = 0; c < 4; c++, planes += MLF_PLANE_DSP) {
        for (int32_t i = 0; i < length; i++) {
            planes[i] = (int16_t)zero_point;
        }
    }
}

MLF_KERNEL void mlf_fill_pixel_dsp(int16_t *planes, const int8_t *input)
{
    for (int32_t c = 0; c < 4; c++) {
        planes[c * MLF_PLANE_DSP] = input[c];
    }
}

/* Copy one line of the input, or one of padding, to four planes; `input` is the line's first pixel. */
MLF_KERNEL void mlf_fill_line_dsp(const struct mlf_depthwise_dsp *depthwise, const struct mlf_piece_dsp *piece,
                                  const int8_t *input, int inside, int16_t *planes)
{
    const int32_t step = depthwise->along.input_step;
    int32_t at = piece->before;
    if (!inside || at >= piece->after) {
        mlf_fill_padding_dsp(planes, piece->length, depthwise->zero_point);
        return;
    }
    input += (piece->start + at) * step;
    if (at % 2 != 0) {
        mlf_fill_pixel_dsp(planes + at, input);
        at++;
        input += step;
    }
    const int32_t pairs = (piece->after - at) / 2;
    if (pairs > 0) {
        mlf_fill_planes_dsp(planes + at, input, step, pairs);
    }
    at += 2 * pairs;
    if (at < piece->after) {
        mlf_fill_pixel_dsp(planes + at, input + 2 * pairs * step);
    }
}

/* One piece of all lines of four channels, at whose first pixels `input` and `output` point. */
MLF_SHARED void mlf_depthwise_group_dsp(const struct mlf_depthwise_dsp *depthwise, const struct mlf_piece_dsp *piece,
                                        const int8_t *input, int8_t *output, struct mlf_depthwise_scratch_dsp *scratch)
{
    const struct mlf_axis_dsp *const across = &depthwise->across;
    struct mlf_line_call_dsp call = {0, (piece->outputs + 1) / 2, piece->outputs, depthwise->along.output_step,
                                     scratch->sums};
    int32_t next = 0; /* the next line to copy, counted from the first one of padding */
    output += piece->first * depthwise->along.output_step;
    for (int32_t line = 0; line < across->outputs; line++, output += across->output_step) {
        const int32_t first = line * across->stride;
        for (next = next < first ? first : next; next < first + 3; next++) {
            const int32_t at = next - across->padding;
            mlf_fill_line_dsp(depthwise, piece, input + at * across->input_step,
                              (uint32_t)at < (uint32_t)across->inputs,
                              scratch->planes[0] + next % 3 * MLF_LINE_DSP);
        }
        call.first = (3 - first % 3) % 3 * 8;
        if (depthwise->along.stride == 1) {
            mlf_depthwise_line1_dsp(scratch->planes[0], scratch->filters, output, &call);
        } else {
            mlf_depthwise_line2_dsp(scratch->planes[0], scratch->filters, output, &call);
        }
    }
}

MLF_SHARED void mlf_depthwise_conv2d_int8_dsp(const struct mlf_depthwise_dsp *depthwise, const int8_t *input,
                                              const int32_t *filter, int8_t *output,
                                              struct mlf_depthwise_scratch_dsp *scratch)
{
    const int32_t channels = depthwise->channels;
    const int32_t input_size = depthwise->along.inputs * depthwise->across.inputs * channels;
    const int32_t output_size = depthwise->along.outputs * depthwise->across.outputs * channels;
    for (int32_t first = 0; first < depthwise->along.outputs;) {
        const struct mlf_piece_dsp piece = mlf_piece_dsp(&depthwise->along, first);
        for (int32_t line = 0; line < 3; line++) {
            mlf_fill_padding_dsp(scratch->planes[0] + line * MLF_LINE_DSP, MLF_LINE_DSP, depthwise->zero_point);
        }
        for (int32_t c = 0, group = 0; c < channels; c += 4, group += 18) {
            const int32_t channel = c + 4 <= channels ? c : channels - 4;
            mlf_expand_filters_dsp(depthwise, filter + group, scratch->filters);
            for (int32_t batch = 0; batch < depthwise->batches; batch++) {
                mlf_depthwise_group_dsp(depthwise, &piece, input + batch * input_size + channel,
                                        output + batch * output_size + channel, scratch);
            }
        }
        first += piece.outputs;
    }
    mlf_clamp_dsp(output, depthwise->batches * output_size, depthwise->minimum, depthwise->maximum);
}

#endif /* MLF_DEPTHWISE_CONV2D_DSP_H_ */
