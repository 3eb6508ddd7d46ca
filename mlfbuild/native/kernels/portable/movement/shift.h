/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * One step of a ring buffer whose elements are in the order of time: the oldest are dropped, the latest are appended.
 *
 * Bytes are moved towards the start, in order, so that the buffer can be updated in place.
 */
#ifndef MLF_SHIFT_H_
#define MLF_SHIFT_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

/* Copy count bytes to the same or a lower address. Word by word, because small C libraries move single bytes. */
MLF_KERNEL void mlf_move_back(uint8_t *to, const uint8_t *from, int32_t count)
{
    int32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        uint32_t word;
        memcpy(&word, from + i, sizeof word);
        memcpy(to + i, &word, sizeof word);
    }
    for (; i < count; i++) {
        to[i] = from[i];
    }
}

/* Drop `step` bytes of each of `blocks` consecutive buffers of `size` bytes, and append those of `latest`. */
MLF_KERNEL void mlf_shift(int32_t blocks, int32_t size, int32_t step, const uint8_t *kept, const uint8_t *latest,
                          uint8_t *output)
{
    for (int32_t block = 0; block < blocks; block++) {
        mlf_move_back(output, kept + step, size - step);
        mlf_move_back(output + size - step, latest, step);
        kept += size;
        latest += step;
        output += size;
    }
}

#endif /* MLF_SHIFT_H_ */
