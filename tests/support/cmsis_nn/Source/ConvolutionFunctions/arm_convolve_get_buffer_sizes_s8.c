/* Bytes of scratch memory, as the library's kernels need them. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

__STATIC_INLINE int32_t columns_size_mve(const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims)
{
    const int32_t column = input_dims->c * filter_dims->w * filter_dims->h;
//= v4.1.0
    return 4 * 8 * ((column + 7) / 8);
//= v7.0.0
    return 4 * 16 * ((column + 15) / 16);
//= all
}

//= v7.0.0
__STATIC_INLINE int32_t steps(int32_t padded, int32_t stride)
{
    return padded == 0 ? 0 : MAX(1, (padded + stride - 1) / stride);
}

__STATIC_INLINE int32_t row_size_mve(const cmsis_nn_conv_params *conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    const int32_t stride = conv_params->stride.w, pad = conv_params->padding.w;
    const int32_t uneven = ((output_dims->w - 1) * stride + filter_dims->w - input_dims->w) % 2;
    const int32_t right = steps(pad + uneven, stride), left = steps(pad, stride);
    if (left + right > output_dims->w) {
        return columns_size_mve(input_dims, filter_dims);
    }
    const int32_t before = (filter_dims->w + pad) * input_dims->c;
    const int32_t after = (filter_dims->w - 1 + (uneven ? right : pad)) * input_dims->c;
    return MAX(before, after);
}

//= all
int32_t arm_convolve_s8_get_buffer_size(const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims)
{
#if defined(ARM_MATH_MVEI)
    return columns_size_mve(input_dims, filter_dims);
#else
    const int32_t column = filter_dims->w * filter_dims->h * input_dims->c;
//= v4.1.0
    return 4 * column;
//= v7.0.0
    return 4 * ((column + 3) / 4 * 4);
//= all
#endif
}

int32_t arm_convolve_1x1_s8_fast_get_buffer_size(const cmsis_nn_dims *input_dims)
{
    (void)input_dims;
    return 0;
}

//= v4.1.0
int32_t arm_convolve_1_x_n_s8_get_buffer_size(const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims)
{
#if defined(ARM_MATH_MVEI)
    (void)input_dims;
    (void)filter_dims;
    return 0;
//= v7.0.0
int32_t arm_convolve_1_x_n_s8_get_buffer_size(const cmsis_nn_conv_params *conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
#if defined(ARM_MATH_MVEI)
    return row_size_mve(conv_params, input_dims, filter_dims, output_dims);
//= all
#else
//= v7.0.0
    (void)conv_params;
    (void)output_dims;
//= all
    return arm_convolve_s8_get_buffer_size(input_dims, filter_dims);
#endif
}

/* Where the sizes of the three shapes are: 1 x 1, one row, any other. */
__STATIC_INLINE int32_t shape_of(const cmsis_nn_conv_params *conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims)
{
    const bool undilated = conv_params->dilation.w == 1 && conv_params->dilation.h == 1;
    const bool unpadded = conv_params->padding.w == 0 && conv_params->padding.h == 0;
    if (unpadded && undilated && filter_dims->w == 1 && filter_dims->h == 1) {
        return 0;
    }
    return input_dims->h == 1 && conv_params->dilation.w == 1 && filter_dims->h == 1 &&
                   conv_params->stride.w * input_dims->c % 4 == 0
               ? 1
               : 2;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
#if defined(ARM_MATH_MVEI)
    return arm_convolve_wrapper_s8_get_buffer_size_mve(conv_params, input_dims, filter_dims, output_dims);
#else
    return arm_convolve_wrapper_s8_get_buffer_size_dsp(conv_params, input_dims, filter_dims, output_dims);
#endif
}

int32_t arm_convolve_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_conv_params *conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    (void)output_dims;
    const int32_t shape = shape_of(conv_params, input_dims, filter_dims);
    return shape == 0 ? 0 : arm_convolve_s8_get_buffer_size(input_dims, filter_dims);
}

int32_t arm_convolve_wrapper_s8_get_buffer_size_mve(const cmsis_nn_conv_params *conv_params, const cmsis_nn_dims *input_dims,
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims)
{
    const int32_t shape = shape_of(conv_params, input_dims, filter_dims);
    if (shape == 1) {
//= v4.1.0
        (void)output_dims;
        return 0;
//= v7.0.0
        return row_size_mve(conv_params, input_dims, filter_dims, output_dims);
//= all
    }
    (void)output_dims;
    return shape == 0 ? 0 : columns_size_mve(input_dims, filter_dims);
}
