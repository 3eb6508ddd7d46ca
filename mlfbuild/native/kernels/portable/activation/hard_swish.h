/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * HARD_SWISH: `unary.h` has the loop. int8 uses a table.
 */
#ifndef MLF_HARD_SWISH_H_
#define MLF_HARD_SWISH_H_

#include <stdint.h>

#include "compiler.h"
#include "float_math.h"
#include "unary.h"

MLF_UNARY(mlf_hard_swish_float(MLF_UNARY_PARAMETERS(float)), float,
          a * mlf_clamp_float(a + 3.0f, (struct mlf_float_range){0.0f, 6.0f}) * (1.0f / 6.0f))

#endif /* MLF_HARD_SWISH_H_ */
