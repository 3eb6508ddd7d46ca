"""Archives as documents of TVM describe them, to the letter, where its exporters wrote something else.

Each model computes ``y = x * w + offset`` on four float32 with the graph executor.

* ``page_archive``: the documentation page of version 5.
* ``several_modules_archive``: the RFC of several modules, tvm-rfcs 0076.
* ``first_rfc_archive``: the first RFC of the format, which has a folder for the runtime and parameters as text.
"""

import json
from typing import Any

import numpy as np

from mlfbuild.library import save_params

Files = dict[str, bytes]

DATE = "2022-05-31 09:08:07Z"
TARGET = "c -keys=cpu -model=host"
WEIGHTS = np.array([0.5, -2.0, 4.0, 0.25], np.float32)
INPUT = np.array([[8.0, 1.5, -3.0, 100.0]], np.float32)


def expected(offset: float) -> Any:
    """Return the output of a model for ``INPUT``."""
    return INPUT * WEIGHTS + np.float32(offset)


def _function(name: str) -> str:
    return f"tvmgen_{name}_fused_multiply_add"


def _graph(name: str) -> bytes:
    attributes = {"func_name": _function(name), "num_inputs": "2", "num_outputs": "1", "flatten_data": "0"}
    inputs = [{"op": "null", "name": key, "inputs": []} for key in ("x", "w")]
    call = {"op": "tvm_op", "name": "y", "attrs": attributes, "inputs": [[0, 0, 0], [1, 0, 0]]}
    graph = {
        "nodes": [*inputs, call],
        "arg_nodes": [0, 1],
        "heads": [[2, 0, 0]],
        "attrs": {
            "dltype": ["list_str", ["float32"] * 3],
            "storage_id": ["list_int", [0, 1, 2]],
            "shape": ["list_shape", [[1, 4]] * 3],
        },
        "node_row_ptr": [0, 1, 2, 3],
    }
    return json.dumps(graph).encode()


def _kernels(name: str, offset: float) -> bytes:
    return f"""\
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
TVM_DLL int32_t {_function(name)}(void* args, int32_t* codes, int32_t count, void* value, int32_t* code, void* self) {{
  float* x = (float*)((DLTensor*)(((TVMValue*)args)[0].v_handle))->data;
  float* w = (float*)((DLTensor*)(((TVMValue*)args)[1].v_handle))->data;
  float* y = (float*)((DLTensor*)(((TVMValue*)args)[2].v_handle))->data;
  for (int32_t i = 0; i < 4; ++i) {{
    y[i] = x[i] * w[i] + {offset:.1f}f;
  }}
  return 0;
}}
""".encode()


def _registry(name: str) -> bytes:
    return f"""\
#include <tvm/runtime/crt/module.h>
TVM_DLL int32_t {_function(name)}(TVMValue* args, int* codes, int count, TVMValue* value, int* code, void* handle);
static TVMBackendPackedCFunc _tvm_func_array[] = {{
    (TVMBackendPackedCFunc){_function(name)},
}};
static const TVMFuncRegistry _tvm_func_registry = {{
    "\\001\\000{_function(name)}\\000",    _tvm_func_array,
}};
static const TVMModule _tvm_system_lib = {{
    &_tvm_func_registry,
}};
const TVMModule* TVMSystemLibEntryPoint(void) {{
    return &_tvm_system_lib;
}}
""".encode()


def _relay(offset: float) -> bytes:
    tensor = "Tensor[(1, 4), float32]"
    return f"def @main(%x: {tensor}, %w: {tensor}) -> {tensor} {{ add(multiply(%x, %w), {offset:.1f}f) }}\n".encode()


PARAMS = save_params({"w": WEIGHTS.reshape(1, 4)})
_MAIN = {"device": 1, "workspace_size_bytes": 0, "constants_size_bytes": 16, "io_size_bytes": 32}
_WORKSPACE = [{"device": 1, "workspace_size_bytes": 0}]


def page_archive() -> Files:
    """Return the archive of a model ``page``; the page reverses the numbers of kernels and registry."""
    metadata = {
        "export_datetime": DATE,
        "memory": {"main": [_MAIN], "operator_functions": {_function("page"): _WORKSPACE}},
        "model_name": "page",
        "executors": ["graph"],
        "target": {"1": TARGET},
        "version": 5,
    }
    return {
        "codegen/host/src/lib0.c": _kernels("page", 1.5),
        "codegen/host/src/lib1.c": _registry("page"),
        "executor-config/graph/graph.json": _graph("page"),
        "metadata.json": json.dumps(metadata, indent=2).encode(),
        "parameters/page.params": bytes(PARAMS),
        "src/relay.txt": _relay(1.5),
    }


def several_modules_archive() -> Files:
    """Return the archive of ``mod1`` (offset -1) and ``mod2`` (offset 2), without executors and with empty style."""
    files: Files = {}
    modules = {}
    for name, offset in (("mod1", -1.0), ("mod2", 2.0)):
        modules[name] = {
            "export_datetime": DATE,
            "external_dependencies": [],
            "memory": {"functions": {"main": [_MAIN], _function(name): _WORKSPACE}},
            "model_name": name,
            "style": "",
            "target": [TARGET],
        }
        files |= {
            f"codegen/host/src/{name}_lib0.c": _registry(name),
            f"codegen/host/src/{name}_lib1.c": _kernels(name, offset),
            f"executor-config/graph/{name}.graph": _graph(name),
            f"parameters/{name}.params": bytes(PARAMS),
            f"src/{name}.relay": _relay(offset),
        }
    return files | {"metadata.json": json.dumps({"modules": modules, "version": 7}, indent=2).encode()}


def first_rfc_archive() -> Files:
    """Return the archive of a model ``sketch``."""
    bindings = ["x", "w", ""]
    metadata = {
        "version": 1,
        "model_name": "sketch",
        "export_datetime_utc": DATE,
        "memory": {
            str(index): {"storage_id": index, "size_bytes": 16, "input_binding": binding}
            for index, binding in enumerate(bindings)
        },
        "target": TARGET,
        "runtimes": ["graph"],
        "contexts": [
            {"device_type": "cpu", "device_id": 0, "target": TARGET},
            {"device_type": "ext_dev", "device_id": 1, "compiler": "ethos-u", "config": {"macs": 128}},
        ],
    }
    return {
        "README.md": b"# sketch\n\nMultiplies and adds.\n",
        "codegen/host/src/lib0.c": _kernels("sketch", 0.5),
        "codegen/host/src/lib1.c": _registry("sketch"),
        "crt/Makefile": b"all:\n",
        "crt/include/tvm/runtime/c_runtime_api.h": b"#pragma once\n",
        "metadata-1.json": json.dumps(metadata, indent=2).encode(),
        "parameters/sketch.json": json.dumps(
            {"w": {"dtype": "float32", "shape": [1, 4], "data": [WEIGHTS.tolist()]}}
        ).encode(),
        "parameters/sketch.params": bytes(PARAMS),
        "relay.txt": _relay(0.5),
        "runtime-config/aot/entry.txt": b"tvmgen_sketch_run\n",
        "runtime-config/graph/graph.json": _graph("sketch"),
    }
