/*
 * What the kernels of a module that TVM generated call: memory for the time of a call, and loops that could run in
 * parallel. workspace.h has the functions.
 */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include "c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*TVMBackendPackedCFunc)(TVMValue *args, int *type_codes, int num_args, TVMValue *out_value,
                                     int *out_type_code, void *resource_handle);

/* Memory aligned to 16 bytes, or NULL where the workspace has no `nbytes` left. What came last goes first. */
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                               int dtype_bits_hint);
int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr);

typedef struct {
    void *sync_handle;
    int32_t num_task;
} TVMParallelGroupEnv;

typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv *environment, void *closure);

/* Runs the tasks one after the other. */
int TVMBackendParallelLaunch(FTVMParallelLambda task, void *closure, int num_task);
int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv *environment);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_C_BACKEND_API_H_ */
