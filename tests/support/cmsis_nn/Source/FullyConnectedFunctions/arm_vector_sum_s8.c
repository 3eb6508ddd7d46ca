//= v7.0.0
/* What of a matrix product is the same for every vector. */
#include "arm_nnfunctions.h"

arm_cmsis_nn_status arm_vector_sum_s8(int32_t *vector_sum_buf, const int32_t vector_cols, const int32_t vector_rows,
    const int8_t *vector_data, const int32_t lhs_offset, const int32_t rhs_offset, const int32_t *bias_data)
{
    for (int32_t row = 0; row < vector_rows; row++) {
        int32_t sum = 0;
        for (int32_t column = 0; column < vector_cols; column++) {
            sum += vector_data[row * vector_cols + column] + rhs_offset;
        }
        vector_sum_buf[row] = (bias_data == NULL ? 0 : bias_data[row]) + lhs_offset * sum;
    }
    return ARM_CMSIS_NN_SUCCESS;
}
