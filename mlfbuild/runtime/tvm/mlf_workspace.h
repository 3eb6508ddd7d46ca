/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * TVM's workspace for one module: a stack in memory that the module's run function provides.
 *
 * One file of each module includes this header and defines MLF_MODULE, so that modules share nothing.
 */
#ifndef MLF_WORKSPACE_H_
#define MLF_WORKSPACE_H_

#include "mlf_objects.h"
#include "tvm/runtime/c_backend_api.h"

enum { MLF_WORKSPACE_STEP = 16 };

static struct {
    uint8_t *top;
    uint8_t *end;
    const char *error;
} mlf_stack;

/* Provide kernels with `size` bytes at `memory`, which is aligned to 16. */
static inline void mlf_workspace_begin(uint8_t *memory, uint32_t size)
{
    mlf_stack.top = memory;
    mlf_stack.end = memory + size;
}

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                               int dtype_bits_hint)
{
    uint8_t *const memory = mlf_stack.top;
    const uint64_t left = (uint64_t)(mlf_stack.end - mlf_stack.top);
    (void)device_type, (void)device_id, (void)dtype_code_hint, (void)dtype_bits_hint;
    if (nbytes > left || (nbytes + MLF_WORKSPACE_STEP - 1) / MLF_WORKSPACE_STEP * MLF_WORKSPACE_STEP > left) {
        return NULL;
    }
    mlf_stack.top += (nbytes + MLF_WORKSPACE_STEP - 1) / MLF_WORKSPACE_STEP * MLF_WORKSPACE_STEP;
    return memory;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr)
{
    (void)device_type, (void)device_id;
    mlf_stack.top = (uint8_t *)ptr;
    return 0;
}

int TVMBackendParallelLaunch(FTVMParallelLambda task, void *closure, int num_task)
{
    const int tasks = num_task > 0 ? num_task : 1;
    TVMParallelGroupEnv environment = {NULL, tasks};
    for (int id = 0; id < tasks; id++) {
        const int status = task(id, &environment, closure);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv *environment)
{
    (void)task_id, (void)environment;
    return 0;
}

void TVMAPISetLastError(const char *message)
{
    mlf_stack.error = message;
}

const char *TVMGetLastError(void)
{
    return mlf_stack.error;
}

#endif /* MLF_WORKSPACE_H_ */
