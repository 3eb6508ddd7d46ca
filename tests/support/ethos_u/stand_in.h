/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in knows of the calls of a network. */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <stddef.h>
#include <stdint.h>

struct stand_in_call {
    const uint8_t *stream;
    int stream_size;
    const uint8_t *weights;
    size_t sizes[3];
    int own_memory;
    int (*compute)(uint8_t *memory);
};

extern const struct stand_in_call stand_in_calls[];
extern const int stand_in_count;

#endif
