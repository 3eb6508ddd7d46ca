/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * BITWISE_XOR of two tensors that broadcast: `binary.h` has the loops.
 */
#ifndef MLF_BITWISE_XOR_H_
#define MLF_BITWISE_XOR_H_

#include <stdint.h>

#include "binary.h"

MLF_BINARY(mlf_bitwise_xor_int32(MLF_BINARY_PARAMETERS(int32_t, int32_t)), int32_t, int32_t,
           (int32_t)((uint32_t)a ^ (uint32_t)b))

#endif /* MLF_BITWISE_XOR_H_ */
