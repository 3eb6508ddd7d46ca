"""Libraries of any size for the benchmark of archives: they grow in one respect, and are small in all others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

import numpy as np

from mlfbuild.library import (
    CodegenFile,
    LazyBytes,
    Library,
    MainMemory,
    Module,
    ModuleTarget,
    OperatorFunction,
    StorageEntry,
    TensorInfo,
)

_INCLUDES = '#include "tvm/runtime/c_runtime_api.h"\n#include <stdint.h>\n'
_KERNEL = """
#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t {name}(float* p0, float* p1, float* output) {{
  for (int32_t i = 0; i < 2; ++i) {{
    output[i] = p0[i] + p1[i];
  }}
  return 0;
}}
"""
_HEADER = """\
#include <stdint.h>
#define TVMGEN_{macro}_X_SIZE 8
#define TVMGEN_{macro}_OUTPUT_SIZE 8
struct tvmgen_{name}_inputs {{
  void* x;
}};
struct tvmgen_{name}_outputs {{
  void* output;
}};
int32_t tvmgen_{name}_run(
  struct tvmgen_{name}_inputs* inputs,
  struct tvmgen_{name}_outputs* outputs
);
"""
_MAIN = "TVM_DLL int32_t tvmgen_{name}___tvm_main__(void* x,void* output)"
_RUN = """
int32_t tvmgen_{name}_run(struct tvmgen_{name}_inputs* inputs,struct tvmgen_{name}_outputs* outputs) {{\
return tvmgen_{name}___tvm_main__(inputs->x,outputs->output);
}}
"""


class Noise(LazyBytes):
    """Bytes that do not repeat for a while and are made when they are asked for."""

    _PERIOD = bytes(np.random.default_rng(0).integers(0, 256, 1_000_003, np.uint8))

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        size = max(0, min(size, self._size - offset))
        begin = offset % len(self._PERIOD)
        return (self._PERIOD * (2 + size // len(self._PERIOD)))[begin : begin + size]


def graph_json(functions: list[str], params: int) -> bytes:
    """Return a chain of operators on two floats: operator ``i`` adds parameter ``i % params`` to the result before."""
    nodes: list[dict[str, object]] = [{"op": "null", "name": "x", "inputs": []}]
    nodes += [{"op": "null", "name": f"p{index}", "inputs": []} for index in range(params)]
    last = 0
    for index, function in enumerate(functions):
        attrs = {"func_name": function, "num_inputs": "2", "num_outputs": "1", "flatten_data": "0"}
        inputs = [[last, 0, 0], [1 + index % params, 0, 0]]
        last = len(nodes)
        nodes.append({"op": "tvm_op", "name": f"add_{index}", "attrs": attrs, "inputs": inputs})
    count = len(nodes)
    graph = {
        "nodes": nodes,
        "arg_nodes": list(range(1 + params)),
        "heads": [[last, 0, 0]],
        "attrs": {
            "dltype": ["list_str", ["float32"] * count],
            "storage_id": ["list_int", list(range(count))],
            "shape": ["list_shape", [[1, 2]] * count],
        },
        "node_row_ptr": list(range(count + 1)),
    }
    return json.dumps(graph, indent=2).encode()


def _source(name: str, number: int, text: str) -> CodegenFile:
    return CodegenFile(PurePosixPath(f"host/src/{name}_lib{number}.c"), text.encode())


def graph_module(
    name: str,
    operators: int = 1,
    params: int = 1,
    files: int = 1,
    code: bytes | LazyBytes = b"",
    more: Mapping[str, np.ndarray] | None = None,
) -> Module:
    """Return a module for the graph executor; ``code`` is an object file of it, ``more`` are further parameters."""
    functions = [f"tvmgen_{name}_fused_add_{index}" for index in range(operators)]
    codegen = [_source(name, 0, "typedef int mlf_nothing;\n")]
    for number in range(files):
        kernels = "".join(_KERNEL.format(name=function) for function in functions[number::files])
        codegen.append(_source(name, 1 + number, _INCLUDES + kernels))
    if code:
        codegen.append(CodegenFile(PurePosixPath(f"host/lib/{name}_lib0.o"), code))
    names = ["x", *(f"p{index}" for index in range(params))]
    weights = {each: np.ones((1, 2), np.float32) for each in names[1:]}
    return Module(
        name=name,
        executor="graph",
        targets=(ModuleTarget("c -keys=cpu "),),
        main=(MainMemory(0, 8 * params, 16),),
        operator_functions=tuple(OperatorFunction(function, ((1, 0),)) for function in functions),
        codegen=tuple(codegen),
        inputs=(TensorInfo("x", "float32", 8),),
        outputs=(TensorInfo("output", "float32", 8),),
        params=weights | dict(more or {}),
        graph_json=graph_json(functions, params),
        storage=tuple(StorageEntry(sid, 8, *names[sid : sid + 1]) for sid in range(1 + params + operators)),
        source_text=b"def @main\n",
    )


def aot_module(name: str, operators: int = 1) -> Module:
    """Return a module for the AOT executor with the C interface."""
    functions = [f"tvmgen_{name}_fused_add_{index}" for index in range(operators)]
    main = _MAIN.format(name=name)
    calls = "".join(f"  if ({function}(x, x, output) != 0) return -1;\n" for function in functions)
    kernels = "".join(_KERNEL.format(name=function) for function in functions)
    header = _HEADER.format(name=name, macro=name.upper()).encode()
    entry = f"#include <tvmgen_{name}.h>\n{main};" + _RUN.format(name=name)
    return Module(
        name=name,
        executor="aot",
        interface="c",
        targets=(ModuleTarget("c -keys=cpu "),),
        main=(MainMemory(0, 0, 16),),
        operator_functions=tuple(OperatorFunction(function, ((1, 0),)) for function in functions),
        codegen=(
            CodegenFile(PurePosixPath(f"host/include/tvmgen_{name}.h"), header),
            _source(name, 0, entry),
            _source(name, 1, f"{_INCLUDES}{kernels}{main} {{\n{calls}  return 0;\n}}\n"),
        ),
        inputs=(TensorInfo("x", "float32", 8),),
        outputs=(TensorInfo("output", "float32", 8),),
    )


def large(mebibytes: int, members: int) -> Library:
    """Return a library of ``members`` large members, half of them parameters and half of them objects."""
    size = (mebibytes << 20) // members
    weights = [{"w": np.full(size // 4, index, np.int32)} for index in range(members // 2)]
    return Library(tuple(graph_module(f"net{at}", code=Noise(size), more=array) for at, array in enumerate(weights)))


def other() -> Library:
    """Return a library that can be merged with each of ``GROWING``."""
    return Library((aot_module("other"),))


GROWING: dict[str, Callable[[int], Library]] = {
    "graph modules": lambda count: Library(tuple(graph_module(f"net{index}") for index in range(count))),
    "AOT modules": lambda count: Library(tuple(aot_module(f"net{index}") for index in range(count))),
    "files": lambda count: Library((graph_module("net", count, files=count),)),
    "parameters": lambda count: Library((graph_module("net", count, params=count),)),
    "graph operators": lambda count: Library((graph_module("net", count),)),
    "AOT operators": lambda count: Library((aot_module("net", count),)),
}
"""What grows -> the library with that many of it: operators are nodes, storage ids, metadata and C functions."""
