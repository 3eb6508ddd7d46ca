"""Archives in TVM's form of kinds that the test data lacks, as files by path.

All except the operators compute ``out = a + b * p0`` of ``old_archives``, with ``p0`` 2 and 4.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mlfbuild.archive import tar
from support.old_archives import EMPTY_PARAMS, model_archive
from support.tvm_headers import write_tvm_headers

Files = dict[str, bytes]

A = np.array([[3, 200]], np.uint8)
B = np.array([[0.5, -1.25]], np.float32)
OUT = np.array([[4, 195]], np.float32)
KERNEL = "codegen/host/src/add_lib1.c"
REGISTRY = "codegen/host/src/add_lib0.c"

_LOOKUP = """
#ifdef __cplusplus
extern "C" {
#endif
static const float __tvm_param__p0[2] = {
    0x1p+1, 0x1p+2
};
#ifdef __cplusplus
}  // extern "C"
#endif
#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t _lookup_linked_param(void* args, int* arg_type_ids, int num_args, void* out_ret_value, int* out_ret_tcode, void* resource_handle) {
    switch (((int64_t*) args)[0]) {
    default:
        out_ret_tcode[0] = 4;
        return 0;
    case 2:
        ((uint64_t*)out_ret_value)[0] = (uint64_t) (uintptr_t) __tvm_param__p0;
        out_ret_tcode[0] = 3;
        return 0;
    }
}
"""  # noqa: E501 - TVM's lines
_LOOKED_UP = (
    "TVM_DLL int32_t _lookup_linked_param(TVMValue* args, int* type_code, int num_args, TVMValue* out_value, "
    "int* out_type_code);\nstatic TVMBackendPackedCFunc _tvm_func_array"
)

_OPERATORS = """\
// tvm target: c -keys=cpu
#define TVM_EXPORTS
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <math.h>
TVM_DLL int32_t twice(void* args, int32_t* arg_type_ids, int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, void* resource_handle) {
  int32_t T_out_code = arg_type_ids[0];
  void* T_out = (((TVMValue*)args)[0].v_handle);
  void* x = (((TVMValue*)args)[1].v_handle);
  void* T_out_1 = (((DLTensor*)T_out)[0].data);
  void* x_1 = (((DLTensor*)x)[0].data);
  int32_t dev_id = (((DLTensor*)x)[0].device.device_id);
  void* kept = TVMBackendAllocWorkspace(1, dev_id, (uint64_t)12, 0, 32);
  if (kept == NULL) {
    return -1;
  }
  for (int32_t i = 0; i < 3; ++i) {
    ((int32_t*)kept)[i] = (((int32_t*)x_1)[i] * 2);
  }
  for (int32_t i_1 = 0; i_1 < 3; ++i_1) {
    ((int32_t*)T_out_1)[i_1] = ((int32_t*)kept)[i_1];
  }
  if (TVMBackendFreeWorkspace(1, dev_id, kept) != 0) {
    return -1;
  }
  return 0;
}
TVM_DLL int32_t both(void* args, int32_t* arg_type_ids, int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, void* resource_handle) {
  void* x = (((TVMValue*)args)[0].v_handle);
  void* sum = (((TVMValue*)args)[1].v_handle);
  void* y = (((TVMValue*)args)[2].v_handle);
  void* product = (((TVMValue*)args)[3].v_handle);
  void* x_1 = (((DLTensor*)x)[0].data);
  void* sum_1 = (((DLTensor*)sum)[0].data);
  void* y_1 = (((DLTensor*)y)[0].data);
  void* product_1 = (((DLTensor*)product)[0].data);
  for (int32_t i = 0; i < 2; ++i) {
    ((float*)sum_1)[i] = (((float*)x_1)[i] + ((float*)y_1)[0]);
    ((float*)product_1)[((i * 1))] = (((float*)x_1)[i] * ((float*)y_1)[0]);
  }
  return 0;
}
"""  # noqa: E501 - TVM's lines


def written(folder: Path, files: Files, name: str = "add.tar") -> Path:
    """Write ``files`` as an archive and return its path."""
    path = folder / name
    path.write_bytes(b"".join(tar.pack(files, 0)))
    return path


def graph_archive(version: int = 5, **replaced: tuple[str, str]) -> Files:
    """Return the graph archive with a text replaced in its kernels (``kernel``) or its registry (``registry``)."""
    files = model_archive(version)
    for kind, (old, new) in replaced.items():
        path = {"kernel": KERNEL, "registry": REGISTRY}[kind]
        text = files[path].decode()
        assert old in text
        files[path] = text.replace(old, new).encode()
    return files


def linked_archive() -> Files:
    """Return an archive like TVM 0.8's with ``link-params``: a function returns parameters by storage id."""
    files = graph_archive(
        kernel=("#include <math.h>\n", f"#include <math.h>\n{_LOOKUP}"),
        registry=("static TVMBackendPackedCFunc _tvm_func_array", _LOOKED_UP),
    )
    return {**files, "parameters/add.params": EMPTY_PARAMS}


def operators_archive() -> Files:
    """Return an archive of two operators: ``twice`` with its output first, ``both`` with outputs among its inputs."""
    int32 = {"size_bytes": 12, "shape": [3], "dtype": "int32", "input_binding": None}
    float32 = {"size_bytes": 8, "shape": [2], "dtype": "float32", "input_binding": None}
    fields = {
        "version": 7,
        "model_name": "default",
        "export_datetime": "2024-01-02 03:04:05Z",
        "memory": {"twice": [int32, int32],
         "both": [float32, float32, {**float32, "size_bytes": 4, "shape": [1]}, float32]},
        "target": ["c -keys=cpu "],
        "executors": [],
        "style": "operator",
    }  # fmt: skip
    return {
        "metadata.json": json.dumps(fields).encode(),
        "src/tir-1.txt": b"# from tvm.script import tir as T\n",
        "codegen/host/src/lib0.c": _OPERATORS.encode(),
    }


def with_objects(files: Files, folder: Path, compiler: str, *flags: str) -> Files:
    """Return ``files`` with the C sources replaced by objects from ``compiler``, as with TVM's LLVM target."""
    include = write_tvm_headers(folder / "tvm-headers")
    made = {}
    for path, data in files.items():
        if not path.endswith(".c"):
            made[path] = data
            continue
        (folder / "source.c").write_bytes(data)
        command = [compiler, "-w", "-O2", *flags, "-I", include, "-c", folder / "source.c", "-o", folder / "source.o"]
        subprocess.run([str(word) for word in command], check=True)
        made[path.replace("/src/", "/lib/").removesuffix(".c") + ".o"] = (folder / "source.o").read_bytes()
    return made


def without(files: Files, *paths: str) -> Files:
    """Return ``files`` without ``paths``."""
    return {path: data for path, data in files.items() if path not in paths}


def names(files: Files, words: Sequence[tuple[str, str]]) -> Files:
    """Return ``files`` with words replaced in paths and texts, except in parameters."""

    def text(value: bytes) -> bytes:
        for old, new in words:
            value = value.replace(old.encode(), new.encode())
        return value

    return {
        text(path.encode()).decode(): data if path.endswith(".params") else text(data) for path, data in files.items()
    }


_BACKEND = """\
#include <inttypes.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/platform.h>
#include "crt_config.h"

void *TVMBackendAllocWorkspace(int device, int id, uint64_t bytes, int code, int bits)
{
    DLDevice where = {(DLDeviceType)device, id};
    void *memory = 0;
    if (bytes > TEST_MOST_BYTES || TVMPlatformMemoryAllocate((size_t)bytes, where, &memory) != 0) {
        TVMLogf("no %" PRIu64 " bytes\\n", bytes);
        TVMPlatformAbort(TEST_NO_MEMORY);
    }
    return memory;
}

int TVMBackendFreeWorkspace(int device, int id, void *memory)
{
    DLDevice where = {(DLDeviceType)device, id};
    return TVMPlatformMemoryFree(memory, where);
}

int TVMBackendRegisterSystemLibSymbol(const char *name, void *function)
{
    return TVMFuncRegisterGlobal(name, function, 0);
}
"""
_PLATFORM = """\
#ifndef TVM_RUNTIME_CRT_PLATFORM_H_
#define TVM_RUNTIME_CRT_PLATFORM_H_
#include <stddef.h>
#include <tvm/runtime/c_runtime_api.h>
typedef enum { kTvmErrorNoError = 0, kTvmErrorTest = 0x7000 } tvm_crt_error_t;
void TVMPlatformAbort(tvm_crt_error_t code) __attribute__((noreturn));
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t bytes, DLDevice device, void **memory);
tvm_crt_error_t TVMPlatformMemoryFree(void *memory, DLDevice device);
void TVMLogf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int TVMFuncRegisterGlobal(const char *name, void *function, int replaced);
#endif
"""


def with_runtime(files: Files, folder: Path, *, most: int, template: str = "templates/crt_config.h.template") -> Files:
    """Return ``files`` and a runtime in TVM's layout, whose workspace returns status 4660 beyond ``most`` bytes."""
    include = write_tvm_headers(folder / "runtime-headers")
    headers = {
        f"runtime/include/{path.relative_to(include).as_posix()}": path.read_bytes() for path in include.rglob("*.h")
    }
    config = f"#define TEST_MOST_BYTES {most}\n#define TEST_NO_MEMORY ((tvm_crt_error_t)4660)\n"
    return {
        **files,
        **headers,
        "runtime/include/tvm/runtime/crt/platform.h": _PLATFORM.encode(),
        "runtime/src/runtime/crt/common/crt_backend_api.c": _BACKEND.encode(),
        "runtime/src/runtime/crt/common/func_registry.c": b"#error not for this build\n",
        template: config.encode(),
    }


def allocating(files: Files) -> Files:
    """Return ``files`` of ``add`` with a kernel that computes in 24 bytes of workspace."""
    loop, end = "  for (int32_t i = 0;", "  return 0;\n}"
    taken = "  float* kept = TVMBackendAllocWorkspace(1, 0, (uint64_t)24, 2, 32);\n"
    copied = "".join(f"  ((float*)T_add)[{at}] = kept[{at}];\n" for at in range(2))
    text = files[KERNEL].decode().replace(loop, f"{taken}{loop}").replace("((float*)T_add)[i] =", "kept[i] =")
    text = text.replace(end, f"{copied}  return TVMBackendFreeWorkspace(1, 0, kept);\n}}", 1)
    return {**files, KERNEL: text.encode()}
