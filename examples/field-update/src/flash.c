#include "flash.h"

#include <stdbool.h>
#include <string.h>

static _Alignas(16) uint8_t memory[FLASH_SIZE];
static bool programmed[FLASH_SIZE / FLASH_UNIT];

const uint8_t *flash_memory(void)
{
    return memory;
}

int flash_erase(uint32_t offset)
{
    if (offset % FLASH_SECTOR != 0u || offset >= FLASH_SIZE) {
        return -1;
    }
    memset(memory + offset, 0xff, FLASH_SECTOR);
    memset(programmed + offset / FLASH_UNIT, 0, FLASH_SECTOR / FLASH_UNIT);
    return 0;
}

int flash_program(uint32_t offset, const void *data, size_t size)
{
    if (offset % FLASH_UNIT != 0u || size % FLASH_UNIT != 0u || offset > FLASH_SIZE || size > FLASH_SIZE - offset) {
        return -1;
    }
    for (uint32_t unit = offset / FLASH_UNIT; unit < (offset + size) / FLASH_UNIT; unit++) {
        if (programmed[unit]) {
            return -1;
        }
        programmed[unit] = true;
    }
    memcpy(memory + offset, data, size);
    return 0;
}
