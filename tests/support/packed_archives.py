"""Archives like those of TVM with the AOT executor and ``system-lib``, made of the archives in the test data.

``packed_archive`` makes one like those of TVM 0.8 with the packed interface from a graph archive of version 5: the same
kernels, called by a main function that is written from the graph. ``with_system_lib`` adds the registry to an archive
with the C interface, and ``unpacked_archive`` gives it the packed interface of ``unpacked-api`` instead.
Source: TVM's ``source_module.cc`` and ``aot_executor_codegen.cc``, releases 0.8 to 0.14.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.library.graph_json import ExecutorGraph, parse_graph
from mlfbuild.library.params import load_params
from support.old_archives import EMPTY_PARAMS

Files = dict[str, bytes]

_GUARD = '#ifdef __cplusplus\nextern "C"\n#endif\n'
_OLD = "TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code"
_NEW = f"{_OLD}, void* resource_handle"
_HANDLES = "void* args, void* type_code, int num_args, void* out_value, void* out_type_code, void* resource_handle"
_KERNEL = (
    "void* args, void* arg_type_ids, int32_t num_args, void* out_ret_value, void* out_ret_tcode, void* resource_handle"
)
_C_TYPES = {
    "float32": "float", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t",
}  # fmt: skip
_LAST = re.compile(r"\n(?:// CodegenC[^\n]*\n)?#ifdef __cplusplus\nextern \"C\"\n#endif\nTVM_DLL int32_t "
                   r"(?:__tvm_main__|_lookup_linked_param)\([\s\S]*\Z")  # fmt: skip


def registry(functions: Sequence[str], *, old: bool) -> str:
    """Return the registry of ``functions``; ``old`` is that of TVM 0.8, with a count of one byte."""
    declared = "".join(f"{_GUARD}TVM_DLL int32_t {name}({_OLD if old else _NEW});\n" for name in functions)
    listed = "".join(f"    (TVMBackendPackedCFunc){name},\n" for name in functions)
    count = f"\\{len(functions):03o}" if old else f"\\{len(functions):03o}\\000"
    names = "".join(f"{name}\\000" for name in functions)
    return f"""\
#include <tvm/runtime/crt/module.h>
{declared}static TVMBackendPackedCFunc _tvm_func_array[] = {{
{listed}}};
static const TVMFuncRegistry _tvm_func_registry = {{
    "{count}{names}",    _tvm_func_array,
}};
static const TVMModule _tvm_system_lib = {{
    &_tvm_func_registry,
}};
const TVMModule* TVMSystemLibEntryPoint(void) {{
    return &_tvm_system_lib;
}}
"""


def with_system_lib(files: Files, module: str) -> Files:
    """Return an AOT archive with the registry in front of its entry."""
    old = b'"version": 5' in files["metadata.json"]
    prefix, place = f"tvmgen_{module}", f"codegen/host/src/{module}_lib0.c"
    kernels = re.findall(rf"int32_t ({prefix}_fused_\w+)\(", files[place.replace("lib0", "lib1")].decode())
    functions = [*dict.fromkeys(kernels), f"{prefix}_run_model" if old else f"{prefix}___tvm_main__"]
    functions = functions if old else [f"{prefix}_run", *functions]
    return {**files, place: registry(functions, old=old).encode() + files[place]}


def unpacked_archive(files: Files, module: str) -> Files:
    """Return an AOT archive with the C interface without it: the entry takes packed arguments and passes the data."""
    path = f"codegen/host/src/{module}_lib0.c"
    text = files[path].decode().replace(f"#include <tvmgen_{module}.h>\n", "")
    begin = text.index(f"int32_t tvmgen_{module}_run(")
    end = text.index("}\n", begin) + 2
    numbers = iter(range(100))

    def data(_: re.Match[str]) -> str:
        return f"((DLTensor*)(((TVMValue*)args)[{next(numbers)}].v_handle))[0].data"

    call = re.sub(r"(?:inputs|outputs)->\w+", data, text[text.index("return ", begin) : end])
    text = f"{text[:begin]}int32_t tvmgen_{module}_run({_HANDLES}) {{\n{call}{text[end:]}"
    return {name: data for name, data in files.items() if "/include/" not in name} | {path: text.encode()}


# TVM 0.8 with the packed interface


def packed_archive(files: Files, module: str, *, system_lib: bool = True, swapped: bool = False) -> Files:
    """Return the graph archive ``files`` of version 5 as one of the AOT executor with the packed interface.

    With ``swapped`` the kernels stand in ``<module>_lib0.c`` and the entry in ``<module>_lib1.c``, as TVM documents it.
    """
    graph = parse_graph(files["executor-config/graph/graph.json"], "graph.json")
    kernels = _LAST.sub("\n", files[f"codegen/host/src/{module}_lib1.c"].decode())
    arrays, params = _constants(files[f"parameters/{module}.params"])
    includes = "#include <math.h>\n"
    kernels = kernels.replace(includes, includes + arrays, 1) + _main(graph, module, params)
    called = list(dict.fromkeys(node.function for node in graph.nodes if node.op == "tvm_op"))
    names = [*(name for name in called if name != "__nop"), f"tvmgen_{module}_run_model"]
    first = (registry(names, old=True) if system_lib else "") + _entry(module)
    place = f"codegen/host/src/{module}_lib"
    sources = {f"{place}0.c": first, f"{place}1.c": kernels}
    if swapped:
        sources = {f"{place}0.c": kernels, f"{place}1.c": first}
    kept = ("codegen/", "executor-config/", "parameters/")
    return {
        **{path: data for path, data in files.items() if not path.startswith(kept)},
        **{path: text.encode() for path, text in sources.items()},
        f"parameters/{module}.params": EMPTY_PARAMS,
        "metadata.json": _metadata(json.loads(files["metadata.json"]), system_lib),
    }


def _metadata(fields: dict[str, object], system_lib: bool) -> bytes:
    memory = fields["memory"]
    assert isinstance(memory, dict)
    del memory["sids"]
    target = f"c -keys=cpu -executor=aot -interface-api=packed -link-params=1 -runtime=c -system-lib={int(system_lib)}"
    fields |= {"executors": ["aot"], "target": {"1": target}}
    return json.dumps(fields, indent=2, sort_keys=True).encode()


def _constants(content: bytes) -> tuple[str, frozenset[str]]:
    params = load_params(content)
    text = ""
    for name, value in params.items():
        values = ", ".join(float(x).hex() if value.dtype.kind == "f" else str(int(x)) for x in np.ravel(value))
        text += f"static const {_C_TYPES[value.dtype.name]} __tvm_param__{name}[{value.size}] = {{\n    {values}\n}};\n"
    return text, frozenset(params)


def _entry(module: str) -> str:
    run = f"tvmgen_{module}_run"
    return f"""\
#include "tvm/runtime/c_runtime_api.h"
#ifdef __cplusplus
extern "C" {{
#endif
TVM_DLL int32_t {run}_model({_HANDLES});
int32_t {run}({_HANDLES}) {{
return {run}_model(args, type_code, num_args, out_value, out_type_code, resource_handle);
}}
#ifdef __cplusplus
}}
#endif
;"""


def _main(graph: ExecutorGraph, module: str, params: frozenset[str]) -> str:
    inputs = [node for node in graph.arg_nodes if graph.nodes[node].name not in params]
    handles = {graph.storage_id[graph.node_row_ptr[node]]: f"arg{at}" for at, node in enumerate(inputs)}
    heads = {graph.entry(head): f"arg{len(inputs) + at}" for at, head in enumerate(graph.heads)}
    count = len(inputs) + len(heads)
    lines = ["TVMValue stack[64];", "void* stack_tcode = stack;", "TVMValue stack1[64];", "void* stack_value = stack1;"]
    for at in range(count):
        lines.append(f"void* arg{at} = (((TVMValue*)args)[{at}].v_handle);")
        lines.append(f"int32_t arg{at}_code = ((int32_t*)arg_type_ids)[({at})];")
    for node in graph.arg_nodes:
        name, sid = graph.nodes[node].name, graph.storage_id[graph.node_row_ptr[node]]
        if name in params:
            handles[sid] = f"{name}_array"
            lines += _array(handles[sid], f"(void*)__tvm_param__{name}")
    sizes: dict[int, int] = {}
    for entry, (shape, dtype) in enumerate(zip(graph.shape, graph.dltype, strict=True)):
        sid = graph.storage_id[entry]
        if entry in heads:
            continue  # the caller has its memory, whatever shares its storage id in the graph
        sizes[sid] = max(sizes.get(sid, 0), math.prod(shape) * np.dtype(dtype).itemsize)
    own = [sid for sid in sizes if sid not in handles]
    for sid in own:
        handles[sid] = f"sid_{sid}_array"
        lines.append(f"void* sid_{sid} = TVMBackendAllocWorkspace(1, 0, (uint64_t){sizes[sid]}, 0, 8);")
        lines += [f"if (sid_{sid} == NULL) {{", "  return -1;", "}", *_array(handles[sid], f"sid_{sid}")]
    for at, node in enumerate(graph.nodes):
        if node.op == "tvm_op" and node.function != "__nop":
            entries = [graph.entry(each) for each in node.inputs]
            entries += range(graph.node_row_ptr[at], graph.node_row_ptr[at + 1])
            lines += _call(
                at, node.function, [heads.get(entry) or handles[graph.storage_id[entry]] for entry in entries]
            )
    for sid in reversed(own):
        lines += [f"if (TVMBackendFreeWorkspace(1, 0, sid_{sid}) != 0) {{", "  return -1;", "}"]
    body = "".join(f"  {line}\n" for line in [*lines, "return 0;"])
    return f"\n{_GUARD}TVM_DLL int32_t tvmgen_{module}_run_model({_KERNEL}) {{\n{body}}}\n\n"


def _array(name: str, data: str) -> list[str]:
    return [f"DLTensor {name}_stack[1];", f"void* {name} = {name}_stack;", f"(((DLTensor*){name})[0].data) = {data};",
            f"(((DLTensor*){name})[0].strides) = NULL;", f"(((DLTensor*){name})[0].device.device_id) = 0;"]  # fmt: skip


def _call(at: int, function: str, handles: Sequence[str]) -> Iterator[str]:
    for index, handle in enumerate(handles):
        yield f"(((TVMValue*)stack_value)[{index}].v_handle) = {handle};"
        yield f"((int32_t*)stack_tcode)[({index})] = 3;"
    yield f"TVMValue ret_val{at};"
    yield f"int ret_type_code{at};"
    passed = f"(TVMValue*) stack_value , (int*) stack_tcode, {len(handles)}, &ret_val{at}, &ret_type_code{at}, NULL"
    yield f"if ({function}( {passed}) != 0){{"
    yield "  return -1;"
    yield "}"
