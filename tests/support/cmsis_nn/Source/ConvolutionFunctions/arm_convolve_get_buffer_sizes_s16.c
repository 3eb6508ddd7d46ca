//= v7.0.0
/* Bytes of scratch memory: gathered windows. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

int32_t arm_convolve_wrapper_s16_get_buffer_size(const cmsis_nn_conv_params *conv_params,
    const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
#if defined(ARM_MATH_MVEI)
    return arm_convolve_wrapper_s16_get_buffer_size_mve(conv_params, input_dims, filter_dims, output_dims);
#else
    (void)conv_params;
    (void)output_dims;
    return 4 * input_dims->c * filter_dims->w * filter_dims->h;
#endif
}

int32_t arm_convolve_wrapper_s16_get_buffer_size_mve(const cmsis_nn_conv_params *conv_params,
    const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    (void)conv_params;
    (void)output_dims;
    return 64 * ((input_dims->c * filter_dims->w * filter_dims->h + 7) / 8);
}
