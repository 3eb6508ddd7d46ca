//= v7.0.0
/* Greatest values; no scratch memory. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_max_pool_s16(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *pool_params,
    const cmsis_nn_dims *input_dims, const int16_t *input_data, const cmsis_nn_dims *filter_dims,
    const cmsis_nn_dims *output_dims, int16_t *output_data)
{
    (void)ctx;
    for (int32_t batch = 0; batch < input_dims->n; batch++) {
        const int16_t *const image = input_data + batch * input_dims->h * input_dims->w * input_dims->c;
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                const int32_t top = y * pool_params->stride.h - pool_params->padding.h;
                const int32_t left = x * pool_params->stride.w - pool_params->padding.w;
                for (int32_t c = 0; c < input_dims->c; c++) {
                    int32_t value = INT16_MIN;
                    for (int32_t row = MAX(top, 0); row < MIN(top + filter_dims->h, input_dims->h); row++) {
                        for (int32_t col = MAX(left, 0); col < MIN(left + filter_dims->w, input_dims->w); col++) {
                            const int32_t pixel = image[(row * input_dims->w + col) * input_dims->c + c];
                            value = MAX(value, pixel);
                        }
                    }
                    *output_data++ = (int16_t)CLAMP(value, pool_params->activation.max, pool_params->activation.min);
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
