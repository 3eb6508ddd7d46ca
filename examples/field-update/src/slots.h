/*
 * Two slots for blobs of parameters. The blob in use is never touched: a new one is written to the other slot, its
 * header last, so that a cut at any time leaves a slot without a header. At start, the slot with the highest version
 * that passes all checks is used; without one, the values in the image are.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "flash.h"

#define SLOT_SIZE (FLASH_SIZE / 2u)

/* Results beside those of mlf_digits_use_parameters(). */
enum { SLOTS_FLASH = -100, SLOTS_ORDER = -101, SLOTS_OLD = -102 };

/* Choose the blob to use; to be called at start. Returns the slot, or -1 for the values in the image. */
int slots_start(void);

/* Return the slot in use, or -1. */
int slots_used(void);

/* Erase the slot that is not in use, for a blob of `size` bytes. */
int slots_begin(uint32_t size);

/* Write a piece behind the one before: a multiple of 16 bytes, unless it is the last one. */
int slots_write(const uint8_t *data, size_t size);

/* Write the header, check the blob, run its test vectors, and use it. After an error the blob before stays in use. */
int slots_end(void);

#endif /* SLOTS_H */
