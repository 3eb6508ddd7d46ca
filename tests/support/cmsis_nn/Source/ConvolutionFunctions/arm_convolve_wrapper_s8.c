/* Chooses the convolution for the shape. */
#include "arm_nnfunctions.h"

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_conv_params *conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const int32_t *bias_data, const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    const bool undilated = conv_params->dilation.w == 1 && conv_params->dilation.h == 1;
    const bool unpadded = conv_params->padding.w == 0 && conv_params->padding.h == 0;
    const bool grouped = filter_dims->c != input_dims->c;
    if (unpadded && undilated && filter_dims->w == 1 && filter_dims->h == 1 && !grouped) {
        if (conv_params->stride.w == 1 && conv_params->stride.h == 1) {
            return arm_convolve_1x1_s8_fast(ctx, conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, output_dims, output_data);
        }
        return arm_convolve_1x1_s8(ctx, conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, output_dims, output_data);
    }
    if (input_dims->h == 1 && conv_params->dilation.w == 1 && filter_dims->h == 1 &&
        conv_params->stride.w * input_dims->c % 4 == 0 && !grouped) {
        return arm_convolve_1_x_n_s8(ctx, conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, output_dims, output_data);
    }
//= v4.1.0
    return arm_convolve_s8(ctx, conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, output_dims, output_data);
//= v7.0.0
    return arm_convolve_s8(ctx, conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, NULL, output_dims, output_data);
//= all
}
