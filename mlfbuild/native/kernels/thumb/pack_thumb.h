/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Pack inputs of two pixels into words, p + q * 65536, for dot_4x1_thumb.h. */
#ifndef MLF_PACK_THUMB_H_
#define MLF_PACK_THUMB_H_

#include <stdint.h>

#include "compiler.h"
#include "thumb.h"

#if MLF_THUMB_ASM

/* Pack `count` inputs, at least 1, of four pixels to pairs of words: 11 instructions for four. Returns their end. */
MLF_NAKED int32_t *mlf_pack4_thumb(int32_t *rows MLF_UNUSED, const int8_t *const taps[4] MLF_UNUSED,
                                   int32_t count MLF_UNUSED)
{
    __asm__ volatile(".syntax unified\n\t"
                     "push {r4-r7, lr}\n\t"
                     "movs r6, r2\n\t"
                     "movs r7, r0\n\t"
                     "ldmia r1!, {r0, r2, r3, r4}\n\t" /* relative to the first pixel: three offsets */
                     "subs r1, r2, r0\n\t"
                     "subs r2, r3, r0\n\t"
                     "subs r3, r4, r0\n\t"
                     "adds r6, r6, r0\n\t"
                     "mov r12, r6\n"
                     "1:\n\t"
                     "movs r4, #0\n\t"
                     "ldrsb r4, [r0, r4]\n\t"
                     "ldrsb r5, [r0, r1]\n\t"
                     "lsls r5, r5, #16\n\t"
                     "adds r4, r4, r5\n\t"
                     "ldrsb r5, [r0, r2]\n\t"
                     "ldrsb r6, [r0, r3]\n\t"
                     "lsls r6, r6, #16\n\t"
                     "adds r5, r5, r6\n\t"
                     "adds r0, r0, #1\n\t"
                     "stmia r7!, {r4, r5}\n\t"
                     "cmp r0, r12\n\t"
                     "bne 1b\n\t"
                     "movs r0, r7\n\t"
                     "pop {r4-r7, pc}");
}

#else

MLF_SHARED int32_t *mlf_pack4_thumb(int32_t *rows, const int8_t *const taps[4], int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        *rows++ = taps[0][i] + taps[1][i] * 65536;
        *rows++ = taps[2][i] + taps[3][i] * 65536;
    }
    return rows;
}

#endif

/* Pack inputs of two pixels to words. */
MLF_SHARED int32_t *mlf_pack2_thumb(int32_t *rows, const int8_t *const taps[2], int32_t count)
{
    const int8_t *const first = taps[0];
    const int8_t *const second = taps[1];
    for (int32_t i = 0; i < count; i++) {
        rows[i] = first[i] + second[i] * 65536;
    }
    return rows + count;
}

#endif /* MLF_PACK_THUMB_H_ */
