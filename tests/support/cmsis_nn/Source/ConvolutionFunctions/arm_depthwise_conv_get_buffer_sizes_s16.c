//= v7.0.0
/* Bytes of scratch memory: gathered windows. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

__STATIC_INLINE bool is_fast(const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *filter_dims)
{
    const bool undilated = dw_conv_params->dilation.w == 1 && dw_conv_params->dilation.h == 1;
    return dw_conv_params->ch_mult == 1 && undilated && filter_dims->w * filter_dims->h < 512;
}

int32_t arm_depthwise_conv_wrapper_s16_get_buffer_size(const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
#if defined(ARM_MATH_MVEI)
    return arm_depthwise_conv_wrapper_s16_get_buffer_size_mve(dw_conv_params, input_dims, filter_dims, output_dims);
#elif defined(ARM_MATH_DSP)
    (void)output_dims;
    return is_fast(dw_conv_params, filter_dims) ? 2 * input_dims->c * filter_dims->w * filter_dims->h : 0;
#else
    (void)dw_conv_params, (void)input_dims, (void)filter_dims, (void)output_dims;
    return 0;
#endif
}

int32_t arm_depthwise_conv_wrapper_s16_get_buffer_size_mve(const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    (void)output_dims;
    return is_fast(dw_conv_params, filter_dims) ? 8 * input_dims->c * filter_dims->w * filter_dims->h + 8 : 0;
}
