/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * LOGISTIC and TANH: `unary.h` has the loop. int8 uses tables, int16 is computed.
 */
#ifndef MLF_LOGISTIC_H_
#define MLF_LOGISTIC_H_

#include <stdint.h>

#include "compiler.h"
#include "float_math.h"
#include "unary.h"

/* The rescaling of an int16 value to the argument of a table of 1 / (1 + e^-(i/24)) with 16 fraction bits. */
struct mlf_table_scale {
    int32_t multiplier;
    int32_t shift;
};

MLF_KERNEL int32_t mlf_table_argument(const struct mlf_table_scale *scale, int32_t value)
{
    return (int32_t)((uint32_t)value * (uint32_t)scale->multiplier + (1u << scale->shift >> 1)) >> scale->shift;
}

/*
 * Return the table's value at the magnitude of argument, which has this many bits between two entries; beyond the table,
 * greatest. Unsigned, so that no argument is below the table, whatever scale it is of.
 */
MLF_KERNEL int32_t mlf_table_between(const uint16_t *table, int32_t argument, int32_t bits, int32_t greatest)
{
    const uint32_t magnitude = argument < 0 ? 0u - (uint32_t)argument : (uint32_t)argument;
    const uint32_t step = magnitude >> bits;
    const int32_t rest = (int32_t)(magnitude & ((1u << bits) - 1u));
    return step >= 255u ? greatest : ((int32_t)table[step] << bits) + rest * (table[step + 1] - table[step]);
}

MLF_KERNEL int16_t mlf_logistic_value_int16(const uint16_t *table, int32_t argument)
{
    const int32_t result = mlf_table_between(table, argument, 9, 0x7fff << 10);
    return (int16_t)((argument >= 0 ? result + (1 << 9) : (1 << 25) - result + (1 << 9) - 1) >> 10);
}

MLF_KERNEL int16_t mlf_tanh_value_int16(const uint16_t *table, int32_t argument)
{
    const int32_t result = mlf_table_between(table, argument, 8, 0xffff << 8) - (1 << 23);
    return (int16_t)((argument >= 0 ? result + (1 << 7) : -result + (1 << 7) - 1) >> 8);
}

MLF_UNARY(mlf_logistic_int16(const struct mlf_table_scale *scale, const uint16_t *table, MLF_UNARY_PARAMETERS(int16_t)),
          int16_t, mlf_logistic_value_int16(table, mlf_table_argument(scale, a)))
MLF_UNARY(mlf_tanh_int16(const struct mlf_table_scale *scale, const uint16_t *table, MLF_UNARY_PARAMETERS(int16_t)),
          int16_t, mlf_tanh_value_int16(table, mlf_table_argument(scale, a)))

MLF_UNARY(mlf_logistic_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_logistic(a))
MLF_UNARY(mlf_tanh_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_tanh(a))

#endif /* MLF_LOGISTIC_H_ */
