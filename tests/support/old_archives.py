"""Archives of every version of Model Library Format, made from a table of the versions' paths and keys.

The table is separate from the reader's, so that a mistake in one of them is found. The model is that of TVM's tests:
``out = a + b * p0`` with ``a`` uint8[1,2], ``b`` float32[1,2] and ``p0`` float32[1,2].
"""

import json
import struct
from typing import Any

DATE = "2021-05-07 10:11:12Z"
TARGET = "c -keys=cpu -link-params=0 -runtime=c -system-lib=1"

LAYOUT: dict[int, dict[str, str]] = {
    1: {"graph": "runtime-config/graph/graph.json", "relay": "relay.txt", "lib": "lib{n}", "executors": "runtimes"},
    2: {"graph": "runtime-config/graph/graph.json", "relay": "relay.txt", "lib": "lib{n}", "executors": "runtimes"},
    3: {"graph": "runtime-config/graph/graph.json", "relay": "relay.txt", "lib": "add_lib{n}", "executors": "runtimes"},
    4: {"graph": "runtime-config/graph/graph.json", "relay": "src/relay.txt", "lib": "add_lib{n}",
        "executors": "runtimes"},
    5: {"graph": "executor-config/graph/graph.json", "relay": "src/relay.txt", "lib": "add_lib{n}",
        "executors": "executors"},
    6: {"graph": "executor-config/graph/graph.json", "relay": "src/relay.txt", "lib": "add_lib{n}",
        "executors": "executors"},
    7: {"graph": "executor-config/graph/add.graph", "relay": "src/add.relay", "lib": "add_lib{n}",
        "executors": "executors"},
}  # fmt: skip

MODELS = [(version, executor) for version in LAYOUT for executor in ("graph", "aot")]
"""The variants of ``model_archive``."""

RELAY = b"""\
def @main(%a: Tensor[(1, 2), uint8], %b: Tensor[(1, 2), float32], %c: Tensor[(1, 2), float32]) \
-> Tensor[(1, 2), float32] {
  %0 = cast(%a, dtype="float32") /* ty=Tensor[(1, 2), float32] */;
  %1 = multiply(%b, %c) /* ty=Tensor[(1, 2), float32] */;
  add(%0, %1) /* ty=Tensor[(1, 2), float32] */
}
"""
TIR = b"""\
@main = primfn(a_1: handle, b_1: handle, c_1: handle) -> ()
  attr = {"global_symbol": "add", "tir.noalias": True}
"""
_PACKED = "(void* args, void* arg_type_ids, int32_t num_args, void* out_ret_value, void* out_ret_tcode, void* handle)"


def params() -> bytes:
    """Return ``{"p0": [[2.0, 4.0]]}`` in the form of TVM's ``SaveParams``: 106 bytes."""
    head = struct.pack("<QQQQ2sQ", 0xF7E58D4F05049CB7, 0, 1, 2, b"p0", 1)
    tensor = struct.pack("<QQiiiBBHqqq", 0xDD5E40F096B4A13F, 0, 1, 0, 2, 2, 32, 1, 1, 2, 8)
    return head + tensor + struct.pack("<2f", 2.0, 4.0)


EMPTY_PARAMS = struct.pack("<QQQQ", 0xF7E58D4F05049CB7, 0, 0, 0)


def graph(function: str) -> bytes:
    """Return the graph that calls ``function``, in the form of TVM's JSON writer."""
    return """\
{
  "nodes": [
    {
      "op": "null", 
      "name": "a", 
      "inputs": []
    }, 
    {
      "op": "null", 
      "name": "b", 
      "inputs": []
    }, 
    {
      "op": "null", 
      "name": "p0", 
      "inputs": []
    }, 
    {
      "op": "tvm_op", 
      "name": "FUNCTION", 
      "attrs": {
        "num_outputs": "1", 
        "num_inputs": "3", 
        "flatten_data": "0", 
        "func_name": "FUNCTION"
      }, 
      "inputs": [
        [
          0, 
          0, 
          0
        ], 
        [
          1, 
          0, 
          0
        ], 
        [
          2, 
          0, 
          0
        ]
      ]
    }
  ], 
  "arg_nodes": [0, 1, 2], 
  "heads": [
    [
      3, 
      0, 
      0
    ]
  ], 
  "attrs": {
    "dltype": [
      "list_str", 
      [
        "uint8", 
        "float32", 
        "float32", 
        "float32"
      ]
    ], 
    "device_index": [
      "list_int", 
      [1, 1, 1, 1]
    ], 
    "storage_id": [
      "list_int", 
      [0, 1, 2, 3]
    ], 
    "shape": [
      "list_shape", 
      [
        [1, 2], 
        [1, 2], 
        [1, 2], 
        [1, 2]
      ]
    ]
  }, 
  "node_row_ptr": [0, 1, 2, 3, 4]
}""".replace("FUNCTION", function).encode()  # noqa: W291 (TVM's writer leaves a blank behind each comma)


def function_name(version: int) -> str:
    """Return the operator's symbol, which contains the module's name since version 3."""
    return f"{'tvmgen_add_' if version >= 3 else ''}fused_cast_multiply_add"


def sources(version: int, executor: str, place: str = "codegen/host/src") -> dict[str, bytes]:
    """Return the generated C: entry or registry first, kernels second."""
    function = function_name(version)
    registry = f"""\
#include <tvm/runtime/crt/module.h>
TVM_DLL int32_t {function}(TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code);
static TVMBackendPackedCFunc _tvm_func_array[] = {{
    (TVMBackendPackedCFunc){function},
}};
static const TVMFuncRegistry _tvm_func_registry = {{
    "\\001{function}\\000",    _tvm_func_array,
}};
static const TVMModule _tvm_system_lib = {{
    &_tvm_func_registry,
}};
const TVMModule* TVMSystemLibEntryPoint(void) {{
    return &_tvm_system_lib;
}}
;"""
    entry = f"""\
#include "tvm/runtime/c_runtime_api.h"
TVM_DLL int32_t tvmgen_add_run_model{_PACKED};
TVM_DLL int32_t tvmgen_add_run{_PACKED} {{
return tvmgen_add_run_model(args, arg_type_ids, num_args, out_ret_value, out_ret_tcode, handle);
}}
;"""
    if version < 3:  # one model per program: the descriptor for the runtime has no module name
        entry = f"""\
#include "tvm/runtime/crt/internal/aot_executor/aot_executor.h"
TVM_DLL int32_t tvm__run_func{_PACKED};
const tvm_model_t network = {{
    .run_func = &tvm__run_func,
    .num_input_tensors = 2,
    .num_output_tensors = 1,
}};
"""
    kernel = f"""\
// tvm target: {TARGET}
#define TVM_EXPORTS
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <math.h>
TVM_DLL int32_t {function}{_PACKED} {{
  void* a = (((DLTensor*)(((TVMValue*)args)[0].v_handle))[0].data);
  void* b = (((DLTensor*)(((TVMValue*)args)[1].v_handle))[0].data);
  void* p0 = (((DLTensor*)(((TVMValue*)args)[2].v_handle))[0].data);
  void* T_add = (((DLTensor*)(((TVMValue*)args)[3].v_handle))[0].data);
  for (int32_t i = 0; i < 2; ++i) {{
    ((float*)T_add)[i] = ((float)((uint8_t*)a)[i]) + (((float*)b)[i] * ((float*)p0)[i]);
  }}
  return 0;
}}
"""
    if executor == "aot":
        kernel += (
            f"TVM_DLL int32_t {'tvm__run_func' if version < 3 else 'tvmgen_add_run_model'}{_PACKED} {{ return 0; }}\n"
        )
    name = LAYOUT[version]["lib"]
    first = registry if executor != "aot" else entry
    return {f"{place}/{name.format(n=0)}.c": first.encode(), f"{place}/{name.format(n=1)}.c": kernel.encode()}


_SIDS = [
    {"storage_id": 0, "size_bytes": 2, "input_binding": "a"},
    {"storage_id": 1, "size_bytes": 8, "input_binding": "b"},
    {"storage_id": 2, "size_bytes": 8, "input_binding": "p0"},
    {"storage_id": 3, "size_bytes": 8},
]


def _memory(version: int, executor: str) -> Any:
    if version == 1:
        return _SIDS if executor == "graph" else []
    main: dict[str, Any] = {
        "device": 1, "workspace_size_bytes": 0, "constants_size_bytes": 8 if executor == "graph" else 0,
        "io_size_bytes": 18,
    }  # fmt: skip
    if version == 7:
        main["inputs"] = {"a": {"dtype": "uint8", "size": 2}, "b": {"dtype": "float32", "size": 8}}
        main["outputs"] = {"output": {"dtype": "float32", "size": 8}}
    workspace = [{"device": 1, "workspace_size_bytes": 0}]
    function = {"function_name": function_name(version), "workspace": workspace}
    memory: dict[str, Any] = {"functions": {"main": [main], "operator_functions": [function]}}
    return memory | ({"sids": _SIDS} if executor == "graph" else {})


def metadata(version: int, executor: str) -> dict[str, Any]:
    """Return the metadata of a full model as an object."""
    fields: dict[str, Any] = {
        "model_name": "add",
        "export_datetime": DATE,
        LAYOUT[version]["executors"]: [executor],
        "memory": _memory(version, executor),
        "target": {"1": TARGET} if version <= 5 else [TARGET],
    }
    if version >= 4:
        fields["style"] = "full-model"
    return {"version": version, "modules": {"add": fields}} if version == 7 else {"version": version, **fields}


def model_archive(version: int, executor: str = "graph") -> dict[str, bytes]:
    """Return the files of the model's archive in ``version``, by path."""
    layout = LAYOUT[version]
    files = {
        "metadata.json": json.dumps(metadata(version, executor), indent=2, sort_keys=True).encode(),
        layout["relay"]: RELAY,
        "parameters/add.params": params() if executor == "graph" else EMPTY_PARAMS,
        **sources(version, executor),
    }
    if executor == "graph":
        files[layout["graph"]] = graph(function_name(version))
    return files


def operator_archive(version: int) -> dict[str, bytes]:
    """Return the files of an operator's archive in ``version``, 4 or later."""
    buffer = {"size_bytes": 2, "shape": [2], "dtype": "int8"}
    fields = {
        "version": version,
        "model_name": "add",
        "export_datetime": DATE,
        "memory": {
            "add": [
                {**buffer, "input_binding": "a"},
                {**buffer, "shape": [1], "size_bytes": 1, "input_binding": "b"},
                {**buffer, "input_binding": "c"},
            ]
        },
        "target": {"1": TARGET} if version <= 5 else [TARGET],
        LAYOUT[version]["executors"]: [],
        "style": "operator",
    }
    return {
        "metadata.json": json.dumps(fields).encode(),
        "src/tir-1.txt": TIR,
        **{
            path.replace("add_lib", "lib"): text.replace(function_name(version).encode(), b"add")
            for path, text in sources(version, "").items()
        },
    }


def sketch_archive() -> dict[str, bytes]:
    """Return the files of an archive in the form of the first RFC, which no exporter of TVM wrote."""
    fields = {
        "version": 1,
        "model_name": "add",
        "export_datetime_utc": DATE,
        "memory": {
            str(entry["storage_id"]): {**entry, "input_binding": entry.get("input_binding", "")} for entry in _SIDS
        },
        "target": TARGET,
        "runtimes": ["graph"],
        "contexts": [{"device_type": "cpu", "device_id": 0}],
    }
    values = {"p0": {"dtype": "float32", "shape": [1, 2], "data": [[2.0, 4.0]]}}
    return {
        "README.md": b"# add\n",
        "metadata-1.json": json.dumps(fields, indent=2, sort_keys=True).encode(),
        "relay.txt": RELAY,
        "parameters/add.params": params(),
        "parameters/add.json": json.dumps(values).encode(),
        "runtime-config/graph/graph.json": graph(function_name(1)),
        "runtime-config/aot/README": b"reserved\n",
        "crt/Makefile": b"all:\n",
        "crt/include/tvm/runtime/c_runtime_api.h": b"#pragma once\n",
        **sources(1, "graph"),
        "codegen/ethos-u55/src/lib0.c": b"int32_t ethosu_invoke(void* buffer);\n",
    }
