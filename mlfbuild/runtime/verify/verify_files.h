/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Read and write all bytes: each function returns 1 if it succeeded.
 */
#ifndef MLF_VERIFY_FILES_H_
#define MLF_VERIFY_FILES_H_

#include <stdint.h>
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

#endif /* MLF_VERIFY_FILES_H_ */
