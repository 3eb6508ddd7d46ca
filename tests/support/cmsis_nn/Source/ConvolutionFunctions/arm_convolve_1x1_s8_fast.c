/* One pixel, no strides. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_convolve_1x1_s8_fast(const cmsis_nn_context *ctx, const cmsis_nn_conv_params *conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const int32_t *bias_data, const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    (void)bias_dims;
    if (!arm_nn_claim_scratch(ctx, arm_convolve_1x1_s8_fast_get_buffer_size(input_dims))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return arm_nn_convolve_direct_s8(conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_data,
        output_dims, output_data);
}
