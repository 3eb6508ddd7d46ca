"""Archives like those of TVM 0.14 for the AOT executor with the C interface: y = (a + w) * b, four floats each.

Their memory is the module's, the caller's (``pools``: a workspace ``sram`` and constants ``flash``), or the caller's
with inputs and outputs inside (``tir.usmp.use_workspace_io``), which no archive in the test data has.
Source: TVM's ``source_module.cc`` (``GenerateCInterfaceEntrypoint``) and ``interface_c.cc``.
"""

import json
import struct

import numpy as np

from mlfbuild.archive import tar

W = np.array([0.5, -1.0, 2.0, 8.0], np.float32)
A = np.array([[[1, 2, 3, 4]], [[9, 8, 7, 6]], [[-1, 0, 0.5, 2]]], np.float32)
B = np.array([[[2, 2, 2, 2]], [[1, 0, -1, 3]], [[4, 4, 4, 4]]], np.float32)
Y = (A + W) * B

OWN, POOLS, WORKSPACE_IO = "own", "pools", "workspace-io"
MEMORIES = (OWN, POOLS, WORKSPACE_IO)

_POOL_SIZES = {POOLS: 32, WORKSPACE_IO: 80}
_OFFSETS = {"a": 48, "b": 32, "output": 64}
_SUM = {POOLS: 16, WORKSPACE_IO: _OFFSETS["a"]}
"""The sum overwrites an input that is no longer needed, because TVM's planner reuses memory."""

_HEADER = """\
#ifndef TVMGEN_NET_H_
#define TVMGEN_NET_H_
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TVMGEN_NET_A_SIZE 16
#define TVMGEN_NET_B_SIZE 16
#define TVMGEN_NET_OUTPUT_SIZE 16
struct tvmgen_net_inputs {
  void* a;
  void* b;
};

struct tvmgen_net_outputs {
  void* output;
};

"""
_POOL_STRUCT = """\
struct tvmgen_net_workspace_pools {
  void* sram;
  void* flash;
};

"""
_MAPS = """\
struct tvmgen_net_inputs tvmgen_net_map_inputs(
  struct tvmgen_net_workspace_pools* workspace_pools
);

struct tvmgen_net_outputs tvmgen_net_map_outputs(
  struct tvmgen_net_workspace_pools* workspace_pools
);

"""
_END = """
#ifdef __cplusplus
}
#endif

#endif // TVMGEN_NET_H_
"""
_STRUCTS = {
    OWN: "struct tvmgen_net_inputs* inputs,struct tvmgen_net_outputs* outputs",
    POOLS: "struct tvmgen_net_inputs* inputs,struct tvmgen_net_outputs* outputs,"
    "struct tvmgen_net_workspace_pools* workspace_pools",
    WORKSPACE_IO: "struct tvmgen_net_workspace_pools* workspace_pools",
}
_MAIN = {
    OWN: "void* a,void* b,void* output0",
    POOLS: "void* a,void* b,void* output0,uint8_t* sram_0_var,uint8_t* flash_1_var",
    WORKSPACE_IO: "uint8_t* sram_0_var,uint8_t* flash_1_var",
}
_HANDED_ON = {
    OWN: "inputs->a,inputs->b,outputs->output",
    POOLS: "inputs->a,inputs->b,outputs->output,workspace_pools->sram,workspace_pools->flash",
    WORKSPACE_IO: "workspace_pools->sram,workspace_pools->flash",
}
_KERNELS = """\
// tvm target: c -keys=cpu
#define TVM_EXPORTS
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <math.h>
#include <stdbool.h>
{constant}#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t tvmgen_net_fused_add_multiply(float* a, float* b, float* output, float* w{scratch}) {{
{take}  for (int32_t i = 0; i < 4; ++i) {{
    sum[i] = (a[i] + w[i]);
  }}
{statement}  for (int32_t i = 0; i < 4; ++i) {{
    output[i] = (sum[i] * b[i]);
  }}
{give}  return 0;
}}

#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t tvmgen_net___tvm_main__({main}) {{
  if (tvmgen_net_fused_add_multiply({arguments}) != 0 ) return -1;
  return 0;
}}
"""
_TAKE = """\
  float* sum = (float*)TVMBackendAllocWorkspace(1, 0, (uint64_t)16, 2, 32);
  if (sum == NULL) {
    return -1;
  }
"""
_GIVE = """\
  if (TVMBackendFreeWorkspace(1, 0, sum) != 0) {
    return -1;
  }
"""


def aot_files(memory: str = OWN, statement: str = "") -> dict[str, bytes]:
    """Return the files of the archive of ``net``, with ``statement`` in its kernel."""
    workspace = 16 if memory == OWN else _POOL_SIZES[memory]
    main = {
        "device": 1,
        "workspace_size_bytes": workspace,
        "constants_size_bytes": 16 if memory == OWN else 32,
        "io_size_bytes": 48,
        "inputs": {name: {"size": 16, "dtype": "float32"} for name in ("a", "b")},
        "outputs": {"output": {"size": 16, "dtype": "float32"}},
    }
    module = {
        "model_name": "net",
        "export_datetime": "2026-11-21 12:00:00Z",
        "executors": ["aot"],
        "style": "full-model",
        "target": ["c -keys=cpu "],
        "external_dependencies": [],
        "memory": {"functions": {"main": [main], "operator_functions": []}},
    }
    files = {
        "metadata.json": json.dumps({"version": 7, "modules": {"net": module}}, indent=2),
        "codegen/host/include/tvmgen_net.h": _header(memory, workspace),
        "codegen/host/src/net_lib0.c": _entry(memory),
        "codegen/host/src/net_lib1.c": _kernels(memory, statement),
        "src/net.relay": "def @main(%a: Tensor[(1, 4), float32], %b: Tensor[(1, 4), float32]) {}\n",
    }
    params = struct.pack("<QQQQ", 0xF7E58D4F05049CB7, 0, 0, 0)
    return {**{path: text.encode() for path, text in files.items()}, "parameters/net.params": params}


def aot_archive(memory: str = OWN, statement: str = "") -> bytes:
    """Return the archive of ``aot_files``."""
    return b"".join(tar.pack(aot_files(memory, statement), 0))


def _header(memory: str, workspace: int) -> str:
    text = _HEADER + (_POOL_STRUCT if memory != OWN else "") + (_MAPS if memory == WORKSPACE_IO else "")
    parameters = ",\n  ".join(_STRUCTS[memory].split(","))
    text += f"int32_t tvmgen_net_run(\n  {parameters}\n);\n#define TVMGEN_NET_WORKSPACE_SIZE {workspace}\n"
    if memory != OWN:
        data = bytes(16) + W.tobytes()
        rows = [", ".join(f"0x{byte:02x}" for byte in data[at : at + 16]) for at in (0, 16)]
        text += f"#define TVMGEN_NET_SRAM_WORKSPACE_POOL_SIZE {workspace}\n"
        text += "#define TVMGEN_NET_FLASH_CONSTANT_POOL_SIZE 32\n#define TVMGEN_NET_FLASH_CONSTANT_POOL_DATA \\\n"
        text += "".join(f"    {row}, \\\n" for row in rows) + "\n"
    return text + _END


def _entry(memory: str) -> str:
    lines = ['#include "tvm/runtime/c_runtime_api.h"', "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    lines.append("#include <tvmgen_net.h>")
    if memory == WORKSPACE_IO:
        lines += [_map("inputs", ("a", "b")), _map("outputs", ("output",))]
    lines.append(f"TVM_DLL int32_t tvmgen_net___tvm_main__({_MAIN[memory]});")
    lines.append(
        f"int32_t tvmgen_net_run({_STRUCTS[memory]}) {{return tvmgen_net___tvm_main__({_HANDED_ON[memory]});\n}}"
    )
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", ";"])


def _map(kind: str, names: tuple[str, ...]) -> str:
    members = "".join(f"\t.{name} = &((uint8_t*)workspace_pools->sram)[{_OFFSETS[name]}],\n" for name in names)
    name = f"struct tvmgen_net_{kind} tvmgen_net_map_{kind}"
    return (
        f"{name}(\n  struct tvmgen_net_workspace_pools* workspace_pools\n\n){{\n"
        f"struct tvmgen_net_{kind} ret = {{\n{members}}};\nreturn ret;\n}}\n"
    )


def _kernels(memory: str, statement: str) -> str:
    values = ", ".join(f"{value:.1f}f" for value in W)
    constant = f"static const float constant_0[4] = {{{values}}};\n" if memory == OWN else ""
    w = "(float*)constant_0" if memory == OWN else "(float*)&(flash_1_var[16])"
    tensors = "(float*)a, (float*)b, (float*)output0"
    if memory == WORKSPACE_IO:
        tensors = ", ".join(f"(float*)&(sram_0_var[{_OFFSETS[name]}])" for name in ("a", "b", "output"))
    return _KERNELS.format(
        constant=constant,
        scratch="" if memory == OWN else ", uint8_t* sram",
        take=_TAKE if memory == OWN else f"  float* sum = (float*)&(sram[{_SUM[memory]}]);\n",
        statement=f"  {statement}\n" if statement else "",
        give=_GIVE if memory == OWN else "",
        main=_MAIN[memory],
        arguments=f"{tensors}, {w}" + ("" if memory == OWN else ", sram_0_var"),
    )
