"""Comparing archives by meaning: differences of every kind, and changes that do not count."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mlfbuild.archive import open_archive, pack_archive, read_archive
from mlfbuild.archive.compare import LibraryComparison, LibraryDifference, compare, comparison_text
from mlfbuild.archive.compare.arrays import differing_elements
from mlfbuild.archive.describe.readme import README
from mlfbuild.library import (
    ArchiveFile,
    CodegenFile,
    DeviceContext,
    ExternalDependency,
    Library,
    MainMemory,
    Module,
    ModuleTarget,
    Network,
    NetworkOperator,
    OperatorBuffer,
    OperatorFunction,
    Pool,
    StorageEntry,
    TensorInfo,
    TracedTensor,
    UnknownField,
)
from support.libraries import GRAPH_JSON, graph_library, native_library, native_module

TINY = native_module()
NET = graph_library().modules[0]


def found(left: Module, right: Module) -> list[tuple[str, str, str]]:
    """Return kind, name and text of the differences between two modules of the same name."""
    comparison = compare(Library((left,)), Library((right,)))
    assert {difference.module for difference in comparison.differences} <= {left.name}
    json.dumps(comparison.to_json())
    return [(difference.what, difference.name, difference.text) for difference in comparison.differences]


def test_a_library_is_equal_to_itself() -> None:
    library = Library((TINY, NET), other_files=(ArchiveFile(PurePosixPath("runtime/x.h"), b"x"),))
    assert compare(library, library) == LibraryComparison((), ())
    assert comparison_text(compare(library, library), "a.tar", "b.tar") == "a.tar and b.tar have the same meaning"


def test_files_with_and_without_the_module_name_are_different() -> None:
    named = CodegenFile(PurePosixPath("host/src/tiny_lib0.c"), b"")
    unnamed = CodegenFile(PurePosixPath("host/src/lib0.c"), b"x")
    both = replace(TINY, codegen=(named, unnamed))
    assert found(both, both) == []
    assert found(replace(TINY, codegen=(named,)), replace(TINY, codegen=(replace(unnamed, content=b""),))) == []


X, Y = TINY.inputs[0], TINY.outputs[0]
Z = TensorInfo("z", "float32", 16, (4,))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"executor": "graph"}, [("executor", "", "aot -> graph")]),
        ({"style": "operator"}, [("style", "", "full-model -> operator")]),
        ({"interface": "packed"}, [("interface", "", "c -> packed")]),
        ({"targets": (ModuleTarget("c"),)}, [("target", "", "c -keys=arm_cpu,cpu -mcpu=cortex-m4 -> c")]),
        ({"inputs": (replace(X, size=8),)}, [("input", "x", "size 4 -> 8")]),
        ({"inputs": (replace(X, shape=(4, 1)),)}, [("input", "x", "shape [1, 4] -> [4, 1]")]),
        ({"inputs": (replace(X, zero_point=0),)}, [("input", "x", "zero point -128 -> 0")]),
        ({"outputs": (Z,)}, [("output", "y", "only in the first"), ("output", "z", "only in the second")]),
        ({"main": (MainMemory(1024, 1, 8),)}, [("memory", "workspace on CPU", "0 -> 1,024 bytes")]),
        (
            {"main": (*TINY.main, MainMemory(5, 6, 7, device=12))},
            [
                ("memory", "constants on extension device", "only in the second: 6 bytes"),
                ("memory", "inputs and outputs on extension device", "only in the second: 7 bytes"),
                ("memory", "workspace on extension device", "only in the second: 5 bytes"),
            ],
        ),
        (
            {"operator_functions": (OperatorFunction("mlf_tiny_add_0", ((1, 64),)),)},
            [("operator", "mlf_tiny_add_0", "workspace 0 -> 64 bytes")],
        ),
        ({"operator_functions": ()}, [("operator", "mlf_tiny_add_0", "only in the first")]),
        ({"pools": (Pool("sram", "workspace", 4, True),)}, [("pool", "sram", "only in the second")]),
        ({"devices": ("ethos_u",)}, [("device", "", "none -> ethos_u")]),
        ({"contexts": (DeviceContext("cpu"),)}, [("context", "cpu 0", "only in the second")]),
        ({"storage": (StorageEntry(0, 4, "x"),)}, [("storage", "id 0", "only in the second")]),
        ({"buffers": (OperatorBuffer("add", 2, (2,), "int8"),)}, [("argument", "add[0]", "only in the second")]),
        (
            {"external_dependencies": (ExternalDependency("crt", "./runtime", "mlf_path", "0.14.0"),)},
            [("dependency", "crt", "only in the second")],
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_each_difference_is_found(change: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    assert found(TINY, replace(TINY, **change)) == expected
    assert len(found(replace(TINY, **change), TINY)) == len(expected), "the other way round, too"


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": ()},
        {"inputs": (replace(X, shape=None, scale=None, zero_point=None),)},
        {"main": ()},
        {"interface": ""},
        {"targets": (ModuleTarget("c -keys=arm_cpu,cpu -mcpu=cortex-m4 ", 1),)},
        {"export_datetime": "2020-02-02 20:20:20Z"},
        {"model_id": ""},
        {"source_text": b"another text"},
        {"trace": (TracedTensor(X, "ADD", "f"),)},
        {"network": Network(16, (), (NetworkOperator("sum", "ADD", "f"),))},
    ],
    ids="-".join,
)
def test_unknown_values_are_not_differences(change: dict[str, Any]) -> None:
    assert found(TINY, replace(TINY, **change)) == []


def test_traced_tensors() -> None:
    first = TracedTensor(X, "ADD", "f")
    left = replace(TINY, trace=(first,))
    assert found(left, replace(TINY, trace=(first, TracedTensor(Z, "MUL", "g")))) == [
        ("traced tensor", "z", "only in the second")
    ]
    assert found(left, replace(TINY, trace=(replace(first, operator="SUB"),))) == [
        ("traced tensor", "x", "operator ADD -> SUB")
    ]


def test_the_order_of_arguments_is_a_difference() -> None:
    both = replace(TINY, inputs=(X, Z))
    assert found(both, replace(both, inputs=(Z, X))) == [("input", "", "order x, z -> z, x")]


def test_changed_dependency_is_a_difference() -> None:
    crt = ExternalDependency("crt", "./runtime", "mlf_path", "0.14.0")
    modules = [replace(TINY, external_dependencies=(item,)) for item in (crt, replace(crt, version_spec="0.9.0"))]
    assert found(*modules) == [("dependency", "crt", "version spec 0.14.0 -> 0.9.0")]


def test_unknown_fields_are_compared() -> None:
    one, two, three = (UnknownField("/bank", value) for value in ("1", "2", "3"))
    left, right = (replace(TINY, unknown=(field,)) for field in (one, two))
    assert found(left, left) == []
    assert found(left, right) == [("unknown field", "/bank", "1 -> 2")]
    assert found(left, TINY) == [("unknown field", "/bank", "only in the first")]
    long = replace(TINY, unknown=(UnknownField("/bank", f'"{"x" * 99}"'),))
    assert len(found(left, long)[0][2]) < 80
    crt = ExternalDependency("crt", "./runtime", "mlf_path")
    modules = [replace(TINY, external_dependencies=(replace(crt, unknown=own),)) for own in ((one,), (), (three,))]
    assert found(modules[0], modules[1]) == [("dependency", "crt", "bank 1 -> none")]
    assert found(modules[1], modules[2]) == [("dependency", "crt", "bank none -> 3")]
    beside = compare(Library((TINY,), unknown=(one,)), Library((TINY,), unknown=(two, UnknownField("/c", "0"))))
    assert [(each.module, each.name, each.left, each.right) for each in beside.differences] == [
        (None, "/bank", "1", "2"), (None, "/c", None, "0"),
    ]  # fmt: skip


def test_all_facts_of_a_device_context_are_compared() -> None:
    context = DeviceContext("npu", 0, "vela", '{"macs": 128}', "npu -fast")
    left = replace(TINY, contexts=(context,))
    assert found(left, left) == []
    for changed in ({"compiler": ""}, {"config": ""}, {"target": "npu"}):
        (key,) = changed
        right = replace(TINY, contexts=(replace(context, **changed),))
        assert found(left, right) == [("context", "npu 0", f"{key} {getattr(context, key)} -> {changed[key]}")]


def test_repeated_names_are_compared_one_by_one() -> None:
    """TVM before 0.9 wrote one entry per target, sometimes several for one device."""
    left = replace(TINY, main=(MainMemory(1, 2, 3), MainMemory(4, 5, 6)))
    right = replace(TINY, main=(MainMemory(9, 2, 3), MainMemory(4, 5, 6)))
    assert found(left, right) == [("memory", "workspace on CPU", "1 -> 9 bytes")]
    assert found(left, replace(left, main=left.main[:1]))[2] == (
        "memory", "workspace on CPU#2", "only in the first: 4 bytes",
    )  # fmt: skip
    twice = replace(TINY, operator_functions=TINY.operator_functions * 2)
    assert found(TINY, twice) == [("operator", "mlf_tiny_add_0#2", "only in the second")]


def test_modules_of_only_one_archive() -> None:
    comparison = compare(native_library("a", "b"), native_library("b", "c"))
    assert comparison.differences[:2] == (
        LibraryDifference(None, "module", "a", "a", None, "only in the first"),
        LibraryDifference(None, "module", "c", None, "c", "only in the second"),
    )
    assert {difference.module for difference in comparison.differences[2:]} == {"b"}


# Code and other files


def with_file(module: Module, path: str, content: bytes) -> Module:
    kept = tuple(file for file in module.codegen if str(file.path) != path)
    return replace(module, codegen=(*kept, CodegenFile(PurePosixPath(path), content)))


def test_code_differences_are_counted_in_lines() -> None:
    path = "host/src/tiny_lib0.c"
    left, right = (with_file(TINY, path, text) for text in (b"a\nb\nc\n", b"a\nB\nc\nd\n"))
    assert found(left, right) == [("code", f"codegen/{path}", "3 -> 4 lines: 1 removed, 2 added")]
    swapped = with_file(TINY, path, b"b\na\nc\n")
    assert found(left, swapped)[0][2] == "3 -> 3 lines: in another order, or with other line ends"
    one = with_file(TINY, "host/lib/tiny_lib1.o", b"\x7fELF")
    assert found(one, with_file(one, "host/lib/tiny_lib1.o", b"\x7fELF2"))[0][2] == "4 -> 5 bytes"
    assert found(one, with_file(one, "host/lib/tiny_lib1.o", b"\x7fELG"))[0][2] == "different 4 bytes"
    assert found(TINY, one) == [("code", "codegen/host/lib/tiny_lib1.o", "only in the second")]


def test_file_names_of_versions_1_and_2_are_equivalent() -> None:
    old = replace(TINY, codegen=(CodegenFile(PurePosixPath("host/src/lib0.c"), b"x\n"),))
    new = replace(TINY, codegen=(CodegenFile(PurePosixPath("host/src/tiny_lib0.c"), b"x\n"),))
    assert found(old, new) == found(new, old) == []
    other = replace(TINY, codegen=(CodegenFile(PurePosixPath("host/src/tiny_lib0.c"), b"y\n"),))
    assert found(old, other)[0][:2] == ("code", "codegen/host/src/lib0.c")


def test_files_of_no_module() -> None:
    files = [ArchiveFile(PurePosixPath(path), b"1") for path in ("runtime/a.h", "runtime/b.h", README)]
    left = Library((TINY,), other_files=tuple(files))
    right = Library((TINY,), other_files=(replace(files[0], content=b"2"),))
    assert [(d.module, d.what, d.name) for d in compare(left, right).differences] == [
        (None, "file", "runtime/a.h"), (None, "file", "runtime/b.h"),
    ]  # fmt: skip


# Parameters


def with_params(**arrays: Any) -> Module:
    return replace(NET, params=arrays)


def test_parameters_are_compared_by_value() -> None:
    left = with_params(p0=np.array([1.0, 2.0, 3.0], np.float32), p1=np.zeros((2, 2), np.int8))
    assert found(left, replace(left, params=dict(reversed(left.params.items())))) == [], "their order means nothing"
    right = with_params(p0=np.array([1.0, 2.5, 2.0], np.float32), p1=np.zeros((2, 2), np.int16))
    assert found(left, right) == [
        ("parameter", "p0", "2 of 3 elements differ, by at most 1"),
        ("parameter", "p1", "int8 [2, 2] -> int16 [2, 2]"),
    ]
    assert found(left, with_params(p0=left.params["p0"], p2=np.zeros(1, np.int8))) == [
        ("parameter", "p1", "only in the first"),
        ("parameter", "p2", "only in the second"),
    ]


@pytest.mark.parametrize(
    ("dtype", "left", "right", "expected"),
    [
        ("int8", [-128, 0], [127, 0], (1, 255.0)), ("uint8", [0, 255], [255, 0], (2, 255.0)),
        ("int64", [-(2**63)], [2**63 - 1], (1, float(2**64 - 1))), ("bool", [True, False], [True, True], (1, 1.0)),
        ("float32", [np.nan, 1.0], [np.nan, 1.0], (0, None)), ("float32", [np.nan, 1.0], [0.0, 1.5], (2, 0.5)),
        ("float32", [np.inf], [0.0], (1, None)), ("float64", [0.0], [-0.0], (1, 0.0)),
        ("float16", [65504.0], [-65504.0], (1, 131008.0)), ("bfloat16", [1.0, 2.0], [1.0, 2.5], (1, 0.5)),
        ("int4", [-8, 7], [7, 7], (1, 15.0)), ("float32", [], [], (0, None)),
    ],
)  # fmt: skip
def test_differing_elements(dtype: str, left: list[Any], right: list[Any], expected: tuple[int, float | None]) -> None:
    pytest.importorskip("ml_dtypes")
    arrays = [np.array(values).astype(np.dtype(dtype)) for values in (left, right)]
    assert differing_elements(*arrays) == expected


def test_large_arrays_are_compared_in_parts() -> None:
    left = np.zeros((3, 1 << 20), np.int8)
    right = left.copy()
    right[[0, 1, 2], [5, 0, -1]] = [1, -3, 2]
    assert differing_elements(left, right) == (3, 3.0)


@given(st.lists(st.tuples(st.integers(-128, 127), st.integers(-128, 127)), max_size=20))
def test_differing_elements_agree_with_python(pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array([pair[side] for pair in pairs], np.int8) for side in (0, 1))
    distances = [abs(a - b) for a, b in pairs if a != b]
    assert differing_elements(left, right) == (len(distances), float(max(distances)) if distances else None)


# Graphs


def with_graph(*changes: tuple[str, str]) -> Module:
    text = GRAPH_JSON
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return replace(NET, graph_json=text.encode())


def test_graphs_are_compared_by_meaning() -> None:
    respaced = with_graph((', "name": "x"', ',   "name":"x"'))
    assert bytes(respaced.graph_json or b"") != bytes(NET.graph_json or b"")
    assert found(NET, respaced) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("tvmgen_net_add", "tvmgen_net_sub", [("graph", "add", "func_name tvmgen_net_add -> tvmgen_net_sub")]),
        ("[[0, 0, 0], [1, 0, 0]]", "[[1, 0, 0], [0, 0, 0]]", [("graph", "add", "inputs ['x', 'p0'] -> ['p0', 'x']")]),
        ('"storage_id": ["list_int", [0, 1, 2]]', '"storage_id": ["list_int", [0, 1, 0]]',
         [("graph", "add", "storage [2] -> [0]")]),
        ("[[1, 2], [1, 2], [1, 2]]", "[[1, 2], [1, 2], [2, 1]]", [("graph", "add", "shapes [[1, 2]] -> [[2, 1]]")]),
        ('"arg_nodes": [0, 1]', '"arg_nodes": [1, 0]', [("graph", "arguments", "x, p0 -> p0, x")]),
        ('"heads": [[2, 0, 0]]', '"heads": [[0, 0, 0]]', [("graph", "outputs", "add -> x")]),
        ('"name": "p0"', '"name": "p9"',
         [("graph", "p0", "node only in the first"), ("graph", "add", "inputs ['x', 'p0'] -> ['x', 'p9']"),
          ("graph", "p9", "node only in the second"), ("graph", "arguments", "x, p0 -> x, p9")]),
    ],
    ids=["function", "inputs", "storage", "shape", "arguments", "outputs", "name"],
)  # fmt: skip
def test_differences_of_graphs(old: str, new: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(NET, with_graph((old, new))) == expected


def test_graph_of_only_one_archive() -> None:
    assert found(NET, replace(NET, graph_json=None)) == [("graph", "", "only in the first")]


# Notes and text


def test_changes_that_become_notes() -> None:
    right = replace(
        TINY, export_datetime="2024-01-01 00:00:00Z", model_id="cd" * 32, source_text=b"", inputs=(), main=(),
        tir=((1, b"x"),),
    )  # fmt: skip
    comparison = compare(
        Library((replace(TINY, export_datetime="2020-01-01 00:00:00Z"),), version=5), Library((right,))
    )
    assert comparison.equal
    assert comparison.notes == (
        "version of the format: 5 -> 7",
        "tiny: exported 2020-01-01 00:00:00Z -> 2024-01-01 00:00:00Z",
        f"tiny: SHA-256 of the model file {'ab' * 32} -> {'cd' * 32}",
        "tiny: the text of the program before code generation differs",
        "tiny: the text of the operator before code generation differs",
        "tiny: the inputs are known only in the first",
        "tiny: memory sizes are known only in the first",
    )


def test_text_of_a_comparison(golden: Callable[[str, str], None]) -> None:
    crt = ExternalDependency("crt", "./runtime", "mlf_path", "0.14.0")
    left = Library((TINY, NET), other_files=(ArchiveFile(PurePosixPath("runtime/crt.h"), b"x\n"),))
    right = Library(
        (
            replace(TINY, main=(MainMemory(1024, 1, 8),), external_dependencies=(crt,), source_text=b""),
            replace(NET, params={f"p{i}": np.array([[2.0, 4.5]], np.float32) for i in range(20)}),
            native_module("other"),
        ),
        version=5,
    )
    comparison = compare(left, right)
    golden(comparison_text(comparison, "old.tar", "new.tar") + "\n", "compare.txt")
    golden(comparison_text(comparison, "old.tar", "new.tar", verbose=True) + "\n", "verbose.txt")
    golden(json.dumps(comparison.to_json(), indent=2) + "\n", "compare.json")


# Archives of TVM


def test_rewritten_archive_is_equal(shared: Path) -> None:
    for path in sorted((shared / "archives").glob("*.tar")):
        library = open_archive(path)
        again = read_archive(pack_archive(library, library.version), path.name)
        assert compare(library, again) == LibraryComparison((), ()), path


def test_converted_archive_is_equal(shared: Path) -> None:
    for path in sorted((shared / "archives").glob("v5-*.tar")):
        library = open_archive(path)
        converted = read_archive(pack_archive(library, 7), path.name)
        assert converted.version == 7
        comparison = compare(library, converted)
        assert comparison.equal, (path, comparison.differences)
        assert comparison.notes == ("version of the format: 5 -> 7",), path


def test_different_archives_differ(shared: Path) -> None:
    first, second = (open_archive(shared / "archives" / f"conv-{name}.tar") for name in ("graph", "graphlink"))
    comparison = compare(first, second)
    told = {(difference.what, difference.name): difference.text for difference in comparison.differences}
    assert told["memory", "constants on CPU"] == "864 -> 0 bytes"
    assert told["parameter", "p0"] == "only in the first"
    assert told["graph", "arguments"] == "data, p0 -> data"
    assert told["code", "codegen/host/src/conv_lib1.c"].startswith("361 -> 390 lines")
    assert ("code", "codegen/host/src/conv_lib0.c") not in told, "which both have"
