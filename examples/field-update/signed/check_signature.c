/*
 * The hook of mlfbuild's code with a signature: ECDSA P-256 over the SHA-256 of the whole blob. The signature is behind
 * the blob in the slot, as `openssl dgst -sha256 -sign` writes it (DER, at most 72 bytes).
 */
#include <stdbool.h>

#include "mbedtls/ecdsa.h"
#include "mbedtls/memory_buffer_alloc.h"
#include "mbedtls/sha256.h"
#include "public_key.h"
#include "slots.h"
#include "tvmgen_digits.h"

enum { SEQUENCE = 0x30, LONGEST = 72, MEMORY = 6144 };

static bool is_signed(const uint8_t *blob, size_t size, const uint8_t *signature, size_t length)
{
    static const uint8_t key[] = {PUBLIC_KEY};
    mbedtls_ecdsa_context context;
    uint8_t hash[32];
    int result = mbedtls_sha256_ret(blob, size, hash, 0);
    mbedtls_ecdsa_init(&context);
    if (result == 0) {
        result = mbedtls_ecp_group_load(&context.grp, MBEDTLS_ECP_DP_SECP256R1);
    }
    if (result == 0) {
        result = mbedtls_ecp_point_read_binary(&context.grp, &context.Q, key, sizeof key);
    }
    if (result == 0) {
        result = mbedtls_ecp_check_pubkey(&context.grp, &context.Q);
    }
    if (result == 0) {
        result = mbedtls_ecdsa_read_signature(&context, hash, sizeof hash, signature, length);
    }
    mbedtls_ecdsa_free(&context);
    return result == 0;
}

int32_t mlf_digits_check_parameters(const void *blob, size_t size)
{
    static _Alignas(8) uint8_t memory[MEMORY];
    const uint8_t *const bytes = (const uint8_t *)blob;
    const uint8_t *const signature = bytes + size;
    size_t length;
    bool right;
    if (blob == (const void *)mlf_digits_parameters) {
        return 0; /* a part of the image, whose signature the boot loader checks */
    }
    if (size > SLOT_SIZE - 2u || signature[0] != SEQUENCE) {
        return 1; /* erased: there is no signature */
    }
    length = 2u + (size_t)signature[1];
    if (length > LONGEST || length > SLOT_SIZE - size) {
        return 1;
    }
    mbedtls_memory_buffer_alloc_init(memory, sizeof memory);
    right = is_signed(bytes, size, signature, length);
    mbedtls_memory_buffer_alloc_free();
    return right ? 0 : 1;
}
