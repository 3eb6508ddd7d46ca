//= v7.0.0
/* A convolution of int16 straight from its definition; filters are [output channel, row, column, channel]. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_convolve_wrapper_s16(const cmsis_nn_context *ctx,
    const cmsis_nn_conv_params *conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int16_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const cmsis_nn_bias_data *bias_data, const cmsis_nn_dims *output_dims, int16_t *output_data)
{
    (void)bias_dims;
    const int32_t size = arm_convolve_wrapper_s16_get_buffer_size(conv_params, input_dims, filter_dims, output_dims);
    if (!arm_nn_claim_scratch(ctx, size) || filter_dims->c != input_dims->c) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    const int32_t depth = filter_dims->c;
    for (int32_t batch = 0; batch < input_dims->n; batch++) {
        const int16_t *const image = input_data + batch * input_dims->h * input_dims->w * input_dims->c;
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                for (int32_t c = 0; c < output_dims->c; c++) {
                    int64_t sum = 0;
                    for (int32_t i = 0; i < filter_dims->h; i++) {
                        const int32_t row = y * conv_params->stride.h - conv_params->padding.h + i * conv_params->dilation.h;
                        for (int32_t j = 0; j < filter_dims->w && row >= 0 && row < input_dims->h; j++) {
                            const int32_t col = x * conv_params->stride.w - conv_params->padding.w + j * conv_params->dilation.w;
                            if (col < 0 || col >= input_dims->w) {
                                continue;
                            }
                            const int16_t *const pixel = image + (row * input_dims->w + col) * input_dims->c;
                            const int8_t *const weights =
                                filter_data + ((c * filter_dims->h + i) * filter_dims->w + j) * depth;
                            for (int32_t k = 0; k < depth; k++) {
                                sum += pixel[k] * weights[k];
                            }
                        }
                    }
                    int32_t value;
                    if (bias_data->is_int32_bias) {
                        sum += bias_data->data == NULL ? 0 : ((const int32_t *)bias_data->data)[c];
                        value = arm_nn_requantize((int32_t)sum, quant_params->multiplier[c], quant_params->shift[c]);
                    } else {
                        sum += bias_data->data == NULL ? 0 : ((const int64_t *)bias_data->data)[c];
                        value = arm_nn_requantize_s64(sum, quant_params->multiplier[c], quant_params->shift[c]);
                    }
                    *output_data++ = (int16_t)CLAMP(value, conv_params->activation.max, conv_params->activation.min);
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
