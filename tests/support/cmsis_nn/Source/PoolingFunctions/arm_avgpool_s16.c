//= v7.0.0
/* Means, rounded half away from zero. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_avgpool_s16(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *pool_params,
    const cmsis_nn_dims *input_dims, const int16_t *input_data, const cmsis_nn_dims *filter_dims,
    const cmsis_nn_dims *output_dims, int16_t *output_data)
{
    if (!arm_nn_claim_scratch(ctx, arm_avgpool_s16_get_buffer_size(output_dims->w, input_dims->c))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t batch = 0; batch < input_dims->n; batch++) {
        const int16_t *const image = input_data + batch * input_dims->h * input_dims->w * input_dims->c;
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                const int32_t top = y * pool_params->stride.h - pool_params->padding.h;
                const int32_t left = x * pool_params->stride.w - pool_params->padding.w;
                for (int32_t c = 0; c < input_dims->c; c++) {
                    int32_t sum = 0, count = 0;
                    for (int32_t row = MAX(top, 0); row < MIN(top + filter_dims->h, input_dims->h); row++) {
                        for (int32_t col = MAX(left, 0); col < MIN(left + filter_dims->w, input_dims->w); col++) {
                            const int32_t pixel = image[(row * input_dims->w + col) * input_dims->c + c];
                            sum += pixel;
                            count++;
                        }
                    }
                    if (count == 0) {
                        return ARM_CMSIS_NN_ARG_ERROR;
                    }
                    const int32_t value = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
                    *output_data++ = (int16_t)CLAMP(value, pool_params->activation.max, pool_params->activation.min);
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
