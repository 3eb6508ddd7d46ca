/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * SCATTER_ELEMENTS: a copy of `elements` elements, in which `count` updates replace the elements at their places or are
 * combined with them, one after the other. An update at a place out of range is ignored, so that no input of the
 * network leads to an access outside the tensor.
 */
#ifndef MLF_SCATTER_ELEMENTS_H_
#define MLF_SCATTER_ELEMENTS_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

/* Replace elements of `size` bytes. */
MLF_KERNEL void mlf_scatter_elements_set(int32_t elements, int32_t count, int32_t size, const void *input,
                                         const int32_t *places, const void *updates, void *output)
{
    const uint8_t *from = (const uint8_t *)updates;
    uint8_t *const to = (uint8_t *)output;
    memcpy(output, input, (uint32_t)elements * (uint32_t)size);
    for (int32_t i = 0; i < count; i++) {
        if (places[i] >= 0 && places[i] < elements) {
            memcpy(to + places[i] * size, from, (uint32_t)size);
        }
        from += size;
    }
}

/* Do the same to elements that are 0. */
MLF_KERNEL void mlf_scatter_elements_on_zeros(int32_t elements, int32_t count, int32_t size, const int32_t *places,
                                              const void *updates, void *output)
{
    const uint8_t *from = (const uint8_t *)updates;
    uint8_t *const to = (uint8_t *)output;
    memset(output, 0, (uint32_t)elements * (uint32_t)size);
    for (int32_t i = 0; i < count; i++) {
        if (places[i] >= 0 && places[i] < elements) {
            memcpy(to + places[i] * size, from, (uint32_t)size);
        }
        from += size;
    }
}

#define MLF_SCATTER_ELEMENTS(name, combined)                                                                           \
    MLF_KERNEL void name(int32_t elements, int32_t count, const float *input, const int32_t *places,                   \
                         const float *updates, float *output)                                                          \
    {                                                                                                                  \
        memcpy(output, input, (uint32_t)elements * sizeof(float));                                                     \
        for (int32_t i = 0; i < count; i++) {                                                                          \
            if (places[i] >= 0 && places[i] < elements) {                                                              \
                const float a = output[places[i]];                                                                     \
                const float b = updates[i];                                                                            \
                output[places[i]] = combined;                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }

MLF_SCATTER_ELEMENTS(mlf_scatter_elements_add_float, a + b)
MLF_SCATTER_ELEMENTS(mlf_scatter_elements_mul_float, a *b)
MLF_SCATTER_ELEMENTS(mlf_scatter_elements_max_float, a > b ? a : b)
MLF_SCATTER_ELEMENTS(mlf_scatter_elements_min_float, a < b ? a : b)

#endif /* MLF_SCATTER_ELEMENTS_H_ */
