/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * ADD_N of tensors of count elements, which are summed as in CUMSUM. The output may be one of the inputs.
 */
#ifndef MLF_ADD_N_H_
#define MLF_ADD_N_H_

#include <stdint.h>

#include "compiler.h"
#include "cumsum.h"
#include "requantize.h"

/* As MLF_CUMSUM, of the elements at one place of all inputs. */
#define MLF_ADD_N(signature, type, sum_type, summand, finish)                                                          \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            sum_type sum = 0;                                                                                          \
            for (int32_t k = 0; k < tensors; k++) {                                                                    \
                const type a = inputs[k][i];                                                                           \
                sum += (summand);                                                                                      \
            }                                                                                                          \
            output[i] = (finish);                                                                                      \
        }                                                                                                              \
    }

#define MLF_ADD_N_PARAMETERS(type) int32_t count, int32_t tensors, const type *const *inputs, type *output

MLF_ADD_N(mlf_add_n_int8(const struct mlf_rescaling *rescaling, MLF_ADD_N_PARAMETERS(int8_t)), int8_t, uint32_t,
          mlf_summand(rescaling, a), mlf_summed(rescaling, sum))
MLF_ADD_N(mlf_add_n_int32(MLF_ADD_N_PARAMETERS(int32_t)), int32_t, uint32_t, (uint32_t)a, (int32_t)sum)
MLF_ADD_N(mlf_add_n_float(MLF_ADD_N_PARAMETERS(float)), float, float, a, sum)

#endif /* MLF_ADD_N_H_ */
