/* A matrix times vectors, one scale. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_fully_connected_s8(const cmsis_nn_context *ctx, const cmsis_nn_fc_params *fc_params,
    const cmsis_nn_per_tensor_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const cmsis_nn_dims *bias_dims,
    const int32_t *bias_data, const cmsis_nn_dims *output_dims, int8_t *output_data)
{
    (void)bias_dims;
//= v7.0.0
#if defined(ARM_MATH_MVEI)
    /* What arm_vector_sum_s8 leaves there holds the bias, too. */
    (void)bias_data;
    if (ctx->buf == NULL || ctx->size < arm_fully_connected_s8_get_buffer_size_mve(filter_dims)) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    const int32_t *const start = (const int32_t *)ctx->buf;
    const int32_t input_offset = 0;
#else
    (void)ctx;
    const int32_t *const start = bias_data;
    const int32_t input_offset = fc_params->input_offset;
#endif
//= v4.1.0
    (void)ctx;
    const int32_t *const start = bias_data;
    const int32_t input_offset = fc_params->input_offset;
//= all
    for (int32_t batch = 0; batch < input_dims->n; batch++) {
        for (int32_t row = 0; row < output_dims->c; row++) {
            int32_t sum = start == NULL ? 0 : start[row];
            for (int32_t column = 0; column < filter_dims->n; column++) {
                sum += (input_data[batch * filter_dims->n + column] + input_offset) *
                       (filter_data[row * filter_dims->n + column] + fc_params->filter_offset);
            }
            const int32_t value = arm_nn_requantize(sum, quant_params->multiplier, quant_params->shift) + fc_params->output_offset;
            output_data[batch * output_dims->c + row] =
                (int8_t)CLAMP(value, fc_params->activation.max, fc_params->activation.min);
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
