/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Memory for a module. Guards around it detect writes out of bounds; a fill pattern shows how much of the memory was
 * used.
 */
#ifndef MLF_VERIFY_MEMORY_H_
#define MLF_VERIFY_MEMORY_H_

#include <stdint.h>
#include <string.h>

/* The module's bytes, between guards. */
struct buffer {
    uint8_t *bytes;
    uint32_t size;
};

enum { GUARD = 64, ALIGNMENT = 64 };
#define GUARDED(size) ((GUARD + (size) + GUARD + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

/* Take a buffer of `size` bytes, and its guards, off the front of the free memory. */
static inline struct buffer take(uint8_t **free_memory, uint32_t size)
{
    const struct buffer buffer = {*free_memory + GUARD, size};
    *free_memory += GUARDED(size);
    return buffer;
}

/* All bytes of a guard differ, so that no fill pattern equals it. */
static inline uint8_t guard_byte(uint32_t i, uint8_t paint)
{
    return (uint8_t)(paint ^ (i + 1));
}

static inline void paint_guards(struct buffer buffer, uint8_t paint)
{
    for (uint32_t i = 0; i < GUARD; i++) {
        buffer.bytes[buffer.size + i] = guard_byte(i, paint);
        *(buffer.bytes - 1 - i) = guard_byte(i, paint);
    }
}

/* Paint a buffer and set up its guards. */
static inline void prepare(struct buffer buffer, uint8_t paint)
{
    memset(buffer.bytes, paint, buffer.size);
    paint_guards(buffer, paint);
}

static inline int guards_hold(struct buffer buffer, uint8_t paint)
{
    for (uint32_t i = 0; i < GUARD; i++) {
        if (buffer.bytes[buffer.size + i] != guard_byte(i, paint) || *(buffer.bytes - 1 - i) != guard_byte(i, paint)) {
            return 0;
        }
    }
    return 1;
}

/* Bytes from the start to the last one that lost its paint. */
static inline uint32_t used(struct buffer buffer, uint8_t paint)
{
    uint32_t size = buffer.size;
    while (size > 0 && buffer.bytes[size - 1] == paint) {
        size--;
    }
    return size;
}

#endif /* MLF_VERIFY_MEMORY_H_ */
