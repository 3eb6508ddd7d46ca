//= v7.0.0
/* A product of matrices of int16 by int8; no scratch memory. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_fully_connected_s16(const cmsis_nn_context *ctx, const cmsis_nn_fc_params *fc_params,
    const cmsis_nn_per_tensor_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int16_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const int64_t *bias_data, const cmsis_nn_dims *output_dims, int16_t *output_data)
{
    (void)ctx;
    (void)bias_dims;
    for (int32_t row = 0; row < input_dims->n; row++, input_data += filter_dims->n) {
        for (int32_t c = 0; c < output_dims->c; c++) {
            int64_t sum = bias_data == NULL ? 0 : bias_data[c];
            for (int32_t i = 0; i < filter_dims->n; i++) {
                sum += input_data[i] * filter_data[c * filter_dims->n + i];
            }
            const int32_t value = arm_nn_requantize_s64(sum, quant_params->multiplier, quant_params->shift);
            *output_data++ = (int16_t)CLAMP(value, fc_params->activation.max, fc_params->activation.min);
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
