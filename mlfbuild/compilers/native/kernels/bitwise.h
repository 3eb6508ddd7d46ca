/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * BITWISE_AND, BITWISE_OR, BITWISE_XOR, LEFT_SHIFT and RIGHT_SHIFT of two tensors that broadcast: `binary.h` has the
 * loops.
 */
#ifndef MLF_BITWISE_H_
#define MLF_BITWISE_H_

#include <stdint.h>

#include "binary.h"
#include "compiler.h"

/* Shift by b places, or by none if b is negative; C only defines 0 to 31 places. */
MLF_KERNEL int32_t mlf_left_shift_value(int32_t a, int32_t b)
{
    return b < 32 ? (int32_t)((uint32_t)a << (b < 0 ? 0 : b)) : 0;
}

MLF_KERNEL int32_t mlf_right_shift_value(int32_t a, int32_t b)
{
    const int32_t places = b < 0 ? 0 : (b < 31 ? b : 31);
    return a < 0 ? ~(~a >> places) : a >> places;
}

#define MLF_BITWISE(bits)                                                                                              \
    MLF_BINARY(mlf_bitwise_and_int##bits(MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)), int##bits##_t,          \
               int##bits##_t, (int##bits##_t)((uint##bits##_t)a & (uint##bits##_t)b))                                  \
    MLF_BINARY(mlf_bitwise_or_int##bits(MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)), int##bits##_t,           \
               int##bits##_t, (int##bits##_t)((uint##bits##_t)a | (uint##bits##_t)b))                                  \
    MLF_BINARY(mlf_bitwise_xor_int##bits(MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)), int##bits##_t,          \
               int##bits##_t, (int##bits##_t)((uint##bits##_t)a ^ (uint##bits##_t)b))

MLF_BITWISE(32)
MLF_BITWISE(64)
MLF_BINARY(mlf_left_shift_int32(MLF_BINARY_PARAMETERS(int32_t, int32_t)), int32_t, int32_t, mlf_left_shift_value(a, b))
MLF_BINARY(mlf_right_shift_int32(MLF_BINARY_PARAMETERS(int32_t, int32_t)), int32_t, int32_t,
           mlf_right_shift_value(a, b))

#endif /* MLF_BITWISE_H_ */
