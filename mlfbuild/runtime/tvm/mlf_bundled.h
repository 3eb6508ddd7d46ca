/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The platform functions that TVM's own C runtime, included in an archive, requires: memory, and the end of a run that
 * the runtime aborts.
 *
 * One file of each module includes this header and defines MLF_MODULE. The functions get names with the module's name,
 * so that modules share nothing.
 */
#ifndef MLF_BUNDLED_H_
#define MLF_BUNDLED_H_

#include <setjmp.h>

#include "mlf_objects.h"
#include "tvm/runtime/c_backend_api.h"

#define TVMPlatformMemoryAllocate MLF_OF_MODULE(TVMPlatformMemoryAllocate)
#define TVMPlatformMemoryFree MLF_OF_MODULE(TVMPlatformMemoryFree)
#define TVMPlatformAbort MLF_OF_MODULE(TVMPlatformAbort)
#define TVMLogf MLF_OF_MODULE(TVMLogf)
#define TVMFuncRegisterGlobal MLF_OF_MODULE(TVMFuncRegisterGlobal)
#define TVMBackendRegisterSystemLibSymbol MLF_OF_MODULE(TVMBackendRegisterSystemLibSymbol)

enum { MLF_WORKSPACE_STEP = 16, MLF_NO_MEMORY = -1 };

static struct {
    uint8_t *top;
    uint8_t *end;
    const char *error;
    jmp_buf begin; /* of the run */
    int32_t status;
} mlf_platform;

/* Provide kernels with `size` bytes at `memory`, which is aligned to 16. */
static inline void mlf_workspace_begin(uint8_t *memory, uint32_t size)
{
    mlf_platform.top = memory;
    mlf_platform.end = memory + size;
}

/* True if the runtime has aborted the run that starts here. */
#define mlf_given_up() (setjmp(mlf_platform.begin) != 0)

int32_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice device, void **out_ptr);
int32_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice device, void **out_ptr)
{
    const size_t left = (size_t)(mlf_platform.end - mlf_platform.top);
    (void)device;
    if (num_bytes > left || (num_bytes + MLF_WORKSPACE_STEP - 1) / MLF_WORKSPACE_STEP * MLF_WORKSPACE_STEP > left) {
        return MLF_NO_MEMORY;
    }
    *out_ptr = mlf_platform.top;
    mlf_platform.top += (num_bytes + MLF_WORKSPACE_STEP - 1) / MLF_WORKSPACE_STEP * MLF_WORKSPACE_STEP;
    return 0;
}

int32_t TVMPlatformMemoryFree(void *ptr, DLDevice device);
int32_t TVMPlatformMemoryFree(void *ptr, DLDevice device)
{
    (void)device;
    mlf_platform.top = (uint8_t *)ptr;
    return 0;
}

void TVMPlatformAbort(int32_t code);
void TVMPlatformAbort(int32_t code)
{
    mlf_platform.status = code != 0 ? code : -1;
    longjmp(mlf_platform.begin, 1);
}

void TVMLogf(const char *format, ...);
void TVMLogf(const char *format, ...)
{
    (void)format;
}

/* There is no registry: functions are called by their addresses. */
int32_t TVMFuncRegisterGlobal(const char *name, void *function, int replaced);
int32_t TVMFuncRegisterGlobal(const char *name, void *function, int replaced)
{
    (void)name, (void)function, (void)replaced;
    return -1;
}

void TVMAPISetLastError(const char *message)
{
    mlf_platform.error = message;
}

const char *TVMGetLastError(void)
{
    return mlf_platform.error;
}

#endif /* MLF_BUNDLED_H_ */
