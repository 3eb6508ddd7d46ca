/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * SUM and MEAN of ONNX networks: as in reduce.h, but the sum is rescaled with one rounding, half to even.
 */
#ifndef MLF_REDUCE_HALF_EVEN_H_
#define MLF_REDUCE_HALF_EVEN_H_

#include <stdint.h>

#include "compiler.h"
#include "half_even.h"
#include "reduce.h"
#include "requantize.h"

#define MLF_REDUCE_SUM_HALF_EVEN(suffix, type, minimum, maximum)                                                       \
    MLF_REDUCE(mlf_sum_half_even_##suffix(const struct mlf_rescaling *rescaling, MLF_REDUCE_PARAMETERS(type)), type,   \
               int32_t, 0, value + a,                                                                                  \
               (type)mlf_clamp(mlf_rescaled_half_even(value, mlf_reduced_count(shape), rescaling), minimum, maximum))  \
    MLF_REDUCE_COLUMNS(                                                                                                \
        mlf_sum_half_even_columns_##suffix(const struct mlf_rescaling *rescaling, MLF_COLUMNS_PARAMETERS(type)), type, \
        int32_t, 0, (type)mlf_clamp(mlf_rescaled_half_even(value, shape->rows, rescaling), minimum, maximum))

MLF_REDUCE_SUM_HALF_EVEN(int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REDUCE_SUM_HALF_EVEN(int16, int16_t, INT16_MIN, INT16_MAX)

#endif /* MLF_REDUCE_HALF_EVEN_H_ */
