/* What the functions share. */
#ifndef ARM_NNSUPPORTFUNCTIONS_H
#define ARM_NNSUPPORTFUNCTIONS_H

#include "arm_nn_math_types.h"
#include "arm_nn_types.h"

#include "Internal/arm_nn_compiler.h"

#define MAX(A, B) ((A) > (B) ? (A) : (B))
#define MIN(A, B) ((A) < (B) ? (A) : (B))
#define CLAMP(x, h, l) MAX(MIN((x), (h)), (l))
#define CH_IN_BLOCK_MVE (124)

#ifdef __cplusplus
extern "C" {
#endif

/* Return whether ctx has size bytes, which are overwritten: a call may not count on what was there. */
bool arm_nn_claim_scratch(const cmsis_nn_context *ctx, int32_t size);

arm_cmsis_nn_status arm_nn_convolve_direct_s8(const cmsis_nn_conv_params *conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const int32_t *bias_data,
    const cmsis_nn_dims *output_dims, int8_t *output_data);

arm_cmsis_nn_status arm_nn_depthwise_direct_s8(const cmsis_nn_dw_conv_params *dw_conv_params,
    const cmsis_nn_per_channel_quant_params *quant_params, const cmsis_nn_dims *input_dims, const int8_t *input_data,
    const cmsis_nn_dims *filter_dims, const int8_t *filter_data, const int32_t *bias_data,
    const cmsis_nn_dims *output_dims, int8_t *output_data);

void arm_nn_softmax_common_s8(const int8_t *input, const int32_t num_rows, const int32_t row_size, const int32_t mult,
    const int32_t shift, const int32_t diff_min, const bool int16_output, void *output);

/* Return a * b / 2^31, rounded to nearest, ties towards plus infinity. */
__STATIC_FORCEINLINE int32_t arm_nn_doubling_high_mult_no_sat(const int32_t a, const int32_t b)
{
    return (int32_t)(((int64_t)a * b + (INT64_C(1) << 30)) >> 31);
}

/* Return value / 2^exponent, rounded to nearest, ties away from zero. */
__STATIC_FORCEINLINE int32_t arm_nn_divide_by_power_of_two(const int32_t value, const int32_t exponent)
{
    if (exponent > 31) {
        return 0;
    }
    const int64_t half = exponent == 0 ? 0 : INT64_C(1) << (exponent - 1);
    return (int32_t)(((int64_t)value + half - (value < 0 && exponent > 0 ? 1 : 0)) >> exponent);
}

/* Return value * multiplier * 2^(shift - 31), rounded twice. */
__STATIC_FORCEINLINE int32_t arm_nn_requantize(const int32_t value, const int32_t multiplier, const int32_t shift)
{
    const int32_t shifted = (int32_t)((uint32_t)value << MAX(shift, 0));
    return arm_nn_divide_by_power_of_two(arm_nn_doubling_high_mult_no_sat(shifted, multiplier), MAX(-shift, 0));
}

/* Return e^value as Q0.31 for value <= 0 in Q5.26: gemmlowp's polynomial for [-1/4, 0), and a factor a bit. */
__STATIC_INLINE int32_t arm_nn_exp_on_negative_values(const int32_t value)
{
    static const int32_t factors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    const int32_t fraction = (int32_t)((uint32_t)value & 0xffffffu) - (1 << 24);
    const uint32_t rest = (uint32_t)fraction - (uint32_t)value;
    const int32_t x = (int32_t)((uint32_t)fraction << 5) + (1 << 28);
    const int32_t x2 = arm_nn_doubling_high_mult_no_sat(x, x);
    const int32_t x3 = arm_nn_doubling_high_mult_no_sat(x2, x);
    const int32_t x4 = arm_nn_doubling_high_mult_no_sat(x2, x2);
    const int32_t third = arm_nn_doubling_high_mult_no_sat(arm_nn_divide_by_power_of_two(x4, 2) + x3, 715827883);
    const int32_t tail = arm_nn_divide_by_power_of_two(third + x2, 1);
    int32_t result = 1895147668 + arm_nn_doubling_high_mult_no_sat(1895147668, x + tail);
    for (int32_t bit = 0; bit < 7; bit++) {
        if (rest >> (24 + bit) & 1u) {
            result = arm_nn_doubling_high_mult_no_sat(result, factors[bit]);
        }
    }
    return value == 0 ? NN_Q31_MAX : result;
}

/* Return 1 / (1 + value) for value in [0, 1), both Q0.31: three steps of Newton's division. */
__STATIC_INLINE int32_t arm_nn_one_over_one_plus_x_for_x_in_0_1(const int32_t value)
{
    const int32_t half = (int32_t)(((int64_t)value + NN_Q31_MAX + 1) / 2);
    int32_t x = 1515870810 + arm_nn_doubling_high_mult_no_sat(half, -1010580540);
    for (int32_t step = 0; step < 3; step++) {
        const int32_t rest = (1 << 29) - arm_nn_doubling_high_mult_no_sat(half, x);
        x += arm_nn_doubling_high_mult_no_sat(x, rest) * 4;
    }
    return x > NN_Q31_MAX / 2 ? NN_Q31_MAX : x * 2;
}

#ifdef __cplusplus
}
#endif

#endif /* ARM_NNSUPPORTFUNCTIONS_H */
