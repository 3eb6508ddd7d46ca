/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The device's side of microTVM's RPC protocol: a host with TVM sets the inputs of models, runs them, reads their outputs
 * and, for archives that were exported with `system-lib`, calls single operators. It needs one byte stream, such as a
 * UART, and about 5 KiB of RAM. Tensors that the host allocates come from malloc().
 *
 *   mlf_rpc_start(models, 1, send);
 *   for (;;) {
 *       uint8_t byte = ...;            // the next received byte
 *       mlf_rpc_receive(&byte, 1);     // answers through send()
 *   }
 *
 * The host sees the functions of TVM's own server that sessions use: runtime.SystemLib, tvm.aot_executor.create,
 * tvm.rpc.server.ModuleGetFunction and tvm.rpc.server.GetCRTMaxPacketSize. Nothing else may be written to the stream.
 * A host that can write to the stream controls the device, as with a debug probe: do not ship this code in products.
 *
 * Packets: 0xff 0xfd, length (4 bytes), payload, CRC-16 (polynomial 0x1021, initial value 0xffff, over all bytes before
 * it as they are sent); a byte 0xff of length, payload or CRC is sent twice, and 0xff 0xfe is ignored. The payload is a
 * session (2 bytes: the host's nonce, the device's nonce), a kind (1 byte) and a message. Numbers are little-endian.
 */
#ifndef MLF_RPC_H_
#define MLF_RPC_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the largest packet in either direction. The host is told, and its receive buffer has at least 2048 bytes. */
#ifndef MLF_RPC_PACKET_SIZE
#define MLF_RPC_PACKET_SIZE 2048
#endif

/* An input or output. The type has the fields of DLPack's DLDataType. */
struct mlf_rpc_tensor {
    const char *name;
    void *data;
    size_t size; /* bytes */
    const int64_t *shape;
    int32_t dimensions;
    uint8_t code;
    uint8_t bits;
};

/* A packed function of TVM, and its TVMModule: the table of functions of an archive with `system-lib`. */
typedef int mlf_rpc_function(void *values, int *types, int count, void *result, int *result_type, void *resource);
struct mlf_rpc_functions {
    const char *names; /* their number, then each name with a zero byte after it */
    mlf_rpc_function *const *functions;
};
struct mlf_rpc_library {
    const struct mlf_rpc_functions *functions;
};

struct mlf_rpc_model {
    const char *name;
    int32_t (*run)(void); /* 0, or an error */
    const struct mlf_rpc_tensor *inputs;
    const struct mlf_rpc_tensor *outputs;
    int32_t input_count;
    int32_t output_count;
    const struct mlf_rpc_library *library; /* NULL if it has no table of functions */
};

/* Begin: `models` must stay valid, and `send` sends all bytes. The host learns of the reset. */
void mlf_rpc_start(const struct mlf_rpc_model *models, int32_t count, void (*send)(const uint8_t *bytes, size_t size));

/* Process bytes that have arrived. */
void mlf_rpc_receive(const uint8_t *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* MLF_RPC_H_ */
