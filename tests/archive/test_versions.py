"""Every version and style of the format is read by its content and rewritten unchanged, or refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.read import read_files
from mlfbuild.core.errors import InputFileError
from mlfbuild.library import DeviceContext, Library, ModuleTarget, OperatorBuffer, StorageEntry, all_files
from mlfbuild.library.metadata.module_keys import dependencies_json
from support.errors import raises
from support.old_archives import (
    DATE,
    LAYOUT,
    MODELS,
    RELAY,
    TARGET,
    TIR,
    function_name,
    graph,
    metadata,
    model_archive,
    operator_archive,
    params,
    sketch_archive,
)
from support.tvm_archives import TVM_ARCHIVES, tvm_files

Files = dict[str, bytes]


def plain(library: Library, version: int | None = None) -> Files:
    """Return the archive of ``library`` without ``README.md``."""
    return {path: bytes(data) for path, data in archive_files(library, version).items() if path != "README.md"}


def with_metadata(files: Files, edit: Callable[[Any], object]) -> Files:
    document = json.loads(files["metadata.json"])
    edit(document)
    return {**files, "metadata.json": json.dumps(document).encode()}


# Archives of TVM


def test_every_shared_archive_is_listed(shared: Path) -> None:
    assert {path.stem for path in (shared / "archives").glob("*.tar")} == set(TVM_ARCHIVES)


@pytest.mark.parametrize("name", TVM_ARCHIVES)
def test_tvm_archive_is_rewritten_in_its_version_unchanged(shared: Path, name: str) -> None:
    files = tvm_files(shared, name)
    library = read_files(files, name)
    assert library.version == json.loads(files["metadata.json"])["version"]
    assert plain(library, library.version) == files
    assert read_files(archive_files(library, library.version), name) == library


# The samples


@pytest.mark.parametrize(("version", "executor"), MODELS)
def test_a_model_of_each_version(version: int, executor: str) -> None:
    files = model_archive(version, executor)
    library = read_files(files, "add.tar")
    (module,) = library.modules
    assert (library.version, library.other_files) == (version, ())
    assert (module.name, module.executor, module.style) == ("add", executor, "full-model")
    assert module.targets == (ModuleTarget(TARGET, 1 if version <= 5 else None),)
    assert (module.source_text, module.export_datetime) == (RELAY, DATE)
    names = [LAYOUT[version]["lib"].format(n=n) + ".c" for n in (0, 1)]
    assert [str(file.path) for file in module.codegen] == [f"host/src/{name}" for name in names]
    assert all(file.content == files[f"codegen/{file.path}"] for file in module.codegen)
    assert [(tensor.name, tensor.dtype, tensor.size) for tensor in module.inputs] == [
        ("a", "uint8", 2), ("b", "float32", 8),
    ]  # fmt: skip
    assert [(tensor.name, tensor.dtype, tensor.size) for tensor in module.outputs] == [("output", "float32", 8)]
    if version > 1:
        assert (module.main[0].io_size, module.main[0].device) == (18, 1)
        assert module.operator_functions[0].name == function_name(version)
    if executor == "graph":
        assert module.graph_json == graph(function_name(version))
        assert module.storage == (
            StorageEntry(0, 2, "a"), StorageEntry(1, 8, "b"), StorageEntry(2, 8, "p0"), StorageEntry(3, 8),
        )  # fmt: skip
        assert np.array_equal(module.params["p0"], np.array([[2, 4]], np.float32))
    else:
        assert (module.graph_json, module.storage, dict(module.params)) == (None, (), {})


@pytest.mark.parametrize("version", [4, 5, 6, 7])
def test_an_operator_of_each_version(version: int) -> None:
    library = read_files(operator_archive(version), "add.tar")
    (module,) = library.modules
    assert (library.version, library.other_files) == (version, ())
    assert (module.name, module.executor, module.style) == ("add", "", "operator")
    assert [str(file.path) for file in module.codegen] == ["host/src/lib0.c", "host/src/lib1.c"]
    assert module.tir == ((1, TIR),)
    assert module.buffers == (
        OperatorBuffer("add", 2, (2,), "int8", "a"), OperatorBuffer("add", 1, (1,), "int8", "b"),
        OperatorBuffer("add", 2, (2,), "int8", "c"),
    )  # fmt: skip
    assert [function.name for function in module.operator_functions] == ["add"]


@pytest.mark.parametrize(
    "files",
    [model_archive(version, executor) for version, executor in MODELS]
    + [operator_archive(version) for version in (4, 5, 6, 7)],
    ids=[f"{version}-{executor}" for version, executor in MODELS] + ["op4", "op5", "op6", "op7"],
)
def test_sample_is_rewritten_unchanged(files: Files) -> None:
    library = read_files(files, "add.tar")
    assert plain(library, library.version) == files


def test_sketch_of_the_first_rfc_is_read() -> None:
    library = read_files(sketch_archive(), "add.model-lib")
    (module,) = library.modules
    assert (library.version, module.executor, module.export_datetime) == (1, "graph", DATE)
    assert module.contexts == (DeviceContext("cpu", 0),)
    assert module.targets == (ModuleTarget(TARGET),)
    assert [entry.input_binding for entry in module.storage] == ["a", "b", "p0", None]
    assert [str(file.path) for file in module.codegen] == ["host/src/lib0.c", "host/src/lib1.c"]
    assert [str(file.path) for file in module.device_files] == ["ethos-u55/src/lib0.c"]
    assert {str(file.path) for file in library.other_files} == {
        "README.md", "crt/Makefile", "crt/include/tvm/runtime/c_runtime_api.h", "parameters/add.json",
        "runtime-config/aot/README",
    }  # fmt: skip


def test_parameters_in_json_are_read() -> None:
    files = sketch_archive()
    expected = read_files(files, "a.tar")
    del files["parameters/add.params"]
    library = read_files(files, "a.tar")
    assert library.modules == expected.modules
    assert "parameters/add.json" not in {str(file.path) for file in library.other_files}
    assert archive_files(library)["parameters/add.params"] == params()


def test_archive_without_program_text_is_read() -> None:
    for version in LAYOUT:
        files = without(model_archive(version), LAYOUT[version]["relay"])
        library = read_files(files, "a.tar")
        assert library.modules[0].source_text == b""
        assert plain(library, version) == files


# Mixed versions


def test_graph_at_the_path_of_another_version_is_read() -> None:
    files = model_archive(7)
    moved = {path if "graph" not in path else "executor-config/graph/graph.json": data for path, data in files.items()}
    assert read_files(moved, "a.tar") == read_files(files, "a.tar")
    moved["runtime-config/graph/graph.json"] = b"{}"
    with raises(InputFileError, "archive-file-ambiguous", at="a.tar"):
        read_files(moved, "a.tar")


def test_unnamed_graph_belongs_to_no_module_if_there_are_several() -> None:
    files = model_archive(7)
    graph_json = files.pop("executor-config/graph/add.graph")
    files = with_metadata(files, lambda document: document["modules"].update(other=document["modules"]["add"]))
    files |= {"executor-config/graph/graph.json": graph_json, "parameters/other.params": files["parameters/add.params"]}
    with pytest.raises(InputFileError) as caught:
        read_files(files, "a.tar")
    place = "a.tar: executor-config/graph/add.graph"
    assert (caught.value.code, caught.value.place) == ("archive-file-missing", place)


TOLERATED: dict[str, tuple[int, Callable[[Any], object]]] = {
    "v5 with a list of targets": (5, lambda document: document.update(target=[TARGET])),
    "v6 with targets by device": (6, lambda document: document.update(target={"1": TARGET})),
    "v3 with a target of text": (3, lambda document: document.update(target=TARGET)),
    "v5 with runtimes": (5, lambda document: document.update(runtimes=document.pop("executors"))),
    "v4 with executors": (4, lambda document: document.update(executors=document.pop("runtimes"))),
    "both, the same": (5, lambda document: document.update(runtimes=document["executors"])),
    "v5 without style": (5, lambda document: document.pop("style")),
    "v2 with memory of version 1": (2, lambda document: document.update(memory=document["memory"]["sids"])),
    "v6 with modules": (
        6, lambda document: document.update(modules={"add": {key: document.pop(key) for key in list(document)
                                                             if key != "version"}}),
    ),
    "no dependencies": (5, lambda document: document.update(external_dependencies=[])),
}  # fmt: skip


@pytest.mark.parametrize("name", TOLERATED)
def test_a_mixture_of_versions_is_read(name: str) -> None:
    version, edit = TOLERATED[name]
    files = model_archive(version)
    (expected,), (got,) = (read_files(archive, "a.tar").modules for archive in (files, with_metadata(files, edit)))
    assert [target.text for target in got.targets] == [TARGET]
    same = {"targets": (), "main": (), "operator_functions": ()}
    assert replace(got, **same) == replace(expected, **same)


def test_targets_by_device_are_in_device_order() -> None:
    files = with_metadata(
        model_archive(5), lambda document: document.update(target={"12": "ethos-u", "2": "cuda", "1": TARGET})
    )
    (module,) = read_files(files, "a.tar").modules
    assert module.targets == (ModuleTarget(TARGET, 1), ModuleTarget("cuda", 2), ModuleTarget("ethos-u", 12))


@pytest.mark.parametrize(
    "path",
    ["codegen/host/lib/add_lib2.o", "codegen/host/src/add_lib2.cc", "codegen/host/src/add_lib3.cpp",
     "codegen/ethos-u/src/lib0.c", "codegen/host/include/npu/driver.h", "codegen/host/NOTICE"],
)  # fmt: skip
def test_generated_files_of_any_target_and_kind(path: str) -> None:
    (module,) = read_files({**model_archive(7), path: b"\x7f"}, "a.tar").modules
    assert path.removeprefix("codegen/") in {str(file.path) for file in all_files(module)}


@pytest.mark.parametrize(
    "path",
    ["runtime/CMakeLists.txt", "templates/platform.c.template", "samples/x.h", "crt/Makefile", "README.md", "src/x.c",
     "src/tir-01.txt",
     "parameters/other.params", "runtime-config/aot/x"],
)  # fmt: skip
@pytest.mark.parametrize("files", [model_archive(5), model_archive(7), operator_archive(7)], ids=["v5", "v7", "op"])
def test_files_with_unknown_paths_are_kept(files: Files, path: str) -> None:
    library = read_files({**files, path: b"kept"}, "a.tar")
    assert [(str(file.path), file.content) for file in library.other_files] == [(path, b"kept")]
    assert archive_files(library, library.version)[path] == b"kept"


def two_modules() -> Files:
    files = with_metadata(
        model_archive(7, "aot"),
        lambda document: document["modules"].update(other={**document["modules"]["add"], "model_name": "other"}),
    )
    return files | {"parameters/other.params": files["parameters/add.params"]}


def test_files_of_several_modules_are_assigned_by_name() -> None:
    files = two_modules() | {
        "codegen/host/src/other_lib0.c": b"int other;\n", "codegen/host/include/npu.h": b"#pragma once\n",
        "codegen/host/include/tvmgen_other.h": b"#pragma once\n", "codegen/host/NOTICE": b"words\n",
    }  # fmt: skip
    library = read_files(files, "a.tar")
    names = {module.name: [file.path.name for file in module.codegen] for module in library.modules}
    assert names == {"add": ["npu.h", "add_lib0.c", "add_lib1.c"], "other": ["npu.h", "tvmgen_other.h", "other_lib0.c"]}
    assert [str(file.path) for file in library.other_files] == ["codegen/host/NOTICE"]
    assert read_files(archive_files(library), "a.tar") == library


def test_too_many_shared_headers_are_refused() -> None:
    names = [f"m{i}" for i in range(1500)]
    files = with_metadata(
        model_archive(7, "aot"),
        lambda document: document.update(modules=dict.fromkeys(names, document["modules"]["add"])),
    )
    files = {path: data for path, data in files.items() if not path.startswith("codegen/")}
    files |= {f"codegen/host/include/npu{i}.h": b"" for i in range(1500)}
    with raises(InputFileError, "archive-too-many-owners", at="a.tar: codegen/"):
        read_files(files, "a.tar")


def test_a_readme_of_mlfbuild_is_dropped_and_any_other_kept() -> None:
    library = read_files(model_archive(7), "a.tar")
    files = archive_files(library)
    assert b"add" in bytes(files["README.md"])
    assert read_files(files, "a.tar") == library
    mine = read_files({**files, "README.md": b"# mine\n"}, "a.tar")
    assert [file.path for file in mine.other_files] == [PurePosixPath("README.md")]
    assert archive_files(mine)["README.md"] == b"# mine\n"


# External dependencies


DEPENDENCIES = [
    {"short_name": "tvm_standalone_crt", "url": "./runtime", "url_type": "mlf_path", "version_spec": "0.11.1"},
    {"short_name": "cmsis-nn", "url": "https://example.org/nn.git", "url_type": "git", "version_spec": "v7"},
    {"short_name": "sdk", "url": "/opt/sdk", "url_type": "path", "version_spec": ""},
    {"short_name": "odd", "url": "?", "url_type": "carrier pigeon", "version_spec": ""},
]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_dependencies_are_kept_unchanged(version: int) -> None:
    def add(document: Any) -> None:
        module = document["modules"]["add"] if version == 7 else document
        module["external_dependencies"] = DEPENDENCIES

    library = read_files(with_metadata(model_archive(version), add), "a.tar")
    assert dependencies_json(library.modules[0].external_dependencies) == DEPENDENCIES
    for other in range(1, 8):
        (module,) = read_files(archive_files(library, other), "a.tar").modules
        assert module.external_dependencies == library.modules[0].external_dependencies


def test_a_dependency_without_a_version_is_read() -> None:
    entry = {key: value for key, value in DEPENDENCIES[2].items() if key != "version_spec"}
    files = with_metadata(model_archive(5), lambda document: document.update(external_dependencies=[entry]))
    assert read_files(files, "a.tar").modules[0].external_dependencies[0].version_spec == ""


# Refused archives


def without(files: Files, path: str) -> Files:
    assert path in files
    return {name: data for name, data in files.items() if name != path}


def version_of(value: str) -> Files:
    return {"metadata.json": b'{"version": ' + value.encode() + b"}"}


REFUSED: dict[str, tuple[Files, str, str]] = {
    "version 0": (version_of("0"), "format-version-unknown", "metadata.json: version"),
    "version -1": (version_of("-1"), "format-version-unknown", "metadata.json: version"),
    "version 8": (version_of("8"), "format-version-unknown", "metadata.json: version"),
    "version of text": (version_of('"7"'), "format-version-unknown", "metadata.json: version"),
    "version of decimals": (version_of("7.0"), "format-version-unknown", "metadata.json: version"),
    "version true": (version_of("true"), "format-version-unknown", "metadata.json: version"),
    "version null": (version_of("null"), "format-version-unknown", "metadata.json: version"),
    "version NaN": (version_of("NaN"), "json-invalid", "metadata.json"),
    "version beyond all": (version_of("1" + "0" * 30), "json-type-wrong", "metadata.json: version"),
    "no version": ({"metadata.json": b"{}"}, "json-member-missing", "metadata.json: version"),
    "metadata is a list": ({"metadata.json": b"[]"}, "json-type-wrong", "metadata.json"),
    "metadata is a number": ({"metadata.json": b"7"}, "json-type-wrong", "metadata.json"),
    "metadata is no UTF-8": ({"metadata.json": b'{"version": "\xff"}'}, "json-invalid", "metadata.json"),
    "no metadata": ({"a": b""}, "metadata-missing", ""),
    "metadata twice": ({"metadata.json": b"{}", "metadata-1.json": b"{}"}, "metadata-ambiguous", ""),
    "metadata named for another version": ({"metadata-2.json": b'{"version": 1}'}, "metadata-contradiction",
     "metadata-2.json: version"),
    "metadata named for no version": ({"metadata-9.json": b"{}"}, "format-version-unknown", "metadata-9.json: version"),
    "no modules": ({"metadata.json": b'{"version": 7, "modules": {}}'}, "json-value-invalid", "metadata.json: modules"),
    "shared library": ({**model_archive(5), "codegen/add.so": b"\x7fELF"}, "archive-shared-library", "codegen/add.so"),
    "shared library with a version": ({**model_archive(5), "codegen/host/lib/add.so.1.2": b"\x7fELF"},
     "archive-shared-library", "codegen/host/lib/add.so.1.2"),
    "shared library without memory": (
        with_metadata({**model_archive(5), "codegen/add.so": b"\x7fELF"}, lambda d: d.pop("memory")),
        "archive-shared-library",
        "codegen/add.so",
    ),
    "operator with an executor": (with_metadata(operator_archive(5), lambda d: d.update(executors=["aot"])),
     "json-value-invalid", "metadata.json: executors"),
    "no parameters": (without(model_archive(3), "parameters/add.params"), "archive-file-missing",
     "parameters/add.params"),
    "no graph": (without(model_archive(2), "runtime-config/graph/graph.json"), "archive-file-missing",
     "runtime-config/graph/graph.json"),
    "source of no module": ({**two_modules(), "codegen/host/src/lib0.c": b""}, "archive-code-unowned",
     "codegen/host/src/lib0.c"),
}  # fmt: skip
EDITED: dict[str, tuple[int, Callable[[Any], object], str, str]] = {
    "VM": (7, lambda d: d["modules"]["add"].update(executors=["vm"]), "executor-unsupported", "modules.add.executors"),
    "VM without memory": (5, lambda d: d.update(executors=["vm"], memory={}), "executor-unsupported", "executors"),
    "executors that differ": (5, lambda d: d.update(runtimes=["aot"]), "metadata-contradiction", "runtimes"),
    "no executors": (5, lambda d: d.pop("executors"), "json-member-missing", "executors"),
    "no runtimes": (3, lambda d: d.pop("runtimes"), "json-member-missing", "runtimes"),
    "two executors": (5, lambda d: d.update(executors=["aot", "graph"]), "json-value-invalid", "executors"),
    "style of no kind": (5, lambda d: d.update(style="haiku"), "json-value-invalid", "style"),
    "operators among modules": (7, lambda d: d["modules"]["add"].update(style="operator", executors=[]),
     "json-value-invalid", "modules.add.style"),
    "device of no number": (5, lambda d: d.update(target={"cpu": TARGET}), "json-value-invalid", "target.cpu"),
    "no name": (5, lambda d: d.pop("model_name"), "json-member-missing", "model_name"),
    "name of a path": (5, lambda d: d.update(model_name="../x"), "module-name-unsafe", "module '../x'"),
    "empty name": (5, lambda d: d.update(model_name=""), "module-name-unsafe", "module ''"),
    "long name": (5, lambda d: d.update(model_name="x" * 300), "module-name-unsafe", f"module '{'x' * 120}'..."),
    "memory of no kind": (5, lambda d: d.update(memory={}), "json-member-missing", "memory.functions"),
    "storage id of another key": (1, lambda d: d.update(memory={"1": {"storage_id": 2, "size_bytes": 1}}),
     "metadata-contradiction", "memory.1.storage_id"),
    "dependencies beside modules": (7, lambda d: d.update(external_dependencies=[]), "json-value-invalid",
     "external_dependencies"),
    "devices of other targets": (6, lambda d: d.update(mlfbuild={"version": 1, "target_devices": [1, 2]}),
     "metadata-contradiction", "mlfbuild.target_devices"),
}  # fmt: skip
"""Version of a model's archive, a change of its metadata, and the code and place of the error."""
REFUSED |= {
    name: (with_metadata(model_archive(version), edit), code, f"metadata.json: {place}")
    for name, (version, edit, code, place) in EDITED.items()
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_archives_are_refused(name: str) -> None:
    files, code, place = REFUSED[name]
    with raises(InputFileError, code, at=f"a.tar: {place}".removesuffix(": ")) as caught:
        read_files(files, "a.tar")
    assert str(caught.value).isprintable()


def test_samples_have_the_documented_form() -> None:
    """Check parts of the samples that no reader checks."""
    assert metadata(1, "aot")["memory"] == [] and "style" not in metadata(3, "graph")
    assert set(metadata(7, "graph")) == {"version", "modules"}
    assert len(model_archive(1)["parameters/add.params"]) == 106
    assert "relay.txt" in model_archive(3) and "src/relay.txt" in model_archive(4)
