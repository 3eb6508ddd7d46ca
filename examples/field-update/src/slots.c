#include "slots.h"

#include <string.h>

#include "flash.h"
#include "tvmgen_digits.h"

enum { HEADER = 128, VERSION = 80 };

static int used = -1;
static uint32_t expected; /* bytes of the blob that is written */
static uint32_t received;
static _Alignas(16) uint8_t header[HEADER];

static const uint8_t *slot(int number)
{
    return flash_memory() + (uint32_t)number * SLOT_SIZE;
}

/* All checks of a blob, and its test vectors; then use it. */
static int take(int number)
{
    static _Alignas(MLF_DIGITS_WORKSPACE_ALIGNMENT) uint8_t workspace[TVMGEN_DIGITS_WORKSPACE_SIZE];
    static _Alignas(16) uint8_t results[MLF_DIGITS_PARAMETERS_RESULTS_SIZE];
    int32_t result = mlf_digits_test_parameters(slot(number), SLOT_SIZE, workspace, results);
    if (result == 0) {
        result = mlf_digits_use_parameters(slot(number), SLOT_SIZE);
    }
    used = result == 0 ? number : used;
    return (int)result;
}

static uint32_t version(int number)
{
    uint32_t found;
    memcpy(&found, slot(number) + VERSION, sizeof found);
    return found;
}

int slots_start(void)
{
    const int first = version(0) > version(1) ? 0 : 1;
    expected = received = 0;
    used = -1;
    (void)mlf_digits_use_parameters(mlf_digits_parameters, MLF_DIGITS_PARAMETERS_SIZE);
    if (take(first) != 0) {
        (void)take(1 - first);
    }
    return used;
}

int slots_used(void)
{
    return used;
}

int slots_begin(uint32_t size)
{
    const uint32_t begin = used == 0 ? SLOT_SIZE : 0u;
    if (size < HEADER || size > SLOT_SIZE) {
        return SLOTS_ORDER;
    }
    for (uint32_t at = begin; at < begin + SLOT_SIZE; at += FLASH_SECTOR) {
        if (flash_erase(at) != 0) {
            return SLOTS_FLASH;
        }
    }
    expected = size;
    received = 0;
    return 0;
}

int slots_write(const uint8_t *data, size_t size)
{
    const uint32_t begin = used == 0 ? SLOT_SIZE : 0u;
    if (size > expected - received || size % FLASH_UNIT != 0u) {
        return SLOTS_ORDER;
    }
    for (; size > 0u; size -= FLASH_UNIT, data += FLASH_UNIT, received += FLASH_UNIT) {
        if (received < HEADER) {
            memcpy(header + received, data, FLASH_UNIT);
        } else if (flash_program(begin + received, data, FLASH_UNIT) != 0) {
            return SLOTS_FLASH;
        }
    }
    return 0;
}

int slots_end(void)
{
    const int number = used == 0 ? 1 : 0;
    const uint32_t begin = used == 0 ? SLOT_SIZE : 0u;
    uint32_t new_version;
    int result;
    memcpy(&new_version, header + VERSION, sizeof new_version);
    if (expected == 0u || received != expected) {
        return SLOTS_ORDER;
    }
    if (new_version <= mlf_digits_parameters_version()) {
        return SLOTS_OLD; /* an old blob with a right signature must not come back */
    }
    expected = 0;
    if (flash_program(begin, header, sizeof header) != 0) {
        return SLOTS_FLASH;
    }
    result = take(number);
    if (result != 0) {
        (void)flash_erase(begin); /* the header: the next start need not check it again */
    }
    return result;
}
