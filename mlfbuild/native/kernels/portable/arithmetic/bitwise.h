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

/* Shift by b places, or by none if b is negative; C only defines places below the width, and no sign. */
#define MLF_SHIFT_VALUES(bits)                                                                                         \
    MLF_KERNEL int##bits##_t mlf_left_shift_value_int##bits(int##bits##_t a, int##bits##_t b)                          \
    {                                                                                                                  \
        return b < bits ? (int##bits##_t)((uint##bits##_t)a << (b < 0 ? 0 : b)) : 0;                                   \
    }                                                                                                                  \
    MLF_KERNEL int##bits##_t mlf_right_shift_value_int##bits(int##bits##_t a, int##bits##_t b)                         \
    {                                                                                                                  \
        const int##bits##_t places = b < 0 ? 0 : (b < bits - 1 ? b : bits - 1);                                        \
        return a < 0 ? ~(~a >> places) : a >> places;                                                                  \
    }

MLF_SHIFT_VALUES(32)
MLF_SHIFT_VALUES(64)

#define MLF_BITWISE(bits)                                                                                              \
    MLF_BINARY(mlf_bitwise_and_int##bits(MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)), int##bits##_t,          \
               int##bits##_t, (int##bits##_t)((uint##bits##_t)a & (uint##bits##_t)b))                                  \
    MLF_BINARY(mlf_bitwise_or_int##bits(MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)), int##bits##_t,           \
               int##bits##_t, (int##bits##_t)((uint##bits##_t)a | (uint##bits##_t)b))                                  \
    MLF_BINARY(mlf_bitwise_xor_int##bits(MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)), int##bits##_t,          \
               int##bits##_t, (int##bits##_t)((uint##bits##_t)a ^ (uint##bits##_t)b))                                  \
    MLF_BINARY(mlf_left_shift_int##bits(MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)), int##bits##_t,           \
               int##bits##_t, mlf_left_shift_value_int##bits(a, b))                                                    \
    MLF_BINARY(mlf_right_shift_int##bits(MLF_BINARY_PARAMETERS(int##bits##_t, int##bits##_t)), int##bits##_t,          \
               int##bits##_t, mlf_right_shift_value_int##bits(a, b))

MLF_BITWISE(32)
MLF_BITWISE(64)

#endif /* MLF_BITWISE_H_ */
