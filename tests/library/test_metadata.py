"""``metadata.json``: TVM's keys and layout, what TVM leaves out beside them, and one clear line for anything else."""

from __future__ import annotations

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
    Network,
    NetworkOperator,
    NetworkTensor,
    OperatorBuffer,
    OperatorFunction,
    Scratch,
    Target,
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
from support.libraries import graph_library, native_library, native_module

DATE = "1980-01-01 00:00:00Z"


def known(library: Library) -> dict[str, Extension]:
    """All that our own key can say of native modules."""
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
    """What metadata and our key say, without the call order and details that files tell."""
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
    """A native library whose only operator hands out what it has written."""
    (module,) = native_library().modules
    return Library((replace(module, trace=(TracedTensor(module.outputs[0], "ADD", "mlf_tiny_add_0"),)),))


def network_library() -> Library:
    """A native library that tells of its operators: one with a workspace, one for which there is nothing to do."""
    (module,) = native_library().modules
    tensors = (
        NetworkTensor("x", "int8", (1, 4), 4, "input", 0, 0, 0),
        NetworkTensor("sum", "int8", (1, 4), 4, "arena", 16, 0, 1),
        NetworkTensor("y", "int8", (2, 2), 4, "arena", 16, 1, 1),
        NetworkTensor("table", "int32", (), 4, "constant", None, 0, 1),
    )
    operators = (
        NetworkOperator("add", "ADD", "mlf_tiny_add_0", ("mlf_tiny_add_0_table",), 0, (0,), (1,), Scratch(0, 16)),
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
    module = Module("ops", "", (Target("c -keys=cpu "),), (), functions, (), style=OPERATOR, buffers=buffers)
    return Library((module,))


LIBRARIES = {
    "native": native_library(),
    "two": native_library("b", "a"),
    "graph": graph_library(),
    "operator": operator_library(),
    "traced": traced_library(),
    "network": network_library(),
}  # fmt: skip


def in_version(library: Library, version: int) -> Library:
    """The library with the targets of a version, 5 having one for each device."""
    device = 1 if version == 5 else None
    modules = (
        replace(module, targets=tuple(replace(target, device=device) for target in module.targets))
        for module in library.modules
    )
    return replace(library, version=version, modules=tuple(modules))


WRITTEN = [(name, version) for name in LIBRARIES for version in (5, 6, 7) if version == 7 or name != "two"]


@pytest.mark.parametrize(("name", "version"), WRITTEN)
def test_the_text_of_each_version(golden: Callable[[str, str], None], name: str, version: int) -> None:
    golden(text_of(in_version(LIBRARIES[name], version)).decode(), "metadata.json")


@pytest.mark.parametrize(("name", "version"), WRITTEN)
def test_everything_written_is_read(name: str, version: int) -> None:
    library = in_version(LIBRARIES[name], version)
    assert reread(library) == without_files(library)


def test_top_level_has_exactly_version_and_modules() -> None:
    assert document(native_library("a", "b")).keys() == {"version", "modules"}


def test_a_module_has_tvms_keys_and_ours() -> None:
    native = document(native_library())["modules"]["tiny"]
    assert native.keys() == {"model_name", "export_datetime", "executors", "style", "target", "memory", "mlfbuild"}
    assert native["memory"].keys() == {"functions"}
    graph = document(graph_library())["modules"]["net"]
    assert graph.keys() == native.keys() - {"mlfbuild"}
    assert graph["memory"].keys() == {"functions", "sids"}


def test_an_operator_is_one_line_in_tvms_order() -> None:
    text = text_of(operator_library()).decode()
    assert "\n" not in text
    assert list(json.loads(text)) == [
        "version", "model_name", "export_datetime", "memory", "target", "executors", "style",
    ]  # fmt: skip


def test_the_table_of_versions_is_history() -> None:
    """What changed from each version to the next, and nothing else."""
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
        5: {"executors", "graph"},
        6: {"targets_by_device"},
        7: {"modules", "tensors", "graph", "program"},
    }


def test_the_date_of_the_module_comes_before_the_writers() -> None:
    module = replace(native_module(), export_datetime="2024-02-29 12:00:00Z")
    assert document(Library((module,)))["modules"]["tiny"]["export_datetime"] == "2024-02-29 12:00:00Z"
    assert document(native_library())["modules"]["tiny"]["export_datetime"] == DATE


def test_an_extension_of_another_version_is_left_alone() -> None:
    text = document(native_library())
    text["modules"]["tiny"]["mlfbuild"] = {"version": 2, "inputs": "in a shape to come"}
    (record,) = records(json.dumps(text).encode())
    assert record.extension == Extension() and record.module.model_id == ""


def edit(path: str, value: object, library: Library) -> dict[str, Any]:
    """The metadata of ``library`` with the member at the dotted ``path`` replaced, or removed for ``...``."""
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
    ("modules", ..., "model_name: is missing"),
    ("modules", [], "modules: must be an object"),
    ("modules", {}, "modules: is empty"),
    ("modules.tiny", 7, "modules.tiny: must be an object"),
    ("modules.tiny.executors", [], "modules.tiny.executors: must be one of aot and graph"),
    ("modules.tiny.executors", ["vm"], "modules.tiny.executors: the VM executor is not supported"),
    ("modules.tiny.executors", ..., "modules.tiny.executors: is missing"),
    ("modules.tiny.executors", "aot", "modules.tiny.executors: must be a list"),
    ("modules.tiny.style", "operator", "modules.tiny.style: must be full-model"),
    ("modules.tiny.target", [1], "modules.tiny.target: must be a list of strings"),
    ("modules.tiny.memory", ..., "modules.tiny.memory: is missing"),
    ("modules.tiny.memory.functions.main", {}, "modules.tiny.memory.functions.main: must be a list"),
    (f"{MAIN}.workspace_size_bytes", -1, "main[0].workspace_size_bytes: must be a whole number of at least 0"),
    (f"{MAIN}.workspace_size_bytes", True, "main[0].workspace_size_bytes: must be a whole number of at least 0"),
    (f"{MAIN}.workspace_size_bytes", 1.5, "main[0].workspace_size_bytes: must be a whole number of at least 0"),
    (f"{MAIN}.workspace_size_bytes", 10**400, "main[0].workspace_size_bytes: must be a whole number of at least 0"),
    (f"{MAIN}.inputs.x.dtype", None, "main[0].inputs.x.dtype: must be a string"),
    (f"{MAIN}.inputs.x.size", 5, "modules.tiny.mlfbuild.inputs: contradicts memory.functions.main[0].inputs"),
    (f"{MAIN}.outputs", {}, "modules.tiny.mlfbuild.outputs: contradicts memory.functions.main[0].outputs"),
    ("modules.tiny.mlfbuild.inputs.0.shape", [1, -4], "mlfbuild.inputs[0].shape: must be a list of whole numbers"),
    ("modules.tiny.mlfbuild.inputs.0.scale", "1", "mlfbuild.inputs[0].scale: must be a number"),
    ("modules.tiny.mlfbuild.target_devices", [1, 2], "modules.tiny.mlfbuild.target_devices: contradicts target"),
    ("modules.tiny.mlfbuild.target_devices", ["cpu"], "target_devices: must be a list of whole numbers"),
    ("modules.tiny.mlfbuild.contexts", [{}], "modules.tiny.mlfbuild.contexts[0].device_type: is missing"),
    ("modules.tiny.mlfbuild.workspace_bound", -1, "modules.tiny.mlfbuild.workspace_bound: must be"),
    ("modules.tiny.mlfbuild.trace.0.dtype", "float33", "mlfbuild.trace[0].dtype: 'float33' is no type of elements"),
    ("modules.tiny.mlfbuild.trace.0.size", 5, "mlfbuild.trace[0].size: is not that of the shape and the dtype"),
    ("modules.tiny.mlfbuild.trace.0.shape", ..., "mlfbuild.trace[0].size: is not that of the shape and the dtype"),
    ("modules.tiny.mlfbuild.trace.0.function", 1, "modules.tiny.mlfbuild.trace[0].function: must be a string"),
    ("modules.tiny.mlfbuild.version", ..., "modules.tiny.mlfbuild.version: is missing"),
    (f"{NETWORK}", [], "modules.tiny.mlfbuild.network: must be an object"),
    (f"{NETWORK}.arena", ..., "mlfbuild.network.arena: is missing"),
    (f"{NETWORK}.arena", 48, "modules.tiny.mlfbuild.network: contradicts memory.functions.main[0].workspace_size"),
    (f"{NETWORK}.tensors.0.memory", "flash", "network.tensors[0].memory: 'flash' is none of arena, state, input"),
    (f"{NETWORK}.tensors.1.offset", 29, "network.tensors[1].offset: is outside the arena of 32 bytes"),
    (f"{NETWORK}.tensors.1.memory", "state", "network.tensors[1].offset: is outside the state of 0 bytes"),
    (f"{NETWORK}.tensors.1.offset", ..., "network.tensors[1].offset: is missing"),
    (f"{NETWORK}.tensors.1.dtype", "float33", "network.tensors[1].size: is not that of the shape and the dtype"),
    (f"{NETWORK}.tensors.1.shape", [5], "network.tensors[1].size: is not that of the shape and the dtype"),
    (f"{NETWORK}.tensors.2.first", 2, "network.tensors[2].last: is before first, or none of the 2 operators"),
    (f"{NETWORK}.tensors.2.last", 2, "network.tensors[2].last: is before first, or none of the 2 operators"),
    (f"{NETWORK}.operators.0.inputs", [4], "network.operators[0].inputs: names a tensor that is none of the 4"),
    (f"{NETWORK}.operators.0.outputs", [-1], "network.operators[0].outputs: must be a list of whole numbers"),
    (f"{NETWORK}.operators.0.macs", -1, "network.operators[0].macs: must be a whole number of at least 0"),
    (f"{NETWORK}.operators.0.symbols", "f", "network.operators[0].symbols: must be a list"),
    (f"{NETWORK}.operators.0.scratch.size", 33, "network.operators[0].scratch.offset: is outside the arena of 32"),
    (f"{NETWORK}.operators.1.operator", ..., "network.operators[1].operator: is missing"),
    ("modules.tiny.external_dependencies", [{}], "external_dependencies[0].short_name: is missing"),
]


@pytest.mark.parametrize(("path", "value", "reason"), WRONG, ids=[f"{row[0]}={row[1]!s:.12}" for row in WRONG])
def test_each_mistake_is_named_with_its_place(path: str, value: object, reason: str) -> None:
    data = json.dumps(edit(path, value, network_library() if ".network" in path else traced_library())).encode()
    with pytest.raises(InputFileError) as caught:
        records(data, "kws.tar: metadata.json")
    message = str(caught.value)
    assert message.startswith("kws.tar: metadata.json: mod")
    assert reason in message and "\n" not in message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not sound JSON"),
        (b"\xff\xfe", "not sound JSON"),
        (b"[]", "must be an object"),
        (b'{"version": 7, "version": 7}', "a key stands twice in one object"),
        (b'{"version": NaN}', "NaN is not a JSON number"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"version": ' + b"9" * 100_000 + b"}", "must be a whole number|not sound JSON"),
    ],
)
def test_text_that_is_not_json(text: bytes, reason: str) -> None:
    with pytest.raises(InputFileError, match=reason) as caught:
        read_document(text, "metadata.json").integer("version")
    assert "\n" not in str(caught.value)


def test_control_characters_in_a_key_stay_off_the_terminal() -> None:
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
    ("contexts", "reason"),
    [
        ([["cpu", 0]], r"contexts\[0\]: must be an object"),
        (["cpu", 1], r"contexts\[0\]: must be an object"),
        ([True], r"contexts\[0\]: must be an object"),
        ({"cpu": -1}, "contexts.cpu: must be a whole number of at least 0"),
        (7, "contexts: must be a list"),
    ],
)
def test_contexts_of_no_form_are_refused(contexts: object, reason: str) -> None:
    found = {**document(native_library("tiny"))["modules"]["tiny"], "contexts": contexts}
    with pytest.raises(InputFileError, match=f"^metadata.json: {reason}; make it again$"):
        records(json.dumps({"version": 1, **found}).encode())
