/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Check a blob of parameters that came from outside the image. Nothing beyond `size` is read, and nothing of the blob
 * is used before all of it was checked. The layout of the header, in words:
 *   0 magic, 1 layout, 2 size in bytes, 3 CRC-32 of the bytes from 16, 4 to 11 structure, 12 to 19 SHA-256 of the bytes
 *   from 80, 20 version, 21 number of test vectors, 22 and 23 zeros, 24 to 31 SHA-256 of the model file
 */
#ifndef MLF_PARAMETERS_H_
#define MLF_PARAMETERS_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "blobs of parameters are little-endian"
#endif

/* Results of functions that check a blob; those for pointers are -1 and -3, as in other functions of a model. */
enum mlf_parameters_result {
    MLF_PARAMETERS_NULL = -1,
    MLF_PARAMETERS_MISALIGNED = -3,
    MLF_PARAMETERS_SHORT = -5,     /* fewer bytes than the header says, or than a header has */
    MLF_PARAMETERS_FORMAT = -6,    /* no blob of parameters */
    MLF_PARAMETERS_LAYOUT = -7,    /* another version of the layout */
    MLF_PARAMETERS_STRUCTURE = -8, /* of a network of another structure */
    MLF_PARAMETERS_SIZE = -9,      /* another size than this structure has */
    MLF_PARAMETERS_CHECKSUM = -10  /* damaged: CRC-32 */
};

/* Return the CRC-32 of IEEE 802.3, bit by bit: a table would be twice as fast, and larger than this code. */
MLF_KERNEL uint32_t mlf_parameters_crc32(const uint8_t *bytes, uint32_t size)
{
    uint32_t crc = UINT32_MAX;
    for (uint32_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int32_t bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (UINT32_C(0xedb88320) & (0u - (crc & 1u)));
        }
    }
    return ~crc;
}

/*
 * Return 0 if `blob`, of at most `size` bytes, fits the structure of `linked` and is whole; otherwise the first cause.
 * `linked` is the blob in the image, which has no test vectors, and `vector` the size of such a vector.
 */
MLF_COLD int32_t mlf_parameters_check(const void *blob, size_t size, const uint32_t *linked, uint32_t vector)
{
    const uint32_t *const words = (const uint32_t *)blob;
    if (blob == NULL) {
        return MLF_PARAMETERS_NULL;
    }
    if ((uintptr_t)blob % 16u != 0u) {
        return MLF_PARAMETERS_MISALIGNED;
    }
    if (size < 128u) {
        return MLF_PARAMETERS_SHORT;
    }
    for (int32_t at = 0; at < 12; at++) {
        if (words[at] != linked[at] && at != 2 && at != 3) { /* but the size and the CRC-32 */
            return at < 2 ? MLF_PARAMETERS_FORMAT - at : MLF_PARAMETERS_STRUCTURE;
        }
    }
    /* No number of vectors overflows 64 bits. */
    if (linked[2] + (uint64_t)words[21] * vector != words[2]) {
        return MLF_PARAMETERS_SIZE;
    }
    if (size < words[2]) {
        return MLF_PARAMETERS_SHORT;
    }
    if (mlf_parameters_crc32((const uint8_t *)blob + 16, words[2] - 16u) != words[3]) {
        return MLF_PARAMETERS_CHECKSUM;
    }
    return 0;
}

#endif /* MLF_PARAMETERS_H_ */
