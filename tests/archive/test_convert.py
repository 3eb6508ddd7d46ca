"""Conversion to another version: no information is lost, and content that a version cannot hold is refused."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.archive.conversion import convert
from mlfbuild.archive.layout import PARAMS_FORMS, archive_files
from mlfbuild.archive.read import read_files
from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.jobs.tree.target_tree import tree_files
from mlfbuild.library import (
    OPERATOR,
    ArchiveFile,
    CodegenFile,
    ExternalDependency,
    Library,
    Module,
    ModuleTarget,
    TensorInfo,
)
from support.errors import raises
from support.examples import examples
from support.libraries import graph_library, native_library, native_module
from support.old_archives import MODELS, model_archive, operator_archive, sketch_archive
from support.tvm_archives import TVM_ARCHIVES, tvm_files

OLD = {f"{version}-{executor}": model_archive(version, executor) for version, executor in MODELS}
OLD |= {f"{version}-operator": operator_archive(version) for version in (4, 5, 6, 7)}
OLD["sketch"] = sketch_archive()
VERSIONS = range(1, 8)


def versions_of(library: Library) -> range:
    """Return the versions that can hold a library of one module."""
    return range(4, 8) if library.modules[0].style == OPERATOR else VERSIONS


def read(library: Library, version: int | None = None) -> Library:
    """Return the library after it was written in ``version`` and read again."""
    return read_files(archive_files(library, version), "a.tar")


def module_json(library: Library, version: int | None = None) -> Any:
    document = json.loads(bytes(archive_files(library, version)["metadata.json"]))
    return next(iter(document["modules"].values())) if "modules" in document else document


@pytest.mark.parametrize("form", PARAMS_FORMS)
def test_parameters_in_each_form(form: str) -> None:
    library = graph_library()
    (name,) = (module.name for module in library.modules)
    plain, files = archive_files(library), archive_files(library, params=form)
    assert set(files) - set(plain) == ({f"parameters/{name}.{form}"} - set(plain))
    assert {path for path in plain if files.get(path) != plain[path]} <= {f"parameters/{name}.params"}
    again = read_files(files, "a.tar")
    assert archive_files(again) == plain


def test_parameters_too_large_for_a_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlfbuild.library.params_json.MAX_JSON", 10)
    monkeypatch.setattr("mlfbuild.library.params_json.MAX_BSON", 10)
    for form in ("json", "bson"):
        with raises(UsageError, "params-too-large-for-form"):
            archive_files(graph_library(), params=form)


# There and back


@pytest.mark.parametrize("name", OLD)
def test_sample_converts_to_any_version(name: str) -> None:
    library = read_files(OLD[name], "old.tar")
    current = archive_files(library)
    for version in versions_of(library):
        converted = convert(library, version)
        assert read(library, version) == converted == read(converted, version)
        assert convert(converted, version) == converted
        assert convert(convert(converted, 5), version) == converted
        assert_same_meaning(library, converted)
        assert archive_files(read(library, version)) == current


@pytest.mark.parametrize("name", TVM_ARCHIVES)
def test_tvm_archive_converts_to_version_7_and_back(shared: Path, name: str) -> None:
    library = read_files(tvm_files(shared, name), name)
    current = read(library)
    assert current == convert(library, 7)
    assert_same_meaning(library, current)
    if len(library.modules) == 1:
        for version in versions_of(library)[:-1]:
            older = read(current, version)
            assert older == convert(current, version)
            assert read(older) == current
    if library.version == 5:
        assert read(current, 5) == library


def assert_same_meaning(library: Library, other: Library) -> None:
    """Compare everything except the version, paths of files, and the device type of a single target."""
    assert other.other_files == library.other_files
    for module, changed in zip(library.modules, other.modules, strict=True):
        unplaced: dict[str, Any] = {"codegen": (), "device_files": (), "targets": ()}
        assert replace(changed, **unplaced) == replace(module, **unplaced)
        assert changed.export_datetime == module.export_datetime
        assert [target.text for target in changed.targets] == [target.text for target in module.targets]
        assert {file.data for file in changed.codegen} == {file.data for file in module.codegen}
        assert {file.data for file in changed.device_files} == {file.data for file in module.device_files}


def test_paths_of_files_in_each_version() -> None:
    library = read_files(model_archive(1), "old.tar")
    common = {
        "README.md", "codegen/host/src/add_lib0.c", "codegen/host/src/add_lib1.c", "metadata.json",
        "parameters/add.params",
    }  # fmt: skip
    older = common | {"executor-config/graph/graph.json", "src/relay.txt"}
    assert set(archive_files(library, 5)) == set(archive_files(library, 6)) == older
    assert set(archive_files(library)) == common | {"executor-config/graph/add.graph", "src/add.relay"}
    graph = "runtime-config/graph/graph.json"
    assert set(archive_files(library, 4)) == common | {graph, "src/relay.txt"}
    assert set(archive_files(library, 3)) == common | {graph, "relay.txt"}
    for version in (1, 2):
        assert set(archive_files(library, version)) == {*model_archive(version), "README.md"}
    operator = read_files(operator_archive(4), "old.tar")
    for version in (4, 5, 6, 7):
        assert set(archive_files(operator, version)) == {
            "README.md", "codegen/host/src/lib0.c", "codegen/host/src/lib1.c", "metadata.json", "src/tir-1.txt",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "version"),
    [(name, version) for name in ("1-graph", "2-aot", "4-operator", "sketch") for version in (5, 6, 7)]
    + [("7-graph", version) for version in (1, 2, 3, 4)] + [("7-aot", 1), ("7-operator", 4)],
)  # fmt: skip
def test_metadata_of_converted_samples(golden: Callable[[str, str], None], name: str, version: int) -> None:
    text = bytes(archive_files(read_files(OLD[name], "old.tar"), version)["metadata.json"]).decode()
    golden(text, "metadata.json")


def test_unpacked_tree_has_the_names_in_its_fragment() -> None:
    files = tree_files(read_files(model_archive(1), "old.tar"))
    fragment = bytes(files["mlf.cmake"]).decode()
    for name in ("add_lib0.c", "add_lib1.c"):
        assert f"codegen/host/src/{name}" in files
        assert f"/executor/{name}" in fragment
        assert f'"../codegen/host/src/{name}"' in bytes(files[f"executor/{name}"]).decode()


# The extension key


@pytest.mark.parametrize("library", [native_library(), graph_library()], ids=["native", "graph"])
@pytest.mark.parametrize("version", VERSIONS)
def test_extension_key_is_kept(library: Library, version: int) -> None:
    assert read(library, version) == convert(library, version)
    assert convert(read(library, version), 7) == library


def test_call_order_is_kept_without_tvm_key() -> None:
    inputs = tuple(TensorInfo(name, "int8", 4) for name in ("z", "a", "m"))
    library = Library((replace(native_module(), inputs=inputs),))
    for version in VERSIONS:
        assert read(library, version).modules[0].inputs == inputs


@pytest.mark.parametrize("name", TVM_ARCHIVES)
def test_tvm_archives_need_no_extension_key(shared: Path, name: str) -> None:
    library = read_files(tvm_files(shared, name), name)
    for version in (library.version, 7):
        assert b'"mlfbuild"' not in bytes(archive_files(library, version)["metadata.json"])


def test_output_names_are_kept_in_extension_key(shared: Path) -> None:
    """Graphs have no names for outputs, and neither has the metadata of version 5."""
    library = read_files(tvm_files(shared, "kws_int8-graph"), "kws")
    assert [tensor.name for tensor in library.modules[0].outputs] == ["Identity"]
    assert [tensor["name"] for tensor in module_json(library, 5)["mlfbuild"]["outputs"]] == ["Identity"]
    assert read(library, 5).modules[0].outputs == library.modules[0].outputs


# Targets


def targets_of(*targets: ModuleTarget) -> Library:
    (module,) = graph_library().modules
    return Library((replace(module, targets=targets),))


def test_a_single_target_is_for_the_cpu() -> None:
    library = targets_of(ModuleTarget("c"))
    assert module_json(library, 5)["target"] == {"1": "c"}
    assert module_json(library, 6)["target"] == ["c"]
    assert read(library, 5).modules[0].targets == (ModuleTarget("c", 1),)
    assert read(read(library, 5)) == library


def test_devices_are_kept_in_versions_without_devices() -> None:
    library = targets_of(ModuleTarget("c", 1), ModuleTarget("ethos-u", 12))
    assert module_json(library)["target"] == ["c", "ethos-u"]
    for version in VERSIONS:
        assert read(library, version).modules[0].targets == library.modules[0].targets
    (target,) = read(targets_of(ModuleTarget("ethos-u", 12))).modules[0].targets
    assert target == ModuleTarget("ethos-u", 12)


def test_order_of_targets_is_kept_in_versions_that_sort_them() -> None:
    library = targets_of(ModuleTarget("ethos-u", 12), ModuleTarget("c", 1))
    for version in (1, 5):
        assert module_json(library, version)["target"] == {"1": "c", "12": "ethos-u"}
        assert module_json(library, version)["mlfbuild"]["target_devices"] == [12, 1]
        assert read(library, version).modules[0].targets == library.modules[0].targets


# Names of generated files


def renamed(module: Module) -> list[str]:
    (converted,) = convert(Library((module,), version=1), 7).modules
    return [str(file.path) for file in converted.codegen]


def with_files(**texts: str) -> Module:
    (module,) = graph_library().modules
    files = (CodegenFile(PurePosixPath(path.replace("__", ".")), text.encode()) for path, text in texts.items())
    return replace(module, codegen=tuple(files))


def test_files_get_their_module_name() -> None:
    module = with_files(lib0__c="", lib12__cc="", lib3__o="", library__c="", lib__c="", lib0a__c="", net_lib1__c="")
    assert renamed(module) == [
        "lib.c", "lib0a.c", "library.c", "net_lib0.c", "net_lib1.c", "net_lib12.cc", "net_lib3.o",
    ]  # fmt: skip


def test_names_of_files_in_versions_without_module_name() -> None:
    """Headers and other files keep their names, and so do all files if the code includes one by its name."""
    module = with_files(net_lib0__c='#include "net.h"\n', net_lib1__o="", net__h="", net_lib__c="", other_lib0__c="")
    for version in (1, 2):
        (older,) = convert(Library((module,)), version).modules
        names = ["lib0.c", "lib1.o", "net.h", "net_lib.c", "other_lib0.c"]
        assert [str(file.path) for file in older.codegen] == names
        assert convert(Library((older,), version), 7).modules[0].codegen == module.codegen
    for module in (
        with_files(net_lib0__c='#include "net_lib1.c"\n', net_lib1__c=""),
        with_files(net_lib0__c="", lib0__c=""),
    ):
        assert convert(Library((module,)), 2).modules[0].codegen == module.codegen


def test_included_files_keep_their_names() -> None:
    assert renamed(with_files(lib0__c='#include "lib1.c"\n', lib1__c="")) == ["lib0.c", "lib1.c"]
    assert renamed(with_files(lib0__c=' # include\t"../src/lib1.h"\n', lib1__h="")) == ["lib0.c", "lib1.h"]
    assert renamed(with_files(lib0__c='const char *s = "lib1.c";\n', lib1__c="")) == ["net_lib0.c", "net_lib1.c"]


def test_files_keep_their_names_if_the_new_ones_are_taken() -> None:
    assert renamed(with_files(lib0__c="a", net_lib0__c="b")) == ["lib0.c", "net_lib0.c"]


# What a version cannot hold


@pytest.mark.parametrize("version", [-1, 0, 8])
def test_unknown_versions_are_not_written(version: int) -> None:
    with pytest.raises(UsageError) as caught:
        convert(native_library(), version)
    assert (caught.value.code, caught.value.hint) == ("format-version-not-written", "choose one of 1, 2, 3, 4, 5, 6, 7")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_operators_need_version_4(version: int) -> None:
    with raises(UsageError, "format-holds-no-operator", at="module add"):
        archive_files(read_files(operator_archive(7), "a.tar"), version)


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_several_modules_need_version_7(version: int) -> None:
    with pytest.raises(UsageError) as caught:
        archive_files(native_library("b", "a"), version)
    assert (caught.value.code, caught.value.hint) == ("format-holds-one-module", "write version 7")
    with pytest.raises(UsageError) as caught:
        archive_files(native_library(*(f"m{i:02}" for i in range(20))), version)
    assert caught.value.reason.endswith("m06, m07, ..."), "long lists are cut"


def test_operator_with_other_modules_is_refused() -> None:
    (operator,) = read_files(operator_archive(7), "a.tar").modules
    with raises(UsageError, "operator-not-alone", at="module add"):
        archive_files(Library((operator, *native_library().modules)))


@pytest.mark.parametrize(
    "targets",
    [
        (ModuleTarget("a", 1), ModuleTarget("b", 1)),
        (ModuleTarget("a"), ModuleTarget("b", 12)),
        (ModuleTarget("a"), ModuleTarget("b")),
    ],
)
def test_version_5_has_one_target_per_device(targets: tuple[ModuleTarget, ...]) -> None:
    library = targets_of(*targets)
    for version in (1, 5):
        with raises(UsageError, "format-holds-one-target", at="module net"):
            archive_files(library, version)
    for version in (6, 7):
        assert read(library, version).modules[0].targets == targets


def test_two_files_with_the_same_path_are_refused() -> None:
    other = ArchiveFile(PurePosixPath("executor-config/graph/net.graph"), b"other")
    with raises(UsageError, "archive-path-taken", at="executor-config/graph/net.graph"):
        archive_files(replace(graph_library(), other_files=(other,)))


def test_a_file_in_place_of_a_folder_is_refused() -> None:
    library = read_files({**model_archive(1), "src": b""}, "old.tar")
    with raises(UsageError, "archive-path-invalid", at="'src'"):
        archive_files(library)


def test_dependencies_are_in_the_place_of_each_version() -> None:
    (module,) = graph_library().modules
    dependency = ExternalDependency("nn", "https://example.org/nn.git", "git", "v7")
    library = Library((replace(module, external_dependencies=(dependency,)),))
    entry = {"short_name": "nn", "url": "https://example.org/nn.git", "url_type": "git", "version_spec": "v7"}
    for version in VERSIONS:
        found = module_json(library, version)
        place = found["mlfbuild"] if version < 5 else found
        assert place["external_dependencies"] == [entry]
        assert ("external_dependencies" in json.loads(bytes(archive_files(library, version)["metadata.json"]))) == (
            version in {5, 6}
        )


# Random metadata


VALUES = [
    None,
    True,
    -1,
    7,
    10**30,
    1.5,
    "",
    "aot",
    "operator",
    [],
    [None],
    ["graph"],
    {},
    {"1": "c"},
    {"0": {}},
    {"version": 2},
    {"version": 1, "unknown": {"/memory/functions/main/0/size": 1, "/mlfbuild": {}, "x": [{}]}},
    {"version": 1, "archive": {"/modules": {}, "/x": 1}, "state_size": 3},
    {"f": [{"device": 1}]},
]
KEYS = [
    "style", "executors", "runtimes", "target", "memory", "sids", "inputs", "contexts", "mlfbuild", "codegen",
    "vendor", "main", "functions", "operator_functions", "unknown", "archive", "model_name", "export_datetime_utc",
    "external_dependencies", "config", "0",
]  # fmt: skip


def mutate(document: Any, data: st.DataObject) -> None:
    """Replace, remove or add one member somewhere in ``document``."""
    at = document
    while True:
        if isinstance(at, dict) and data.draw(st.integers(0, 5)) == 0:
            at[data.draw(st.sampled_from(KEYS))] = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
            return
        if not at:
            return
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or data.draw(st.integers(0, 5)) == 0:
            if data.draw(st.booleans()):
                at[key] = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
            else:
                del at[key]
            return
        at = at[key]


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_readable_metadata_keeps_its_meaning_in_every_version(data: st.DataObject) -> None:
    files = dict(OLD[data.draw(st.sampled_from(sorted(OLD)))])
    name = next(path for path in files if path.startswith("metadata"))
    document = json.loads(files[name])
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(document, data)
    try:
        library = read_files({**files, name: json.dumps(document).encode()}, "a.tar")
    except InputFileError:
        return
    for version in VERSIONS:
        try:
            converted = convert(library, version)
        except UsageError:
            continue
        assert read(converted, version) == converted
