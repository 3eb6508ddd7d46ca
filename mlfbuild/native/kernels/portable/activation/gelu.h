/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * GELU of float32, and its approximation by a hyperbolic tangent: `unary.h` has the loop.
 */
#ifndef MLF_GELU_H_
#define MLF_GELU_H_

#include <stdint.h>

#include "compiler.h"
#include "erf.h"
#include "float_math.h"
#include "unary.h"

/* x / 2 * (1 + erf(x / sqrt(2))) */
MLF_UNARY(mlf_gelu_float(MLF_UNARY_PARAMETERS(float)), float, 0.5f * a * (1.0f + mlf_float_erf(0.707106781f * a)))

/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) */
MLF_UNARY(mlf_gelu_tanh_float(MLF_UNARY_PARAMETERS(float)), float,
          0.5f * a * (1.0f + mlf_float_tanh(0.797884561f * (a + 0.044715f * a * a * a))))

#endif /* MLF_GELU_H_ */
