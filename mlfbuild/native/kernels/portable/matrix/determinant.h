/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* DETERMINANT: the product of the diagonal after Gaussian elimination with partial pivoting. */
#ifndef MLF_DETERMINANT_H_
#define MLF_DETERMINANT_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

/* Input [count, rows, rows], output [count]; `matrix` is the memory for one matrix. */
MLF_KERNEL void mlf_determinant_float(int32_t count, int32_t rows, const float *input, float *matrix, float *output)
{
    for (int32_t i = 0; i < count; i++) {
        float product = 1.0f;
        memcpy(matrix, input + i * rows * rows, (uint32_t)(rows * rows) * sizeof(float));
        for (int32_t step = 0; step < rows; step++) {
            float *const top = matrix + step * rows;
            int32_t best = step;
            float greatest = -1.0f;
            for (int32_t row = step; row < rows; row++) {
                const float value = matrix[row * rows + step];
                const float magnitude = value < 0.0f ? -value : value;
                if (magnitude > greatest) {
                    greatest = magnitude;
                    best = row;
                }
            }
            if (best != step) {
                product = -product;
            }
            for (int32_t column = step; column < rows && best != step; column++) {
                const float value = top[column];
                top[column] = matrix[best * rows + column];
                matrix[best * rows + column] = value;
            }
            product *= top[step];
            if (top[step] == 0.0f) { /* the rest of the column is also zero */
                break;
            }
            for (int32_t row = step + 1; row < rows; row++) {
                float *const other = matrix + row * rows;
                const float factor = other[step] / top[step];
                for (int32_t column = step + 1; column < rows; column++) {
                    other[column] -= factor * top[column];
                }
            }
        }
        output[i] = product;
    }
}

#endif /* MLF_DETERMINANT_H_ */
