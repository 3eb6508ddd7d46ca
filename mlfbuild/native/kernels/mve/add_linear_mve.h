/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The linear function of add_linear.h on Helium (MVE), for shifts of at least 16: 16 elements in 28 instructions, about
 * as many cycles. The upper halves of eight sums become one vector with a single VSHRN, and their other bits of shift
 * and the clamp follow during the next eight sums.
 */
#ifndef MLF_ADD_LINEAR_MVE_H_
#define MLF_ADD_LINEAR_MVE_H_

#include <stdint.h>

#include "add_linear.h"
#include "compiler.h"
#include "requantize_mve.h"

/* Assembly accesses the members by position. */
struct mlf_add_linear_mve {
    struct mlf_add_linear line;
    int32_t shift; /* of the upper half; negative: to the right */
    int32_t minimum;
    int32_t maximum;
};

#if defined(MLF_MVE)

/*
 * Sums of the next eight elements in `sums`, whose odd lanes are the elements 4 to 7, while eight in `ready` are stored.
 * Loads, multiplications and other arithmetic alternate, because they overlap.
 */
#define MLF_ADD_LINEAR_EIGHT(sums, ready)                                                                              \
    "vldrb.s32 q0, [r1], #4\n vshl.s16 " ready ", r7\n vmlas.s32 q0, q4, r6\n"                                         \
    "vldrb.s32 q1, [r2], #4\n vmax.s16 " ready ", " ready ", q6\n vmla.s32 q0, q1, r5\n"                               \
    "vldrb.s32 " sums ", [r1], #4\n vmin.s16 " ready ", " ready ", q7\n vmlas.s32 " sums ", q4, r6\n"                  \
    "vldrb.s32 q1, [r2], #4\n vmla.s32 " sums ", q1, r5\n"                                                            \
    "vstrb.16 " ready ", [r3, q3]\n add r3, r8\n vshrnb.i32 " sums ", q0, #16\n"

/* The first eight outputs are stored twice, at first as anything: their inputs are loaded before. */
MLF_NAKED void mlf_add_linear_sixteens(const struct mlf_add_linear_mve *add MLF_UNUSED,
                                       const int8_t *first MLF_UNUSED, const int8_t *second MLF_UNUSED,
                                       int8_t *output MLF_UNUSED, int32_t sixteens MLF_UNUSED)
{
    __asm__(MLF_ENTER "ldr lr, [sp, #104]\n"
            "ldrd r4, r5, [r0]\n ldrd r6, r7, [r0, #8]\n ldrd r8, r10, [r0, #16]\n"
            "vdup.32 q4, r4\n vdup.16 q6, r8\n vdup.16 q7, r10\n"
            "movs r0, #0\n vidup.u32 q0, r0, #1\n vmov.i32 q3, #0x40000\n vorr q3, q3, q0\n"
            "vshl.i32 q0, q0, #16\n vorr q3, q3, q0\n" /* 0 4 1 5 2 6 3 7 */
            "movs r8, #0\n vmov.i32 q2, #0\n dls lr, lr\n"
            "1:\n" MLF_ADD_LINEAR_EIGHT("q5", "q2") "movs r8, #8\n" MLF_ADD_LINEAR_EIGHT("q2", "q5") "le lr, 1b\n"
            "vshl.s16 q2, r7\n vmax.s16 q2, q2, q6\n vmin.s16 q2, q2, q7\n vstrb.16 q2, [r3, q3]\n" MLF_LEAVE);
}

#else

MLF_KERNEL void mlf_add_linear_sixteens(const struct mlf_add_linear_mve *add, const int8_t *first, const int8_t *second,
                                        int8_t *output, int32_t sixteens)
{
    for (int32_t i = 0; i < 16 * sixteens; i++) {
        output[i] =
            mlf_add_linear_value(add->line, 16 - add->shift, add->minimum, add->maximum, first[i], second[i]);
    }
}

#endif /* MLF_MVE */

/* The output may overwrite an input. */
MLF_SHARED void mlf_add_linear_int8_mve(const struct mlf_add_linear *numbers, int32_t shift, int32_t minimum,
                                        int32_t maximum, int32_t count, const int8_t *first, const int8_t *second,
                                        int8_t *output)
{
    const struct mlf_add_linear_mve add = {*numbers, 16 - shift, minimum, maximum};
    if (count >= 16) {
        mlf_add_linear_sixteens(&add, first, second, output, count / 16);
    }
    for (int32_t i = count - count % 16; i < count; i++) {
        output[i] = mlf_add_linear_value(add.line, shift, minimum, maximum, first[i], second[i]);
    }
}

#endif /* MLF_ADD_LINEAR_MVE_H_ */
