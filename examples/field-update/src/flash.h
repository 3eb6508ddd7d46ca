/*
 * A small flash driver. Here it emulates flash in the board's RAM, with the rules of real flash: a sector is erased as a
 * whole, which sets all bits, and a unit of 16 bytes is programmed once after that. Replace flash.c by your part's.
 */
#ifndef FLASH_H
#define FLASH_H

#include <stddef.h>
#include <stdint.h>

#define FLASH_SECTOR 4096u
#define FLASH_UNIT 16u
#define FLASH_SIZE (16u * FLASH_SECTOR)

/* The content, which is read like any memory. */
const uint8_t *flash_memory(void);

/* Both return 0, or -1 if the rules do not permit it; offsets are multiples of FLASH_SECTOR and FLASH_UNIT. */
int flash_erase(uint32_t offset);
int flash_program(uint32_t offset, const void *data, size_t size);

#endif /* FLASH_H */
