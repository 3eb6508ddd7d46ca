//= v7.0.0
/* A depthwise convolution of int16 straight from its definition; filters are [row, column, output channel]. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s16(const cmsis_nn_context *ctx,
    const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int16_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const int64_t *bias_data, const cmsis_nn_dims *output_dims, int16_t *output_data)
{
    (void)bias_dims;
    const int32_t size = arm_depthwise_conv_wrapper_s16_get_buffer_size(dw_conv_params, input_dims, filter_dims, output_dims);
    if (!arm_nn_claim_scratch(ctx, size) || input_dims->c * dw_conv_params->ch_mult != output_dims->c) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t batch = 0; batch < input_dims->n; batch++) {
        const int16_t *const image = input_data + batch * input_dims->h * input_dims->w * input_dims->c;
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                for (int32_t c = 0; c < output_dims->c; c++) {
                    int64_t sum = bias_data == NULL ? 0 : bias_data[c];
                    for (int32_t i = 0; i < filter_dims->h; i++) {
                        const int32_t row = y * dw_conv_params->stride.h - dw_conv_params->padding.h + i * dw_conv_params->dilation.h;
                        for (int32_t j = 0; j < filter_dims->w && row >= 0 && row < input_dims->h; j++) {
                            const int32_t col = x * dw_conv_params->stride.w - dw_conv_params->padding.w + j * dw_conv_params->dilation.w;
                            if (col < 0 || col >= input_dims->w) {
                                continue;
                            }
                            const int16_t *const pixel = image + (row * input_dims->w + col) * input_dims->c;
                            sum += pixel[c / dw_conv_params->ch_mult] *
                                   filter_data[(i * filter_dims->w + j) * output_dims->c + c];
                        }
                    }
                    const int32_t value = arm_nn_requantize_s64(sum, quant_params->multiplier[c], quant_params->shift[c]);
                    *output_data++ = (int16_t)CLAMP(value, dw_conv_params->activation.max, dw_conv_params->activation.min);
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
