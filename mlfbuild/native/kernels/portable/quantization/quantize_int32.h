/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* QUANTIZE of int32 to a greater scale; otherwise as quantize.h. */
#ifndef MLF_QUANTIZE_INT32_H_
#define MLF_QUANTIZE_INT32_H_

#include <stdint.h>

#include "compiler.h"
#include "quantize.h"

MLF_REQUANTIZE(int32, int32_t, int8, int8_t, INT8_MIN, INT8_MAX)
MLF_REQUANTIZE(int32, int32_t, int16, int16_t, INT16_MIN, INT16_MAX)

#endif /* MLF_QUANTIZE_INT32_H_ */
