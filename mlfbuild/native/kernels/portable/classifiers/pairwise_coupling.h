/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * PAIRWISE_COUPLING: input [rows, pairs], the probability of class i against class j for each i < j; output
 * [rows, classes]. The matrix of a row, its product with the output and the pairs of both directions are scratch memory
 * of classes * (2 * classes + 1) floats. The iteration is that of libsvm (multiclass_probability).
 */
#ifndef MLF_PAIRWISE_COUPLING_H_
#define MLF_PAIRWISE_COUPLING_H_

#include <stdint.h>

#include "compiler.h"

MLF_KERNEL void mlf_coupling_matrix(int32_t classes, const float *pairs, float *against, float *matrix)
{
    for (int32_t i = 0; i < classes; i++) {
        against[i * classes + i] = 0.0f;
        for (int32_t j = i + 1; j < classes; j++) {
            against[i * classes + j] = *pairs;
            against[j * classes + i] = 1.0f - *pairs++;
        }
    }
    for (int32_t i = 0; i < classes; i++) {
        float sum = 0.0f;
        for (int32_t j = 0; j < classes; j++) {
            sum += against[j * classes + i] * against[j * classes + i];
            matrix[i * classes + j] = -against[j * classes + i] * against[i * classes + j];
        }
        matrix[i * classes + i] = sum;
    }
}

/* Return the share-weighted mean of the products; they are recomputed first, for accuracy. */
MLF_KERNEL float mlf_coupling_products(int32_t classes, const float *matrix, const float *shares, float *products)
{
    float total = 0.0f;
    for (int32_t i = 0; i < classes; i++) {
        products[i] = 0.0f;
        for (int32_t j = 0; j < classes; j++) {
            products[i] += matrix[i * classes + j] * shares[j];
        }
        total += shares[i] * products[i];
    }
    return total;
}

MLF_KERNEL int32_t mlf_coupling_converged(int32_t classes, float total, const float *products)
{
    for (int32_t i = 0; i < classes; i++) {
        const float difference = products[i] - total;
        if (!((difference < 0.0f ? -difference : difference) < 0.005f / (float)classes)) {
            return 0;
        }
    }
    return 1;
}

MLF_KERNEL void mlf_pairwise_coupling_float(int32_t rows, int32_t classes, const float *input, float *output,
                                            float *scratch)
{
    float *const matrix = scratch;
    float *const against = matrix + classes * classes;
    float *const products = against + classes * classes;
    const int32_t iterations = classes > 100 ? classes : 100;
    for (int32_t row = 0; row < rows; row++) {
        mlf_coupling_matrix(classes, input, against, matrix);
        for (int32_t i = 0; i < classes; i++) {
            output[i] = 1.0f / (float)classes;
        }
        for (int32_t iteration = 0; iteration < iterations; iteration++) {
            float total = mlf_coupling_products(classes, matrix, output, products);
            if (mlf_coupling_converged(classes, total, products)) {
                break;
            }
            for (int32_t i = 0; i < classes; i++) {
                const float step = (total - products[i]) / matrix[i * classes + i];
                const float scale = 1.0f + step;
                output[i] += step;
                total = (total + step * (step * matrix[i * classes + i] + 2.0f * products[i])) / scale / scale;
                for (int32_t j = 0; j < classes; j++) {
                    output[j] /= scale;
                    products[j] = (products[j] + step * matrix[i * classes + j]) / scale;
                }
            }
        }
        input += classes * (classes - 1) / 2;
        output += classes;
    }
}

#endif /* MLF_PAIRWISE_COUPLING_H_ */
