/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The part of TVM's C runtime that generated code uses: the values of packed functions, and error messages.
 *
 * Written from TVM's binary interface, for modules of Model Library Format in firmware: nothing here allocates memory,
 * looks up names, or is shared by two modules. Each module's files are compiled with MLF_MODULE defined as its name,
 * which becomes a suffix of all global symbols, so that any number of modules link together.
 */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>

#include "../../dlpack/dlpack.h"

#ifndef MLF_MODULE
#error "MLF_MODULE must be defined as the module's name; compile the sources that mlfbuild lists, not the archive's own"
#endif

#define MLF_JOIN_NOW(name, module) name##_##module
#define MLF_JOIN(name, module) MLF_JOIN_NOW(name, module)
#define MLF_OF_MODULE(name) MLF_JOIN(name, MLF_MODULE)

/* Names that would otherwise conflict, or be shared, between modules. */
#define TVMAPISetLastError MLF_OF_MODULE(TVMAPISetLastError)
#define TVMGetLastError MLF_OF_MODULE(TVMGetLastError)
#define TVMBackendAllocWorkspace MLF_OF_MODULE(TVMBackendAllocWorkspace)
#define TVMBackendFreeWorkspace MLF_OF_MODULE(TVMBackendFreeWorkspace)
#define TVMBackendParallelLaunch MLF_OF_MODULE(TVMBackendParallelLaunch)
#define TVMBackendParallelBarrier MLF_OF_MODULE(TVMBackendParallelBarrier)
#define TVMSystemLibEntryPoint MLF_OF_MODULE(TVMSystemLibEntryPoint)
#define __tvm_main__ MLF_OF_MODULE(mlf_tvm_main)
#define __tvm_module_ctx MLF_OF_MODULE(mlf_tvm_module_context)
#define _lookup_linked_param MLF_OF_MODULE(mlf_lookup_linked_param)

#ifdef __cplusplus
extern "C" {
#endif

#define TVM_DLL
#define TVM_WEAK __attribute__((weak))

typedef int64_t tvm_index_t;

/* Codes of arguments; numbers use the codes of DLDataTypeCode. */
typedef enum {
    kTVMArgInt = kDLInt,
    kTVMArgFloat = kDLFloat,
    kTVMOpaqueHandle = 3U,
    kTVMNullptr = 4U,
    kTVMDataType = 5U,
    kDLDevice = 6U,
    kTVMDLTensorHandle = 7U,
    kTVMObjectHandle = 8U,
    kTVMModuleHandle = 9U,
    kTVMPackedFuncHandle = 10U,
    kTVMStr = 11U,
    kTVMBytes = 12U,
    kTVMNDArrayHandle = 13U
} TVMArgTypeCode;

typedef DLTensor TVMArray;
typedef DLDevice TVMDevice;
typedef TVMArray *TVMArrayHandle;
typedef void *TVMFunctionHandle;
typedef void *TVMModuleHandle;
typedef void *TVMRetValueHandle;

/* An argument or a result of a packed function. */
typedef union {
    int64_t v_int64;
    double v_float64;
    void *v_handle;
    const char *v_str;
    DLDataType v_type;
    DLDevice v_device;
} TVMValue;

/* Keep `message`, which must outlive the run, for TVMGetLastError. */
void TVMAPISetLastError(const char *message);
const char *TVMGetLastError(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
