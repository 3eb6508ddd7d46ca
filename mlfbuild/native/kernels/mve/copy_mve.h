/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Copies and fills of bytes, a vector of 16 at a time on Helium (MVE). */
#ifndef MLF_COPY_MVE_H_
#define MLF_COPY_MVE_H_

#include <stdint.h>

#include "compiler.h"

/* The bytes first..end-1 of a piece of memory, and the value that replaces the others. */
struct mlf_clip_mve {
    int32_t first;
    int32_t end;
    int32_t fill;
};

#if defined(MLF_MVE)

/* Copy `count` bytes; return the address after them. */
MLF_KERNEL int8_t *mlf_copy_mve(int8_t *to, const int8_t *from, int32_t count)
{
    int8_t *const end = to + count;
    __asm__ volatile("wlstp.8 lr, %2, 2f\n"
                     "1: vldrb.u8 q0, [%1], #16\n"
                     "vstrb.8 q0, [%0], #16\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : "+r"(to), "+r"(from)
                     : "r"(count)
                     : "lr", "q0", "memory", "cc");
    return end;
}

/* Write `value` to `count` bytes; return the address after them. */
MLF_KERNEL int8_t *mlf_fill_mve(int8_t *to, int8_t value, int32_t count)
{
    int8_t *at = to;
    __asm__ volatile("vdup.8 q0, %2\n"
                     "wlstp.8 lr, %1, 2f\n"
                     "1: vstrb.8 q0, [%0], #16\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : "+r"(at)
                     : "r"(count), "r"(value)
                     : "lr", "q0", "memory", "cc");
    return to + count;
}

/*
 * Copy `count` windows of `rows` pieces of `length` <= 16 bytes side by side; pieces are `pitch` bytes apart, windows
 * `step`. Up to 16 more bytes are written. Not inlined, because it changes the predicate, as calls do.
 */
MLF_SHARED int8_t *mlf_copy_windows_mve(int8_t *to, const int8_t *from, int32_t length, int32_t pitch, int32_t rows,
                                        int32_t step, int32_t count)
{
    const int8_t *piece;
    __asm__ volatile("vctp.8 %[length]\n"
                     "1: mov %[piece], %[from]\n"
                     "dls lr, %[rows]\n"
                     "2: vpst\n"
                     "vldrbt.u8 q0, [%[piece]]\n"
                     "add %[piece], %[pitch]\n"
                     "vstrb.8 q0, [%[to]]\n"
                     "add %[to], %[length]\n"
                     "le lr, 2b\n"
                     "add %[from], %[step]\n"
                     "subs %[count], #1\n"
                     "bne 1b\n"
                     : [to] "+r"(to), [from] "+r"(from), [count] "+r"(count), [piece] "=&r"(piece)
                     : [length] "r"(length), [pitch] "r"(pitch), [rows] "r"(rows), [step] "r"(step)
                     : "lr", "q0", "memory", "cc");
    return to;
}

/*
 * Copy `rows` pieces of `length` <= 16 bytes, `pitch` bytes apart, side by side: bytes first..end-1 of each, `fill` for
 * the others, which are not read. Up to 16 more bytes are written. Not inlined, as mlf_copy_windows_mve. The assembly
 * reads the members of `clip`, because GCC has too few registers for them without optimisation.
 */
MLF_SHARED int8_t *mlf_copy_clipped_mve(int8_t *to, const int8_t *from, int32_t length, int32_t pitch, int32_t rows,
                                        const struct mlf_clip_mve *clip)
{
    int32_t inside, before;
    __asm__ volatile("ldrd %[before], %[inside], [%[clip]]\n"
                     "vctp.8 %[inside]\n"
                     "vmrs %[inside], p0\n"
                     "vctp.8 %[before]\n"
                     "vmrs %[before], p0\n"
                     "bics %[inside], %[before]\n"
                     "vmsr p0, %[inside]\n"
                     "ldr %[before], [%[clip], #8]\n"
                     "vdup.8 q1, %[before]\n"
                     "wls lr, %[rows], 2f\n"
                     "1: vpst\n"
                     "vldrbt.u8 q0, [%[from]]\n"
                     "add %[from], %[pitch]\n"
                     "vpsel q0, q0, q1\n"
                     "vstrb.8 q0, [%[to]]\n"
                     "add %[to], %[length]\n"
                     "le lr, 1b\n"
                     "2:\n"
                     : [to] "+r"(to), [from] "+r"(from), [inside] "=&r"(inside), [before] "=&r"(before)
                     : [length] "r"(length), [pitch] "r"(pitch), [rows] "r"(rows), [clip] "r"(clip)
                     : "lr", "q0", "q1", "memory", "cc");
    return to;
}

#else

MLF_KERNEL int8_t *mlf_copy_mve(int8_t *to, const int8_t *from, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        to[i] = from[i];
    }
    return to + count;
}

MLF_KERNEL int8_t *mlf_fill_mve(int8_t *to, int8_t value, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        to[i] = value;
    }
    return to + count;
}

MLF_SHARED int8_t *mlf_copy_windows_mve(int8_t *to, const int8_t *from, int32_t length, int32_t pitch, int32_t rows,
                                        int32_t step, int32_t count)
{
    for (; count > 0; count--, from += step) {
        for (int32_t row = 0; row < rows; row++) {
            to = mlf_copy_mve(to, from + row * pitch, length);
        }
    }
    return to;
}

MLF_SHARED int8_t *mlf_copy_clipped_mve(int8_t *to, const int8_t *from, int32_t length, int32_t pitch, int32_t rows,
                                        const struct mlf_clip_mve *clip)
{
    for (int32_t row = 0; row < rows; row++) {
        for (int32_t i = 0; i < length; i++) {
            *to++ = i >= clip->first && i < clip->end ? from[row * pitch + i] : (int8_t)clip->fill;
        }
    }
    return to;
}

#endif /* MLF_MVE */

#endif /* MLF_COPY_MVE_H_ */
