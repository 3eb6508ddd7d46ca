/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* What mlf_rpc.c and mlf_rpc_calls.c share. */
#ifndef MLF_RPC_PACKETS_H_
#define MLF_RPC_PACKETS_H_

#include "mlf_rpc.h"

/* Bytes of a packet without its message: start, length, session and kind, CRC. */
#define MLF_RPC_OVERHEAD (2 + 4 + 3 + 2)

/* Send the message of an answer, which has `size` bytes. */
void mlf_rpc_begin(uint32_t size);
void mlf_rpc_put(const void *bytes, size_t size);
void mlf_rpc_put_number(uint64_t value, unsigned size);
void mlf_rpc_end(void);

/* Perform the request in a message and answer it. */
void mlf_rpc_serve_models(const struct mlf_rpc_model *models, int32_t count);
void mlf_rpc_serve(const uint8_t *message, size_t size);

#endif /* MLF_RPC_PACKETS_H_ */
