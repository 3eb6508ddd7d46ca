/* exp(x - max) over the sum of it, with gemmlowp's fixed-point arithmetic. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

void arm_nn_softmax_common_s8(const int8_t *input, const int32_t num_rows, const int32_t row_size, const int32_t mult,
    const int32_t shift, const int32_t diff_min, const bool int16_output, void *output)
{
    const int32_t bits = int16_output ? 16 : 8;
    const int32_t least = int16_output ? INT16_MIN : INT8_MIN, most = int16_output ? INT16_MAX : INT8_MAX;
    for (int32_t row = 0; row < num_rows; row++, input += row_size) {
        int32_t greatest = NN_Q7_MIN;
        for (int32_t i = 0; i < row_size; i++) {
            greatest = MAX(greatest, input[i]);
        }
        int32_t sum = 0; /* Q12.19 */
        for (int32_t i = 0; i < row_size; i++) {
            if (input[i] - greatest >= diff_min) {
                sum += arm_nn_divide_by_power_of_two(
                    arm_nn_exp_on_negative_values(arm_nn_requantize(input[i] - greatest, mult, shift)), 12);
            }
        }
        const int32_t headroom = arm_nn_leading_zeros((uint32_t)sum);
        const int32_t fraction = (int32_t)(((uint32_t)sum << headroom) - (UINT32_C(1) << 31));
        const int32_t scale = arm_nn_one_over_one_plus_x_for_x_in_0_1(fraction);
        for (int32_t i = 0; i < row_size; i++) {
            int32_t value = least;
            if (input[i] - greatest >= diff_min) {
                const int32_t power = arm_nn_exp_on_negative_values(arm_nn_requantize(input[i] - greatest, mult, shift));
                const int32_t share = arm_nn_doubling_high_mult_no_sat(scale, power);
                value = CLAMP(arm_nn_divide_by_power_of_two(share, 43 - bits - headroom) + least, most, least);
            }
            if (int16_output) {
                ((int16_t *)output)[row * row_size + i] = (int16_t)value;
            } else {
                ((int8_t *)output)[row * row_size + i] = (int8_t)value;
            }
        }
    }
}
