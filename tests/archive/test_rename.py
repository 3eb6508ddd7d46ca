"""Renaming modules changes everything with the module's name, and nothing else."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mlfbuild
from mlfbuild.archive import open_archive, write_archive
from mlfbuild.archive.conversion import rename_modules
from mlfbuild.core.errors import UsageError
from mlfbuild.library import CodegenFile, CompileRequest, Library
from mlfbuild.library.graph_json import parse_graph
from mlfbuild.native import NATIVE
from mlfbuild.targets import CPUS
from mlfbuild.usecases.validate import validate_archive
from support.errors import raises
from support.firmware_repo import tiny_network
from support.libraries import graph_library, native_library
from support.oracle import tflite_micro_run
from support.sound_archives import operator_module
from support.tvm_archives import TVM_ARCHIVES

_RENAMED = [name for name in TVM_ARCHIVES if "llvm" not in name and name != "operator-add"]


def _others(library: Library) -> dict[str, str]:
    return {module.name: f"other_{index}" for index, module in enumerate(library.modules)}


@pytest.mark.parametrize("name", _RENAMED)
def test_renaming_a_tvm_archive_twice_restores_it(shared: Path, tmp_path: Path, name: str) -> None:
    path = shared / "archives" / f"{name}.tar"
    library = open_archive(path)
    there = rename_modules(library, _others(library))
    assert [module.name for module in there.modules] == sorted(_others(library).values())
    for module in library.modules:
        for file in (file for other in there.modules for file in other.codegen):
            assert f"tvmgen_{module.name}_".encode() not in file.data
            assert f"TVMGEN_{module.name.upper()}_".encode() not in file.data
            assert not file.path.name.startswith(f"{module.name}_")
    write_archive(there, tmp_path / "there.tar")
    assert len(validate_archive(tmp_path / "there.tar").findings) <= len(validate_archive(path).findings)
    back = rename_modules(there, {new: old for old, new in _others(library).items()})
    for before, after in zip(library.modules, back.modules, strict=True):
        assert (after.codegen, after.operator_functions) == (before.codegen, before.operator_functions)
        assert after.graph_json == before.graph_json


@pytest.mark.parametrize("name", ["kws_int8-graph", "conv-usmp_external", "byoc-aotp", "v5-add-aotc"])
def test_renamed_tvm_archive_computes_the_same(shared: Path, tmp_path: Path, name: str) -> None:
    library = open_archive(shared / f"archives/{name}.tar")
    write_archive(rename_modules(library, _others(library)), tmp_path / "a.tar")
    model = mlfbuild.load(tmp_path / "a.tar", "other_0")
    vectors = np.load(shared / f"archives/{name}.npz")
    outputs = model.run({tensor.name: vectors[f"in_{tensor.name}"][0] for tensor in model.inputs})
    for index, value in enumerate(outputs.values()):
        np.testing.assert_allclose(value, vectors[f"out{index}"][0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("old", "new"), [("fully_connected", "some_other_name"), ("run", "abc"), ("gemm", "runs")])
def test_network_with_the_name_of_a_kernel(tmp_path: Path, old: str, new: str) -> None:
    """Kernels are called ``mlf_<word>``, like the functions of a network with that name."""
    (tmp_path / "net.tflite").write_bytes(tiny_network(3))
    made, expected = (
        NATIVE.compile(CompileRequest(name, tmp_path / "net.tflite", CPUS["cortex-m4"])) for name in (old, new)
    )
    renamed = rename_modules(made, {old: new})
    assert renamed.modules[0].codegen == expected.modules[0].codegen
    write_archive(renamed, tmp_path / "other.tar")
    inputs = np.arange(8, dtype=np.int8)[None]
    model = mlfbuild.load(tmp_path / "other.tar")
    (output,) = model.run({model.inputs[0].name: inputs}).values()
    np.testing.assert_array_equal(output, tflite_micro_run(tiny_network(3), [inputs])[0])


def test_network_of_the_graph_executor_with_the_name_of_a_kernel_header(tmp_path: Path) -> None:
    """Its functions share a header, ``mlf_<module>.h``; kernels have ``mlfbuild/fully_connected.h``."""
    (tmp_path / "net.tflite").write_bytes(tiny_network(3))
    request = CompileRequest("fully_connected", tmp_path / "net.tflite", CPUS["host"], executor="graph")
    made = NATIVE.compile(request)
    renamed = rename_modules(made, {"fully_connected": "other"})
    assert [str(file.path) for file in renamed.modules[0].codegen[:1]] == ["host/include/mlf_other.h"]
    inputs = np.arange(8, dtype=np.int8)[None]
    for name, library in (("made", made), ("renamed", renamed)):
        write_archive(library, tmp_path / f"{name}.tar")
        model = mlfbuild.load(tmp_path / f"{name}.tar")
        (output,) = model.run({model.inputs[0].name: inputs}).values()
        np.testing.assert_array_equal(output, tflite_micro_run(tiny_network(3), [inputs])[0])


def test_renaming_one_of_two_names_with_a_common_prefix() -> None:
    library = native_library("net", "net_b")
    renamed = rename_modules(library, {"net": "a"})
    assert [module.name for module in renamed.modules] == ["a", "net_b"]
    assert renamed.modules[1] == library.modules[1]
    swapped = rename_modules(library, {"net": "net_b", "net_b": "net"})
    assert swapped != library
    assert rename_modules(swapped, {"net": "net_b", "net_b": "net"}) == library
    assert rename_modules(library, {}) == library


@pytest.mark.parametrize(
    ("library", "names", "code"),
    [
        (native_library("a", "b"), {"c": "d"}, "module-unknown"),
        (native_library("a"), {"a": "Kws"}, "module-name-invalid"),
        (native_library("a"), {"a": "../b"}, "module-name-invalid"),
        (native_library("a", "b"), {"a": "b"}, "module-name-taken"),
        (Library((operator_module(),)), {"add": "sum"}, "operator-not-renamed"),
    ],
)
def test_invalid_names_are_refused(library: Library, names: dict[str, str], code: str) -> None:
    with raises(UsageError, code):
        rename_modules(library, names)


def test_header_with_a_name_that_is_invalid_in_c() -> None:
    """TVM's exporter keeps characters in the header's name that become underscores in symbols."""
    (module,) = native_library("my_net").modules
    odd = [
        CodegenFile(
            file.path.with_name(file.path.name.replace("my_net", "my-net")),
            file.data.replace(b"tvmgen_my_net.h", b"tvmgen_my-net.h"),
        )
        for file in module.codegen
    ]
    library = Library((replace(module, name="my-net", codegen=tuple(odd)),))
    (renamed,) = rename_modules(library, {"my-net": "other"}).modules
    assert renamed.codegen == rename_modules(native_library("my_net"), {"my_net": "other"}).modules[0].codegen


def test_module_with_objects_is_refused(shared: Path) -> None:
    with raises(UsageError, "objects-not-renamed", at="module conv"):
        rename_modules(open_archive(shared / "archives/conv-llvm_graph_m4.tar"), {"conv": "other"})


def test_the_graph_calls_the_functions_by_their_new_names() -> None:
    (module,) = rename_modules(graph_library("net"), {"net": "other"}).modules
    (expected,) = graph_library("other").modules
    graph, wanted = (parse_graph(bytes(m.graph_json or b""), "") for m in (module, expected))
    assert [node.function for node in graph.nodes] == ["", "", "tvmgen_other_add"]
    assert (graph.nodes, module.codegen) == (wanted.nodes, expected.codegen)
