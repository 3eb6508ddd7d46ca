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
from mlfbuild.library import DeviceContext, Library, OperatorFunction
from mlfbuild.usecases.run import run_archive
from support.document_archives import (
    DATE,
    INPUT,
    TARGET,
    Files,
    expected,
    first_rfc_archive,
    page_archive,
    several_modules_archive,
)
from support.errors import raises

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
