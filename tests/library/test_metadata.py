"""``metadata.json``: TVM's keys and layout, the extension key, and errors for everything else."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mlfbuild.core.errors import InputFileError
from mlfbuild.library import (
    OPERATOR,
    Library,
    Module,
    ModuleTarget,
    Network,
    NetworkOperator,
    NetworkScratch,
    NetworkTensor,
    OperatorBuffer,
    OperatorFunction,
    TracedTensor,
)
from mlfbuild.library.metadata import (
    FORMATS,
    Extension,
    ModuleRecord,
    metadata_json,
    read_document,
    read_format,
    read_modules,
)
from support.errors import raises
from support.libraries import graph_library, native_library, native_module

DATE = "1980-01-01 00:00:00Z"


def known(library: Library) -> dict[str, Extension]:
    """Return the extension key of native modules."""
    return {
        module.name: Extension(
            inputs=module.inputs,
            outputs=module.outputs,
            model_id=module.model_id,
            workspace_bound=module.workspace_bound,
            trace=module.trace,
            network=module.network,
        )
        for module in library.modules
        if module.model_id
    }


def text_of(library: Library) -> bytes:
    return metadata_json(library, DATE, known(library))


def document(library: Library) -> dict[str, Any]:
    return json.loads(text_of(library))


def records(data: bytes, where: str = "metadata.json") -> list[ModuleRecord]:
    found = read_document(data, where)
    return read_modules(found, read_format(found))


def reread(library: Library) -> Library:
    """Return the library from the metadata and the extension key, without information from other files."""
    modules = []
    for record in records(text_of(library)):
        inputs, outputs = record.extension.inputs, record.extension.outputs
        said = {"inputs": inputs, "outputs": outputs} if inputs is not None else {}
        modules.append(replace(record.module, **said))
    return Library(tuple(modules), version=library.version)


def without_files(library: Library) -> Library:
    bare = {"codegen": (), "params": {}, "graph_json": None, "source_text": b"", "interface": "", "tir": ()}
    modules = tuple(replace(module, **bare) for module in library.modules)
    if library.version < 7:
        graphs = {"inputs": (), "outputs": ()}
        modules = tuple(module if module.model_id else replace(module, **graphs) for module in modules)
    return replace(library, modules=modules)


def traced_library() -> Library:
    """Return a native library with one traced operator."""
    (module,) = native_library().modules
    return Library((replace(module, trace=(TracedTensor(module.outputs[0], "ADD", "mlf_tiny_add_0"),)),))


def network_library() -> Library:
    """Return a native library with a network: an operator with scratch memory, and one without a function."""
    (module,) = native_library().modules
    tensors = (
        NetworkTensor("x", "int8", (1, 4), 4, "input", 0, 0, 0),
        NetworkTensor("sum", "int8", (1, 4), 4, "arena", 16, 0, 1),
        NetworkTensor("y", "int8", (2, 2), 4, "arena", 16, 1, 1),
        NetworkTensor("table", "int32", (), 4, "constant", None, 0, 1),
    )
    operators = (
        NetworkOperator(
            "add", "ADD", "mlf_tiny_add_0", ("mlf_tiny_add_0_table",), 0, (0,), (1,), NetworkScratch(0, 16)
        ),
        NetworkOperator("flat", "RESHAPE", "", (), None, (1,), (2,)),
    )
    main = (replace(module.main[0], workspace_size=32),)
    return Library((replace(module, main=main, network=Network(32, tensors, operators)),))


def operator_library() -> Library:
    buffers = (
        OperatorBuffer("add", 2, (2,), "int8", "a"),
        OperatorBuffer("add", 1, (1,), "int8"),
        OperatorBuffer("sub", 4, (), "float32"),
    )
    functions = tuple(OperatorFunction(name, ()) for name in ("add", "nothing", "sub"))
    module = Module("ops", "", (ModuleTarget("c -keys=cpu "),), (), functions, (), style=OPERATOR, buffers=buffers)
    return Library((module,))


LIBRARIES = {
    "native": native_library(), "two": native_library("b", "a"), "graph": graph_library(),
    "operator": operator_library(), "traced": traced_library(), "network": network_library(),
}  # fmt: skip


def in_version(library: Library, version: int) -> Library:
    """Return the library with the targets of a version; version 5 has one for each device."""
    device = 1 if version == 5 else None
    modules = (
        replace(module, targets=tuple(replace(target, device=device) for target in module.targets))
        for module in library.modules
    )
    return replace(library, version=version, modules=tuple(modules))


WRITTEN = [(name, version) for name in LIBRARIES for version in (5, 6, 7) if version == 7 or name != "two"]


@pytest.mark.parametrize(("name", "version"), WRITTEN)
def test_text_of_each_version(golden: Callable[[str, str], None], name: str, version: int) -> None:
    golden(text_of(in_version(LIBRARIES[name], version)).decode(), "metadata.json")


@pytest.mark.parametrize(("name", "version"), WRITTEN)
def test_written_metadata_is_read(name: str, version: int) -> None:
    library = in_version(LIBRARIES[name], version)
    assert reread(library) == without_files(library)


def test_top_level_has_exactly_version_and_modules() -> None:
    assert document(native_library("a", "b")).keys() == {"version", "modules"}


def test_module_has_keys_of_tvm_and_extension() -> None:
    native = document(native_library())["modules"]["tiny"]
    assert native.keys() == {"model_name", "export_datetime", "executors", "style", "target", "memory", "mlfbuild"}
    assert native["memory"].keys() == {"functions"}
    graph = document(graph_library())["modules"]["net"]
    assert graph.keys() == native.keys() - {"mlfbuild"}
    assert graph["memory"].keys() == {"functions", "sids"}


def test_operator_is_one_line_in_order_of_tvm() -> None:
    text = text_of(operator_library()).decode()
    assert "\n" not in text
    assert list(json.loads(text)) == [
        "version", "model_name", "export_datetime", "memory", "target", "executors", "style",
    ]  # fmt: skip


def test_table_of_versions() -> None:
    """Compare the changes from each version to the next with the documented ones."""
    rows = {version: vars(form) for version, form in FORMATS.items()}
    changed = {
        version: {key for key in row if row[key] != rows[version - 1][key]} - {"version"}
        for version, row in rows.items()
        if version > 1
    }
    assert changed == {
        2: {"memory_of_functions"},
        3: {"codegen_name"},
        4: {"operators", "program"},
        5: {"executors", "graph", "dependencies"},
        6: {"targets_by_device"},
        7: {"modules", "tensors", "graph", "program"},
    }


def test_date_of_the_module_takes_precedence() -> None:
    module = replace(native_module(), export_datetime="2024-02-29 12:00:00Z")
    assert document(Library((module,)))["modules"]["tiny"]["export_datetime"] == "2024-02-29 12:00:00Z"
    assert document(native_library())["modules"]["tiny"]["export_datetime"] == DATE


def test_an_extension_of_a_newer_version_is_ignored() -> None:
    text = document(native_library())
    text["modules"]["tiny"]["mlfbuild"] = {"version": 2, "inputs": "in a shape to come"}
    (record,) = records(json.dumps(text).encode())
    assert record.extension == Extension() and record.module.model_id == ""


def edit(path: str, value: object, library: Library) -> dict[str, Any]:
    """Return the metadata of ``library`` with the member at the dotted ``path`` replaced, or removed for ``...``."""
    text = document(library)
    *parents, last = path.split(".")
    at: Any = text
    for part in parents:
        at = at[int(part)] if part.isdigit() else at[part]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return text


MAIN = "modules.tiny.memory.functions.main.0"
NETWORK = "modules.tiny.mlfbuild.network"
WRONG = [
    ("modules", ..., "json-member-missing", "model_name"),
    ("modules", [], "json-type-wrong", "modules"),
    ("modules", {}, "json-value-invalid", "modules"),
    ("modules.tiny", 7, "json-type-wrong", "modules.tiny"),
    ("modules.tiny.executors", [], "json-value-invalid", "modules.tiny.executors"),
    ("modules.tiny.executors", ["vm"], "executor-unsupported", "modules.tiny.executors"),
    ("modules.tiny.executors", ..., "json-member-missing", "modules.tiny.executors"),
    ("modules.tiny.executors", "aot", "json-type-wrong", "modules.tiny.executors"),
    ("modules.tiny.style", "operator", "json-value-invalid", "modules.tiny.style"),
    ("modules.tiny.target", [1], "json-type-wrong", "modules.tiny.target"),
    ("modules.tiny.memory", ..., "json-member-missing", "modules.tiny.memory"),
    ("modules.tiny.memory.functions.main", {}, "json-type-wrong", "modules.tiny.memory.functions.main"),
    (f"{MAIN}.workspace_size_bytes", -1, "json-type-wrong",
     "modules.tiny.memory.functions.main[0].workspace_size_bytes"),
    (f"{MAIN}.workspace_size_bytes", True, "json-type-wrong",
     "modules.tiny.memory.functions.main[0].workspace_size_bytes"),
    (f"{MAIN}.workspace_size_bytes", 1.5, "json-type-wrong",
     "modules.tiny.memory.functions.main[0].workspace_size_bytes"),
    (f"{MAIN}.workspace_size_bytes", 10**400, "json-type-wrong",
     "modules.tiny.memory.functions.main[0].workspace_size_bytes"),
    (f"{MAIN}.inputs.x.dtype", None, "json-type-wrong", "modules.tiny.memory.functions.main[0].inputs.x.dtype"),
    (f"{MAIN}.inputs.x.size", 5, "metadata-contradiction", "modules.tiny.mlfbuild.inputs"),
    (f"{MAIN}.outputs", {}, "metadata-contradiction", "modules.tiny.mlfbuild.outputs"),
    ("modules.tiny.mlfbuild.inputs.0.shape", [1, -4], "json-type-wrong", "modules.tiny.mlfbuild.inputs[0].shape"),
    ("modules.tiny.mlfbuild.inputs.0.scale", "1", "json-type-wrong", "modules.tiny.mlfbuild.inputs[0].scale"),
    ("modules.tiny.mlfbuild.target_devices", [1, 2], "metadata-contradiction", "modules.tiny.mlfbuild.target_devices"),
    ("modules.tiny.mlfbuild.target_devices", ["cpu"], "json-type-wrong", "modules.tiny.mlfbuild.target_devices"),
    ("modules.tiny.mlfbuild.contexts", [{}], "json-member-missing", "modules.tiny.mlfbuild.contexts[0].device_type"),
    ("modules.tiny.mlfbuild.workspace_bound", -1, "json-type-wrong", "modules.tiny.mlfbuild.workspace_bound"),
    ("modules.tiny.mlfbuild.trace.0.dtype", "float33", "json-value-invalid", "modules.tiny.mlfbuild.trace[0].dtype"),
    ("modules.tiny.mlfbuild.trace.0.size", 5, "json-value-invalid", "modules.tiny.mlfbuild.trace[0].size"),
    ("modules.tiny.mlfbuild.trace.0.shape", ..., "json-value-invalid", "modules.tiny.mlfbuild.trace[0].size"),
    ("modules.tiny.mlfbuild.trace.0.function", 1, "json-type-wrong", "modules.tiny.mlfbuild.trace[0].function"),
    ("modules.tiny.mlfbuild.version", ..., "json-member-missing", "modules.tiny.mlfbuild.version"),
    (f"{NETWORK}", [], "json-type-wrong", "modules.tiny.mlfbuild.network"),
    (f"{NETWORK}.arena", ..., "json-member-missing", "modules.tiny.mlfbuild.network.arena"),
    (f"{NETWORK}.arena", 48, "metadata-contradiction", "modules.tiny.mlfbuild.network"),
    (f"{NETWORK}.tensors.0.memory", "flash", "metadata-network-invalid",
     "modules.tiny.mlfbuild.network.tensors[0].memory"),
    (f"{NETWORK}.tensors.1.offset", 29, "metadata-network-invalid", "modules.tiny.mlfbuild.network.tensors[1].offset"),
    (f"{NETWORK}.tensors.1.memory", "state", "metadata-network-invalid",
     "modules.tiny.mlfbuild.network.tensors[1].offset"),
    (f"{NETWORK}.tensors.1.offset", ..., "json-member-missing", "modules.tiny.mlfbuild.network.tensors[1].offset"),
    (f"{NETWORK}.tensors.1.dtype", "float33", "metadata-network-invalid",
     "modules.tiny.mlfbuild.network.tensors[1].size"),
    (f"{NETWORK}.tensors.1.shape", [5], "metadata-network-invalid", "modules.tiny.mlfbuild.network.tensors[1].size"),
    (f"{NETWORK}.tensors.2.first", 2, "metadata-network-invalid", "modules.tiny.mlfbuild.network.tensors[2].last"),
    (f"{NETWORK}.tensors.2.last", 2, "metadata-network-invalid", "modules.tiny.mlfbuild.network.tensors[2].last"),
    (f"{NETWORK}.operators.0.inputs", [4], "metadata-network-invalid",
     "modules.tiny.mlfbuild.network.operators[0].inputs"),
    (f"{NETWORK}.operators.0.outputs", [-1], "json-type-wrong", "modules.tiny.mlfbuild.network.operators[0].outputs"),
    (f"{NETWORK}.operators.0.macs", -1, "json-type-wrong", "modules.tiny.mlfbuild.network.operators[0].macs"),
    (f"{NETWORK}.operators.0.symbols", "f", "json-type-wrong", "modules.tiny.mlfbuild.network.operators[0].symbols"),
    (f"{NETWORK}.operators.0.scratch.size", 33, "metadata-network-invalid",
     "modules.tiny.mlfbuild.network.operators[0].scratch.offset"),
    (f"{NETWORK}.operators.1.operator", ..., "json-member-missing",
     "modules.tiny.mlfbuild.network.operators[1].operator"),
    ("modules.tiny.external_dependencies", [{}], "json-member-missing",
     "modules.tiny.external_dependencies[0].short_name"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "code", "place"), WRONG, ids=[f"{row[0]}={row[1]!s:.12}" for row in WRONG])
def test_each_mistake_is_reported_with_its_place(path: str, value: object, code: str, place: str) -> None:
    data = json.dumps(edit(path, value, network_library() if ".network" in path else traced_library())).encode()
    with raises(InputFileError, code, at=f"kws.tar: metadata.json: {place}") as caught:
        records(data, "kws.tar: metadata.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "json-invalid"), (b"\xff\xfe", "json-invalid"), (b"[]", "json-type-wrong"),
        (b'{"version": 7, "version": 7}', "json-invalid"), (b'{"version": NaN}', "json-invalid"),
        (b"[" * 100_000, "json-invalid"), (b'{"version": ' + b"9" * 100_000 + b"}", "json-invalid"),
    ],
)  # fmt: skip
def test_text_that_is_not_json(text: bytes, code: str) -> None:
    with raises(InputFileError, code, at="metadata.json") as caught:
        read_document(text, "metadata.json").integer("version")
    assert "\n" not in str(caught.value)


def test_control_characters_in_a_key_are_escaped() -> None:
    text = json.dumps({"version": 7, "modules": {"a\n\x1b[31mb": 1}}).encode()
    with pytest.raises(InputFileError) as caught:
        records(text)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ([{"device_type": "cpu", "device_id": 1}], [("cpu", 1)]),
        ([{"device_type": 1}, {"device_type": "ethos-u"}], [("1", 0), ("ethos-u", 0)]),
        (["cpu", "ethos-u"], [("cpu", 0), ("ethos-u", 0)]),
        ([1, 12], [("1", 0), ("12", 0)]),
        ("cpu", [("cpu", 0)]),
        ({"0": {"device_type": "npu", "device_id": 2}, "1": {"device_type": "cpu"}}, [("npu", 2), ("cpu", 0)]),
        ({"cpu": 0, "npu": 1}, [("cpu", 0), ("npu", 1)]),
        ([], []),
        (None, []),
    ],
)
def test_contexts_of_the_sketch_in_every_form(contexts: object, expected: list[tuple[str, int]]) -> None:
    found = {**document(native_library("tiny"))["modules"]["tiny"], "contexts": contexts}
    (record,) = records(json.dumps({"version": 1, **found}).encode())
    assert [(context.device_type, context.device_id) for context in record.module.contexts] == expected


@pytest.mark.parametrize(
    ("contexts", "code", "place"),
    [
        ([["cpu", 0]], "json-type-wrong", "contexts[0]"),
        (["cpu", 1], "json-type-wrong", "contexts[0]"),
        ([True], "json-type-wrong", "contexts[0]"),
        ({"cpu": -1}, "json-type-wrong", "contexts.cpu"),
        (7, "json-type-wrong", "contexts"),
    ],
)
def test_contexts_of_another_form_are_refused(contexts: object, code: str, place: str) -> None:
    found = {**document(native_library("tiny"))["modules"]["tiny"], "contexts": contexts}
    with raises(InputFileError, code, at=f"metadata.json: {place}"):
        records(json.dumps({"version": 1, **found}).encode())
