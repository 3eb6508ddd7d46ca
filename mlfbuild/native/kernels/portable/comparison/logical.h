/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT: `binary.h` and `unary.h` have the loops. Truth is 1, else 0.
 */
#ifndef MLF_LOGICAL_H_
#define MLF_LOGICAL_H_

#include <stdint.h>

#include "binary.h"
#include "unary.h"

/* Any byte except 0 is true. */
MLF_BINARY(mlf_logical_and_uint8(MLF_BINARY_PARAMETERS(uint8_t, uint8_t)), uint8_t, uint8_t, a != 0 && b != 0 ? 1 : 0)
MLF_BINARY(mlf_logical_or_uint8(MLF_BINARY_PARAMETERS(uint8_t, uint8_t)), uint8_t, uint8_t, a != 0 || b != 0 ? 1 : 0)
MLF_UNARY(mlf_logical_not_uint8(MLF_UNARY_PARAMETERS(uint8_t)), uint8_t, a == 0 ? 1 : 0)

#endif /* MLF_LOGICAL_H_ */
