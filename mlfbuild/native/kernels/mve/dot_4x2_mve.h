/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 4x2 of int8 on Helium (MVE), and CONV_2D with windows of at most 32 bytes that uses it: 1x1 filters on
 * up to 32 channels, first layers.
 *
 * Such windows have so few products that loading weights and rescaling would take most of the time. So the weights of
 * two output channels stay in registers while all pixels pass, four at a time: windows of up to 16 bytes take 26 cycles
 * for 8 outputs, larger ones 42, and a VMLADAV or another multiplication begins in almost every second cycle. As a
 * vector has sums of one channel only, its bias and multiplier are in core registers.
 *
 * An output is ((factor * sum + bias) * multiplier + 2^38) >> 47, saturated to int8; the compiler uses these kernels
 * only if it finds constants with which this equals the reference for all sums.
 *
 * Windows are at a fixed distance: MLF_DOT_4X2_VECTORS1 has one vector for each, MLF_DOT_4X2_VECTORS2 has two; the name
 * ends with the distance. Weights beyond the window are zeros, so that it does not matter which bytes follow it.
 */
#ifndef MLF_DOT_4X2_MVE_H_
#define MLF_DOT_4X2_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "copy_mve.h"
#include "requantize_mve.h"
#include "window.h"

/* The rescaling of a channel. */
struct mlf_brief {
    int32_t bias;
    int32_t multiplier;
};

/* Four pixels at a time, times two channels at a time; assembly accesses the members by position and changes some. */
struct mlf_dot_4x2 {
    const int8_t *first; /* window */
    int32_t further;     /* groups of four pixels after the first one */
    int8_t *output;
    int32_t pairs; /* of channels */
    const int8_t *weights;
    const struct mlf_brief *channels;
    int32_t step;       /* bytes from the outputs of four pixels to those of the next */
    int32_t length;     /* of a window */
    uint16_t scatter[8]; /* bytes from `output` to the channels of the first, third, second and fourth pixel */
    int32_t factor;
};

typedef void (*mlf_dot_4x2_function)(struct mlf_dot_4x2 *dot);

#if defined(MLF_MVE)

/*
 * r1 points to the windows, r3 to the outputs before; r5 and r7, r11 and r12 rescale two channels, r10 is the step. The
 * sums of four pixels are gathered in q1 for the first channel and in q2 for the second; the last two of q2 follow at
 * the beginning of the next group, together with the outputs. At sp are the offsets, at sp + 16 the address of the
 * struct.
 */
#define MLF_DOT_4X2_LAST_SUMS "vmov q2[3], q2[1], r0, r2\n"
#define MLF_DOT_4X2_OUTPUTS(factors, offsets)                                                                          \
    MLF_DOT_4X2_LAST_SUMS "vmlas.s32 q2, " factors ", r11\n ldr r2, [sp, #16]\n vqdmulh.s32 q2, q2, r12\n"             \
    "vmlas.s32 q1, " factors ", r5\n vqrshrnt.s32 q2, q2, #8\n vqdmulh.s32 q1, q1, r7\n ldr r4, [r2, #12]\n"           \
    "vqrshrnb.s32 q2, q1, #8\n" offsets "vshr.s16 q2, q2, #8\n cmp r4, #0\n vstrb.16 q2, [r3, q1]\n"

/* One vector: q4 and q5 are the weights, q6 the factor, q3 has the offsets of outputs, q7 takes the outputs. */
#define MLF_DOT_4X2_VECTORS1_ENTER "vldrh.u16 q3, [sp]\n vdup.32 q6, r0\n"
#define MLF_DOT_4X2_VECTORS1_SUMS(distance)                                                                            \
    "ldrd r11, r12, [r8], #8\n"                                                                                        \
    "vldrb.u8 q0, [r1], #" distance "\n strd r0, r4, [r2, #8]\n"                                                       \
    "vldrb.u8 q4, [r6], #16\n vmladav.s8 r0, q0, q4\n vldrb.u8 q5, [r6], #16\n strd r6, r8, [r2, #16]\n"               \
    "vmladav.s8 r2, q0, q5\n"                                                                                          \
    "vldrb.u8 q0, [r1], #" distance "\n vmladav.s8 r6, q0, q5\n"                                                       \
    "vldrb.u8 q7, [r1], #" distance "\n vmladav.s8 r4, q0, q4\n vmov q2[2], q2[0], r2, r6\n"                           \
    "vmladav.s8 r8, q7, q4\n vmov q1[2], q1[0], r0, r4\n vmladav.s8 r0, q7, q5\n"                                      \
    "vldrb.u8 q7, [r1], #" distance "\n vmladav.s8 r4, q7, q4\n vmladav.s8 r2, q7, q5\n vmov q1[3], q1[1], r8, r4\n"
#define MLF_DOT_4X2_VECTORS1_GROUP(distance)                                                                           \
    "vmlas.s32 q1, q6, r5\n" MLF_DOT_4X2_LAST_SUMS "vqdmulh.s32 q1, q1, r7\n"                                          \
    "vldrb.u8 q0, [r1], #" distance "\n vmlas.s32 q2, q6, r11\n vqrshrnb.s32 q7, q1, #8\n vqdmulh.s32 q2, q2, r12\n"   \
    "vmladav.s8 r2, q0, q5\n vqrshrnt.s32 q7, q2, #8\n vmladav.s8 r0, q0, q4\n"                                        \
    "vldrb.u8 q0, [r1], #" distance "\n vmladav.s8 r6, q0, q5\n vshr.s16 q7, q7, #8\n vmladav.s8 r4, q0, q4\n"         \
    "vmov q2[2], q2[0], r2, r6\n"                                                                                      \
    "vldrb.u8 q0, [r1], #" distance "\n vmladav.s8 r8, q0, q4\n vmov q1[2], q1[0], r0, r4\n vmladav.s8 r0, q0, q5\n"   \
    "vldrb.u8 q0, [r1], #" distance "\n vmladav.s8 r4, q0, q4\n vstrb.16 q7, [r3, q3]\n vmladav.s8 r2, q0, q5\n"       \
    "add r3, r10\n vmov q1[3], q1[1], r8, r4\n"
#define MLF_DOT_4X2_VECTORS1_LEAVE MLF_DOT_4X2_OUTPUTS("q6", "vmov q1, q3\n")

/* Two vectors: q4 to q7 are the weights, q3 the factor. */
#define MLF_DOT_4X2_VECTORS2_ENTER "vdup.32 q3, r0\n"
#define MLF_DOT_4X2_VECTORS2_SUMS(distance)                                                                            \
    "vldrb.u8 q0, [r1], #16\n vldrb.u8 q4, [r6], #16\n ldrd r11, r12, [r8], #8\n"                                      \
    "vldrb.u8 q5, [r6], #16\n strd r0, r4, [r2, #8]\n"                                                                 \
    "vldrb.u8 q6, [r6], #16\n vmladav.s8 r0, q0, q4\n"                                                                 \
    "vldrb.u8 q7, [r6], #16\n strd r6, r8, [r2, #16]\n vmladav.s8 r2, q0, q6\n"                                        \
    "vldrb.u8 q0, [r1], #" distance " - 16\n vmladava.s8 r0, q0, q5\n vmladava.s8 r2, q0, q7\n"                        \
    "vldrb.u8 q0, [r1], #16\n vmladav.s8 r4, q0, q4\n vmladav.s8 r6, q0, q6\n"                                         \
    "vldrb.u8 q0, [r1], #" distance " - 16\n vmladava.s8 r4, q0, q5\n vmladava.s8 r6, q0, q7\n"                        \
    "vldrb.u8 q0, [r1], #16\n vmladav.s8 r8, q0, q4\n vmov q1[2], q1[0], r0, r4\n vmladav.s8 r0, q0, q6\n"             \
    "vldrb.u8 q0, [r1], #" distance " - 16\n vmladava.s8 r0, q0, q7\n vmov q2[2], q2[0], r2, r6\n"                     \
    "vmladava.s8 r8, q0, q5\n"                                                                                         \
    "vldrb.u8 q0, [r1], #16\n vmladav.s8 r4, q0, q4\n vmladav.s8 r2, q0, q6\n"                                         \
    "vldrb.u8 q0, [r1], #" distance " - 16\n vmladava.s8 r4, q0, q5\n vmov q1[3], q1[1], r8, r4\n"                     \
    "vmladava.s8 r2, q0, q7\n"
#define MLF_DOT_4X2_VECTORS2_GROUP(distance)                                                                           \
    "vmlas.s32 q1, q3, r5\n" MLF_DOT_4X2_LAST_SUMS "vqdmulh.s32 q1, q1, r7\n vmlas.s32 q2, q3, r11\n"                  \
    "vldrb.u8 q0, [r1], #16\n vqdmulh.s32 q2, q2, r12\n vmladav.s8 r2, q0, q6\n vqrshrnt.s32 q2, q2, #8\n"             \
    "vmladav.s8 r0, q0, q4\n"                                                                                          \
    "vldrb.u8 q0, [r1], #" distance " - 16\n vmladava.s8 r2, q0, q7\n"                                                 \
    "vqrshrnb.s32 q2, q1, #8\n vmladava.s8 r0, q0, q5\n"                                                               \
    "vldrb.u8 q0, [r1], #16\n vmladav.s8 r6, q0, q6\n vldrh.u16 q1, [sp]\n vmladav.s8 r4, q0, q4\n"                    \
    "vldrb.u8 q0, [r1], #" distance " - 16\n vmladava.s8 r4, q0, q5\n"                                                 \
    "vshr.s16 q2, q2, #8\n vmladava.s8 r6, q0, q7\n"                                                                   \
    "vldrb.u8 q0, [r1], #16\n vmladav.s8 r8, q0, q4\n vstrb.16 q2, [r3, q1]\n vmov q1[2], q1[0], r0, r4\n"             \
    "add r3, r10\n vmladav.s8 r0, q0, q6\n"                                                                            \
    "vldrb.u8 q0, [r1], #" distance " - 16\n vmladava.s8 r8, q0, q5\n"                                                 \
    "vmov q2[2], q2[0], r2, r6\n vmladava.s8 r0, q0, q7\n"                                                             \
    "vldrb.u8 q0, [r1], #16\n vmladav.s8 r4, q0, q4\n vmladav.s8 r2, q0, q6\n"                                         \
    "vldrb.u8 q0, [r1], #" distance " - 16\n vmladava.s8 r4, q0, q5\n"                                                 \
    "vmladava.s8 r2, q0, q7\n vmov q1[3], q1[1], r8, r4\n"
#define MLF_DOT_4X2_VECTORS2_LEAVE MLF_DOT_4X2_OUTPUTS("q3", "vldrh.u16 q1, [sp]\n")

#define MLF_DOT_4X2(name, shape, distance)                                                                             \
    MLF_NAKED void name(struct mlf_dot_4x2 *dot MLF_UNUSED)                                                            \
    {                                                                                                                  \
        __asm__(MLF_ENTER "sub sp, #24\n str r0, [sp, #16]\n mov r2, r0\n"                                             \
                "vldrh.u16 q0, [r2, #32]\n vstrh.16 q0, [sp]\n ldr r10, [r2, #24]\n ldr r0, [r2, #48]\n" shape##_ENTER \
                "1: ldrd r1, lr, [r2]\n ldrd r6, r8, [r2, #16]\n ldrd r3, r4, [r2, #8]\n"                              \
                "ldrd r5, r7, [r8], #8\n adds r0, r3, #2\n subs r4, #1\n" shape##_SUMS(#distance)                      \
                "wls lr, lr, 3f\n"                                                                                     \
                "2: " shape##_GROUP(#distance) "le lr, 2b\n"                                                           \
                "3: " shape##_LEAVE "bne 1b\n add sp, #24\n" MLF_LEAVE);                                               \
    }

#else

/* Return the output for a sum. */
MLF_KERNEL int8_t mlf_dot_4x2_output(int32_t sum, int32_t factor, const struct mlf_brief *channel)
{
    const int64_t scaled = ((int64_t)sum * factor + channel->bias) * channel->multiplier;
    return (int8_t)mlf_clamp((int32_t)((scaled + (INT64_C(1) << 38)) >> 47), INT8_MIN, INT8_MAX);
}

/* The same in C, for windows of `vectors` times 16 bytes, `distance` bytes apart. */
MLF_SHARED void mlf_dot_4x2_in_c(struct mlf_dot_4x2 *dot, int32_t vectors, int32_t distance)
{
    const int32_t apart = dot->step / 4;
    for (int32_t c = 0; c < 2 * dot->pairs; c++) {
        for (int32_t x = 0; x < 4 * (dot->further + 1); x++) {
            int32_t sum = 0;
            for (int32_t i = 0; i < dot->length; i++) {
                sum += dot->first[x * distance + i] * dot->weights[i];
            }
            dot->output[c + x * apart] = mlf_dot_4x2_output(sum, dot->factor, dot->channels);
        }
        dot->weights += 16 * vectors;
        dot->channels++;
    }
}

#define MLF_DOT_4X2_VECTORS1_COUNT 1
#define MLF_DOT_4X2_VECTORS2_COUNT 2
#define MLF_DOT_4X2(name, shape, distance)                                                                             \
    MLF_KERNEL void name(struct mlf_dot_4x2 *dot)                                                                      \
    {                                                                                                                  \
        mlf_dot_4x2_in_c(dot, shape##_COUNT, distance);                                                                \
    }

#endif /* MLF_MVE */

MLF_DOT_4X2(mlf_dot_4x2_vectors1_3, MLF_DOT_4X2_VECTORS1, 3)
MLF_DOT_4X2(mlf_dot_4x2_vectors1_6, MLF_DOT_4X2_VECTORS1, 6)
MLF_DOT_4X2(mlf_dot_4x2_vectors1_8, MLF_DOT_4X2_VECTORS1, 8)
MLF_DOT_4X2(mlf_dot_4x2_vectors1_16, MLF_DOT_4X2_VECTORS1, 16)
MLF_DOT_4X2(mlf_dot_4x2_vectors2_9, MLF_DOT_4X2_VECTORS2, 9)
MLF_DOT_4X2(mlf_dot_4x2_vectors2_18, MLF_DOT_4X2_VECTORS2, 18)
MLF_DOT_4X2(mlf_dot_4x2_vectors2_32, MLF_DOT_4X2_VECTORS2, 32)

/* A convolution. */
struct mlf_conv2d_4x2 {
    mlf_dot_4x2_function multiply;
    int32_t distance; /* bytes from a window to the next */
    int32_t outputs;  /* of a pixel */
    const int8_t *weights;
    const struct mlf_brief *channels;
    struct mlf_dot_4x2 dot;
};

MLF_KERNEL struct mlf_conv2d_4x2 mlf_conv2d_4x2_start(const struct mlf_window *window, const int8_t *weights,
                                                      const struct mlf_brief *channels, int32_t scale,
                                                      mlf_dot_4x2_function multiply, int32_t distance)
{
    const int32_t outputs = window->output_channels;
    struct mlf_conv2d_4x2 conv = {
        .multiply = multiply,
        .distance = distance,
        .outputs = outputs,
        .weights = weights,
        .channels = channels,
        .dot =
            {
                .step = 4 * outputs,
                .length = window->filter.height * window->filter.width * window->input_channels,
                .factor = (int32_t)(UINT32_C(1) << scale),
            },
    };
    for (int32_t x = 0; x < 4; x++) {
        const int32_t lane = x % 2 * 2 + x / 2;
        conv.dot.scatter[2 * lane] = (uint16_t)(x * outputs);
        conv.dot.scatter[2 * lane + 1] = (uint16_t)(x * outputs + 1);
    }
    return conv;
}

/* Compute all channels of 4 * `groups` pixels. */
MLF_SHARED void mlf_conv2d_4x2_groups(struct mlf_conv2d_4x2 *conv, const int8_t *first, int32_t groups, int8_t *output)
{
    struct mlf_dot_4x2 *const dot = &conv->dot;
    dot->first = first;
    dot->further = groups - 1;
    dot->output = output;
    dot->pairs = conv->outputs / 2;
    dot->weights = conv->weights;
    dot->channels = conv->channels;
    conv->multiply(dot);
    if (conv->outputs % 2 != 0) { /* the last two channels follow as another pair */
        dot->output = output + conv->outputs - 2;
        dot->pairs = 1;
        conv->multiply(dot);
    }
}

/* Compute `count` >= 4 pixels; up to three of them twice, as the last group has four, too. */
MLF_KERNEL void mlf_conv2d_4x2_pixels(struct mlf_conv2d_4x2 *conv, const int8_t *first, int32_t count, int8_t *output)
{
    mlf_conv2d_4x2_groups(conv, first, count / 4, output);
    if (count % 4 != 0) {
        mlf_conv2d_4x2_groups(conv, first + (count - 4) * conv->distance, 1, output + (count - 4) * conv->outputs);
    }
}

/*
 * A 1x1 filter on the pixels of one long row; the output may begin at the address of the input. `batch` pixels at a
 * time are copied to scratch memory, `distance` bytes apart, before outputs are written; if output pixels are larger,
 * from the end. The last time, too, there are at least four. Scratch memory has 32 bytes more than `batch` pixels.
 */
MLF_SHARED void mlf_pointwise_4x2_int8_mve(const struct mlf_window *window, const int8_t *input, const int8_t *weights,
                                           const struct mlf_brief *channels, int32_t scale,
                                           mlf_dot_4x2_function multiply, int32_t distance, int32_t batch,
                                           int8_t *scratch, int8_t *output)
{
    struct mlf_conv2d_4x2 conv = mlf_conv2d_4x2_start(window, weights, channels, scale, multiply, distance);
    const int32_t depth = window->input_channels;
    const int32_t pixels = window->output.width;
    for (int32_t done = 0, count; done < pixels; done += count) {
        const int32_t left = pixels - done;
        count = left <= batch ? left : left < batch + 4 ? batch - 4 : batch;
        const int32_t x = conv.outputs > depth ? pixels - done - count : done;
        const int8_t *const from = input + x * depth;
        if (depth == distance) {
            (void)mlf_copy_mve(scratch, from, count * depth);
        } else {
            for (int32_t i = 0; i < count; i++) {
                (void)mlf_copy_mve(scratch + i * distance, from + i * depth, depth);
            }
        }
        mlf_conv2d_4x2_pixels(&conv, scratch, count, output + x * conv.outputs);
    }
}

#if defined(MLF_MVE)

/* Copy `count` groups of `length` <= 16 bytes; not inlined, because it changes the predicate, as calls do. */
MLF_SHARED void mlf_conv2d_4x2_insert(int8_t *to, int32_t step, const int8_t *from, int32_t length, int32_t count,
                                      const uint8_t *offsets)
{
    __asm__ volatile("vldrb.u8 q1, [%[offsets]]\n"
                     "vctp.8 %[length]\n"
                     "wls lr, %[count], 2f\n"
                     "1: vpstt\n"
                     "vldrbt.u8 q0, [%[from]]\n"
                     "vstrbt.8 q0, [%[to], q1]\n"
                     "add %[from], %[length]\n"
                     "add %[to], %[step]\n"
                     "le lr, 1b\n"
                     "2:\n"
                     : [to] "+r"(to), [from] "+r"(from)
                     : [step] "r"(step), [length] "r"(length), [count] "r"(count), [offsets] "r"(offsets)
                     : "lr", "q0", "q1", "memory", "cc");
}

#else

MLF_SHARED void mlf_conv2d_4x2_insert(int8_t *to, int32_t step, const int8_t *from, int32_t length, int32_t count,
                                      const uint8_t *offsets)
{
    for (; count > 0; count--, to += step, from += length) {
        for (int32_t i = 0; i < length; i++) {
            to[offsets[i]] = from[i];
        }
    }
}

#endif /* MLF_MVE */

/* The rows under the filter: for every column of the padded image, the pixels of `rows` rows. */
struct mlf_conv2d_4x2_rows {
    const struct mlf_window *window;
    int8_t *memory;
    int32_t column;  /* bytes from a column to the next */
    int32_t columns; /* that are copied at once */
    int8_t fill;
    uint8_t offsets[16]; /* of the bytes of these */
};

/*
 * Copy row r of the padded image. It begins `depth` bytes after the row before and takes the place of row r - rows, one
 * column further left, so that only the last column of padding on the left must be written again.
 */
MLF_KERNEL void mlf_conv2d_4x2_row(const struct mlf_conv2d_4x2_rows *rows, const int8_t *input, int32_t r)
{
    const struct mlf_window *const window = rows->window;
    const int32_t depth = window->input_channels;
    const int32_t width = window->input.width;
    const int32_t y = r - window->padding.height;
    int8_t *const row = rows->memory + r * depth;
    int8_t *const to = row + window->padding.width * rows->column;
    if (window->padding.width > 0) {
        (void)mlf_fill_mve(to - rows->column, rows->fill, depth);
    }
    if (y >= 0 && y < window->input.height) {
        const int32_t whole = width / rows->columns;
        const int32_t rest = width % rows->columns;
        const int32_t length = rows->columns * depth;
        const int8_t *const from = input + y * width * depth;
        const int32_t step = rows->columns * rows->column;
        mlf_conv2d_4x2_insert(to, step, from, length, whole, rows->offsets);
        mlf_conv2d_4x2_insert(to + whole * step, step, from + whole * length, rest * depth, rest > 0, rows->offsets);
    } else {
        for (int32_t x = 0; x < width; x++) {
            (void)mlf_fill_mve(to + x * rows->column, rows->fill, depth);
        }
    }
}

/*
 * Windows of several rows, side by side: weights are [channel, column, row, input channel]. Scratch memory has the part
 * of the padded image that windows cover, `height` of whose rows count as one, one pixel for each row, and 32 bytes.
 */
MLF_SHARED void mlf_conv2d_4x2_int8_mve(const struct mlf_window *window, int8_t fill, const int8_t *input,
                                        const int8_t *weights, const struct mlf_brief *channels, int32_t scale,
                                        mlf_dot_4x2_function multiply, int32_t size, int8_t *scratch, int8_t *output)
{
    const int32_t depth = window->input_channels;
    const int32_t height = window->filter.height;
    struct mlf_conv2d_4x2_rows rows = {window, scratch, height * depth, 16 / depth, fill, {0}};
    struct mlf_conv2d_4x2 conv =
        mlf_conv2d_4x2_start(window, weights, channels, scale, multiply, window->stride.width * rows.column);
    for (int32_t i = 0; i < 16; i++) {
        rows.offsets[i] = (uint8_t)(i / depth * rows.column + i % depth);
    }
    for (int32_t n = 0; n < window->batches; n++) {
        int32_t next = 0;
        (void)mlf_fill_mve(scratch, fill, size);
        for (int32_t y = 0; y < window->output.height; y++) {
            const int32_t first = y * window->stride.height;
            for (next = next < first ? first : next; next < first + height; next++) {
                mlf_conv2d_4x2_row(&rows, input, next);
            }
            mlf_conv2d_4x2_pixels(&conv, scratch + first * depth, window->output.width, output);
            output += window->output.width * conv.outputs;
        }
        input += window->input.height * window->input.width * depth;
    }
}

#endif /* MLF_DOT_4X2_MVE_H_ */
