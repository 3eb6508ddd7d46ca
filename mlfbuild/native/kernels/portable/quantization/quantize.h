/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * QUANTIZE (float32 to integers, or integers to another scale or type) and DEQUANTIZE (integers to float32).
 *
 * Elements are processed in order, so that an output whose elements are not larger may overwrite the input. Cores with
 * an FPU and the DSP extension convert four at a time, with 7.3 instructions for each to integers and 4.5 to float32;
 * Helium takes 2.8 and 1.5.
 */
#ifndef MLF_QUANTIZE_H_
#define MLF_QUANTIZE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"

/* The FPU of Cortex-M, beside integers that saturate. */
#if defined(MLF_NAKED) && defined(__thumb2__) && defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_UNALIGNED) &&     \
    (__ARM_FP & 4) != 0 && !defined(__SOFTFP__) && !defined(__ARM_BIG_ENDIAN)
#define MLF_QUANTIZE_VFP 1
#else
#define MLF_QUANTIZE_VFP 0
#endif

/*
 * Return real / scale + zero_point rounded to nearest, ties away from zero, clamped to minimum and maximum, which are
 * within 16 bits; NaN counts as 0.0.
 */
MLF_KERNEL int32_t mlf_quantize_value(float real, float scale, int32_t zero_point, int32_t minimum, int32_t maximum)
{
    const float value = real / scale;
    if (!(value > -131072.0f)) {
        return value <= -131072.0f ? minimum : zero_point;
    }
    if (value > 131072.0f) {
        return maximum;
    }
    int32_t whole = (int32_t)value;
    const float rest = value - (float)whole;
    whole += rest >= 0.5f ? 1 : 0;
    whole -= rest <= -0.5f ? 1 : 0;
    return mlf_clamp(whole + zero_point, minimum, maximum);
}

/*
 * Define mlf_quantize_rounds_<type>, which converts `count` elements, or as many as are whole rounds, and returns how
 * many they were. VDIV, as rounding is part of the result: the product with a reciprocal differs.
 */
#if defined(MLF_MVE_FLOAT)

/* VCVTA rounds ties away from zero, saturates, and makes NaN 0. `narrow` saturates int16 further. */
#define MLF_QUANTIZE_ROUNDS(suffix, type, narrow, store)                                                               \
    MLF_KERNEL int32_t mlf_quantize_rounds_##suffix(int32_t count, float scale, int32_t zero_point,                    \
                                                    const float *input, type *output)                                  \
    {                                                                                                                  \
        if (count > 0) {                                                                                               \
            __asm__ volatile("dlstp.32 lr, %[count]\n"                                                                 \
                             "1:\n\t"                                                                                  \
                             "vldrw.u32 q0, [%[input]], #16\n\t"                                                       \
                             "vdiv.f32 s0, s0, %[scale]\n\t"                                                           \
                             "vdiv.f32 s1, s1, %[scale]\n\t"                                                           \
                             "vdiv.f32 s2, s2, %[scale]\n\t"                                                           \
                             "vdiv.f32 s3, s3, %[scale]\n\t"                                                           \
                             "vcvta.s32.f32 q0, q0\n\t"                                                                \
                             "vqadd.s32 q0, q0, %[zero_point]\n\t"                                                     \
                             "vqmovnb.s32 q0, q0\n\t" narrow store " q0, [%[output]], #%c[bytes]\n\t"                  \
                             "letp lr, 1b\n"                                                                           \
                             : [input] "+r"(input), [output] "+l"(output)                                              \
                             : [count] "r"(count), [scale] "t"(scale), [zero_point] "r"(zero_point),                   \
                               [bytes] "i"(4 * sizeof(type))                                                           \
                             : "lr", "q0", "memory");                                                                  \
        }                                                                                                              \
        return count;                                                                                                  \
    }

MLF_QUANTIZE_ROUNDS(int8, int8_t, "vqmovnb.s16 q0, q0\n\t", "vstrb.32")
MLF_QUANTIZE_ROUNDS(int16, int16_t, "", "vstrh.32")

#elif MLF_QUANTIZE_VFP

/* From twice a quotient, cut off, to the stored value: half of it plus `rounding`, which is 2 * zero point + 1. */
#define MLF_QUANTIZE_VFP_VALUE(bits, store, bytes, value)                                                              \
    "add %[sum], %[rounding], %[" value "], asr #31\n\t"                                                               \
    "qadd %[" value "], %[" value "], %[sum]\n\t"                                                                      \
    "ssat %[" value "], #" bits ", %[" value "], asr #1\n\t" store " %[" value "], [%[output]], #" bytes "\n\t"

/* VCVT with a fraction bit saturates, cuts off, and makes NaN 0. */
#define MLF_QUANTIZE_ROUNDS(suffix, type, bits, store, bytes)                                                          \
    MLF_KERNEL int32_t mlf_quantize_rounds_##suffix(int32_t count, float scale, int32_t zero_point,                    \
                                                    const float *input, type *output)                                  \
    {                                                                                                                  \
        int32_t rounds = count / 4;                                                                                    \
        if (rounds > 0) {                                                                                              \
            int32_t sum;                                                                                               \
            int32_t a;                                                                                                 \
            int32_t b;                                                                                                 \
            __asm__ volatile("1:\n\t"                                                                                  \
                             "vldmia %[input]!, {s0-s3}\n\t"                                                           \
                             "vdiv.f32 s0, s0, %[scale]\n\t"                                                           \
                             "vdiv.f32 s1, s1, %[scale]\n\t"                                                           \
                             "vdiv.f32 s2, s2, %[scale]\n\t"                                                           \
                             "vdiv.f32 s3, s3, %[scale]\n\t"                                                           \
                             "vcvt.s32.f32 s0, s0, #1\n\t"                                                             \
                             "vcvt.s32.f32 s1, s1, #1\n\t"                                                             \
                             "vcvt.s32.f32 s2, s2, #1\n\t"                                                             \
                             "vcvt.s32.f32 s3, s3, #1\n\t"                                                             \
                             "vmov %[a], %[b], s0, s1\n\t"                                                             \
                             MLF_QUANTIZE_VFP_VALUE(bits, store, bytes, "a")                                           \
                             MLF_QUANTIZE_VFP_VALUE(bits, store, bytes, "b")                                           \
                             "vmov %[a], %[b], s2, s3\n\t"                                                             \
                             MLF_QUANTIZE_VFP_VALUE(bits, store, bytes, "a")                                           \
                             MLF_QUANTIZE_VFP_VALUE(bits, store, bytes, "b")                                           \
                             "subs %[rounds], #1\n\t"                                                                  \
                             "bne 1b"                                                                                  \
                             : [input] "+r"(input), [output] "+r"(output), [rounds] "+r"(rounds), [sum] "=&r"(sum),    \
                               [a] "=&r"(a), [b] "=&r"(b)                                                              \
                             : [scale] "t"(scale), [rounding] "r"(2 * zero_point + 1)                                  \
                             : "s0", "s1", "s2", "s3", "cc", "memory");                                                \
        }                                                                                                              \
        return count & ~3;                                                                                             \
    }

MLF_QUANTIZE_ROUNDS(int8, int8_t, "8", "strb", "1")
MLF_QUANTIZE_ROUNDS(int16, int16_t, "16", "strh", "2")

#else

/* All elements are converted one by one. */
#define MLF_NO_ROUNDS(name, from, to)                                                                                  \
    MLF_KERNEL int32_t name(int32_t count, float scale, int32_t zero_point, const from *input, to *output)             \
    {                                                                                                                  \
        (void)count;                                                                                                   \
        (void)scale;                                                                                                   \
        (void)zero_point;                                                                                              \
        (void)input;                                                                                                   \
        (void)output;                                                                                                  \
        return 0;                                                                                                      \
    }

MLF_NO_ROUNDS(mlf_quantize_rounds_int8, float, int8_t)
MLF_NO_ROUNDS(mlf_quantize_rounds_int16, float, int16_t)

#endif

#define MLF_QUANTIZE(suffix, type, minimum, maximum)                                                                   \
    MLF_KERNEL void mlf_quantize_float_##suffix(int32_t count, float scale, int32_t zero_point, const float *input,    \
                                                type *output)                                                          \
    {                                                                                                                  \
        for (int32_t i = mlf_quantize_rounds_##suffix(count, scale, zero_point, input, output); i < count; i++) {      \
            output[i] = (type)mlf_quantize_value(input[i], scale, zero_point, minimum, maximum);                       \
        }                                                                                                              \
    }

MLF_QUANTIZE(int8, int8_t, INT8_MIN, INT8_MAX)
MLF_QUANTIZE(int16, int16_t, INT16_MIN, INT16_MAX)

#define MLF_REQUANTIZE(from_suffix, from, to_suffix, to, minimum, maximum)                                             \
    MLF_KERNEL void mlf_quantize_##from_suffix##_##to_suffix(int32_t count, const struct mlf_rescaling *rescaling,     \
                                                             const from *input, to *output)                            \
    {                                                                                                                  \
        const struct mlf_rescaling fixed = *rescaling; /* in registers, whatever is stored */                          \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            const int32_t value = input[i] - fixed.input_zero_point;                                                   \
            output[i] = (to)mlf_clamp(mlf_rescaled(value, &fixed), minimum, maximum);                                  \
        }                                                                                                              \
    }

MLF_REQUANTIZE(int8, int8_t, int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REQUANTIZE(int8, int8_t, uint8, uint8_t, 0, UINT8_MAX)
MLF_REQUANTIZE(int8, int8_t, int16, int16_t, INT16_MIN, INT16_MAX)
MLF_REQUANTIZE(int8, int8_t, int32, int32_t, INT32_MIN, INT32_MAX)
MLF_REQUANTIZE(uint8, uint8_t, int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REQUANTIZE(int16, int16_t, int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REQUANTIZE(int16, int16_t, int16, int16_t, INT16_MIN, INT16_MAX)
MLF_REQUANTIZE(int16, int16_t, int32, int32_t, INT32_MIN, INT32_MAX)

/* Define mlf_dequantize_rounds_<type>, as mlf_quantize_rounds_<type>. */
#if defined(MLF_MVE_FLOAT)

#define MLF_DEQUANTIZE_ROUNDS(suffix, type, load)                                                                      \
    MLF_KERNEL int32_t mlf_dequantize_rounds_##suffix(int32_t count, float scale, int32_t zero_point,                  \
                                                      const type *input, float *output)                                \
    {                                                                                                                  \
        if (count > 0) {                                                                                               \
            __asm__ volatile("dlstp.32 lr, %[count]\n"                                                                 \
                             "1:\n\t" load " q0, [%[input]], #%c[bytes]\n\t"                                           \
                             "vsub.i32 q0, q0, %[zero_point]\n\t"                                                      \
                             "vcvt.f32.s32 q0, q0\n\t"                                                                 \
                             "vmul.f32 q0, q0, %[scale]\n\t"                                                           \
                             "vstrw.32 q0, [%[output]], #16\n\t"                                                       \
                             "letp lr, 1b\n"                                                                           \
                             : [input] "+l"(input), [output] "+r"(output)                                              \
                             : [count] "r"(count), [scale] "r"(scale), [zero_point] "r"(zero_point),                   \
                               [bytes] "i"(4 * sizeof(type))                                                           \
                             : "lr", "q0", "memory");                                                                  \
        }                                                                                                              \
        return count;                                                                                                  \
    }

MLF_DEQUANTIZE_ROUNDS(int8, int8_t, "vldrb.s32")
MLF_DEQUANTIZE_ROUNDS(uint8, uint8_t, "vldrb.u32")
MLF_DEQUANTIZE_ROUNDS(int16, int16_t, "vldrh.s32")

#elif MLF_QUANTIZE_VFP

/* The even elements of four in `a`, the odd ones in `b`, minus zero points: 16 bits each, which VCVT expands. */
#define MLF_DEQUANTIZE_VFP_BYTES(extend)                                                                               \
    "ldr %[b], [%[input]], #4\n\t" extend " %[a], %[less], %[b]\n\t" extend " %[b], %[less], %[b], ror #8\n\t"
#define MLF_DEQUANTIZE_VFP_HALVES                                                                                      \
    "ldr %[c], [%[input]], #4\n\t"                                                                                     \
    "ldr %[d], [%[input]], #4\n\t"                                                                                     \
    "pkhbt %[a], %[c], %[d], lsl #16\n\t"                                                                              \
    "pkhtb %[b], %[d], %[c], asr #16\n\t"

#define MLF_DEQUANTIZE_ROUNDS(suffix, type, has_rounds, load)                                                          \
    MLF_KERNEL int32_t mlf_dequantize_rounds_##suffix(int32_t count, float scale, int32_t zero_point,                  \
                                                      const type *input, float *output)                                \
    {                                                                                                                  \
        int32_t rounds = count / 4;                                                                                    \
        if (!(has_rounds) || rounds <= 0) {                                                                            \
            return 0;                                                                                                  \
        }                                                                                                              \
        int32_t a;                                                                                                     \
        int32_t b;                                                                                                     \
        int32_t c;                                                                                                     \
        int32_t d;                                                                                                     \
        __asm__ volatile("1:\n\t" load "asr %[c], %[a], #16\n\t"                                                       \
                         "asr %[d], %[b], #16\n\t"                                                                     \
                         "vmov s0, s1, %[a], %[b]\n\t"                                                                 \
                         "vmov s2, s3, %[c], %[d]\n\t"                                                                 \
                         "vcvt.f32.s16 s0, s0, #0\n\t"                                                                 \
                         "vcvt.f32.s16 s1, s1, #0\n\t"                                                                 \
                         "vcvt.f32.s16 s2, s2, #0\n\t"                                                                 \
                         "vcvt.f32.s16 s3, s3, #0\n\t"                                                                 \
                         "vmul.f32 s0, s0, %[scale]\n\t"                                                               \
                         "vmul.f32 s1, s1, %[scale]\n\t"                                                               \
                         "vmul.f32 s2, s2, %[scale]\n\t"                                                               \
                         "vmul.f32 s3, s3, %[scale]\n\t"                                                               \
                         "vstmia %[output]!, {s0-s3}\n\t"                                                              \
                         "subs %[rounds], #1\n\t"                                                                      \
                         "bne 1b"                                                                                      \
                         : [input] "+r"(input), [output] "+r"(output), [rounds] "+r"(rounds), [a] "=&r"(a),            \
                           [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)                                                    \
                         : [scale] "t"(scale), [less] "r"((uint32_t)-zero_point * UINT32_C(0x10000) +                  \
                                                          ((uint32_t)-zero_point & UINT32_C(0xffff)))                  \
                         : "s0", "s1", "s2", "s3", "cc", "memory");                                                    \
        return count & ~3;                                                                                             \
    }

MLF_DEQUANTIZE_ROUNDS(int8, int8_t, 1, MLF_DEQUANTIZE_VFP_BYTES("sxtab16"))
MLF_DEQUANTIZE_ROUNDS(uint8, uint8_t, 1, MLF_DEQUANTIZE_VFP_BYTES("uxtab16"))
MLF_DEQUANTIZE_ROUNDS(int16, int16_t, zero_point == 0, MLF_DEQUANTIZE_VFP_HALVES)

#else

MLF_NO_ROUNDS(mlf_dequantize_rounds_int8, int8_t, float)
MLF_NO_ROUNDS(mlf_dequantize_rounds_uint8, uint8_t, float)
MLF_NO_ROUNDS(mlf_dequantize_rounds_int16, int16_t, float)

#endif

#define MLF_DEQUANTIZE(suffix, type)                                                                                   \
    MLF_KERNEL void mlf_dequantize_##suffix(int32_t count, float scale, int32_t zero_point, const type *input,         \
                                            float *output)                                                             \
    {                                                                                                                  \
        for (int32_t i = mlf_dequantize_rounds_##suffix(count, scale, zero_point, input, output); i < count; i++) {    \
            output[i] = (float)(input[i] - zero_point) * scale;                                                        \
        }                                                                                                              \
    }

MLF_DEQUANTIZE(int8, int8_t)
MLF_DEQUANTIZE(uint8, uint8_t)
MLF_DEQUANTIZE(int16, int16_t)

#endif /* MLF_QUANTIZE_H_ */
