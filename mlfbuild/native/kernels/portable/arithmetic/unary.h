/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The loop of operators of one tensor, and functions of int8 and int16 as tables.
 *
 * Elements are processed in order, so that the output may overwrite the input.
 */
#ifndef MLF_UNARY_H_
#define MLF_UNARY_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

#define MLF_UNARY_PARAMETERS(type) int32_t count, const type *input, type *output

/* Defines the kernel of this signature, which stores expression, a term of a, for each element. */
#define MLF_UNARY(signature, type, expression)                                                                         \
    MLF_KERNEL void signature                                                                                          \
    {                                                                                                                  \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            const type a = input[i];                                                                                   \
            output[i] = (expression);                                                                                  \
        }                                                                                                              \
    }

/* Return the function of the lowest byte of `word`, as a byte. */
MLF_KERNEL uint32_t mlf_lookup_byte(const int8_t *table, uint32_t word)
{
    return (uint8_t)table[word & 0xffu];
}

/*
 * Any function of int8: table has its values for -128, -127 and so on. On Arm cores that load words from any address,
 * four elements take 18 instructions instead of 24 and half of the accesses to memory.
 */
MLF_KERNEL void mlf_lookup_int8(const int8_t *table, MLF_UNARY_PARAMETERS(int8_t))
{
    int32_t i = 0;
#if defined(__ARM_FEATURE_UNALIGNED)
    for (; i + 4 <= count; i += 4) {
        uint32_t word;
        memcpy(&word, input + i, sizeof word);
        word ^= 0x80808080u; /* the positions in the table */
        word = mlf_lookup_byte(table, word) | mlf_lookup_byte(table, word >> 8) << 8 |
               mlf_lookup_byte(table, word >> 16) << 16 | mlf_lookup_byte(table, word >> 24) << 24;
        memcpy(output + i, &word, sizeof word);
    }
#endif
    for (; i < count; i++) {
        output[i] = table[input[i] - INT8_MIN];
    }
}

/*
 * Return a function of int16 at value: table has it for -32768, -32640 and so on up to 32768, with linear interpolation
 * between them, whose slopes wrap at 16 bits.
 */
MLF_KERNEL int16_t mlf_lookup_value_int16(const int16_t *table, int32_t value)
{
    const int32_t step = (value >> 7) + 256;
    const int16_t slope = (int16_t)(table[step + 1] - table[step]);
    return (int16_t)(table[step] + ((slope * (value & 127) + 64) >> 7));
}

MLF_UNARY(mlf_lookup_int16(const int16_t *table, MLF_UNARY_PARAMETERS(int16_t)), int16_t,
          mlf_lookup_value_int16(table, a))

#endif /* MLF_UNARY_H_ */
