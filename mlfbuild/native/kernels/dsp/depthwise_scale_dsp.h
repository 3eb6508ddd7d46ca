/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D of int8 with 1x1 filters, stride 1 and one output channel per input channel, such as a quantised
 * BatchNormalization, for cores with the DSP extension: 8.5 instructions per element. Channel by channel, so that its
 * constants stay in registers; the output may overwrite the input.
 *
 * Layout of the filter, int32, for each channel: 2 * bias with the input's zero point folded in, 2 * weight, multiplier
 * and shift (see dsp.h).
 */
#ifndef MLF_DEPTHWISE_SCALE_DSP_H_
#define MLF_DEPTHWISE_SCALE_DSP_H_

#include <stdint.h>

#include "compiler.h"
#include "dsp.h"

struct mlf_scale_dsp {
    int32_t pixels;
    int32_t channels;
    int32_t rounding; /* 2 * the output's zero point + 1 */
    int32_t minimum;  /* of a fused activation; INT8_MIN and INT8_MAX without one */
    int32_t maximum;
};

/* Return the stored output of an input; `addend` is the rounding, shifted left by `shift`. */
MLF_KERNEL int8_t mlf_scaled_dsp(const int32_t *channel, uint32_t addend, int32_t input)
{
    const uint32_t sum = (uint32_t)channel[0] + (uint32_t)(channel[1] * input);
#if MLF_DSP_ASM
    uint32_t result;
    uint32_t scratch;
    __asm__("add %[scratch], %[addend], %[sum], asr #31\n\t"
            "smmlar %[result], %[sum], %[multiplier], %[scratch]\n\t"
            "asr %[result], %[result], %[shift]\n\t"
            "ssat %[result], #8, %[result], asr #1"
            : [result] "=&r"(result), [scratch] "=&r"(scratch)
            : [sum] "r"(sum), [addend] "r"(addend), [multiplier] "r"(channel[2]), [shift] "r"(channel[3])
            : "cc");
    return (int8_t)result;
#else
    return mlf_round_dsp(sum, channel[2], addend - (sum >> 31), channel[3]);
#endif
}

MLF_KERNEL void mlf_depthwise_scale_int8_dsp(const struct mlf_scale_dsp *scale, const int8_t *input,
                                             const int32_t *filter, int8_t *output)
{
    const int32_t channels = scale->channels;
    const int32_t pairs = scale->pixels / 2;
    for (int32_t c = 0; c < channels; c++, filter += 4) {
        const int32_t channel[4] = {filter[0], filter[1], filter[2], filter[3]};
        const uint32_t addend = (uint32_t)scale->rounding << channel[3];
        const int8_t *from = input + c;
        int8_t *to = output + c;
        for (int32_t i = 0; i < pairs; i++) {
            to[0] = mlf_scaled_dsp(channel, addend, from[0]);
            to[channels] = mlf_scaled_dsp(channel, addend, from[channels]);
            from += 2 * channels;
            to += 2 * channels;
        }
        if (scale->pixels % 2 != 0) {
            *to = mlf_scaled_dsp(channel, addend, *from);
        }
    }
    mlf_clamp_dsp(output, scale->pixels * channels, scale->minimum, scale->maximum);
}

#endif /* MLF_DEPTHWISE_SCALE_DSP_H_ */
