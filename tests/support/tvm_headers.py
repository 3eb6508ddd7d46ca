"""Headers for the C of TVM's archives, reduced to the parts that it uses.

The layout of the structs is that of DLPack and TVM 0.14; names of arguments and comments differ. The archives in the
test data lack ``runtime/``, which has the real headers.
"""

from pathlib import Path

_DLPACK = """\
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#include <stddef.h>
#include <stdint.h>
typedef enum { kDLCPU = 1, kDLExtDev = 12 } DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2 } DLDataTypeCode;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;
#endif
"""

_RUNTIME = """\
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_
#include <dlpack/dlpack.h>
#define TVM_DLL __attribute__((visibility("default")))
typedef enum { kTVMNullptr = 4, kTVMOpaqueHandle = 3, kTVMDLTensorHandle = 7 } TVMArgTypeCode;
typedef union { int64_t v_int64; double v_float64; void *v_handle; const char *v_str; } TVMValue;
typedef void *TVMFunctionHandle;
#ifdef __cplusplus
extern "C" {
#endif
int TVMFuncCall(TVMFunctionHandle f, TVMValue *a, int *c, int n, TVMValue *r, int *rc);
#ifdef __cplusplus
}
#endif
#endif
"""

_BACKEND = """\
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_
#include <tvm/runtime/c_runtime_api.h>
typedef int (*TVMBackendPackedCFunc)(TVMValue *, int *, int, TVMValue *, int *, void *);
#ifdef __cplusplus
extern "C" {
#endif
int TVMBackendGetFuncFromEnv(void *context, const char *name, TVMFunctionHandle *out);
void *TVMBackendAllocWorkspace(int device, int id, uint64_t bytes, int code, int bits);
int TVMBackendFreeWorkspace(int device, int id, void *memory);
#ifdef __cplusplus
}
#endif
#endif
"""

_MODULE = """\
#ifndef TVM_RUNTIME_CRT_MODULE_H_
#define TVM_RUNTIME_CRT_MODULE_H_
#include <tvm/runtime/c_backend_api.h>
typedef struct { const char *names; TVMBackendPackedCFunc *funcs; } TVMFuncRegistry;
typedef struct { const TVMFuncRegistry *registry; } TVMModule;
#ifdef __cplusplus
extern "C" {
#endif
const TVMModule *TVMSystemLibEntryPoint(void);
#ifdef __cplusplus
}
#endif
#endif
"""

_METADATA = """\
#ifndef TVM_RUNTIME_METADATA_TYPES_H_
#define TVM_RUNTIME_METADATA_TYPES_H_
#include <dlpack/dlpack.h>
struct TVMTensorInfo { const char *name; const int64_t *shape; int64_t rank; DLDataType dtype; };
struct TVMConstantInfo { const char *name; int64_t offset; int64_t length; const void *bytes; };
struct TVMMetadata {
    int64_t version;
    const struct TVMTensorInfo *inputs; int64_t input_count;
    const struct TVMTensorInfo *outputs; int64_t output_count;
    const struct TVMTensorInfo *workspace_pools; int64_t workspace_pool_count;
    const struct TVMConstantInfo *constant_pools; int64_t constant_pool_count;
    const char *name;
};
#endif
"""

_CMSIS_NN = """\
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H
#include <stdint.h>
typedef enum { ARM_CMSIS_NN_SUCCESS, ARM_CMSIS_NN_ARG_ERROR, ARM_CMSIS_NN_NO_IMPL_ERROR } arm_cmsis_nn_status;
typedef struct { void *buf; int32_t size; } cmsis_nn_context;
typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { int32_t min, max; } cmsis_nn_activation;
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t *multiplier, *shift; } cmsis_nn_per_channel_quant_params;
typedef struct { int32_t multiplier, shift; } cmsis_nn_per_tensor_quant_params;
typedef struct {
    int32_t in, out; cmsis_nn_tile stride, padding, dilation; cmsis_nn_activation activation;
} cmsis_nn_conv_params;
typedef struct {
    int32_t in, out, multiplier; cmsis_nn_tile stride, padding, dilation; cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;
typedef struct { int32_t in, filter, out; cmsis_nn_activation activation; } cmsis_nn_fc_params;
typedef struct { cmsis_nn_tile stride, padding; cmsis_nn_activation activation; } cmsis_nn_pool_params;
arm_cmsis_nn_status arm_avgpool_s8();
arm_cmsis_nn_status arm_convolve_wrapper_s8();
arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8();
arm_cmsis_nn_status arm_fully_connected_s8();
void arm_softmax_s8();
#endif
"""

HEADERS = {
    "dlpack/dlpack.h": _DLPACK, "tvm/runtime/c_runtime_api.h": _RUNTIME, "tvm/runtime/c_backend_api.h": _BACKEND,
    "tvm/runtime/crt/module.h": _MODULE, "tvm/runtime/metadata_types.h": _METADATA, "arm_nnfunctions.h": _CMSIS_NN,
    "arm_nn_types.h": "", "arm_nn_math_types.h": "",
}  # fmt: skip


def write_tvm_headers(folder: Path) -> Path:
    """Write the headers to ``folder``, which is for ``-I``, and return it."""
    for name, text in HEADERS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
