//= v7.0.0
/* Dimensions in another order, up to four. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_transpose_s8(const int8_t *input_data, int8_t *const output_data,
    const cmsis_nn_dims *const input_dims, const cmsis_nn_dims *const output_dims,
    const cmsis_nn_transpose_params *const transpose_params)
{
    const int32_t from[4] = {input_dims->n, input_dims->h, input_dims->w, input_dims->c};
    const int32_t to[4] = {output_dims->n, output_dims->h, output_dims->w, output_dims->c};
    if (transpose_params->num_dims != 4) {
        return ARM_CMSIS_NN_NO_IMPL_ERROR;
    }
    int32_t stride[4] = {from[1] * from[2] * from[3], from[2] * from[3], from[3], 1};
    const uint32_t *const order = transpose_params->permutations;
    for (int32_t dimension = 0; dimension < 4; dimension++) {
        if (order[dimension] > 3 || to[dimension] != from[order[dimension]]) {
            return ARM_CMSIS_NN_ARG_ERROR;
        }
    }
    int8_t *target = output_data;
    for (int32_t n = 0; n < to[0]; n++) {
        for (int32_t h = 0; h < to[1]; h++) {
            for (int32_t w = 0; w < to[2]; w++) {
                for (int32_t c = 0; c < to[3]; c++) {
                    *target++ = input_data[n * stride[order[0]] + h * stride[order[1]] + w * stride[order[2]] +
                                           c * stride[order[3]]];
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
