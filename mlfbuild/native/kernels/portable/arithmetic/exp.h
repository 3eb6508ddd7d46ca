/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * EXP and LOG of float32: `unary.h` has the loop. Quantised types use tables.
 */
#ifndef MLF_EXP_H_
#define MLF_EXP_H_

#include <stdint.h>

#include "float_math.h"
#include "unary.h"

MLF_UNARY(mlf_exp_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_exp(a))
MLF_UNARY(mlf_log_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_log(a))

#endif /* MLF_EXP_H_ */
