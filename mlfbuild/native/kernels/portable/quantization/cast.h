/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * CAST: integers wrap, float32 is truncated towards zero and clamped (0 for NaN), any value except 0 is true.
 */
#ifndef MLF_CAST_H_
#define MLF_CAST_H_

#include <stdint.h>

#include "compiler.h"

#define MLF_CAST(from_suffix, from, to_suffix, to, expression)                                                         \
    MLF_KERNEL void mlf_cast_##from_suffix##_##to_suffix(int32_t count, const from *input, to *output)                 \
    {                                                                                                                  \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            const from a = input[i];                                                                                   \
            output[i] = (expression);                                                                                  \
        }                                                                                                              \
    }

#define MLF_CASTS_OF_INTEGERS(from_suffix, from)                                                                       \
    MLF_CAST(from_suffix, from, int8, int8_t, (int8_t)a)                                                               \
    MLF_CAST(from_suffix, from, uint8, uint8_t, (uint8_t)a)                                                            \
    MLF_CAST(from_suffix, from, int16, int16_t, (int16_t)a)                                                            \
    MLF_CAST(from_suffix, from, uint16, uint16_t, (uint16_t)a)                                                         \
    MLF_CAST(from_suffix, from, int32, int32_t, (int32_t)a)                                                            \
    MLF_CAST(from_suffix, from, int64, int64_t, (int64_t)a)                                                            \
    MLF_CAST(from_suffix, from, uint32, uint32_t, (uint32_t)a)                                                         \
    MLF_CAST(from_suffix, from, uint64, uint64_t, (uint64_t)a)                                                         \
    MLF_CAST(from_suffix, from, float, float, (float)a)                                                                \
    MLF_CAST(from_suffix, from, bool, uint8_t, a != 0 ? 1 : 0)

MLF_CASTS_OF_INTEGERS(int8, int8_t)
MLF_CASTS_OF_INTEGERS(uint8, uint8_t)
MLF_CASTS_OF_INTEGERS(int16, int16_t)
MLF_CASTS_OF_INTEGERS(uint16, uint16_t)
MLF_CASTS_OF_INTEGERS(int32, int32_t)
MLF_CASTS_OF_INTEGERS(int64, int64_t)
MLF_CASTS_OF_INTEGERS(uint32, uint32_t)
MLF_CASTS_OF_INTEGERS(uint64, uint64_t)

/* minimum and limit, the power of two above the greatest value, are exact in float32. */
#define MLF_CAST_FLOAT(to_suffix, to, minimum, maximum, limit)                                                         \
    MLF_CAST(float, float, to_suffix, to,                                                                              \
             a >= (limit) ? (maximum) : (a > (float)(minimum) ? (to)a : (a <= (float)(minimum) ? (minimum) : (to)0)))

MLF_CAST_FLOAT(int8, int8_t, INT8_MIN, INT8_MAX, 128.0f)
MLF_CAST_FLOAT(uint8, uint8_t, 0, UINT8_MAX, 256.0f)
MLF_CAST_FLOAT(int16, int16_t, INT16_MIN, INT16_MAX, 32768.0f)
MLF_CAST_FLOAT(uint16, uint16_t, 0, UINT16_MAX, 65536.0f)
MLF_CAST_FLOAT(int32, int32_t, INT32_MIN, INT32_MAX, 2147483648.0f)
MLF_CAST_FLOAT(int64, int64_t, INT64_MIN, INT64_MAX, 9223372036854775808.0f)
MLF_CAST_FLOAT(uint32, uint32_t, 0, UINT32_MAX, 4294967296.0f)
MLF_CAST_FLOAT(uint64, uint64_t, 0, UINT64_MAX, 18446744073709551616.0f)
MLF_CAST(float, float, float, float, a)
MLF_CAST(float, float, bool, uint8_t, a != 0.0f ? 1 : 0)

#endif /* MLF_CAST_H_ */
