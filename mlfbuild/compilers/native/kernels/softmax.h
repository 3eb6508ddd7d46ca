/*
 * SOFTMAX over the last dimension: exp(beta * (x - max)) / sum of it. Input and output [rows, depth]; the output may
 * start where the input does.
 */
#ifndef MLF_SOFTMAX_H_
#define MLF_SOFTMAX_H_

#include <stdint.h>

#include "compiler.h"
#include "fixed_point.h"
#include "float_math.h"
#include "requantize.h"

/* The difference from the maximum, times rescale, is Q5.26; below least_difference its exponential counts as 0. */
struct mlf_softmax_quantization {
    struct mlf_rescale rescale;
    int32_t least_difference;
};

/* Return exp of the difference of a stored value from the row's maximum, as Q0.31. */
MLF_KERNEL int32_t mlf_softmax_exp(const struct mlf_softmax_quantization *quantization, int32_t difference)
{
    return mlf_exp_q31(mlf_rescale_value((uint32_t)difference, &quantization->rescale));
}

MLF_KERNEL int32_t mlf_softmax_greatest_int8(const int8_t *input, int32_t depth)
{
    int32_t greatest = INT8_MIN;
    for (int32_t i = 0; i < depth; i++) {
        greatest = input[i] > greatest ? input[i] : greatest;
    }
    return greatest;
}

MLF_KERNEL void mlf_softmax_row_int8(int32_t depth, const struct mlf_softmax_quantization *quantization,
                                     const int8_t *input, int8_t *output)
{
    const int32_t greatest = mlf_softmax_greatest_int8(input, depth);
    uint32_t sum = 0; /* Q12.19 */
    for (int32_t i = 0; i < depth; i++) {
        const int32_t difference = input[i] - greatest;
        if (difference >= quantization->least_difference) {
            sum += (uint32_t)mlf_shift_right(mlf_softmax_exp(quantization, difference), 12);
        }
    }
    const int32_t leading = mlf_leading_zeros(sum);
    const int32_t scale = mlf_reciprocal_q31((int32_t)((sum << leading) - (UINT32_C(1) << 31)));
    const int32_t exponent = 35 - leading; /* of 31 fraction bits, 8 stay */
    for (int32_t i = 0; i < depth; i++) {
        const int32_t difference = input[i] - greatest;
        int32_t value = 0;
        if (difference >= quantization->least_difference && exponent <= 31) {
            value = mlf_shift_right(mlf_high_multiply(scale, mlf_softmax_exp(quantization, difference)), exponent);
        }
        output[i] = (int8_t)mlf_clamp(value + INT8_MIN, INT8_MIN, INT8_MAX);
    }
}

MLF_KERNEL void mlf_softmax_int8(int32_t rows, int32_t depth, const struct mlf_softmax_quantization *quantization,
                                 const int8_t *input, int8_t *output)
{
    for (int32_t row = 0; row < rows; row++) {
        mlf_softmax_row_int8(depth, quantization, input + row * depth, output + row * depth);
    }
}

MLF_KERNEL void mlf_softmax_row_float(int32_t depth, float beta, const float *input, float *output)
{
    float greatest = input[0];
    for (int32_t i = 1; i < depth; i++) {
        greatest = input[i] > greatest ? input[i] : greatest;
    }
    float sum = 0.0f;
    for (int32_t i = 0; i < depth; i++) {
        output[i] = mlf_float_exp((input[i] - greatest) * beta);
        sum += output[i];
    }
    for (int32_t i = 0; i < depth; i++) {
        output[i] /= sum;
    }
}

MLF_KERNEL void mlf_softmax_float(int32_t rows, int32_t depth, float beta, const float *input, float *output)
{
    for (int32_t row = 0; row < rows; row++) {
        mlf_softmax_row_float(depth, beta, input + row * depth, output + row * depth);
    }
}

/* LOG_SOFTMAX: x - max - ln(sum of exp(x - max)). */
MLF_KERNEL void mlf_log_softmax_float(int32_t rows, int32_t depth, const float *input, float *output)
{
    for (int32_t row = 0; row < rows; row++) {
        float greatest = input[0];
        for (int32_t i = 1; i < depth; i++) {
            greatest = input[i] > greatest ? input[i] : greatest;
        }
        float sum = 0.0f;
        for (int32_t i = 0; i < depth; i++) {
            sum += mlf_float_exp(input[i] - greatest);
        }
        const float logarithm = mlf_float_log(sum);
        for (int32_t i = 0; i < depth; i++) {
            output[i] = input[i] - greatest - logarithm;
        }
        input += depth;
        output += depth;
    }
}

#endif /* MLF_SOFTMAX_H_ */
