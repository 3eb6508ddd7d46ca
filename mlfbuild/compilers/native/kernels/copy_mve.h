/* Copies and fills of bytes, a vector of 16 at a time on Helium (MVE). */
#ifndef MLF_COPY_MVE_H_
#define MLF_COPY_MVE_H_

#include <stdint.h>

#include "compiler.h"

#if defined(MLF_MVE)

/* Copy `count` bytes; returns behind them. */
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

/* Write `value` to `count` bytes; returns behind them. */
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
 * `step`. Up to 16 bytes more are written. A function of its own, since it changes the predicate, as calls do.
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

#endif /* MLF_MVE */

#endif /* MLF_COPY_MVE_H_ */
