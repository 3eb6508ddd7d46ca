"""Archives in the forms that TVM's documents define are read, checked, converted and run, to the letter."""

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.archive import archive_files, convert, read_files, tar
from mlfbuild.archive.compare import compare
from mlfbuild.archive.validate import validate
from mlfbuild.core.errors import InputFileError
from mlfbuild.library import DeviceContext, Library, OperatorFunction, save_params
from mlfbuild.usecases.run import run_archive
from support.errors import raises

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
        "attrs": {"dltype": ["list_str", ["float32"] * 3], "storage_id": ["list_int", [0, 1, 2]],
         "shape": ["list_shape", [[1, 4]] * 3]},
        "node_row_ptr": [0, 1, 2, 3],
    }  # fmt: skip
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
        "memory": {str(index): {"storage_id": index, "size_bytes": 16, "input_binding": binding} for index,
         binding in enumerate(bindings)},
        "target": TARGET,
        "runtimes": ["graph"],
        "contexts": [{"device_type": "cpu", "device_id": 0, "target": TARGET},
         {"device_type": "ext_dev", "device_id": 1, "compiler": "ethos-u", "config": {"macs": 128}}],
    }  # fmt: skip
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


NOW = datetime(2024, 1, 1, tzinfo=timezone.utc)
ARCHIVES = {"page": page_archive, "several": several_modules_archive, "first": first_rfc_archive}
OFFSETS = {"page": {"page": 1.5}, "several": {"mod1": -1.0, "mod2": 2.0}, "first": {"sketch": 0.5}}


def opened(name: str) -> Library:
    return read_files(ARCHIVES[name](), "a.tar")


def edited(name: str, edit: Callable[[Any], object]) -> Files:
    files = ARCHIVES[name]()
    document = json.loads(files["metadata.json"])
    edit(document)
    return {**files, "metadata.json": json.dumps(document).encode()}


@pytest.mark.parametrize("name", ARCHIVES)
def test_facts_of_each_document(name: str) -> None:
    library = opened(name)
    assert [module.name for module in library.modules] == list(OFFSETS[name])
    for module in library.modules:
        assert (module.executor, module.style, module.export_datetime) == ("graph", "full-model", DATE)
        assert [target.text for target in module.targets] == [TARGET]
        assert [(tensor.name, tensor.dtype, tensor.shape) for tensor in module.inputs] == [("x", "float32", (1, 4))]
        assert [(tensor.dtype, tensor.shape) for tensor in module.outputs] == [("float32", (1, 4))]
        assert len(module.codegen) == 2 and list(module.params) == ["w"] and b"@main" in bytes(module.source_text)
        assert module.unknown == ()
        if name != "first":
            assert (module.main[0].constants_size, module.main[0].io_size) == (16, 32)
            function = f"tvmgen_{module.name}_fused_multiply_add"
            assert module.operator_functions == (OperatorFunction(function, ((1, 0),)),)


def test_facts_of_the_first_rfc() -> None:
    library = opened("first")
    (module,) = library.modules
    assert library.version == 1
    assert [(entry.storage_id, entry.size, entry.input_binding) for entry in module.storage] == [
        (0, 16, "x"), (1, 16, "w"), (2, 16, None),
    ]  # fmt: skip
    assert module.contexts == (
        DeviceContext("cpu", 0, target=TARGET), DeviceContext("ext_dev", 1, "ethos-u", '{"macs": 128}'),
    )  # fmt: skip
    assert {str(file.path) for file in library.other_files} == {
        "README.md", "crt/Makefile", "crt/include/tvm/runtime/c_runtime_api.h", "parameters/sketch.json",
        "runtime-config/aot/entry.txt",
    }  # fmt: skip


FINDINGS = {"page": {"MLF206", "MLF209"}, "several": {"MLF206", "MLF703"}, "first": {"MLF209"}}
"""Local time, an old version, and two system libraries in one archive; the first RFC's date is UTC by its name."""


@pytest.mark.parametrize("name", ARCHIVES)
def test_validate_finds_only_the_known_deviations(name: str) -> None:
    files = ARCHIVES[name]()
    assert {finding.code for finding in validate(files, "a.tar", NOW).findings} == FINDINGS[name]
    found = {finding.code for finding in validate(archive_files(opened(name)), "a.tar", NOW).findings}
    assert found == FINDINGS[name] - {"MLF209"}


@pytest.mark.parametrize("name", ARCHIVES)
def test_documents_are_converted_to_every_version(name: str) -> None:
    library = opened(name)
    current = archive_files(library)
    document = json.loads(bytes(current["metadata.json"]))
    assert {module["style"] for module in document["modules"].values()} == {"full-model"}
    assert [module["executors"] for module in document["modules"].values()] == [["graph"]] * len(library.modules)
    for version in range(1, 8) if len(library.modules) == 1 else [7]:
        written = read_files(archive_files(library, version), "a.tar")
        assert written == convert(library, version)
        assert archive_files(written) == current
        assert compare(library, written).differences == ()


@pytest.mark.parametrize(("name", "version"), [("page", None), ("several", None), ("first", None), ("first", 4)])
def test_documents_run(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, name: str, version: int | None
) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = ARCHIVES[name]() if version is None else archive_files(opened(name), version)
    (tmp_path / "a.tar").write_bytes(b"".join(tar.pack(files, 0)))
    np.savez(tmp_path / "x.npz", x=INPUT[np.newaxis])
    for module, offset in OFFSETS[name].items():
        run_archive(tmp_path / "a.tar", module, tmp_path / "x.npz", tmp_path / "y.npz", 60.0, None)
        (output,) = np.load(tmp_path / "y.npz").values()
        np.testing.assert_array_equal(output.reshape(1, 4), expected(offset))


# Forms that no document defines


Edit = Callable[[Any], object]
REFUSED: dict[str, tuple[str, Edit, str, str]] = {
    "no style and no executors": (
        "several", lambda d: (d["modules"]["mod1"].pop("style"), None)[1], "json-member-missing",
        "modules.mod1.executors",
    ),
    "style outside of modules": ("page", lambda d: d.update(style=""), "json-value-invalid", "style"),
    "style null": (
        "several", lambda d: d["modules"]["mod1"].update(style=None), "json-type-wrong", "modules.mod1.style",
    ),
    "empty executors": (
        "several", lambda d: d["modules"]["mod1"].update(executors=[]), "json-value-invalid", "modules.mod1.executors",
    ),
    "main as an object": ("page", lambda d: d["memory"].update(main={}), "json-type-wrong", "memory.main"),
    "functions as a number": (
        "page", lambda d: d["memory"].update(operator_functions=3), "json-type-wrong", "memory.operator_functions",
    ),
    "function without a list": (
        "page", lambda d: d["memory"].update(operator_functions={"f": {}}), "json-type-wrong",
        "memory.operator_functions.f",
    ),
    "function without a device": (
        "page", lambda d: d["memory"].update(operator_functions={"f": [{}]}), "json-member-missing",
        "memory.operator_functions.f[0].device",
    ),
    "named function without a device": (
        "several", lambda d: d["modules"]["mod2"]["memory"]["functions"].update(f=[{}]), "json-member-missing",
        "modules.mod2.memory.functions.f[0].device",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_other_forms_are_refused(form: str) -> None:
    name, edit, code, place = REFUSED[form]
    with raises(InputFileError, code, at=f"a.tar: metadata.json: {place}"):
        read_files(edited(name, edit), "a.tar")


def test_keys_of_functions_that_are_no_lists_are_unknown_fields() -> None:
    def add(document: Any) -> None:
        document["modules"]["mod1"]["memory"]["functions"] |= {"planner": "greedy", "empty": [], "numbers": [1]}

    module = read_files(edited("several", add), "a.tar").module("mod1")
    names = [function.name for function in module.operator_functions]
    assert names == ["tvmgen_mod1_fused_multiply_add", "empty"]
    assert [field.place for field in module.unknown] == ["/memory/functions/numbers", "/memory/functions/planner"]


def test_unknown_fields_of_documented_forms_get_the_places_of_version_7() -> None:
    def add(document: Any) -> None:
        document["memory"]["main"][0]["bank"] = 1
        next(iter(document["memory"]["operator_functions"].values()))[0]["bank"] = 2
        document["memory"]["bank"] = 3

    library = read_files(edited("page", add), "a.tar")
    memory = json.loads(bytes(archive_files(library)["metadata.json"]))["modules"]["page"]["memory"]
    functions = memory["functions"]
    found = (functions["main"][0], functions["operator_functions"][0]["workspace"][0], memory)
    assert [entry["bank"] for entry in found] == [1, 2, 3]


def test_a_module_without_executors_and_graph_is_aot() -> None:
    files = {path: data for path, data in several_modules_archive().items() if not path.endswith("mod1.graph")}
    library = read_files(files, "a.tar")
    assert [module.executor for module in library.modules] == ["aot", "graph"]
