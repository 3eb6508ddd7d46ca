/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ABS, NEG and SIGN: `unary.h` has the loop. int8 uses tables.
 */
#ifndef MLF_ABS_H_
#define MLF_ABS_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize.h"
#include "unary.h"

/* Stored int16 values are rescaled to the output's scale. */
#define MLF_RESCALED_UNARY(name, expression)                                                                           \
    MLF_UNARY(name(const struct mlf_rescaling *rescaling, MLF_UNARY_PARAMETERS(int16_t)), int16_t,                     \
              (int16_t)mlf_clamp(mlf_rescaled(expression, rescaling), INT16_MIN, INT16_MAX))

MLF_RESCALED_UNARY(mlf_abs_int16, a < 0 ? -a : a)
MLF_RESCALED_UNARY(mlf_neg_int16, -a)

/* Integers that are not quantised wrap. */
MLF_UNARY(mlf_abs_int32(MLF_UNARY_PARAMETERS(int32_t)), int32_t, a < 0 ? (int32_t)(0u - (uint32_t)a) : a)
MLF_UNARY(mlf_neg_int32(MLF_UNARY_PARAMETERS(int32_t)), int32_t, (int32_t)(0u - (uint32_t)a))
MLF_UNARY(mlf_neg_int64(MLF_UNARY_PARAMETERS(int64_t)), int64_t, (int64_t)(UINT64_C(0) - (uint64_t)a))
MLF_UNARY(mlf_sign_int32(MLF_UNARY_PARAMETERS(int32_t)), int32_t, (a > 0 ? 1 : 0) - (a < 0 ? 1 : 0))

MLF_UNARY(mlf_abs_float(MLF_UNARY_PARAMETERS(float)), float, a < 0.0f ? -a : a)
MLF_UNARY(mlf_neg_float(MLF_UNARY_PARAMETERS(float)), float, -a)
MLF_UNARY(mlf_sign_float(MLF_UNARY_PARAMETERS(float)), float, a > 0.0f ? 1.0f : (a < 0.0f ? -1.0f : a))

#endif /* MLF_ABS_H_ */
