"""Small hand-written libraries whose C compiles and computes ``out[i] = in[i] + <offset>`` on four int8."""

from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np

from mlfbuild.archive import pack_archive
from mlfbuild.library import (
    CodegenFile,
    Library,
    MainMemory,
    Module,
    ModuleTarget,
    OperatorFunction,
    StorageEntry,
    TensorInfo,
)

KERNEL_PATH = "host/src/mlfbuild/offset.h"
KERNEL = """\
#ifndef MLFBUILD_OFFSET_H_
#define MLFBUILD_OFFSET_H_
#include <stdint.h>

static inline void mlf_offset(const int8_t *input, int8_t *output, int count, int8_t offset)
{
    for (int i = 0; i < count; ++i) {
        output[i] = (int8_t)(input[i] + offset);
    }
}

#endif
"""


def header(name: str) -> str:
    return f"""\
#ifndef TVMGEN_{name.upper()}_H_
#define TVMGEN_{name.upper()}_H_
#include <stdint.h>

struct tvmgen_{name}_inputs {{
  void* x;
}};

struct tvmgen_{name}_outputs {{
  void* y;
}};

int32_t tvmgen_{name}_run(
  struct tvmgen_{name}_inputs* inputs,
  struct tvmgen_{name}_outputs* outputs
);

#endif // TVMGEN_{name.upper()}_H_
"""


def source(name: str, offset: int) -> str:
    return f"""\
#include "tvmgen_{name}.h"
#include "mlfbuild/offset.h"

int32_t tvmgen_{name}_run(struct tvmgen_{name}_inputs *inputs, struct tvmgen_{name}_outputs *outputs)
{{
    mlf_offset(inputs->x, outputs->y, 4, {offset});
    return 0;
}}
"""


OTHER_KERNEL = KERNEL.replace("+ offset)", "+ offset + 100)")
"""The kernel of another version of mlfbuild, whose results are greater by 100."""


def native_module(name: str = "tiny", offset: int = 3, kernel: str = KERNEL) -> Module:
    """Return a module like those of the native compiler, with all fields."""
    files = {
        f"host/src/{name}_lib0.c": source(name, offset),
        f"host/include/tvmgen_{name}.h": header(name),
        KERNEL_PATH: kernel,
    }
    return Module(
        name=name,
        executor="aot",
        targets=(ModuleTarget("c -keys=arm_cpu,cpu -mcpu=cortex-m4"),),
        main=(MainMemory(workspace_size=0, constants_size=1, io_size=8),),
        inputs=(TensorInfo("x", "int8", 4, (1, 4), 0.003921568859368563, -128),),
        outputs=(TensorInfo("y", "int8", 4, (1, 4), 0.00390625, 0),),
        operator_functions=(OperatorFunction(f"mlf_{name}_add_0", ((1, 0),)),),
        codegen=tuple(CodegenFile(PurePosixPath(path), text.encode()) for path, text in files.items()),
        source_text=f"add {offset}\n".encode(),
        interface="c",
        model_id="ab" * 32,
        workspace_bound=0,
    )


def native_library(*names: str) -> Library:
    """Return a library with a native module per name; module ``i`` adds ``3 + i``."""
    return Library(tuple(native_module(name, 3 + i) for i, name in enumerate(names or ("tiny",))))


def archive_with(name: str, code: str) -> bytes:
    """Return an archive of one native module with ``code`` in an additional file, ``<name>_helper.c``."""
    library = native_library(name)
    (module,) = library.modules
    helper = CodegenFile(PurePosixPath(f"host/src/{name}_helper.c"), code.encode())
    return pack_archive(replace(library, modules=(replace(module, codegen=(*module.codegen, helper)),)))


GRAPH_JSON = """\
{
  "nodes": [
    {"op": "null", "name": "x", "inputs": []},
    {"op": "null", "name": "p0", "inputs": []},
    {"op": "tvm_op", "name": "add", "attrs": {"func_name": "tvmgen_net_add", "num_inputs": "2",
     "num_outputs": "1", "flatten_data": "0"}, "inputs": [[0, 0, 0], [1, 0, 0]]}
  ],
  "arg_nodes": [0, 1],
  "heads": [[2, 0, 0]],
  "attrs": {
    "dltype": ["list_str", ["float32", "float32", "float32"]],
    "storage_id": ["list_int", [0, 1, 2]],
    "shape": ["list_shape", [[1, 2], [1, 2], [1, 2]]]
  },
  "node_row_ptr": [0, 1, 2, 3]
}
"""


def graph_library(name: str = "net") -> Library:
    """Return a library like TVM's with one module for the graph executor."""
    kernel = f"int tvmgen_{name}_add(void);\nint tvmgen_{name}_add(void)\n{{\n    return 0;\n}}\n"
    module = Module(
        name=name,
        executor="graph",
        targets=(ModuleTarget("c -keys=cpu "),),
        main=(MainMemory(0, 8, 16),),
        inputs=(TensorInfo("x", "float32", 8),),
        outputs=(TensorInfo("output", "float32", 8),),
        operator_functions=(OperatorFunction(f"tvmgen_{name}_add", ((1, 0),)),),
        codegen=(
            CodegenFile(PurePosixPath(f"host/src/{name}_lib0.c"), b"typedef int mlf_nothing;\n"),
            CodegenFile(PurePosixPath(f"host/src/{name}_lib1.c"), kernel.encode()),
        ),
        params={"p0": np.array([[2.0, 4.0]], dtype=np.float32)},
        graph_json=GRAPH_JSON.replace("tvmgen_net", f"tvmgen_{name}").encode(),
        storage=(StorageEntry(0, 8, "x"), StorageEntry(1, 8, "p0"), StorageEntry(2, 8)),
        source_text=b"def @main\n",
    )  # fmt: skip
    return Library((module,))
