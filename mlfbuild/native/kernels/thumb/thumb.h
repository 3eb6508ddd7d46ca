/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Shared by int8 kernels for cores with Thumb instructions and without SIMD: Cortex-M0+, M23 and M3.
 *
 * Requantisation rounds twice, as in requantize.h. With e = the right shift, at least 1, and sign = -1 for a negative
 * sum, the output is
 *
 *   (sum * multiplier + 2^30 + (sign + 2^(e - 1)) * 2^31 + zero point * 2^(31 + e)) >> (31 + e)
 *
 * The M0+ multiplies 32 by 32 bits to 32 bits, so the multiplier is cut into pieces whose products with the sum fit:
 * three for sums below 2^20 and four for sums below 2^23. Floors are nested, which loses nothing:
 *
 *   sum * multiplier >> 20 = ((sum * low >> 10) + sum * middle >> 10) + sum * high
 */
#ifndef MLF_THUMB_H_
#define MLF_THUMB_H_

#include <stdint.h>

#include "compiler.h"

/* The assembly uses only instructions of Armv6-M, except for the macros below. */
#if defined(__thumb__) && defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_PROFILE == 'M' && defined(MLF_NAKED) &&          \
    !defined(__ARM_BIG_ENDIAN)
#define MLF_THUMB_ASM 1
#else
#define MLF_THUMB_ASM 0
#endif

#if MLF_THUMB_ASM

/* GCC assembles for Armv6-M in an old syntax unless it is told otherwise. No kernel uses r9, the base of some data. */
#define MLF_ENTER_THUMB                                                                                                \
    ".syntax unified\n\t"                                                                                              \
    "push {r4-r7, lr}\n\t"                                                                                             \
    "mov r5, r8\n\t"                                                                                                   \
    "mov r6, r10\n\t"                                                                                                  \
    "mov r7, r11\n\t"                                                                                                  \
    "push {r5-r7}\n\t"
#define MLF_LEAVE_THUMB                                                                                                \
    "pop {r5-r7}\n\t"                                                                                                  \
    "mov r8, r5\n\t"                                                                                                   \
    "mov r10, r6\n\t"                                                                                                  \
    "mov r11, r7\n\t"                                                                                                  \
    "pop {r4-r7, pc}"

/* Byte 1 or 2 of a word; sum += x * weight, which changes x, for any sum or one in a high register. */
#if __ARM_ARCH_ISA_THUMB == 1
#define MLF_BYTE1_THUMB(to, word) "lsls " to ", " word ", #16\n\tasrs " to ", " to ", #24\n\t"
#define MLF_BYTE2_THUMB(to, word) "lsls " to ", " word ", #8\n\tasrs " to ", " to ", #24\n\t"
#define MLF_PRODUCT_THUMB(sum, x, weight) "muls " x ", " weight ", " x "\n\tadds " sum ", " sum ", " x "\n\t"
#define MLF_PRODUCT_HIGH_THUMB(sum, x, weight) "muls " x ", " weight ", " x "\n\tadd " sum ", " x "\n\t"
#else
#define MLF_BYTE1_THUMB(to, word) "sbfx " to ", " word ", #8, #8\n\t"
#define MLF_BYTE2_THUMB(to, word) "sbfx " to ", " word ", #16, #8\n\t"
#define MLF_PRODUCT_THUMB(sum, x, weight) "mla " sum ", " x ", " weight ", " sum "\n\t"
#define MLF_PRODUCT_HIGH_THUMB(sum, x, weight) MLF_PRODUCT_THUMB(sum, x, weight)
#endif

/*
 * From the multiplier in r7, e + 11 in the low byte of r4 and 2 * zero point + 1 in r2 to the three pieces in r5, r6, r7 and the addend
 * in lr; changes r2 and r3.
 */
#define MLF_PIECES_THUMB                                                                                               \
    "subs r3, r4, #1\n\t"                                                                                              \
    "lsls r2, r2, r3\n\t"                                                                                              \
    "movs r3, #1\n\t"                                                                                                  \
    "lsls r3, r3, #10\n\t"                                                                                             \
    "adds r2, r2, r3\n\t"                                                                                              \
    "mov lr, r2\n\t"                                                                                                   \
    "lsls r5, r7, #22\n\t"                                                                                             \
    "lsrs r5, r5, #22\n\t"                                                                                             \
    "lsls r6, r7, #12\n\t"                                                                                             \
    "lsrs r6, r6, #22\n\t"                                                                                             \
    "lsls r7, r7, #1\n\t" /* without the highest bit, which is a flag */                                               \
    "lsrs r7, r7, #21\n\t"

/* With these pieces, the output of a sum in r1 that is not negative, not yet clamped, in r1; changes r2 and r3. */
#define MLF_RESCALE_THUMB                                                                                              \
    "movs r2, r1\n\t"                                                                                                  \
    "muls r2, r5, r2\n\t"                                                                                              \
    "asrs r2, r2, #10\n\t"                                                                                             \
    "movs r3, r1\n\t" MLF_PRODUCT_THUMB("r2", "r3", "r6")                                                              \
    "asrs r2, r2, #10\n\t"                                                                                             \
    MLF_PRODUCT_THUMB("r2", "r1", "r7")                                                                                \
    "add r2, lr\n\t"                                                                                                   \
    "asrs r2, r2, r4\n\t"

/*
 * The output of a sum in r1 below 2^23, in r1, by a call: multiplier in r4, e + 7 in the low byte of r5 and
 * 2^6 + ((2 * zero point + 1) << (e + 6)) in r6; changes r2 and r3.
 */
#define MLF_RESCALE_WIDE_THUMB                                                                                         \
    "uxtb r2, r4\n\t"                                                                                                  \
    "muls r2, r1, r2\n\t"                                                                                              \
    "asrs r2, r2, #8\n\t"                                                                                              \
    "lsls r3, r4, #16\n\t"                                                                                             \
    "lsrs r3, r3, #24\n\t" MLF_PRODUCT_THUMB("r2", "r3", "r1")                                                         \
    "asrs r2, r2, #8\n\t"                                                                                              \
    "lsls r3, r4, #8\n\t"                                                                                              \
    "lsrs r3, r3, #24\n\t" MLF_PRODUCT_THUMB("r2", "r3", "r1")                                                         \
    "asrs r2, r2, #8\n\t"                                                                                              \
    "lsls r3, r4, #1\n\t"                                                                                              \
    "lsrs r3, r3, #25\n\t" MLF_PRODUCT_THUMB("r2", "r3", "r1")                                                         \
    "asrs r1, r1, #31\n\t"                                                                                             \
    "lsls r1, r1, #7\n\t"                                                                                              \
    "adds r2, r2, r1\n\t"                                                                                              \
    "adds r2, r2, r6\n\t"                                                                                              \
    "asrs r2, r2, r5\n\t"                                                                                              \
    "sxtb r1, r2\n\t"                                                                                                  \
    "cmp r1, r2\n\t"                                                                                                   \
    "beq 77f\n\t"                                                                                                      \
    "asrs r2, r2, #31\n\t"                                                                                             \
    "movs r1, #127\n\t"                                                                                                \
    "eors r1, r1, r2\n"                                                                                                \
    "77:\n\t"                                                                                                          \
    "bx lr\n"

#endif

#if MLF_THUMB_ASM && __ARM_ARCH_ISA_THUMB == 1

/* Return the output of a sum below 2^23; `shift` is e + 11, and the highest bit of `multiplier` is ignored. */
MLF_NAKED int32_t mlf_round_thumb(int32_t sum MLF_UNUSED, int32_t multiplier MLF_UNUSED, int32_t shift MLF_UNUSED,
                                  int32_t rounding MLF_UNUSED)
{
    __asm__ volatile(".syntax unified\n\t"
                     "push {r4-r6, lr}\n\t"
                     "movs r4, r1\n\t"
                     "subs r5, r2, #4\n\t"
                     "subs r2, r5, #1\n\t"
                     "lsls r3, r3, r2\n\t"
                     "movs r6, r3\n\t"
                     "adds r6, r6, #64\n\t"
                     "movs r1, r0\n\t"
                     "bl 13f\n\t"
                     "movs r0, r1\n\t"
                     "pop {r4-r6, pc}\n"
                     "13:\n\t" MLF_RESCALE_WIDE_THUMB);
}

#else

/* The same in C, for cores that multiply to 64 bits. */
MLF_KERNEL int32_t mlf_round_thumb(int32_t sum, int32_t multiplier, int32_t shift, int32_t rounding)
{
    const int64_t product = (int64_t)sum * (multiplier & INT32_MAX);
    const int32_t high = (int32_t)((product + (INT64_C(1) << 30)) >> 31);
    const int32_t addend = (int32_t)((uint32_t)rounding << (shift - 12)) + (sum >> 31);
    const int32_t result = (high + addend) >> (shift - 11);
    return result < INT8_MIN ? INT8_MIN : result > INT8_MAX ? INT8_MAX : result;
}

#endif

/* Clamp an output to a fused activation, unless the store already does. */
MLF_SHARED void mlf_clamp_thumb(int8_t *output, int32_t size, int32_t minimum, int32_t maximum)
{
    const int8_t *const end = output + size;
    for (; (minimum > INT8_MIN || maximum < INT8_MAX) && output != end; output++) {
        const int32_t value = *output < minimum ? minimum : *output;
        *output = (int8_t)(value > maximum ? maximum : value);
    }
}

#endif /* MLF_THUMB_H_ */
