/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Shared by int8 kernels for cores with the DSP extension.
 *
 * Requantisation rounds twice, as in requantize.h, in 6 instructions from the sum to the stored byte:
 *   r = (y + (y < 0 ? -1 : 0) + 2^(e - 1)) >> e with y = SMMULR(2 * sum, multiplier), e = shift + 1, plus zero point.
 * SMMLAR adds (2 * zero point + 1) << shift in the same step, the sign is that of the sum (if y = 0 it has no effect),
 * SSAT does the last bit of the shift. The compiler proves that nothing overflows, or uses conv2d.h.
 *
 * The brief requantisation takes 3 instructions: ((256 * sum + bias) * multiplier) >> (32 + 9), saturated. The compiler
 * uses it if it has found a bias and a multiplier for each channel that give the same output for every sum, which is
 * possible if negative results saturate, as those of a ReLU do.
 */
#ifndef MLF_DSP_H_
#define MLF_DSP_H_

#include <stdint.h>

#include "compiler.h"

/* The assembly loads words from any address, which -mno-unaligned-access forbids. */
#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_UNALIGNED) && defined(__thumb2__) && defined(MLF_NAKED) &&     \
    !defined(__ARM_BIG_ENDIAN)
#define MLF_DSP_ASM 1
#else
#define MLF_DSP_ASM 0
#endif

/*
 * Whether loads are written beside multiplications, for the Cortex-M7, which issues both in one cycle but LDM and LDRD
 * only alone. It is the only core of Armv7E-M that can have an FPU for doubles.
 */
#if MLF_DSP_ASM && defined(__ARM_ARCH_7EM__) && defined(__ARM_FP) && (__ARM_FP & 8) != 0
#define MLF_DUAL_ISSUE 1
#else
#define MLF_DUAL_ISSUE 0
#endif

/* Return a byte of a word, as a signed number; 0 is the lowest. */
MLF_KERNEL int32_t mlf_byte_of_dsp(int32_t word, int32_t position)
{
    return (int8_t)(uint8_t)((uint32_t)word >> (8 * position));
}

#if MLF_DSP_ASM

/* From twice a sum to the byte to store; changes `scratch`, and uses the low byte of `shift`. */
#define MLF_RESCALE_DSP(sum, multiplier, addend, scratch)                                                              \
    "add " scratch ", " addend ", " sum ", asr #31\n\t"                                                                \
    "smmlar " sum ", " sum ", " multiplier ", " scratch "\n\t"
#define MLF_SHIFT_DSP(sum, shift) "asr " sum ", " sum ", " shift "\n\t"
#define MLF_SATURATE_DSP(sum) "ssat " sum ", #8, " sum ", asr #1\n\t"
#define MLF_BYTE_DSP(sum, place) "strb " sum ", " place "\n\t"

/* The same for one, two or three sums, and stored; their steps alternate, because each waits for the one before. */
#define MLF_STORE_DSP(sum, multiplier, addend, shift, scratch, place)                                                  \
    MLF_RESCALE_DSP(sum, multiplier, addend, scratch)                                                                  \
    MLF_SHIFT_DSP(sum, shift) MLF_SATURATE_DSP(sum) MLF_BYTE_DSP(sum, place)
#define MLF_STORE2_DSP(a, b, multiplier, addend, shift, scratch, place_a, place_b)                                     \
    MLF_RESCALE_DSP(a, multiplier, addend, scratch) MLF_RESCALE_DSP(b, multiplier, addend, scratch)                    \
    MLF_SHIFT_DSP(a, shift) MLF_SHIFT_DSP(b, shift) MLF_SATURATE_DSP(a) MLF_SATURATE_DSP(b)                            \
    MLF_BYTE_DSP(a, place_a) MLF_BYTE_DSP(b, place_b)
#define MLF_STORE3_DSP(a, b, c, multiplier, addend, shift, scratch, place_a, place_b, place_c)                         \
    MLF_RESCALE_DSP(a, multiplier, addend, scratch) MLF_RESCALE_DSP(b, multiplier, addend, scratch)                    \
    MLF_RESCALE_DSP(c, multiplier, addend, scratch)                                                                    \
    MLF_SHIFT_DSP(a, shift) MLF_SHIFT_DSP(b, shift) MLF_SATURATE_DSP(a) MLF_SHIFT_DSP(c, shift) MLF_SATURATE_DSP(b)    \
    MLF_BYTE_DSP(a, place_a) MLF_SATURATE_DSP(c) MLF_BYTE_DSP(b, place_b) MLF_BYTE_DSP(c, place_c)

/* From 256 times a sum with its bias to the output: the brief requantisation. */
#define MLF_SCALE_BRIEF_DSP(sum, multiplier) "smmul " sum ", " sum ", " multiplier "\n\t"
#define MLF_SATURATE_BRIEF_DSP(sum) "ssat " sum ", #8, " sum ", asr #9\n\t"
#define MLF_BRIEF_DSP(sum, multiplier) MLF_SCALE_BRIEF_DSP(sum, multiplier) MLF_SATURATE_BRIEF_DSP(sum)

/*
 * From the number of steps to leave out of a loop that starts at label 3 and whose second step starts at label 4 to the
 * address where it is entered. A table of branches in code could not be read from memory that is only executable.
 */
#define MLF_ENTRY_DSP(steps, scratch, size)                                                                            \
    "adr.w " scratch ", 3f\n\t"                                                                                        \
    "adr.w " size ", 4f\n\t"                                                                                           \
    "subs " size ", " size ", " scratch "\n\t"                                                                         \
    "adds " scratch ", " scratch ", #1\n\t"                                                                            \
    "mla " steps ", " steps ", " size ", " scratch "\n\t"

#else /* the same in C */

/* From twice a sum to the stored byte. */
MLF_KERNEL int8_t mlf_round_dsp(uint32_t sum, int32_t multiplier, uint32_t addend, int32_t shift)
{
    const int64_t product = (int64_t)(int32_t)sum * multiplier;
    const uint32_t high = (uint32_t)(((uint64_t)product + (UINT64_C(1) << 31)) >> 32);
    const int32_t result = (int32_t)(high + addend) >> shift >> 1;
    return (int8_t)(result < INT8_MIN ? INT8_MIN : result > INT8_MAX ? INT8_MAX : result);
}

/* From 256 times a sum with its bias to the output: the brief requantisation. */
MLF_KERNEL int8_t mlf_brief_dsp(uint32_t sum, int32_t multiplier)
{
    const int32_t result = (int32_t)(((int64_t)(int32_t)sum * multiplier) >> 32) >> 9;
    return (int8_t)(result < INT8_MIN ? INT8_MIN : result > INT8_MAX ? INT8_MAX : result);
}

#endif

/* Clamp an output to a fused activation, unless the store already does. */
MLF_SHARED void mlf_clamp_dsp(int8_t *output, int32_t size, int32_t minimum, int32_t maximum)
{
    const int8_t *const end = output + size;
    for (; (minimum > INT8_MIN || maximum < INT8_MAX) && output != end; output++) {
        const int32_t value = *output < minimum ? minimum : *output;
        *output = (int8_t)(value > maximum ? maximum : value);
    }
}

#endif /* MLF_DSP_H_ */
