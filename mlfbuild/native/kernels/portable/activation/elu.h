/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ELU: `unary.h` has the loop. int8 uses a table.
 */
#ifndef MLF_ELU_H_
#define MLF_ELU_H_

#include <stdint.h>

#include "float_math.h"
#include "unary.h"

MLF_UNARY(mlf_elu_float(MLF_UNARY_PARAMETERS(float)), float, a < 0.0f ? mlf_float_expm1(a) : a)

#endif /* MLF_ELU_H_ */
