/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Values in messages: answers, and arguments of requests. */
#include "mlf_rpc_values.h"

#include <string.h>

/* ---- Answers ------------------------------------------------------------------------------------------------- */

/* Begin an answer of `size` bytes after the code. */
void mlf_rpc_begin_answer(enum code code, uint32_t size)
{
    mlf_rpc_begin(4 + size);
    mlf_rpc_put_number(code, 4);
}

static void answer_type(enum type type)
{
    mlf_rpc_begin_answer(RETURN, 8);
    mlf_rpc_put_number(1, 4);
    mlf_rpc_put_number(type, 4);
    mlf_rpc_end();
}

void mlf_rpc_answer_void(void)
{
    answer_type(NOTHING_AT_ALL);
}

void mlf_rpc_answer_handle(uint64_t handle)
{
    mlf_rpc_begin_answer(RETURN, 16);
    mlf_rpc_put_number(1, 4);
    mlf_rpc_put_number(HANDLE, 4);
    mlf_rpc_put_number(handle, 8);
    mlf_rpc_end();
}

void mlf_rpc_fail(const char *text)
{
    const uint32_t size = (uint32_t)strlen(text);
    mlf_rpc_begin_answer(EXCEPTION, 16 + size);
    mlf_rpc_put_number(1, 4);
    mlf_rpc_put_number(STRING, 4);
    mlf_rpc_put_number(size, 8);
    mlf_rpc_put(text, size);
    mlf_rpc_end();
}

/* The result of a call: its type, then its value, which is encoded as the type `as`. */
static void begin_result(enum type type, enum type as, uint32_t size)
{
    mlf_rpc_begin_answer(RETURN, 4 + 2 * 4 + 8 + size);
    mlf_rpc_put_number(2, 4);
    mlf_rpc_put_number(INTEGER, 4);
    mlf_rpc_put_number(as, 4);
    mlf_rpc_put_number(type, 8);
}

void mlf_rpc_return_number(enum type type, enum type as, uint64_t value)
{
    begin_result(type, as, 8);
    mlf_rpc_put_number(value, 8);
    mlf_rpc_end();
}

void mlf_rpc_return_void(void)
{
    begin_result(NOTHING_AT_ALL, NOTHING_AT_ALL, 0);
    mlf_rpc_end();
}

void mlf_rpc_return_text(const char *text)
{
    const uint32_t size = (uint32_t)strlen(text);
    begin_result(STRING, STRING, 8 + size);
    mlf_rpc_put_number(size, 8);
    mlf_rpc_put(text, size);
    mlf_rpc_end();
}

void mlf_rpc_return_tensor(const struct mlf_rpc_tensor *tensor)
{
    const uint32_t dimensions = (uint32_t)tensor->dimensions;
    mlf_rpc_begin_answer(RETURN, 4 + 3 * 4 + 8 + 8 + 8 + 4 + 4 + 8 * dimensions + 8 + 8);
    mlf_rpc_put_number(3, 4);
    mlf_rpc_put_number(INTEGER, 4);
    mlf_rpc_put_number(TENSOR, 4);
    mlf_rpc_put_number(HANDLE, 4);
    mlf_rpc_put_number(ARRAY, 8);
    mlf_rpc_put_number((uintptr_t)tensor->data, 8);
    mlf_rpc_put_number(CPU, 4);
    mlf_rpc_put_number(0, 4);
    mlf_rpc_put_number(dimensions, 4);
    mlf_rpc_put_number(tensor->code, 1);
    mlf_rpc_put_number(tensor->bits, 1);
    mlf_rpc_put_number(1, 2);
    for (uint32_t i = 0; i < dimensions; i++) {
        mlf_rpc_put_number((uint64_t)tensor->shape[i], 8);
    }
    mlf_rpc_put_number(0, 8);
    mlf_rpc_put_number((uintptr_t)tensor->data, 8);
    mlf_rpc_end();
}

/* ---- Reading a request --------------------------------------------------------------------------------------- */

uint64_t mlf_rpc_take(struct reader *reader, unsigned size)
{
    uint64_t value = 0;
    if (reader->left < size) {
        reader->failed = 1;
        return 0;
    }
    for (unsigned i = 0; i < size; i++) {
        value |= (uint64_t)reader->at[i] << (8 * i);
    }
    reader->at += size;
    reader->left -= size;
    return value;
}

void mlf_rpc_take_tensor(struct reader *reader, struct dl_tensor *tensor, int64_t *shape)
{
    tensor->data = (void *)(uintptr_t)mlf_rpc_take(reader, 8);
    tensor->device_type = (int32_t)mlf_rpc_take(reader, 4);
    tensor->device_id = (int32_t)mlf_rpc_take(reader, 4);
    tensor->dimensions = (int32_t)mlf_rpc_take(reader, 4);
    tensor->code = (uint8_t)mlf_rpc_take(reader, 1);
    tensor->bits = (uint8_t)mlf_rpc_take(reader, 1);
    tensor->lanes = (uint16_t)mlf_rpc_take(reader, 2);
    if (tensor->dimensions < 0 || tensor->dimensions > MOST_DIMENSIONS) {
        reader->failed = 1;
        return;
    }
    for (int32_t i = 0; i < tensor->dimensions; i++) {
        shape[i] = (int64_t)mlf_rpc_take(reader, 8);
    }
    tensor->shape = shape;
    tensor->strides = NULL;
    tensor->byte_offset = mlf_rpc_take(reader, 8);
}

static void take_string(struct reader *reader, struct arguments *arguments, int32_t i)
{
    const uint64_t size = mlf_rpc_take(reader, 8);
    if (size > reader->left) {
        reader->failed = 1;
        return;
    }
    arguments->values[i].handle = (void *)(uintptr_t)reader->at;
    arguments->sizes[i] = (size_t)size;
    reader->at += size;
    reader->left -= (size_t)size;
}

static void take_argument(struct reader *reader, struct arguments *arguments, int32_t i)
{
    union value *value = &arguments->values[i];
    value->integer = 0;
    switch (arguments->types[i]) {
    case INTEGER:
    case UNSIGNED:
    case REAL:
    case BOOLEAN:
        value->integer = (int64_t)mlf_rpc_take(reader, 8);
        break;
    case HANDLE:
    case MODULE:
    case FUNCTION:
        value->handle = (void *)(uintptr_t)mlf_rpc_take(reader, 8);
        break;
    case DATA_TYPE:
        value->data_type.code = (uint8_t)mlf_rpc_take(reader, 1);
        value->data_type.bits = (uint8_t)mlf_rpc_take(reader, 1);
        value->data_type.lanes = (uint16_t)mlf_rpc_take(reader, 2);
        (void)mlf_rpc_take(reader, 4); /* padding */
        break;
    case DEVICE:
        value->device.type = (int32_t)mlf_rpc_take(reader, 4);
        value->device.id = (int32_t)mlf_rpc_take(reader, 4);
        break;
    case TENSOR:
        mlf_rpc_take_tensor(reader, &arguments->tensors[i], arguments->shapes[i]);
        value->handle = &arguments->tensors[i];
        break;
    case STRING:
    case BYTES:
        take_string(reader, arguments, i);
        break;
    case NOTHING_AT_ALL:
        break;
    default:
        reader->failed = 1;
    }
}

int mlf_rpc_take_arguments(struct reader *reader, struct arguments *arguments)
{
    arguments->count = (int32_t)mlf_rpc_take(reader, 4);
    if (arguments->count < 0 || arguments->count > MOST_ARGUMENTS) {
        return 0;
    }
    for (int32_t i = 0; i < arguments->count; i++) {
        arguments->types[i] = (int)mlf_rpc_take(reader, 4);
    }
    for (int32_t i = 0; i < arguments->count && !reader->failed; i++) {
        take_argument(reader, arguments, i);
    }
    return !reader->failed;
}

int mlf_rpc_is_named(const struct arguments *arguments, int32_t i, const char *name)
{
    const size_t size = strlen(name);
    return arguments->sizes[i] == size && memcmp(arguments->values[i].handle, name, size) == 0;
}

int mlf_rpc_has(const struct arguments *arguments, int32_t i, enum type type)
{
    return i < arguments->count && arguments->types[i] == (int)type;
}

uint32_t mlf_rpc_handle_of(const struct arguments *arguments, int32_t i)
{
    return (uint32_t)(uintptr_t)arguments->values[i].handle;
}
