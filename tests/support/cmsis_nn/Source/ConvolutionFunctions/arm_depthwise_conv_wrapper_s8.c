/* Chooses the depthwise convolution for the shape. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

//= v7.0.0
#if defined(ARM_MATH_MVEI)
/* One input channel: a convolution, whose filter is transposed behind that one's scratch memory. */
static arm_cmsis_nn_status arm_depthwise_conv_to_conv_s8(const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const int32_t *bias_data, const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    const cmsis_nn_conv_params conv_params = {dw_conv_params->input_offset, dw_conv_params->output_offset,
        dw_conv_params->stride, dw_conv_params->padding, dw_conv_params->dilation, dw_conv_params->activation};
    const cmsis_nn_dims dims = {filter_dims->c, filter_dims->h, filter_dims->w, filter_dims->n};
    const uint32_t order[4] = {3, 1, 2, 0};
    const cmsis_nn_transpose_params transpose_params = {4, order};
    const int32_t size = arm_convolve_wrapper_s8_get_buffer_size(&conv_params, input_dims, &dims, output_dims);
    if (!arm_nn_claim_scratch(ctx, size + dims.n * dims.h * dims.w * dims.c)) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    int8_t *const transposed = (int8_t *)ctx->buf + size;
    const arm_cmsis_nn_status status =
        arm_transpose_s8(filter_data, transposed, filter_dims, &dims, &transpose_params);
    if (status != ARM_CMSIS_NN_SUCCESS) {
        return status;
    }
    return arm_convolve_wrapper_s8(ctx, &conv_params, quant_params, input_dims, input_data, &dims, transposed,
        bias_dims, bias_data, output_dims, output_data);
}
#endif

//= all
arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const int32_t *bias_data, const cmsis_nn_dims *output_dims, int8_t *output_data)
{
//= v7.0.0
#if defined(ARM_MATH_MVEI)
    if (input_dims->c == 1 && output_dims->c > 1) {
        return arm_depthwise_conv_to_conv_s8(ctx, dw_conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, output_dims, output_data);
    }
#endif
//= all
    if (dw_conv_params->ch_mult != 1 || input_dims->n != 1 || dw_conv_params->dilation.w != 1 ||
        dw_conv_params->dilation.h != 1) {
        return arm_depthwise_conv_s8(ctx, dw_conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, output_dims, output_data);
    }
#if !defined(ARM_MATH_MVEI)
    if (filter_dims->w == 3 && filter_dims->h == 3 && dw_conv_params->padding.h <= 1 &&
        dw_conv_params->padding.w <= 1) {
        return arm_depthwise_conv_3x3_s8(ctx, dw_conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, output_dims, output_data);
    }
#endif
    return arm_depthwise_conv_s8_opt(ctx, dw_conv_params, quant_params, input_dims, input_data, filter_dims, filter_data, bias_dims,
        bias_data, output_dims, output_data);
}
