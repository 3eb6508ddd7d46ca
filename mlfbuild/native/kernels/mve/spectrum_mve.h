/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Windows, scaling and energies of spectrum.h, eight int16 numbers at a time, on Helium (MVE). */
#ifndef MLF_SPECTRUM_MVE_H_
#define MLF_SPECTRUM_MVE_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "spectrum.h"

#if defined(MLF_MVE)

/* Input and output [count, size], weights [size]. Predicates of the loop are only whole for pairs of products. */
MLF_KERNEL void mlf_signal_window_mve(int32_t count, int32_t size, int32_t shift, const int16_t *input,
                                      const int16_t *weights, int16_t *output)
{
    for (; count > 0; count--, input += size, output += size) {
        const int16_t *from = input;
        const int16_t *weight = weights;
        int16_t *to = output;
        __asm__ volatile("vdup.32 q3, %[right]\n"
                         "wlstp.16 lr, %[size], 2f\n"
                         "1: vldrh.u16 q0, [%[from]], #16\n"
                         "vldrh.u16 q1, [%[weight]], #16\n"
                         "vmullb.s16 q2, q0, q1\n"
                         "vmullt.s16 q1, q0, q1\n"
                         "vshl.s32 q2, q2, q3\n"
                         "vshl.s32 q1, q1, q3\n"
                         "vqmovnb.s32 q0, q2\n"
                         "vqmovnt.s32 q0, q1\n"
                         "vstrh.16 q0, [%[to]], #16\n"
                         "letp lr, 1b\n"
                         "2:\n"
                         : [from] "+r"(from), [weight] "+r"(weight), [to] "+r"(to)
                         : [size] "r"(size & ~1), [right] "r"(-shift)
                         : "lr", "q0", "q1", "q2", "q3", "memory", "cc");
        if (size % 2 != 0) {
            output[size - 1] = (int16_t)mlf_saturated_int16(input[size - 1] * weights[size - 1] >> shift);
        }
    }
}

MLF_KERNEL void mlf_signal_fft_auto_scale_mve(int32_t count, const int16_t *input, int16_t *output, int32_t *exponent)
{
    const int16_t *from = input;
    int32_t greatest = 0;
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n"
                     "1: vldrh.u16 q0, [%[from]], #16\n"
                     "vmaxav.s16 %[greatest], q0\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : [from] "+r"(from), [greatest] "+r"(greatest)
                     : [count] "r"(count)
                     : "lr", "q0", "memory", "cc");
    const int32_t bits = mlf_spare_bits(greatest > INT16_MAX ? mlf_greatest_magnitude(count, input) : greatest);
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n"
                     "1: vldrh.u16 q0, [%[input]], #16\n"
                     "vshl.s16 q0, %[bits]\n"
                     "vstrh.16 q0, [%[output]], #16\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : [input] "+r"(input), [output] "+r"(output)
                     : [count] "r"(count), [bits] "r"(bits)
                     : "lr", "q0", "memory", "cc");
    *exponent = bits;
}

/* Input [.., 2], the real and the imaginary part; output [count], 0 outside start to end. */
MLF_KERNEL void mlf_signal_energy_mve(int32_t start, int32_t end, int32_t count, const int16_t *input, uint32_t *output)
{
    memset(output, 0, (size_t)start * sizeof *output);
    memset(output + end, 0, (size_t)(count - end) * sizeof *output);
    input += 2 * start;
    output += start;
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1: vldrh.u16 q0, [%[input]], #16\n"
                     "vmullb.s16 q1, q0, q0\n"
                     "vmullt.s16 q2, q0, q0\n"
                     "vadd.i32 q1, q1, q2\n"
                     "vstrw.32 q1, [%[output]], #16\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : [input] "+r"(input), [output] "+r"(output)
                     : [count] "r"(end - start)
                     : "lr", "q0", "q1", "q2", "memory", "cc");
}

#else /* the same in C */

MLF_KERNEL void mlf_signal_window_mve(int32_t count, int32_t size, int32_t shift, const int16_t *input,
                                      const int16_t *weights, int16_t *output)
{
    mlf_signal_window(count, size, shift, input, weights, output);
}

MLF_KERNEL void mlf_signal_fft_auto_scale_mve(int32_t count, const int16_t *input, int16_t *output, int32_t *exponent)
{
    mlf_signal_fft_auto_scale(count, input, output, exponent);
}

MLF_KERNEL void mlf_signal_energy_mve(int32_t start, int32_t end, int32_t count, const int16_t *input, uint32_t *output)
{
    mlf_signal_energy(start, end, count, input, output);
}

#endif

#endif /* MLF_SPECTRUM_MVE_H_ */
