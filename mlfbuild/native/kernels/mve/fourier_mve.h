/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The Fourier transforms of fourier.h for int16 on Helium (MVE): four complex numbers at a time in stages of 4 and in
 * the separation of SignalRfft, for powers of 2 from 16 on. The other steps are those of fourier_dsp.h.
 *
 * VQRDMULH divides, and VQRDMLSDH and VQRDMLADHX multiply complex numbers, with the roundings of KISS FFT; after the
 * division, nothing saturates. The products of the separation can wrap around, so they are computed in 32 bits. Tensors
 * are read and written by halves of words, which may begin at any even address.
 */
#ifndef MLF_FOURIER_MVE_H_
#define MLF_FOURIER_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "fourier_dsp.h"

#if defined(MLF_MVE)

/* Divide the input in q0, and multiply it by the roots in q5. */
#define MLF_TURNED_MVE(result)                                                                                         \
    "vqrdmulh.s16 q0, q0, %[scale]\n"                                                                                  \
    "vqrdmlsdh.s16 " result ", q0, q5\n"                                                                               \
    "vqrdmladhx.s16 " result ", q0, q5\n"

/* Divide the first input in q0, and combine it with the others in q1 to q3. */
#define MLF_BUTTERFLY_MVE(one, three)                                                                                  \
    "vqrdmulh.s16 q0, q0, %[scale]\n"                                                                                  \
    "vadd.i16 q4, q0, q2\n"                                                                                            \
    "vsub.i16 q0, q0, q2\n"                                                                                            \
    "vadd.i16 q2, q1, q3\n"                                                                                            \
    "vsub.i16 q3, q1, q3\n"                                                                                            \
    "vcadd.i16 q1, q0, q3, #" one "\n"                                                                                 \
    "vcadd.i16 q3, q0, q3, #" three "\n"                                                                               \
    "vadd.i16 q0, q4, q2\n"                                                                                            \
    "vsub.i16 q2, q4, q2\n"

/* The roots of three inputs and the places of all four, and what else a stage has: GCC has few registers at -O0. */
struct mlf_stage_mve {
    const int16_t *pointers[7];
    const uint16_t *places;
    int32_t vectors;
    int32_t scale;
};

/* A block of a stage whose parts have a multiple of 4 elements, or a stage of smaller parts: see MLF_FOURS_MVE. */
#define MLF_STAGE_MVE(name, root, from, to, step, one, three)                                                          \
    MLF_SHARED void name(int32_t vectors, int32_t part, const uint16_t *places, const int16_t *roots, int16_t *data)   \
    {                                                                                                                  \
        const struct mlf_stage_mve stage = {                                                                           \
            {roots, roots + 2 * part, roots + 4 * part, data, data + 2 * part, data + 4 * part, data + 6 * part},      \
            places, vectors, INT16_MAX / 4,                                                                            \
        };                                                                                                             \
        const struct mlf_stage_mve *scale = &stage;                                                                    \
        __asm__ volatile("ldrd r0, lr, [%[scale], #28]\n"                                                              \
                         "vldrh.u16 q7, [r0]\n"                                                                        \
                         "vldrh.u16 q6, [r0, #16]\n"                                                                   \
                         "ldm %[scale], {r0-r5, r8}\n"                                                                 \
                         "ldr %[scale], [%[scale], #36]\n"                                                             \
                         "dls lr, lr\n"                                                                                \
                         "1: vldrh.u16 q5, [r0" root "\n"                                                              \
                         "vldrh.u16 q0, [r4" from "\n"                                                                 \
                         MLF_TURNED_MVE("q1")                                                                          \
                         "vldrh.u16 q5, [r1" root "\n"                                                                 \
                         "vldrh.u16 q0, [r5" from "\n"                                                                 \
                         MLF_TURNED_MVE("q2")                                                                          \
                         "vldrh.u16 q5, [r2" root "\n"                                                                 \
                         "vldrh.u16 q0, [r8" from "\n"                                                                 \
                         MLF_TURNED_MVE("q3")                                                                          \
                         "vldrh.u16 q0, [r3" from "\n"                                                                 \
                         MLF_BUTTERFLY_MVE(one, three)                                                                 \
                         "vstrh.16 q0, [r3" to "\n"                                                                    \
                         "vstrh.16 q1, [r4" to "\n"                                                                    \
                         "vstrh.16 q2, [r5" to "\n"                                                                    \
                         "vstrh.16 q3, [r8" to "\n"                                                                    \
                         step                                                                                          \
                         "le lr, 1b\n"                                                                                 \
                         : [scale] "+r"(scale)                                                                         \
                         :                                                                                             \
                         : "r0", "r1", "r2", "r3", "r4", "r5", "r8", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6",   \
                           "q7", "memory");                                                                            \
    }

/* Vectors are contiguous, or have elements at `places` of 64 bytes of the data, and at `places` + 8 of the roots. */
#define MLF_FOURS_MVE(name, one, three)                                                                                \
    MLF_STAGE_MVE(mlf_block_##name, "], #16", "]", "], #16", "", one, three)                                           \
    MLF_STAGE_MVE(mlf_blocks_##name, ", q6, uxtw #1]", ", q7, uxtw #1]", ", q7, uxtw #1]",                             \
                  "add r3, #64\nadd r4, #64\nadd r5, #64\nadd r8, #64\n", one, three)                                  \
    MLF_KERNEL void mlf_##name(int32_t size, int32_t part, const int16_t *roots, int16_t *data)                        \
    {                                                                                                                  \
        static const uint16_t places[2][16] = {                                                                        \
            {0, 1, 8, 9, 16, 17, 24, 25, 0, 1, 0, 1, 0, 1, 0, 1},                                                      \
            {0, 1, 2, 3, 16, 17, 18, 19, 0, 1, 2, 3, 0, 1, 2, 3},                                                      \
        };                                                                                                             \
        if (part <= 2) {                                                                                               \
            mlf_blocks_##name(size / 16, part, places[part - 1], roots, data);                                         \
            return;                                                                                                    \
        }                                                                                                              \
        for (int16_t *block = data; block < data + 2 * size; block += 8 * part) {                                      \
            mlf_block_##name(part / 4, part, places[0], roots, block);                                                 \
        }                                                                                                              \
    }

MLF_FOURS_MVE(stage_4_mve, "270", "90")
MLF_FOURS_MVE(inverse_stage_4_mve, "90", "270")

/* mlf_separate_dsp for multiples of 8. The predicate, which calls may change, selects imaginary parts. */
MLF_SHARED void mlf_separate_mve(int32_t size, const int16_t *roots, int16_t *data)
{
    static const uint16_t places[8] = {6, 7, 4, 5, 2, 3, 0, 1};
    int16_t *high = data + 2 * (size - 4);
    data += 2;
    __asm__ volatile("vldrh.u16 q7, [%[places]]\n"
                     "vmsr p0, %[imaginary]\n"
                     "dls lr, %[vectors]\n"
                     "1: vldrh.u16 q0, [%[low]]\n"
                     "vldrh.u16 q1, [%[high], q7, uxtw #1]\n"
                     "vpst\n"
                     "vnegt.s16 q1, q1\n"
                     "vqrdmulh.s16 q0, q0, %[scale]\n"
                     "vqrdmulh.s16 q1, q1, %[scale]\n"
                     "vadd.i16 q2, q0, q1\n"
                     "vsub.i16 q0, q0, q1\n"
                     "vldrh.u16 q1, [%[root]], #16\n"
                     "vrev32.16 q3, q1\n"
                     "vmullb.s16 q4, q0, q1\n"
                     "vmullt.s16 q5, q0, q1\n"
                     "vsub.i32 q4, q4, q5\n"
                     "vmullb.s16 q5, q0, q3\n"
                     "vmullt.s16 q6, q0, q3\n"
                     "vadd.i32 q5, q5, q6\n"
                     "vrshrnb.i32 q0, q4, #15\n"
                     "vrshrnt.i32 q0, q5, #15\n"
                     "vhadd.s16 q1, q2, q0\n"
                     "vhsub.s16 q3, q2, q0\n"
                     "vpst\n"
                     "vhsubt.s16 q3, q0, q2\n"
                     "vstrh.16 q1, [%[low]], #16\n"
                     "vstrh.16 q3, [%[high], q7, uxtw #1]\n"
                     "sub %[high], #16\n"
                     "le lr, 1b\n"
                     : [low] "+r"(data), [high] "+r"(high), [root] "+r"(roots)
                     : [vectors] "r"(size / 8), [places] "r"(places), [imaginary] "r"(0xCCCCu),
                       [scale] "r"(INT16_MAX / 2)
                     : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory", "cc");
}

#else

/* The same in C. */
MLF_KERNEL void mlf_stage_4_mve(int32_t size, int32_t part, const int16_t *roots, int16_t *data)
{
    mlf_stage_4_dsp(size, part, roots, data);
}

MLF_KERNEL void mlf_inverse_stage_4_mve(int32_t size, int32_t part, const int16_t *roots, int16_t *data)
{
    mlf_inverse_stage_4_dsp(size, part, roots, data);
}

MLF_KERNEL void mlf_separate_mve(int32_t size, const int16_t *roots, int16_t *data)
{
    mlf_separate_dsp(size, roots, data);
}

#endif

/* Run the stages of powers of 2; return the address after their roots. */
MLF_KERNEL const int16_t *mlf_stages_mve(const struct mlf_fourier *fourier, int32_t inverse, const int16_t *roots,
                                         int16_t *data)
{
    const int32_t size = fourier->size;
    int32_t part = 1;
    if (fourier->twos != 0) {
        mlf_stage_2_dsp(size, part, roots, data);
        roots += 2 * part;
        part *= 2;
    }
    for (; part < size; part *= 4) {
        if (inverse) {
            mlf_inverse_stage_4_mve(size, part, roots, data);
        } else {
            mlf_stage_4_mve(size, part, roots, data);
        }
        roots += 6 * part;
    }
    return roots;
}

/* mlf_signal_rfft_dsp for a size that is a power of 2 from 16 on. */
MLF_KERNEL void mlf_signal_rfft_mve(const struct mlf_fourier *fourier, int32_t rows, int32_t count,
                                    const int16_t *roots, const uint16_t *order, const int16_t *input, int16_t *output)
{
    const int32_t size = fourier->size;
    for (; rows > 0; rows--, input += count, output += 2 * size + 2) {
        mlf_reorder_dsp(size, count, order, input, output);
        const int16_t *others = mlf_stages_mve(fourier, 0, roots, output);
        const mlf_complex_dsp first = mlf_load_dsp(output);
        mlf_separate_mve(size, others, output);
        mlf_ends_dsp(size, first, output);
    }
}

/* mlf_signal_irfft_dsp for a size that is a power of 2 from 16 on. */
MLF_KERNEL void mlf_signal_irfft_mve(const struct mlf_fourier *fourier, int32_t rows, const int16_t *roots,
                                     const uint16_t *order, const int16_t *input, int16_t *output)
{
    const int32_t size = fourier->size;
    for (; rows > 0; rows--, input += 2 * size + 2, output += 2 * size) {
        const int16_t *others = mlf_join_dsp(size, roots, order, input, output);
        mlf_stages_mve(fourier, 1, others, output);
    }
}

#endif /* MLF_FOURIER_MVE_H_ */
