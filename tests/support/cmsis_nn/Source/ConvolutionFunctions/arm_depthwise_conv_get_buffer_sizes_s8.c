/* Bytes of scratch memory, as the library's kernels need them. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

__STATIC_INLINE int32_t opt_size_dsp(const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims)
{
    return 2 * input_dims->c * filter_dims->w * filter_dims->h;
}

__STATIC_INLINE int32_t opt_size_mve(const cmsis_nn_dims *filter_dims)
{
    return 4 * CH_IN_BLOCK_MVE * filter_dims->w * filter_dims->h;
}

//= v7.0.0
/* That of the convolution that one input channel becomes, and of the transposed filter. */
__STATIC_INLINE int32_t conv_size_mve(const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    const cmsis_nn_dims dims = {filter_dims->c, filter_dims->h, filter_dims->w, filter_dims->n};
    const cmsis_nn_conv_params conv_params = {dw_conv_params->input_offset, dw_conv_params->output_offset,
        dw_conv_params->stride, dw_conv_params->padding, dw_conv_params->dilation, dw_conv_params->activation};
    return arm_convolve_wrapper_s8_get_buffer_size_mve(&conv_params, input_dims, &dims, output_dims) +
           dims.n * dims.h * dims.w * dims.c;
}

//= all
__STATIC_INLINE bool is_opt(const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *output_dims)
{
    return input_dims->c == output_dims->c && input_dims->n == 1 && dw_conv_params->dilation.w == 1 &&
           dw_conv_params->dilation.h == 1;
}

__STATIC_INLINE bool is_3x3(const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *filter_dims)
{
    return filter_dims->w == 3 && filter_dims->h == 3 && dw_conv_params->padding.h <= 1 &&
           dw_conv_params->padding.w <= 1;
}

int32_t arm_depthwise_conv_s8_opt_get_buffer_size(const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims)
{
#if defined(ARM_MATH_MVEI)
    (void)input_dims;
    return opt_size_mve(filter_dims);
#elif defined(ARM_MATH_DSP)
    return opt_size_dsp(input_dims, filter_dims);
#else
    (void)input_dims;
    (void)filter_dims;
    return 0;
#endif
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
#if defined(ARM_MATH_MVEI)
//= v7.0.0
    if (input_dims->c == 1 && output_dims->c > 1) {
        return conv_size_mve(dw_conv_params, input_dims, filter_dims, output_dims);
    }
//= all
    return is_opt(dw_conv_params, input_dims, output_dims) ? opt_size_mve(filter_dims) : 0;
#else
    if (!is_opt(dw_conv_params, input_dims, output_dims) || is_3x3(dw_conv_params, filter_dims)) {
        return 0;
    }
    return arm_depthwise_conv_s8_opt_get_buffer_size(input_dims, filter_dims);
#endif
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    if (!is_opt(dw_conv_params, input_dims, output_dims) || is_3x3(dw_conv_params, filter_dims)) {
        return 0;
    }
    return opt_size_dsp(input_dims, filter_dims);
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_mve(const cmsis_nn_dw_conv_params *dw_conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    const int32_t size = is_opt(dw_conv_params, input_dims, output_dims) ? opt_size_mve(filter_dims) : 0;
//= v7.0.0
    if (input_dims->c == 1 && output_dims->c > 1) {
        return MAX(size, conv_size_mve(dw_conv_params, input_dims, filter_dims, output_dims));
    }
//= all
    return size;
}
