/* One output channel an input channel. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_depthwise_conv_s8_opt(const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const int32_t *bias_data, const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    (void)bias_dims;
    if (dw_conv_params->ch_mult != 1) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    if (!arm_nn_claim_scratch(ctx, arm_depthwise_conv_s8_opt_get_buffer_size(input_dims, filter_dims))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return arm_nn_depthwise_direct_s8(dw_conv_params, quant_params, input_dims, input_data, filter_dims, filter_data,
        bias_data, output_dims, output_data);
}
