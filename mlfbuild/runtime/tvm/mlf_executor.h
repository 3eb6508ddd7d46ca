/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Runs a graph of packed functions whose names, shapes and addresses are all fixed at build time.
 *
 * The tables are constants; tensors and values of a call are on the stack while it runs.
 */
#ifndef MLF_EXECUTOR_H_
#define MLF_EXECUTOR_H_

#include <string.h>

#include "tvm/runtime/c_backend_api.h"

/* The memory of a tensor. */
enum mlf_area { MLF_INPUT, MLF_OUTPUT, MLF_CONSTANT, MLF_STORAGE };

typedef uint16_t mlf_argument; /* the number of a tensor */

struct mlf_tensor {
    const void *data;    /* of a constant */
    const int64_t *shape;
    uint32_t position;   /* number of the input or output, or offset in the storage */
    DLDataType dtype;
    uint8_t area;
    uint8_t ndim;
};

/* A packed function, as kernels define it; 0 is success. */
typedef int32_t mlf_packed(void *args, int32_t *type_codes, int32_t num_args, void *out_value, int32_t *out_type_code,
                           void *resource_handle);

struct mlf_call {
    mlf_packed *function; /* NULL to copy the first tensor to the second */
    uint32_t first;       /* of its arguments */
    uint32_t count;       /* of its arguments, or bytes to copy */
};

/* The data of one run. */
struct mlf_run {
    void *const *inputs;
    void *const *outputs;
    uint8_t *storage;
#ifdef MLF_HOOKED
    int32_t (*hook)(void *context, uint32_t call); /* called with the number of each call before it; may be NULL */
    void *context;
#endif
};

static inline void *mlf_place(const struct mlf_tensor *tensor, const struct mlf_run *run)
{
    switch (tensor->area) {
    case MLF_INPUT:
        return run->inputs[tensor->position];
    case MLF_OUTPUT:
        return run->outputs[tensor->position];
    case MLF_CONSTANT:
        return (void *)(uintptr_t)tensor->data;
    default:
        return run->storage + tensor->position;
    }
}

#ifdef MLF_TRACE
/* Called with the number of each call after it; code that is built with MLF_TRACE to observe a run defines it. */
void mlf_called(uint32_t call, const mlf_argument *own, const struct mlf_tensor *tensors, const struct mlf_run *run);
#define MLF_CALLED(call) mlf_called((uint32_t)((call) - calls), &arguments[(call)->first], tensors, run)
#else
#define MLF_CALLED(call)
#endif

/*
 * Make the calls in order, each with at most MLF_MOST_ARGUMENTS tensors. Returns 0, the code of a function that failed,
 * or the value with which the hook cancelled the run.
 */
static inline int32_t mlf_execute(const struct mlf_tensor *tensors, const mlf_argument *arguments,
                                  const struct mlf_call *calls, uint32_t number_of_calls, const struct mlf_run *run)
{
    DLTensor views[MLF_MOST_ARGUMENTS];
    TVMValue values[MLF_MOST_ARGUMENTS], result;
    int32_t codes[MLF_MOST_ARGUMENTS], result_code = kTVMNullptr;
    for (uint32_t i = 0; i < MLF_MOST_ARGUMENTS; i++) {
        codes[i] = kTVMDLTensorHandle;
        values[i].v_handle = &views[i];
    }
    for (const struct mlf_call *call = calls; call < calls + number_of_calls; call++) {
        const mlf_argument *const own = &arguments[call->first];
        int32_t status;
#ifdef MLF_HOOKED
        status = run->hook == NULL ? 0 : run->hook(run->context, (uint32_t)(call - calls));
        if (status != 0) {
            return status;
        }
#endif
        if (call->function == NULL) {
            memcpy(mlf_place(&tensors[own[1]], run), mlf_place(&tensors[own[0]], run), call->count);
            MLF_CALLED(call);
            continue;
        }
        for (uint32_t i = 0; i < call->count; i++) {
            const struct mlf_tensor *const tensor = &tensors[own[i]];
            views[i].data = mlf_place(tensor, run);
            views[i].device.device_type = kDLCPU;
            views[i].device.device_id = 0;
            views[i].ndim = tensor->ndim;
            views[i].dtype = tensor->dtype;
            views[i].shape = (int64_t *)(uintptr_t)tensor->shape;
            views[i].strides = NULL;
            views[i].byte_offset = 0;
        }
        status = call->function(values, codes, (int32_t)call->count, &result, &result_code, NULL);
        if (status != 0) {
            return status;
        }
        MLF_CALLED(call);
    }
    return 0;
}

#endif /* MLF_EXECUTOR_H_ */
