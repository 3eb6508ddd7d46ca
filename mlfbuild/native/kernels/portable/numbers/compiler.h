/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Extensions of GNU C, each with a fallback in C99, and the types that kernels share.
 *
 * All tensors are packed, row-major and NHWC, as in TensorFlow Lite. Kernels keep no state, take scratch memory as an
 * argument and call nothing outside these headers but memcpy() and memset().
 */
#ifndef MLF_COMPILER_H_
#define MLF_COMPILER_H_

#include <math.h>
#include <stdint.h>

#if defined(__GNUC__)
/* Kernels are inlined, so that literal sizes specialise their loops. */
#define MLF_KERNEL static inline __attribute__((always_inline))
/* The section of operators and their functions that are not inlined, if the firmware runs them from RAM. */
#if defined(MLF_CODE_SECTION) && defined(__ELF__)
#define MLF_CODE section(MLF_CODE_SECTION),
#else
#define MLF_CODE
#endif
/* Operator functions are not inlined, even if they are called several times. */
#define MLF_NOINLINE __attribute__((MLF_CODE noinline))
/* A function that is neither inlined nor kept if it is not called. */
#define MLF_SHARED static __attribute__((MLF_CODE noinline, unused))
/* A function that is inlined if it is called once, and dropped if it is not called. */
#define MLF_STATIC static __attribute__((MLF_CODE unused))
/* The same as MLF_SHARED for a function whose size counts, not its speed: inferences call it seldom or never. */
#define MLF_COLD static __attribute__((noinline, unused, cold))
#define MLF_UNUSED __attribute__((unused))
/*
 * A function that consists only of assembly, so that it can use every register. It is aligned to 4, because ADR
 * addresses are relative to a multiple of 4, and linkers do not align functions by default. GCC adds canaries and calls
 * of hooks even to these functions, and both overwrite registers. Without the attribute against canaries (GCC before
 * 11), MLF_NAKED is not defined, and the same kernels in C replace the assembly.
 */
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define MLF_NO_CANARY no_stack_protector,
#endif
#endif
#if defined(MLF_NO_CANARY)
#define MLF_NAKED                                                                                                      \
    static __attribute__((MLF_CODE MLF_NO_CANARY naked, no_instrument_function, noinline, unused, aligned(4)))
#elif !defined(__SSP_ALL__)
#define MLF_NAKED static __attribute__((MLF_CODE naked, no_instrument_function, noinline, unused, aligned(4)))
#elif defined(__ARM_FEATURE_DSP) || defined(__ARM_FEATURE_MVE)
#pragma message("mlfbuild: slower kernels in C, as GCC before 11 adds -fstack-protector-all's canaries to assembly")
#endif
#define MLF_ALIGNED(bytes) __attribute__((aligned(bytes)))
#else
#define MLF_KERNEL static inline
#define MLF_NOINLINE
#define MLF_SHARED static
#define MLF_STATIC static
#define MLF_COLD static
#define MLF_UNUSED
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define MLF_ALIGNED(bytes) _Alignas(bytes)
#else
#define MLF_ALIGNED(bytes)
#endif
#endif

/*
 * What kernels rely on although C99 leaves it to the compiler: if it is false, the array has a negative size, and the
 * compilation stops. int32_t and its like have no padding and are in two's complement by the standard (7.18.1.1).
 */
typedef char mlf_right_shifts_are_arithmetic[(-1 >> 1) == -1 ? 1 : -1];
typedef char mlf_conversions_to_signed_wrap[(int32_t)UINT32_MAX == -1 && (int8_t)UINT8_MAX == -1 ? 1 : -1];
typedef char mlf_int_has_32_bits[sizeof(int) == sizeof(int32_t) ? 1 : -1];

/* Helium with integers and, optionally, floats, for compilers that accept GCC's inline assembly. */
#if defined(MLF_NAKED) && defined(__ARM_FEATURE_MVE)
#define MLF_MVE
#if (__ARM_FEATURE_MVE & 2) != 0
#define MLF_MVE_FLOAT
#endif
#endif

/* Four values of adjacent channels, kept in registers. */
struct mlf_int32x4 {
    uint32_t v0;
    uint32_t v1;
    uint32_t v2;
    uint32_t v3;
};

struct mlf_float32x4 {
    float v0;
    float v1;
    float v2;
    float v3;
};

/* The bounds of a fused activation on float32 values; -INFINITY and INFINITY without one. */
struct mlf_float_range {
    float minimum;
    float maximum;
};

/* Ranges are literals: an infinite bound costs nothing. */
MLF_KERNEL float mlf_clamp_float(float value, struct mlf_float_range range)
{
    if (range.minimum > -INFINITY && value < range.minimum) {
        return range.minimum;
    }
    return range.maximum < INFINITY && value > range.maximum ? range.maximum : value;
}

/* Store the outputs of four channels. */
MLF_KERNEL void mlf_clamp4_float(struct mlf_float32x4 sum, struct mlf_float_range range, float *output)
{
    output[0] = mlf_clamp_float(sum.v0, range);
    output[1] = mlf_clamp_float(sum.v1, range);
    output[2] = mlf_clamp_float(sum.v2, range);
    output[3] = mlf_clamp_float(sum.v3, range);
}

#endif /* MLF_COMPILER_H_ */
