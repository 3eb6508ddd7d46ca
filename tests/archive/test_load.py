"""Archives are written reproducibly and read back completely; TVM's archives are rewritten byte for byte."""

import contextlib
import io
import json
import os
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.archive import archive_files, open_archive, pack_archive, read_archive, tar
from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.library import ArchiveFile, CodegenFile, Content, Library
from support.errors import raises
from support.examples import examples
from support.libraries import KERNEL_PATH, graph_library, native_library
from support.tvm_archives import TVM_ARCHIVES


def packed(files: dict[str, bytes]) -> bytes:
    return b"".join(tar.pack(files, 0))


def assert_same_files(left: dict[str, Content], right: dict[str, Content]) -> None:
    """TVM writes the metadata of an operator on one line and unsorted; all other bytes are the same."""
    assert left.keys() == right.keys()
    for path, content in right.items():
        if path == "metadata.json":
            assert json.loads(bytes(left[path])) == json.loads(bytes(content))
        else:
            assert left[path] == content, path


def unpacked(data: bytes) -> dict[str, Content]:
    return tar.members(io.BytesIO(data), "a.tar")


def native_files(*names: str) -> dict[str, bytes]:
    return archive_files(native_library(*names))


# Writing and reading back


@pytest.mark.parametrize(
    "library",
    [
        native_library(),
        native_library("b", "a"),
        graph_library(),
        Library((*native_library().modules, *graph_library().modules)),
        replace(native_library(), other_files=(ArchiveFile(PurePosixPath("runtime/include/x.h"), b"\0"),)),
    ],
    ids=["native", "two", "graph", "mixed", "runtime"],
)
def test_written_library_reads_back_equal(library: Library) -> None:
    data = pack_archive(library)
    assert read_archive(data, "a.tar") == library
    assert pack_archive(read_archive(data, "a.tar")) == data


def test_equality_includes_parameters() -> None:
    (module,) = graph_library().modules
    (name, value), *_ = module.params.items()
    assert replace(module, params={name: value.copy()}) == module
    for other in (value + 1, value.reshape(-1), value.astype("float64")):
        assert replace(module, params={name: other}) != module


def test_members_of_an_archive() -> None:
    assert list(native_files()) == [
        "README.md", "codegen/host/include/tvmgen_tiny.h", "codegen/" + KERNEL_PATH, "codegen/host/src/tiny_lib0.c",
        "metadata.json", "parameters/tiny.params", "src/tiny.relay",
    ]  # fmt: skip
    assert "executor-config/graph/net.graph" in archive_files(graph_library())


def test_a_header_used_by_one_of_two_modules_stays_with_it() -> None:
    first, second = native_library("a", "b").modules
    without_kernel = tuple(file for file in second.codegen if str(file.path) != KERNEL_PATH)
    library = Library((first, replace(second, codegen=without_kernel)))
    assert read_archive(pack_archive(library), "a.tar") == library


def test_two_files_with_the_same_path_are_not_written() -> None:
    first, second = native_library("a", "b").modules
    other = CodegenFile(PurePosixPath(KERNEL_PATH), b"another version")
    with raises(UsageError, "archive-path-taken", at=f"codegen/{KERNEL_PATH}"):
        pack_archive(Library((first, replace(second, codegen=(other,)))))


def test_bytes_depend_only_on_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = pack_archive(native_library("a", "b"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    os.umask(os.umask(0o077))
    assert pack_archive(Library(tuple(reversed(native_library("a", "b").modules)))) == first


def test_source_date_epoch_is_the_only_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    data = pack_archive(native_library())
    (module,) = read_archive(data, "a.tar").modules
    assert module.export_datetime == "2023-11-14 22:13:20Z"
    assert int(data[136:147], 8) == 1700000000
    assert read_archive(data, "a.tar") == native_library(), "equality is about what, not when"


@pytest.mark.parametrize("value", ["yesterday", "-1", "1e9", "99999999999"])
def test_invalid_source_date_epoch_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    with raises(UsageError, "source-date-invalid", at="SOURCE_DATE_EPOCH"):
        pack_archive(native_library())


# Archives that TVM wrote


@pytest.mark.parametrize("name", TVM_ARCHIVES)
def test_tvm_archive_is_rewritten_unchanged(shared: Path, name: str) -> None:
    data = (shared / "archives" / f"{name}.tar").read_bytes()
    library = read_archive(data, name)
    written = pack_archive(library, library.version)
    files = unpacked(written)
    assert b"mlfbuild" in bytes(files.pop("README.md"))
    assert_same_files(files, unpacked(data))
    assert read_archive(written, name) == library


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("many-aotc", ["x", "y"], ["output0", "output1", "output2"]),
        ("multi-aotc", ["a", "b"], ["output"]),
        ("kws_int8-aotc", ["input_1"], ["Identity"]),
        ("kws_int8-graph", ["input_1"], ["Identity"]),
    ],
)
def test_tensors_of_tvms_archives(shared: Path, name: str, inputs: list[str], outputs: list[str]) -> None:
    module = open_archive(shared / "archives" / f"{name}.tar").modules[0]
    assert [tensor.name for tensor in module.inputs] == inputs
    assert [tensor.name for tensor in module.outputs] == outputs


def test_parameters_and_memory_of_a_graph(shared: Path) -> None:
    (module,) = open_archive(shared / "archives" / "kws_int8-graph.tar").modules
    assert len(module.params) == 50 and sum(value.nbytes for value in module.params.values()) == 53304
    assert module.main[0].constants_size == 53304 and module.main[0].workspace_size == 105348
    assert module.storage[0].input_binding == "input_1"


# Call order


def with_order(library: Library, inputs: list[str]) -> bytes:
    """Return the archive of ``library`` without the extension key, with ``inputs`` in this order in the header."""
    files = archive_files(library)
    metadata = json.loads(files["metadata.json"])
    del metadata["modules"]["tiny"]["mlfbuild"]
    size = {"dtype": "int8", "size": 4}
    metadata["modules"]["tiny"]["memory"]["functions"]["main"][0]["inputs"] = dict.fromkeys(["a-b", "m", "z"], size)
    files["metadata.json"] = json.dumps(metadata).encode()
    header = "codegen/host/include/tvmgen_tiny.h"
    members = "".join(f"  void* {name};\n" for name in inputs).encode()
    files[header] = files[header].replace(b"  void* x;\n", members)
    return packed(files)


def test_call_order_comes_from_the_header() -> None:
    (module,) = read_archive(with_order(native_library(), ["z", "a_b", "m"]), "a.tar").modules
    assert [tensor.name for tensor in module.inputs] == ["z", "a-b", "m"]


@pytest.mark.parametrize("members", [["z", "m"], ["z", "m", "q"], ["z", "m", "m"]])
def test_header_with_other_tensors_is_ignored(members: list[str]) -> None:
    (module,) = read_archive(with_order(native_library(), members), "a.tar").modules
    assert [tensor.name for tensor in module.inputs] == ["a-b", "m", "z"]


def test_numbered_outputs_are_sorted_as_numbers() -> None:
    files = archive_files(graph_library())
    size = {"dtype": "float32", "size": 8}
    metadata = json.loads(files["metadata.json"])
    main = metadata["modules"]["net"]["memory"]["functions"]["main"][0]
    metadata["modules"]["net"].pop("mlfbuild", None)
    main["outputs"] = {f"output{i}": size for i in range(12)}
    (module,) = read_archive(packed({**files, "metadata.json": json.dumps(metadata).encode()}), "a.tar").modules
    assert [tensor.name for tensor in module.outputs] == [f"output{i}" for i in range(12)]


def test_inputs_are_in_graph_order() -> None:
    (module,) = graph_library().modules
    inputs = tuple(replace(module.inputs[0], name=name) for name in ("b", "a"))
    graph = bytes(module.graph_json or b"")
    graph = graph.replace(b'"name": "x"', b'"name": "b"').replace(b'"name": "p0"', b'"name": "a"')
    files = archive_files(Library((replace(module, inputs=tuple(reversed(inputs)), graph_json=graph),)))
    metadata = json.loads(bytes(files["metadata.json"]))
    metadata["modules"]["net"].pop("mlfbuild", None)
    data = packed({**files, "metadata.json": json.dumps(metadata).encode()})
    assert [tensor.name for tensor in read_archive(data, "a.tar").modules[0].inputs] == ["b", "a"]


# Invalid files


def without(path: str) -> dict[str, bytes]:
    return {name: data for name, data in archive_files(graph_library()).items() if name != path}


def renamed_module(name: str) -> dict[str, bytes]:
    files = native_files()
    return {**files, "metadata.json": files["metadata.json"].replace(b'"tiny": {', json.dumps(name).encode() + b": {")}


BAD = {
    "no metadata": (without("metadata.json"), "metadata-missing", ""),
    "no parameters": (without("parameters/net.params"), "archive-file-missing", ": parameters/net.params"),
    "no graph": (without("executor-config/graph/net.graph"), "archive-file-missing",
     ": executor-config/graph/net.graph"),
    "broken parameters": ({**native_files(), "parameters/tiny.params": b"x"}, "params-truncated",
     ": parameters/tiny.params"),
    "graph is no JSON": ({**without(""), "executor-config/graph/net.graph": b"{"}, "json-invalid",
     ": executor-config/graph/net.graph"),
    "graph is no text": ({**without(""), "executor-config/graph/net.graph": b"\xff"}, "json-invalid",
     ": executor-config/graph/net.graph"),
    "graph of no graph": ({**without(""), "executor-config/graph/net.graph": b"[]"}, "graph-type-wrong",
     ": executor-config/graph/net.graph"),
    "arguments of no node": ({**without(""), "executor-config/graph/net.graph": b'{"nodes": [], "arg_nodes": [0]}'},
     "graph-member-missing", ": executor-config/graph/net.graph: heads"),
    "future version": ({"metadata.json": b'{"version": 8}'}, "format-version-unknown", ": metadata.json: version"),
    "version of text": ({"metadata.json": b'{"version": "7"}'}, "format-version-unknown", ": metadata.json: version"),
    "no version": ({"metadata.json": b"{}"}, "json-member-missing", ": metadata.json: version"),
    "source of no module": ({**native_files("a", "b"), "codegen/host/src/other.c": b""}, "archive-code-unowned",
     ": codegen/host/src/other.c"),
    "module called ../x": (renamed_module("../x"), "module-name-unsafe", ": metadata.json: module '../x'"),
    "module of no name": (renamed_module(""), "module-name-unsafe", ": metadata.json: module ''"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_archive_is_refused(name: str) -> None:
    files, code, place = BAD[name]
    with raises(InputFileError, code, at=f"kws.tar{place}") as caught:
        read_archive(packed(files), "kws.tar")
    assert str(caught.value).isprintable()


def test_files_that_are_missing_or_folders(tmp_path: Path) -> None:
    for path in (tmp_path / "kws.tar", tmp_path):
        with pytest.raises(InputFileError) as caught:
            open_archive(path)
        assert str(caught.value).startswith(f"{path}: ")


def test_huge_metadata_is_not_parsed() -> None:
    with raises(InputFileError, "metadata-too-large", at="a.tar: metadata.json"):
        read_archive(packed({"metadata.json": bytes((16 << 20) + 1)}), "a.tar")


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_mutated_contents_never_crash(data: st.DataObject) -> None:
    files = dict(archive_files(data.draw(st.sampled_from([native_library("a", "b"), graph_library()]))))
    path = data.draw(st.sampled_from(sorted(files)))
    mutated = bytearray(files[path])
    for _ in range(data.draw(st.integers(1, 4)) if mutated else 0):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputFileError):
        read_archive(packed({**files, path: bytes(mutated)}), "a.tar")


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_mutated_metadata_values_never_crash(data: st.DataObject) -> None:
    values = st.sampled_from([None, True, -1, 10**30, 1.5, "", "x", [], [None], {}, {"x": 1}])
    files = dict(archive_files(data.draw(st.sampled_from([native_library(), graph_library()]))))
    document = json.loads(files["metadata.json"])
    at = document
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.integers(0, 4)) == 0:
            at[key] = data.draw(values)
            break
        at = at[key]
    with contextlib.suppress(InputFileError):
        read_archive(packed({**files, "metadata.json": json.dumps(document).encode()}), "a.tar")
