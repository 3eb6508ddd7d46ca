/* SHA-256 (FIPS 180-4). Use your library's or your hardware's if there is one. */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256(const uint8_t *data, size_t size, uint8_t hash[32]);

#endif /* SHA256_H */
