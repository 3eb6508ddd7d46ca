//= v7.0.0
/* Bytes of scratch memory: sums of channels. */
#include "arm_nnfunctions.h"

int32_t arm_avgpool_s16_get_buffer_size(const int output_x, const int ch_src)
{
#if defined(ARM_MATH_DSP) && !defined(ARM_MATH_MVEI)
    return arm_avgpool_s16_get_buffer_size_dsp(output_x, ch_src);
#else
    return arm_avgpool_s16_get_buffer_size_mve(output_x, ch_src);
#endif
}

int32_t arm_avgpool_s16_get_buffer_size_dsp(const int output_x, const int ch_src)
{
    (void)output_x;
    return ch_src * (int32_t)sizeof(int32_t);
}

int32_t arm_avgpool_s16_get_buffer_size_mve(const int output_x, const int ch_src)
{
    (void)output_x;
    (void)ch_src;
    return 0;
}
