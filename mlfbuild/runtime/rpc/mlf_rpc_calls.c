/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* The requests of a session: functions, tensors and memory. */
#include <stdlib.h>
#include <string.h>

#include "mlf_rpc_values.h"

/* Handles that the host keeps. Those of functions have the module in the upper half. */
enum { SYSTEM_LIBRARY = 0x100, EXECUTOR = 0x200, FUNCTIONS = 0x10000 };
enum global { CREATE_EXECUTOR = 1, GET_SYSTEM_LIBRARY, GET_FUNCTION, GET_PACKET_SIZE, GLOBALS };
static const char *const global_names[GLOBALS] = {
    [CREATE_EXECUTOR] = "tvm.aot_executor.create",
    [GET_SYSTEM_LIBRARY] = "runtime.SystemLib",
    [GET_FUNCTION] = "tvm.rpc.server.ModuleGetFunction",
    [GET_PACKET_SIZE] = "tvm.rpc.server.GetCRTMaxPacketSize",
};
enum method { GET_INPUT, GET_INPUT_INDEX, GET_INPUT_NAME, GET_INPUTS, GET_OUTPUTS, GET_OUTPUT, RUN, SET_INPUT, METHODS };
static const char *const method_names[METHODS] = {
    [GET_INPUT] = "get_input",           [GET_INPUT_INDEX] = "get_input_index", [GET_INPUT_NAME] = "get_input_name",
    [GET_INPUTS] = "get_num_inputs",     [GET_OUTPUTS] = "get_num_outputs",     [GET_OUTPUT] = "get_output",
    [RUN] = "run",                       [SET_INPUT] = "set_input",
};

static struct {
    const struct mlf_rpc_model *models;
    int32_t count;
    const struct mlf_rpc_model *prepared; /* the last model that ran, or whose operators ran */
} rpc;

void mlf_rpc_serve_models(const struct mlf_rpc_model *models, int32_t count)
{
    rpc.models = models;
    rpc.count = count;
    rpc.prepared = NULL;
}

/* ---- Functions ----------------------------------------------------------------------------------------------- */

/* Return the number of functions in the table of a library, and their names: TVM 0.8 has one byte for the number. */
static int32_t functions_of(const struct mlf_rpc_library *library, const char **names)
{
    const char *const bytes = library->functions->names;
    const int is_short = (uint8_t)bytes[1] >= ' ';
    *names = bytes + (is_short ? 1 : 2);
    return is_short ? (uint8_t)bytes[0] : (uint8_t)bytes[0] | (uint8_t)bytes[1] << 8;
}

/* Return the number of the function in the table of a library, or -1. */
static int32_t function_called(const struct mlf_rpc_library *library, const struct arguments *arguments, int32_t i)
{
    const char *name;
    const int32_t count = functions_of(library, &name);
    for (int32_t number = 0; number < count; number++) {
        if (mlf_rpc_is_named(arguments, i, name)) {
            return number;
        }
        name += strlen(name) + 1;
    }
    return -1;
}

/* Return the model of a handle that is `base` and a number, or NULL. */
static const struct mlf_rpc_model *model_of(uint32_t handle, uint32_t base)
{
    return handle >= base && handle - base < (uint32_t)rpc.count ? &rpc.models[handle - base] : NULL;
}

/* All functions of the libraries, one library after the other, so that one system library contains all models. */
static void get_library_function(const struct arguments *arguments)
{
    for (int32_t model = 0; model < rpc.count; model++) {
        const struct mlf_rpc_library *library = rpc.models[model].library;
        const int32_t number = library == NULL ? -1 : function_called(library, arguments, 1);
        if (number >= 0) {
            mlf_rpc_return_number(FUNCTION, HANDLE, FUNCTIONS * ((uint64_t)SYSTEM_LIBRARY + (uint32_t)model) + (uint32_t)number);
            return;
        }
    }
    mlf_rpc_return_void();
}

static void get_function(const struct arguments *arguments)
{
    if (!mlf_rpc_has(arguments, 0, MODULE) || !mlf_rpc_has(arguments, 1, STRING)) {
        mlf_rpc_fail("ModuleGetFunction: expected a module and a name");
        return;
    }
    const uint32_t module = mlf_rpc_handle_of(arguments, 0);
    if (module == SYSTEM_LIBRARY) {
        get_library_function(arguments);
        return;
    }
    for (uint32_t method = 0; model_of(module, EXECUTOR) != NULL && method < METHODS; method++) {
        if (mlf_rpc_is_named(arguments, 1, method_names[method])) {
            mlf_rpc_return_number(FUNCTION, HANDLE, FUNCTIONS * (uint64_t)module + method);
            return;
        }
    }
    mlf_rpc_return_void();
}

static void create_executor(const struct arguments *arguments)
{
    if (!mlf_rpc_has(arguments, 1, DEVICE) || !mlf_rpc_has(arguments, 2, STRING) || arguments->values[1].device.type != CPU) {
        mlf_rpc_fail("tvm.aot_executor.create: expected a module, the CPU and a name");
        return;
    }
    for (int32_t model = 0; model < rpc.count; model++) {
        if (mlf_rpc_is_named(arguments, 2, rpc.models[model].name) || (rpc.count == 1 && mlf_rpc_is_named(arguments, 2, "default"))) {
            mlf_rpc_return_number(MODULE, HANDLE, EXECUTOR + (uint64_t)model);
            return;
        }
    }
    mlf_rpc_fail("tvm.aot_executor.create: the firmware has no model of this name");
}

static void call_global(uint32_t function, const struct arguments *arguments)
{
    switch (function) {
    case CREATE_EXECUTOR:
        create_executor(arguments);
        break;
    case GET_SYSTEM_LIBRARY:
        mlf_rpc_return_number(MODULE, HANDLE, SYSTEM_LIBRARY);
        break;
    case GET_FUNCTION:
        get_function(arguments);
        break;
    case GET_PACKET_SIZE:
        mlf_rpc_return_number(INTEGER, INTEGER, MLF_RPC_PACKET_SIZE - MLF_RPC_OVERHEAD);
        break;
    default:
        mlf_rpc_fail("no such function");
    }
}

/* Return the number of the input that the first argument names or numbers, or -1. */
static int32_t input_called(const struct mlf_rpc_model *model, const struct arguments *arguments)
{
    if (mlf_rpc_has(arguments, 0, INTEGER)) {
        const int64_t number = arguments->values[0].integer;
        return number >= 0 && number < model->input_count ? (int32_t)number : -1;
    }
    for (int32_t i = 0; mlf_rpc_has(arguments, 0, STRING) && i < model->input_count; i++) {
        if (mlf_rpc_is_named(arguments, 0, model->inputs[i].name)) {
            return i;
        }
    }
    return -1;
}

static void call_input(const struct mlf_rpc_model *model, uint32_t method, const struct arguments *arguments)
{
    const int32_t input = input_called(model, arguments);
    if (input < 0) {
        mlf_rpc_fail("the model has no such input");
    } else if (method == GET_INPUT) {
        mlf_rpc_return_tensor(&model->inputs[input]);
    } else if (method == GET_INPUT_NAME) {
        mlf_rpc_return_text(model->inputs[input].name);
    } else {
        mlf_rpc_return_number(INTEGER, INTEGER, (uint64_t)input);
    }
}

static void call_method(const struct mlf_rpc_model *model, uint32_t method, const struct arguments *arguments)
{
    switch (method) {
    case GET_INPUT:
    case GET_INPUT_INDEX:
    case GET_INPUT_NAME:
        call_input(model, method, arguments);
        break;
    case GET_INPUTS:
        mlf_rpc_return_number(INTEGER, INTEGER, (uint64_t)model->input_count);
        break;
    case GET_OUTPUTS:
        mlf_rpc_return_number(INTEGER, INTEGER, (uint64_t)model->output_count);
        break;
    case GET_OUTPUT:
        if (mlf_rpc_has(arguments, 0, INTEGER) && (uint64_t)arguments->values[0].integer < (uint64_t)model->output_count) {
            mlf_rpc_return_tensor(&model->outputs[arguments->values[0].integer]);
        } else {
            mlf_rpc_fail("the model has no such output");
        }
        break;
    case RUN:
        if (model->run() == 0) {
            mlf_rpc_return_void();
        } else {
            mlf_rpc_fail("the model did not run");
        }
        break;
    default:
        mlf_rpc_fail("set_input: copy to the tensor of get_input instead");
    }
}

/* Call an operator. A run of its model gives workspace to operators, so it comes first. Strings would lack their end, but
   operators only take tensors and handles. */
static void call_operator(const struct mlf_rpc_model *model, uint32_t number, struct arguments *arguments)
{
    const struct mlf_rpc_functions *const table = model->library->functions;
    union value result = {0};
    int type = NOTHING_AT_ALL;
    const char *names;
    if (number >= (uint32_t)functions_of(model->library, &names)) {
        mlf_rpc_fail("no such function");
        return;
    }
    if (rpc.prepared != model && model->run() != 0) {
        mlf_rpc_fail("the model did not run");
        return;
    }
    rpc.prepared = model;
    if (table->functions[number](arguments->values, arguments->types, arguments->count, &result, &type, NULL) != 0) {
        mlf_rpc_fail("the function failed");
    } else if (type == INTEGER || type == REAL) {
        mlf_rpc_return_number((enum type)type, (enum type)type, (uint64_t)result.integer);
    } else {
        mlf_rpc_return_void();
    }
}

static void call(struct reader *reader, struct arguments *arguments)
{
    const uint64_t function = mlf_rpc_take(reader, 8);
    if (!mlf_rpc_take_arguments(reader, arguments)) {
        mlf_rpc_fail("the arguments cannot be read");
        return;
    }
    const uint32_t module = (uint32_t)(function / FUNCTIONS), number = (uint32_t)(function % FUNCTIONS);
    const struct mlf_rpc_model *executor = model_of(module, EXECUTOR);
    const struct mlf_rpc_model *library = model_of(module, SYSTEM_LIBRARY);
    if (module == 0) {
        call_global(number, arguments);
    } else if (executor != NULL) {
        call_method(executor, number, arguments);
    } else if (library != NULL && library->library != NULL) {
        call_operator(library, number, arguments);
    } else {
        mlf_rpc_fail("no such function");
    }
}

static void get_global_function(const struct arguments *arguments)
{
    uint64_t found = 0;
    for (uint32_t i = 1; mlf_rpc_has(arguments, 0, STRING) && i < GLOBALS; i++) {
        if (mlf_rpc_is_named(arguments, 0, global_names[i])) {
            found = i;
        }
    }
    mlf_rpc_answer_handle(found);
}

/* ---- Memory -------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct dl_tensor *tensor)
{
    uint64_t count = 1;
    for (int32_t i = 0; i < tensor->dimensions; i++) {
        count *= (uint64_t)tensor->shape[i];
    }
    return count * ((tensor->bits * (uint64_t)tensor->lanes + 7) / 8);
}

static void allocate(uint64_t size)
{
    void *memory = size > SIZE_MAX ? NULL : malloc(size > 0 ? (size_t)size : 1);
    if (memory == NULL) {
        mlf_rpc_fail("the device has not enough memory for the tensor");
    } else {
        mlf_rpc_answer_handle((uintptr_t)memory);
    }
}

static void copy_from_remote(struct reader *reader, struct arguments *arguments)
{
    struct dl_tensor *tensor = &arguments->tensors[0];
    mlf_rpc_take_tensor(reader, tensor, arguments->shapes[0]);
    const uint64_t size = mlf_rpc_take(reader, 8);
    if (reader->failed || size > MLF_RPC_PACKET_SIZE - MLF_RPC_OVERHEAD - 12) {
        mlf_rpc_fail("the request to read a tensor is damaged or too large");
        return;
    }
    mlf_rpc_begin_answer(COPY_ACK, (uint32_t)size);
    mlf_rpc_put((const uint8_t *)tensor->data + tensor->byte_offset, (size_t)size);
    mlf_rpc_end();
}

static void copy_to_remote(struct reader *reader, struct arguments *arguments)
{
    struct dl_tensor *tensor = &arguments->tensors[0];
    mlf_rpc_take_tensor(reader, tensor, arguments->shapes[0]);
    const uint64_t size = mlf_rpc_take(reader, 8);
    if (reader->failed || size > reader->left) {
        mlf_rpc_fail("the request to write a tensor is damaged");
        return;
    }
    memcpy((uint8_t *)tensor->data + tensor->byte_offset, reader->at, (size_t)size);
    mlf_rpc_answer_void();
}

static void copy_among_remote(struct arguments *arguments)
{
    const struct dl_tensor *from = &arguments->tensors[0], *to = &arguments->tensors[1];
    if (!mlf_rpc_has(arguments, 0, TENSOR) || !mlf_rpc_has(arguments, 1, TENSOR) || bytes_of(from) != bytes_of(to)) {
        mlf_rpc_fail("expected two tensors of the same size");
        return;
    }
    memmove((uint8_t *)to->data + to->byte_offset, (const uint8_t *)from->data + from->byte_offset,
            (size_t)bytes_of(from));
    mlf_rpc_answer_void();
}

static void call_system(enum code code, struct arguments *arguments)
{
    switch (code) {
    case GET_GLOBAL_FUNCTION:
        get_global_function(arguments);
        break;
    case ALLOCATE:
        if (mlf_rpc_has(arguments, 1, INTEGER)) {
            allocate((uint64_t)arguments->values[1].integer);
        } else {
            mlf_rpc_fail("expected a device and a size");
        }
        break;
    case ALLOCATE_WITH_SCOPE:
        if (mlf_rpc_has(arguments, 0, TENSOR)) {
            allocate(bytes_of(&arguments->tensors[0]));
        } else {
            mlf_rpc_fail("expected a tensor");
        }
        break;
    case FREE:
        if (mlf_rpc_has(arguments, 1, HANDLE)) {
            free(arguments->values[1].handle);
        }
        mlf_rpc_answer_void();
        break;
    case COPY_AMONG_REMOTE:
        copy_among_remote(arguments);
        break;
    case FREE_HANDLE: /* tensors of models, modules and functions stay */
    case SYNCHRONIZE:
    case FREE_STREAM:
    case SET_STREAM:
        mlf_rpc_answer_void();
        break;
    case CREATE_STREAM:
        mlf_rpc_answer_handle(0);
        break;
    default:
        mlf_rpc_fail("the device does not know this request");
    }
}

void mlf_rpc_serve(const uint8_t *message, size_t size)
{
    static struct arguments arguments;
    struct reader reader = {message, size, 0};
    (void)mlf_rpc_take(&reader, 8); /* the size again */
    const enum code code = (enum code)mlf_rpc_take(&reader, 4);
    switch (code) {
    case INIT_SERVER:
        mlf_rpc_answer_void();
        break;
    case SHUTDOWN: /* the host ends the session next */
        break;
    case CALL_FUNCTION:
        call(&reader, &arguments);
        break;
    case COPY_FROM_REMOTE:
        copy_from_remote(&reader, &arguments);
        break;
    case COPY_TO_REMOTE:
        copy_to_remote(&reader, &arguments);
        break;
    default:
        if (mlf_rpc_take_arguments(&reader, &arguments)) {
            call_system(code, &arguments);
        } else {
            mlf_rpc_fail("the arguments cannot be read");
        }
    }
}

