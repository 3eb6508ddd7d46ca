//= v7.0.0
/* A sum of two scales. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

arm_cmsis_nn_status arm_elementwise_add_s16(const int16_t *input_1_vect, const int16_t *input_2_vect,
    const int32_t input_1_offset, const int32_t input_1_mult, const int32_t input_1_shift,
    const int32_t input_2_offset, const int32_t input_2_mult, const int32_t input_2_shift, const int32_t left_shift,
    int16_t *output, const int32_t out_offset, const int32_t out_mult, const int32_t out_shift,
    const int32_t out_activation_min, const int32_t out_activation_max, const int32_t block_size)
{
    for (int32_t i = 0; i < block_size; i++) {
        const int32_t first = (input_1_vect[i] + input_1_offset) * (1 << left_shift);
        const int32_t second = (input_2_vect[i] + input_2_offset) * (1 << left_shift);
        const int32_t sum = arm_nn_requantize(first, input_1_mult, input_1_shift) +
                            arm_nn_requantize(second, input_2_mult, input_2_shift);
        const int32_t value = arm_nn_requantize(sum, out_mult, out_shift) + out_offset;
        output[i] = (int16_t)CLAMP(value, out_activation_max, out_activation_min);
    }
    return ARM_CMSIS_NN_SUCCESS;
}
