/* What a signature of ECDSA P-256 over a SHA-256 needs of Mbed TLS 2.28, with memory in an array. */
#ifndef MBEDTLS_CONFIG_H
#define MBEDTLS_CONFIG_H

#define MBEDTLS_ASN1_PARSE_C
#define MBEDTLS_ASN1_WRITE_C
#define MBEDTLS_BIGNUM_C
#define MBEDTLS_ECDSA_C
#define MBEDTLS_ECP_C
#define MBEDTLS_ECP_DP_SECP256R1_ENABLED
#define MBEDTLS_ECP_NIST_OPTIM
#define MBEDTLS_SHA256_C

/* Random numbers hide a private key from those who measure, and a check of a signature has none. */
#define MBEDTLS_ECP_NO_INTERNAL_RNG

#define MBEDTLS_MEMORY_BUFFER_ALLOC_C
#define MBEDTLS_PLATFORM_C
#define MBEDTLS_PLATFORM_MEMORY

/* Tables of 4 points instead of 8: less memory. */
#define MBEDTLS_ECP_WINDOW_SIZE 3
#define MBEDTLS_MPI_MAX_SIZE 64

#include "mbedtls/check_config.h"

#endif /* MBEDTLS_CONFIG_H */
