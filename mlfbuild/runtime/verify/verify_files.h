/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Read and write all bytes: each function returns 1 if it succeeded.
 */
#ifndef MLF_VERIFY_FILES_H_
#define MLF_VERIFY_FILES_H_

#include <stdint.h>
#include <string.h>
#include <unistd.h>

static inline int read_all(int file, uint8_t *bytes, uint32_t size)
{
    while (size > 0) {
        const int got = (int)read(file, bytes, size);
        if (got <= 0) {
            return 0;
        }
        bytes += got;
        size -= (uint32_t)got;
    }
    return 1;
}

static inline int write_all(int file, const void *data, uint32_t size)
{
    const uint8_t *bytes = data;
    while (size > 0) {
        const int put = (int)write(file, bytes, size);
        if (put <= 0) {
            return 0;
        }
        bytes += put;
        size -= (uint32_t)put;
    }
    return 1;
}

/* A file with bytes that are not written to it yet. */
struct output {
    int file;
    uint32_t size;
    uint8_t bytes[256];
};

static inline int flush(struct output *output)
{
    const uint32_t size = output->size;
    output->size = 0;
    return write_all(output->file, output->bytes, size);
}

/* Append to the file, at the latest when it is flushed. */
static inline int put(struct output *output, const void *data, uint32_t size)
{
    if (size > sizeof output->bytes - output->size && !flush(output)) {
        return 0;
    }
    if (size > sizeof output->bytes) {
        return write_all(output->file, data, size);
    }
    memcpy(output->bytes + output->size, data, size);
    output->size += size;
    return 1;
}

#endif /* MLF_VERIFY_FILES_H_ */
