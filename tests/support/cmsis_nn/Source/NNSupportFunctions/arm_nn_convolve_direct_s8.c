/* A convolution straight from its definition; filters are [output channel, row, column, channel]. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_nn_convolve_direct_s8(const cmsis_nn_conv_params *conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const int32_t *bias_data,
    const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    const int32_t depth = filter_dims->c;
    if (depth < 1 || input_dims->c % depth != 0 || output_dims->c % (input_dims->c / depth) != 0) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    const int32_t group_size = output_dims->c / (input_dims->c / depth);
    for (int32_t batch = 0; batch < input_dims->n; batch++) {
        const int8_t *const image = input_data + batch * input_dims->h * input_dims->w * input_dims->c;
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                for (int32_t c = 0; c < output_dims->c; c++) {
                    const int32_t first = c / group_size * depth;
                    int32_t sum = bias_data == NULL ? 0 : bias_data[c];
                    for (int32_t i = 0; i < filter_dims->h; i++) {
                        const int32_t row = y * conv_params->stride.h - conv_params->padding.h + i * conv_params->dilation.h;
                        for (int32_t j = 0; j < filter_dims->w && row >= 0 && row < input_dims->h; j++) {
                            const int32_t col = x * conv_params->stride.w - conv_params->padding.w + j * conv_params->dilation.w;
                            if (col < 0 || col >= input_dims->w) {
                                continue;
                            }
                            const int8_t *const pixel = image + (row * input_dims->w + col) * input_dims->c;
                            const int8_t *const weights =
                                filter_data + ((c * filter_dims->h + i) * filter_dims->w + j) * depth;
                            for (int32_t k = 0; k < depth; k++) {
                                sum += (pixel[first + k] + conv_params->input_offset) * weights[k];
                            }
                        }
                    }
                    const int32_t value = arm_nn_requantize(sum, quant_params->multiplier[c], quant_params->shift[c]) +
                                          conv_params->output_offset;
                    *output_data++ = (int8_t)CLAMP(value, conv_params->activation.max, conv_params->activation.min);
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
