/* Copies and fills of bytes, a vector of 16 at a time on Helium (MVE). */
#ifndef MLF_COPY_MVE_H_
#define MLF_COPY_MVE_H_

#include <stdint.h>

#include "compiler.h"

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

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

/* Copy `rows` pieces of `length` <= 16 bytes, `pitch` bytes apart, side by side; up to 16 bytes more are written. */
MLF_KERNEL int8_t *mlf_copy_rows_mve(int8_t *to, const int8_t *from, int32_t length, int32_t pitch, int32_t rows)
{
    const mve_pred16_t inside = vctp8q((uint32_t)length);
    for (int32_t row = 0; row < rows; row++) {
        vstrbq_s8(to, vldrbq_z_s8(from, inside));
        to += length;
        from += pitch;
    }
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

MLF_KERNEL int8_t *mlf_copy_rows_mve(int8_t *to, const int8_t *from, int32_t length, int32_t pitch, int32_t rows)
{
    for (int32_t row = 0; row < rows; row++, from += pitch) {
        to = mlf_copy_mve(to, from, length);
    }
    return to;
}

#endif /* __ARM_FEATURE_MVE */

#endif /* MLF_COPY_MVE_H_ */
