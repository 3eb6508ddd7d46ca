"""``metadata.json``: TVM's keys and layout, what TVM leaves out beside them, and one clear line for anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mlfbuild.errors import InputFileError
from mlfbuild.library import Library, TensorInfo
from mlfbuild.library.metadata import metadata_json, read_document, read_modules
from support.libraries import graph_library, native_library, native_module

DATE = "1980-01-01 00:00:00Z"


def document(library: Library) -> dict[str, Any]:
    return json.loads(metadata_json(library, DATE))


def reread(library: Library) -> Library:
    records = read_modules(read_document(metadata_json(library, DATE), "metadata.json"))
    return Library(tuple(record.module for record in records))


def without_files(library: Library) -> Library:
    bare = {"codegen": (), "params": {}, "graph_json": None, "source_text": b"", "interface": ""}
    return Library(tuple(replace(module, **bare) for module in library.modules))


def test_the_text_of_a_native_library(golden: Callable[[str, str], None]) -> None:
    golden(metadata_json(native_library(), DATE).decode(), "metadata.json")


def test_the_text_of_a_graph_library(golden: Callable[[str, str], None]) -> None:
    golden(metadata_json(graph_library(), DATE).decode(), "metadata.json")


def test_top_level_has_exactly_version_and_modules() -> None:
    assert document(native_library("a", "b")).keys() == {"version", "modules"}


def test_a_module_has_tvms_keys_and_ours() -> None:
    native = document(native_library())["modules"]["tiny"]
    assert native.keys() == {"model_name", "export_datetime", "executors", "style", "target", "memory", "mlfbuild"}
    assert native["memory"].keys() == {"functions"}
    graph = document(graph_library())["modules"]["net"]
    assert graph.keys() == native.keys() - {"mlfbuild"}
    assert graph["memory"].keys() == {"functions", "sids"}


@pytest.mark.parametrize("library", [native_library("b", "a"), graph_library()], ids=["native", "graph"])
def test_everything_written_is_read(library: Library) -> None:
    assert reread(library) == without_files(library)


def test_call_order_survives_sorted_json() -> None:
    module = native_module()
    inputs = tuple(TensorInfo(name, "int8", 4) for name in ("z", "a", "m"))
    library = Library((replace(module, inputs=inputs),))
    assert [tensor.name for tensor in reread(library).modules[0].inputs] == ["z", "a", "m"]


def test_the_date_of_the_module_comes_before_the_writers() -> None:
    module = replace(native_module(), export_datetime="2024-02-29 12:00:00Z")
    assert document(Library((module,)))["modules"]["tiny"]["export_datetime"] == "2024-02-29 12:00:00Z"
    assert document(native_library())["modules"]["tiny"]["export_datetime"] == DATE


def test_an_extension_of_another_version_is_left_alone() -> None:
    text = document(native_library())
    text["modules"]["tiny"]["mlfbuild"] = {"version": 2, "inputs": "in a shape to come"}
    (record,) = read_modules(read_document(json.dumps(text).encode(), "metadata.json"))
    assert not record.ordered and record.module.model_id == ""


def edit(path: str, value: object) -> dict[str, Any]:
    """The metadata of a native library with the member at the dotted ``path`` replaced, or removed for ``...``."""
    text = document(native_library())
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
WRONG = [
    ("modules", ..., "modules: is missing"),
    ("modules", [], "modules: must be an object"),
    ("modules", {}, "modules: is empty"),
    ("modules.tiny", 7, "modules.tiny: must be an object"),
    ("modules.tiny.executors", [], "modules.tiny.executors: must be one of aot and graph"),
    ("modules.tiny.executors", ["vm"], "modules.tiny.executors: must be one of aot and graph"),
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
    ("modules.tiny.mlfbuild.version", ..., "modules.tiny.mlfbuild.version: is missing"),
    ("modules.tiny.external_dependencies", [{}], "external_dependencies[0].short_name: is missing"),
]


@pytest.mark.parametrize(("path", "value", "reason"), WRONG, ids=[f"{row[0]}={row[1]!s:.12}" for row in WRONG])
def test_each_mistake_is_named_with_its_place(path: str, value: object, reason: str) -> None:
    data = json.dumps(edit(path, value)).encode()
    with pytest.raises(InputFileError) as caught:
        read_modules(read_document(data, "kws.tar: metadata.json"))
    message = str(caught.value)
    assert message.startswith("kws.tar: metadata.json: modules")
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


def test_operator_libraries_are_named_as_such() -> None:
    text = json.dumps({"version": 7, "style": "operator", "model_name": "add", "memory": {"add": []}}).encode()
    with pytest.raises(InputFileError, match=r"metadata\.json: style: operator libraries are not supported"):
        read_modules(read_document(text, "metadata.json"))


def test_control_characters_in_a_key_stay_off_the_terminal() -> None:
    text = json.dumps({"version": 7, "modules": {"a\n\x1b[31mb": 1}}).encode()
    with pytest.raises(InputFileError) as caught:
        read_modules(read_document(text, "metadata.json"))
    assert str(caught.value).isprintable()
