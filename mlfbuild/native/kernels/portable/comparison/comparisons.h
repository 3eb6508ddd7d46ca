/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Comparisons of two tensors that broadcast: `binary.h` has the loops. Truth is 1, else 0.
 */
#ifndef MLF_COMPARISONS_H_
#define MLF_COMPARISONS_H_

#include <stdint.h>

#include "binary.h"
#include "compiler.h"
#include "requantize.h"

/* Stored values of both inputs are rescaled to a common scale. */
struct mlf_comparison_quantization {
    int32_t first_zero_point;
    int32_t second_zero_point;
    struct mlf_rescale first;
    struct mlf_rescale second;
};

MLF_KERNEL int32_t mlf_comparison_first(const struct mlf_comparison_quantization *quantization, int32_t value)
{
    return mlf_rescale_value((uint32_t)(value - quantization->first_zero_point) << 8, &quantization->first);
}

MLF_KERNEL int32_t mlf_comparison_second(const struct mlf_comparison_quantization *quantization, int32_t value)
{
    return mlf_rescale_value((uint32_t)(value - quantization->second_zero_point) << 8, &quantization->second);
}

#define MLF_RELATION_OF(name, type, suffix, relation)                                                                  \
    MLF_BINARY(mlf_##name##_##suffix(MLF_BINARY_PARAMETERS(type, uint8_t)), type, type, (a relation b) ? 1 : 0)

#define MLF_RELATION_OF_SCALES(name, type, suffix, relation)                                                           \
    MLF_BINARY(mlf_##name##_##suffix(const struct mlf_comparison_quantization *quantization,                           \
                                     MLF_BINARY_PARAMETERS(type, uint8_t)),                                            \
               type, type,                                                                                             \
               (mlf_comparison_first(quantization, a) relation mlf_comparison_second(quantization, b)) ? 1 : 0)

#define MLF_RELATION(name, relation)                                                                                   \
    MLF_RELATION_OF_SCALES(name, int8_t, int8, relation)                                                               \
    MLF_RELATION_OF(name, int32_t, int32, relation)                                                                    \
    MLF_RELATION_OF(name, int64_t, int64, relation)                                                                    \
    MLF_RELATION_OF(name, float, float, relation)

MLF_RELATION(equal, ==)
MLF_RELATION(not_equal, !=)
MLF_RELATION(greater, >)
MLF_RELATION(greater_equal, >=)
MLF_RELATION(less, <)
MLF_RELATION(less_equal, <=)

MLF_RELATION_OF_SCALES(equal, int16_t, int16, ==)
MLF_RELATION_OF_SCALES(not_equal, int16_t, int16, !=)

/* int16 with equal scales. */
MLF_RELATION_OF(greater, int16_t, int16, >)
MLF_RELATION_OF(greater_equal, int16_t, int16, >=)
MLF_RELATION_OF(less, int16_t, int16, <)
MLF_RELATION_OF(less_equal, int16_t, int16, <=)

MLF_RELATION_OF(equal, uint8_t, uint8, ==)
MLF_RELATION_OF(not_equal, uint8_t, uint8, !=)

#endif /* MLF_COMPARISONS_H_ */
