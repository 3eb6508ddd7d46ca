/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * MAXIMUM and MINIMUM of two tensors that broadcast and have the same scale: `binary.h` has the loops.
 */
#ifndef MLF_MAXIMUM_H_
#define MLF_MAXIMUM_H_

#include <stdint.h>

#include "binary.h"
#include "compiler.h"

#define MLF_MAXIMUM(type, suffix)                                                                                      \
    MLF_BINARY(mlf_maximum_##suffix(MLF_BINARY_PARAMETERS(type, type)), type, type, a > b ? a : b)                     \
    MLF_BINARY(mlf_minimum_##suffix(MLF_BINARY_PARAMETERS(type, type)), type, type, a < b ? a : b)

MLF_MAXIMUM(int8_t, int8)
MLF_MAXIMUM(int16_t, int16)
MLF_MAXIMUM(int32_t, int32)
MLF_MAXIMUM(int64_t, int64)
MLF_MAXIMUM(float, float)

#endif /* MLF_MAXIMUM_H_ */
