/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Line buffers: the rows of an image that operators executed row by row pass to each other.
 *
 * In each step an operator computes `count` rows, the first of which is row step * count + lead of its image, and
 * writes them after the `kept` rows that the next operator reads again. Rows before and after the image are its
 * padding: if an operator needs rows ahead, steps begin before 0, so that borders need no other code.
 *
 * `padding` is the byte value of padding. It is no member, because it depends on trained values: a struct of numbers
 * that the compiler knows takes no code.
 */
#ifndef MLF_LINE_BUFFER_H_
#define MLF_LINE_BUFFER_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "copy_mve.h"
#include "requantize_mve.h"

struct mlf_line_buffer {
    int32_t row;    /* bytes of a row */
    int32_t height; /* rows of the image */
    int32_t count;
    int32_t kept;
    int32_t lead;
};

/* Move bytes towards lower addresses, or to other memory. A loop of words, because the memcpy of small C libraries
   copies single bytes; GCC must not replace it by a call of memcpy. */
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif
MLF_SHARED void
mlf_move_bytes(int8_t *to, const int8_t *from, int32_t count)
{
#if defined(__ARM_FEATURE_MVE)
    (void)mlf_copy_mve(to, from, count);
#else
    int32_t i = 0;
#if defined(__GNUC__) && defined(__arm__) && !defined(__ARM_FEATURE_UNALIGNED)
    for (; ((uintptr_t)to | (uintptr_t)from) % 4 == 0 && i + 16 <= count; i += 16) {
        uint32_t words[4];
        memcpy(words, __builtin_assume_aligned(from + i, 4), sizeof words);
        memcpy(__builtin_assume_aligned(to + i, 4), words, sizeof words);
    }
#else
    for (; i + 16 <= count; i += 16) {
        uint32_t first, second, third, fourth; /* GCC keeps an array in memory */
        memcpy(&first, from + i, 4);
        memcpy(&second, from + i + 4, 4);
        memcpy(&third, from + i + 8, 4);
        memcpy(&fourth, from + i + 12, 4);
        memcpy(to + i, &first, 4);
        memcpy(to + i + 4, &second, 4);
        memcpy(to + i + 8, &third, 4);
        memcpy(to + i + 12, &fourth, 4);
    }
#endif
    for (; i < count; i++) {
        to[i] = from[i];
    }
#endif
}

/* Whether any of the step's rows is inside the image. */
MLF_KERNEL int mlf_lines_inside(const struct mlf_line_buffer *lines, int32_t step)
{
    const int32_t first = step * lines->count + lines->lead;
    return first < lines->height && first + lines->count > 0;
}

/* The address of the step's rows. */
MLF_KERNEL int8_t *mlf_lines_new(const struct mlf_line_buffer *lines, int8_t *buffer)
{
    return buffer + lines->kept * lines->row;
}

/* Fill the step's rows outside the image with padding. */
MLF_SHARED void mlf_lines_pad(const struct mlf_line_buffer *lines, int32_t step, int8_t *buffer, int32_t padding)
{
    const int32_t first = step * lines->count + lines->lead;
    int8_t *row = mlf_lines_new(lines, buffer);
    for (int32_t y = first; y < first + lines->count; y++, row += lines->row) {
        if (y < 0 || y >= lines->height) {
            memset(row, padding, (size_t)lines->row);
        }
    }
}

/* Copy the step's rows from the complete image. */
MLF_SHARED void mlf_lines_copy(const struct mlf_line_buffer *lines, int32_t step, const int8_t *image,
                               int8_t *buffer, int32_t padding)
{
    const int32_t first = step * lines->count + lines->lead;
    const int32_t begin = first < 0 ? 0 : first;
    const int32_t end = first + lines->count < lines->height ? first + lines->count : lines->height;
    if (begin < end) {
        mlf_move_bytes(mlf_lines_new(lines, buffer) + (begin - first) * lines->row, image + begin * lines->row,
                       (end - begin) * lines->row);
    }
    mlf_lines_pad(lines, step, buffer, padding);
}

/* Go on to the next step. */
MLF_KERNEL void mlf_lines_keep(const struct mlf_line_buffer *lines, int8_t *buffer)
{
    mlf_move_bytes(buffer, buffer + lines->count * lines->row, lines->kept * lines->row);
}

/* The kept rows before the first step are padding. */
MLF_KERNEL void mlf_lines_start(const struct mlf_line_buffer *lines, int8_t *buffer, int32_t padding)
{
    memset(buffer, padding, (size_t)(lines->kept * lines->row));
}

#endif /* MLF_LINE_BUFFER_H_ */
