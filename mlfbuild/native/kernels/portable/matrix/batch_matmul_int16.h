/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* BATCH_MATMUL of int16, whose products have 31 bits and their sums 47; otherwise as batch_matmul.h. */
#ifndef MLF_BATCH_MATMUL_INT16_H_
#define MLF_BATCH_MATMUL_INT16_H_

#include <stdint.h>

#include "batch_matmul.h"
#include "compiler.h"
#include "wide_sums.h"

MLF_BATCH_MATMUL(mlf_batch_matmul_int16(const struct mlf_wide_rescale *rescale, const struct mlf_batch_matmul *shape,
                                        const int16_t *first, const int16_t *second, int16_t *output),
                 int16_t, int16_t, int64_t, (int64_t)a * b,
                 (int16_t)mlf_clamp(mlf_rescale_wide(sum, rescale), INT16_MIN, INT16_MAX))

MLF_BATCH_MATMUL(mlf_batch_matmul_int16_int8(const struct mlf_wide_rescale *rescale,
                                             const struct mlf_batch_matmul *shape, const int16_t *first,
                                             const int8_t *second, int16_t *output),
                 int16_t, int8_t, int64_t, (int64_t)a * b,
                 (int16_t)mlf_clamp(mlf_rescale_wide(sum, rescale), INT16_MIN, INT16_MAX))

#endif /* MLF_BATCH_MATMUL_INT16_H_ */
