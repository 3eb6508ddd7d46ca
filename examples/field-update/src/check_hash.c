#include <string.h>

#include "sha256.h"
#include "tvmgen_digits.h"

enum { HASH = 48, HASHED = 80 };

/* The hook of mlfbuild's code: the CRC-32 was right, so that the size is. A product checks a signature: see signed. */
int32_t mlf_digits_check_parameters(const void *blob, size_t size)
{
    const uint8_t *const bytes = (const uint8_t *)blob;
    uint8_t hash[32];
    sha256(bytes + HASHED, size - HASHED, hash);
    return memcmp(hash, bytes + HASH, sizeof hash) == 0 ? 0 : 1;
}
