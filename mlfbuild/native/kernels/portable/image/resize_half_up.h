/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * RESIZE_BILINEAR as in resize.h for uint8 networks, whose values are stored lower by 128: they have no sign, so halves
 * are rounded up.
 */
#ifndef MLF_RESIZE_HALF_UP_H_
#define MLF_RESIZE_HALF_UP_H_

#include <stdint.h>

#include "compiler.h"
#include "resize.h"

struct mlf_line_half_up_int8 {
    int32_t lower;
    int32_t upper;
    int32_t share; /* 10 fraction bits */
};

MLF_RESIZE_BILINEAR(half_up_int8, int8_t, int32_t, 1 << 10, (int8_t)((sum + (1 << 19)) >> 20))

#endif /* MLF_RESIZE_HALF_UP_H_ */
