/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Values in messages, and the answers to requests. */
#ifndef MLF_RPC_VALUES_H_
#define MLF_RPC_VALUES_H_

#include "mlf_rpc_packets.h"

enum code {
    SHUTDOWN = 1,
    INIT_SERVER,
    CALL_FUNCTION,
    RETURN,
    EXCEPTION,
    COPY_FROM_REMOTE,
    COPY_TO_REMOTE,
    COPY_ACK,
    GET_GLOBAL_FUNCTION,
    FREE_HANDLE,
    SET_DEVICE,
    GET_ATTRIBUTE,
    ALLOCATE,
    FREE,
    SYNCHRONIZE,
    COPY_AMONG_REMOTE,
    ALLOCATE_WITH_SCOPE,
    CREATE_STREAM,
    FREE_STREAM,
    SET_STREAM
};
enum type {
    INTEGER = 0,
    UNSIGNED = 1,
    REAL = 2,
    HANDLE = 3,
    NOTHING_AT_ALL = 4,
    DATA_TYPE = 5,
    DEVICE = 6,
    TENSOR = 7,
    MODULE = 9,
    FUNCTION = 10,
    STRING = 11,
    BYTES = 12,
    ARRAY = 13,
    BOOLEAN = 15
};
enum { CPU = 1 }; /* DLDeviceType */
enum { MOST_ARGUMENTS = 24, MOST_DIMENSIONS = 8 };

struct reader {
    const uint8_t *at;
    size_t left;
    int failed;
};

/* TVM's DLTensor, as operators get it. */
struct dl_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t dimensions;
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
};

/* TVM's TVMValue. */
union value {
    int64_t integer;
    double real;
    void *handle;
    struct {
        int32_t type;
        int32_t id;
    } device;
    struct {
        uint8_t code;
        uint8_t bits;
        uint16_t lanes;
    } data_type;
};

struct arguments {
    int32_t count;
    int types[MOST_ARGUMENTS];
    union value values[MOST_ARGUMENTS];
    size_t sizes[MOST_ARGUMENTS]; /* of strings */
    struct dl_tensor tensors[MOST_ARGUMENTS];
    int64_t shapes[MOST_ARGUMENTS][MOST_DIMENSIONS];
};

/* Answers: the result of a request, or its failure. `mlf_rpc_begin_answer` has `size` bytes after the code. */
void mlf_rpc_begin_answer(enum code code, uint32_t size);
void mlf_rpc_answer_void(void);
void mlf_rpc_answer_handle(uint64_t handle);
void mlf_rpc_fail(const char *text);

/* Answers to calls: `as` is the type as which the value is sent. */
void mlf_rpc_return_number(enum type type, enum type as, uint64_t value);
void mlf_rpc_return_void(void);
void mlf_rpc_return_text(const char *text);
void mlf_rpc_return_tensor(const struct mlf_rpc_tensor *tensor);

/* Take a number of `size` bytes, a tensor without its data, or all arguments; these return 0 if they are damaged. */
uint64_t mlf_rpc_take(struct reader *reader, unsigned size);
void mlf_rpc_take_tensor(struct reader *reader, struct dl_tensor *tensor, int64_t *shape);
int mlf_rpc_take_arguments(struct reader *reader, struct arguments *arguments);

int mlf_rpc_is_named(const struct arguments *arguments, int32_t i, const char *name);
int mlf_rpc_has(const struct arguments *arguments, int32_t i, enum type type);
uint32_t mlf_rpc_handle_of(const struct arguments *arguments, int32_t i);

#endif /* MLF_RPC_VALUES_H_ */
