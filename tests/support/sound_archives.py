"""Small valid archives, and edits that add one flaw."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from mlfbuild.archive.layout import archive_files
from mlfbuild.library import (
    CodegenFile,
    ExternalDependency,
    Library,
    Module,
    ModuleTarget,
    OperatorBuffer,
    StorageEntry,
)
from mlfbuild.library.bundling import ResolvedLibrary, bundle_dependency, bundle_files
from support.libraries import GRAPH_JSON, graph_library, native_module

Files = dict[str, bytes]

METADATA = "metadata.json"
TINY_SOURCE, TINY_HEADER = "codegen/host/src/tiny_lib0.c", "codegen/host/include/tvmgen_tiny.h"
BUNDLE = "dependencies/lib.json"
NET_SOURCE, NET_GRAPH = "codegen/host/src/net_lib1.c", "executor-config/graph/net.graph"
REGISTRY = """\
#include <tvm/runtime/crt/module.h>
TVM_DLL int32_t {function}(TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code);
static TVMBackendPackedCFunc _tvm_func_array[] = {{
    (TVMBackendPackedCFunc){function},
}};
static const TVMFuncRegistry _tvm_func_registry = {{
    "\\001\\000{function}\\000",    _tvm_func_array,
}};
static const TVMModule _tvm_system_lib = {{
    &_tvm_func_registry,
}};
const TVMModule* TVMSystemLibEntryPoint(void) {{
    return &_tvm_system_lib;
}}
;"""


# Valid archives


def packed(*modules: Module, version: int = 7) -> Files:
    """Return the files of the archive of ``modules``."""
    return {path: bytes(content) for path, content in archive_files(Library(modules), version).items()}


def tiny_module(name: str = "tiny", **changes: Any) -> Module:
    """Return a module of the native compiler, with the C interface."""
    return replace(native_module(name), **{"operator_functions": (), **changes})


def net_module(name: str = "net", **changes: Any) -> Module:
    """Return a graph with a parameter and a system library."""
    (module,) = graph_library(name).modules
    registry = REGISTRY.format(function=f"tvmgen_{name}_add").encode()
    files = (CodegenFile(PurePosixPath(f"host/src/{name}_lib0.c"), registry), module.codegen[1])
    return replace(module, **{"codegen": files, **changes})


def operator_module(**changes: Any) -> Module:
    """Return an operator ``add`` of two int8[2]."""
    kernel = "int32_t add(void* args, int* type_codes, int count, void* value, int* code) { return 0; }\n"
    files = {"host/src/lib0.c": REGISTRY.format(function="add"), "host/src/lib1.c": kernel}
    fields: dict[str, Any] = {
        "name": "add",
        "executor": "",
        "style": "operator",
        "targets": (ModuleTarget("c -keys=cpu "),),
        "main": (),
        "operator_functions": (),
        "codegen": tuple(CodegenFile(PurePosixPath(path), text.encode()) for path, text in files.items()),
        "buffers": tuple(OperatorBuffer("add", 2, (2,), "int8") for _ in range(3)),
        "tir": ((1, b"primfn\n"),),
    }
    return Module(**{**fields, **changes})


def tiny(*names: str, **changes: Any) -> Files:
    """Return the archive of ``tiny``, or of several modules like it."""
    return packed(*(tiny_module(name, **changes) for name in names or ("tiny",)))


def net(**changes: Any) -> Files:
    """Return the archive of ``net``."""
    return packed(net_module(**changes))


def operator(**changes: Any) -> Files:
    """Return the archive of the operator."""
    return packed(operator_module(**changes))


# Flaws


def replaced(files: Files, path: str, old: str, new: str) -> Files:
    """Return ``files`` with ``old`` replaced in one file, which must contain it."""
    text = files[path].decode()
    assert old in text, f"{old!r} is not in {path}"
    return {**files, path: text.replace(old, new).encode()}


def without(files: Files, *paths: str) -> Files:
    """Return ``files`` without ``paths``, which must exist."""
    assert set(paths) <= files.keys()
    return {path: content for path, content in files.items() if path not in paths}


def foreign(files: Files) -> Files:
    """Return ``files`` without the extension key in the metadata, like those of TVM."""
    document = json.loads(files[METADATA])
    for module in document["modules"].values():
        module.pop("mlfbuild", None)
    return {**files, METADATA: json.dumps(document).encode()}


def renamed(files: Files, old: str, new: str) -> Files:
    """Return ``files`` with one file at another path."""
    return {**without(files, old), new: files[old]}


def described(files: Files, keys: str, value: object) -> Files:
    """Return ``files`` with the member at the dotted ``keys`` of the metadata set, or removed for ``...``."""
    document = json.loads(files[METADATA])
    *parents, last = keys.split(".")
    at: Any = document
    for key in parents:
        at = at[int(key)] if key.isdigit() else at[key]
    where = int(last) if isinstance(at, list) else last
    if value is ...:
        del at[where]
    elif isinstance(at, list) and where == len(at):
        at.append(value)
    else:
        at[where] = value
    return {**files, METADATA: json.dumps(document).encode()}


def defining(macros: Mapping[str, object] | list[tuple[str, object]], **changes: Any) -> Files:
    """Return the archive of ``tiny`` with macros in its header."""
    pairs = macros.items() if isinstance(macros, Mapping) else macros
    lines = "".join(f"#define TVMGEN_TINY_{name} {value}\n" for name, value in pairs)
    return replaced(tiny(**changes), TINY_HEADER, "#endif //", f"{lines}#endif //")


def dependency(version: str = "1.0", url: str = "./runtime", kind: str = "mlf_path") -> ExternalDependency:
    """Return the dependency that TVM writes for its runtime."""
    return ExternalDependency("tvm_standalone_crt", url, kind, version)


def with_runtime(files: Files) -> Files:
    """Return ``files`` and the folder of TVM's dependency."""
    return {**files, "runtime/include/x.h": b"\n"}


def with_bundle(*modules: Module) -> Files:
    """Return the archive of ``modules``, which require a library that the archive bundles."""
    content = {"include/lib.h": b"int lib(void);\n", "lib.c": b'#include "lib.h"\nint lib(void) { return 1; }\n'}
    bundle = ResolvedLibrary("lib", "1.0", content, sources=("lib.c",), include_dirs=("include",))
    named = (replace(module, external_dependencies=(bundle_dependency(bundle),)) for module in modules)
    files = archive_files(Library(tuple(named), other_files=tuple(bundle_files(bundle))))
    return {path: bytes(content) for path, content in files.items()}


def shared_storage() -> Files:
    """Return ``net`` with storage id 1 for the result and 2 for the parameter, of one element, with right sizes."""
    text = GRAPH_JSON.replace("[0, 1, 2]]", "[0, 2, 1]]").replace(
        "[[1, 2], [1, 2], [1, 2]]", "[[1, 2], [1, 1], [1, 2]]"
    )
    assert text.count("[0, 2, 1]") == text.count("[1, 1]") == 1
    return net(
        graph_json=text.encode(),
        params={"p0": np.array([[2.0]], dtype=np.float32)},
        storage=(StorageEntry(0, 8, "x"), StorageEntry(2, 4, "p0"), StorageEntry(1, 8)),
    )


def parameter_first() -> Files:
    """Return ``net`` with a graph that begins with its parameter."""
    text = GRAPH_JSON.replace('"x"', '"swap"').replace('"p0"', '"x"').replace('"swap"', '"p0"')
    return net(
        graph_json=text.encode(), storage=(StorageEntry(0, 8, "p0"), StorageEntry(1, 8, "x"), StorageEntry(2, 8))
    )


def long_name() -> Files:
    """Return ``net`` with a parameter name of 80 bytes."""
    name = "p" * 80
    return net(
        graph_json=GRAPH_JSON.replace('"p0"', f'"{name}"').encode(),
        params={name: np.array([[2.0, 4.0]], dtype=np.float32)},
        storage=(StorageEntry(0, 8, "x"), StorageEntry(1, 8, name), StorageEntry(2, 8)),
    )


def named(name: str) -> Files:
    """Return ``net`` with another name, but the same functions."""
    files = net()
    for path in list(files):
        if "net" in path:
            files = renamed(files, path, path.replace("net_lib", f"{name}_lib").replace("net.", f"{name}."))
    document = json.loads(files[METADATA])
    (module,) = document["modules"].values()
    document["modules"] = {name: {**module, "model_name": name}}
    return {**files, METADATA: json.dumps(document).encode()}
