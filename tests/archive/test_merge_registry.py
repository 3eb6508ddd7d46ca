"""Tables of functions of system libraries: only TVM's form is parsed, and written tables are parsed again."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mlfbuild.archive.load import open_archive
from mlfbuild.archive.merge import merge
from mlfbuild.archive.merge.registry import RegistryTable, parse_object_registry, parse_registry
from mlfbuild.c_analysis.objects import Symbols, object_symbols
from mlfbuild.library.cgen import registry_source
from support.libraries import native_library

NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)
TABLE = st.dictionaries(st.one_of(NAME, st.text("aZ0.-\"\\?%'/* é\n", min_size=1)), NAME, max_size=20)


@given(TABLE, st.sampled_from([1, 2]))
def test_written_table_is_parsed(table: dict[str, str], count_bytes: int) -> None:
    text = registry_source(table.items(), count_bytes, ["net"])
    registry = parse_registry(text)
    assert registry is not None
    assert registry.functions == tuple(sorted(table.items()))
    assert registry.rest_is_empty
    assert registry.count_bytes == count_bytes or not table


@pytest.mark.parametrize("count", [0, 1, 9, 34, 92, 255, 256, 300, 1000])
def test_number_of_functions_is_parsed(count: int) -> None:
    table = {f"f{number:04}": f"f{number:04}" for number in range(count)}
    registry = parse_registry(registry_source(table.items(), 2, ["net"]))
    assert registry is not None
    assert registry.functions == tuple(table.items())


def sources(shared: Path, name: str) -> list[str]:
    library = open_archive(shared / f"archives/{name}.tar")
    return [file.data.decode() for module in library.modules for file in module.codegen if file.path.suffix == ".c"]


@pytest.mark.parametrize(
    ("name", "count_bytes", "functions", "rest"),
    [
        ("add-graph", 2, ["tvmgen_add_fused_cast_multiply_add", "__tvm_main__"], ";"),
        ("v5-add-graph", 1, ["tvmgen_add_fused_cast_multiply_add", "__tvm_main__"], ";"),
        ("v5-many-graphlink", 1,
         ["tvmgen_many_fused_subtract_nn_relu", "tvmgen_many_fused_add", "_lookup_linked_param"], ";"),
    ],
)  # fmt: skip
def test_tables_of_tvm_are_parsed(name: str, count_bytes: int, functions: list[str], rest: str, shared: Path) -> None:
    expected = RegistryTable(tuple((function, function) for function in functions), count_bytes, rest)
    assert [registry for text in sources(shared, name) if (registry := parse_registry(text))] == [expected]


def test_text_after_the_table_is_kept(shared: Path) -> None:
    first, second = sources(shared, "conv-aotp")[0], sources(shared, "add-aotc")[0]
    registry = parse_registry(first)
    assert registry is not None
    assert len(registry.functions) == 9
    assert first.endswith(registry.rest)
    assert registry.rest.startswith(second[: second.index("static struct")])
    assert parse_registry(registry.rest) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("static const TVMModule", "int more;\nstatic const TVMModule"),
        ("return &_tvm_system_lib;", "return 0;"),
        ('"\\002\\000', '"\\003\\000'),
        ("    (TVMBackendPackedCFunc)__tvm_main__,\n", ""),
        ("(TVMBackendPackedCFunc)__tvm_main__", "(TVMBackendPackedCFunc)7"),
        ("#include <tvm/runtime/crt/module.h>", ""),
        ("TVM_DLL int32_t __tvm_main__(", "TVM_DLL int32_t helper(void) { return 1; }\nTVM_DLL int32_t __tvm_main__("),
        ("#ifdef __cplusplus", "#ifdef OTHER"),
        ("__tvm_main__\\000\"", "__tvm_main__\""),
        ("_tvm_func_array,\n};", "_tvm_other_array,\n};"),
    ],
)  # fmt: skip
def test_other_forms_are_not_parsed(old: str, new: str, shared: Path) -> None:
    text = sources(shared, "add-graph")[0]
    assert parse_registry(text) is not None
    changed = text.replace(old, new, 1)
    assert changed != text
    assert parse_registry(changed) is None


@given(st.data())
def test_damaged_tables_never_crash(data: st.DataObject) -> None:
    text = registry_source([("a", "a"), ("b", "c")], 2, ["net"])
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, len(text)))
    spoiled = text[:at] + data.draw(st.text('"\\{}();,#*/ ax0\n', max_size=8)) + text[until:]
    registry = parse_registry(spoiled)
    assert registry is None or isinstance(registry.functions, tuple)


@pytest.mark.parametrize(
    "piece", ['"a" ', "TVM_DLL int32_t f(", "(TVMBackendPackedCFunc)f,", "#include <tvm/runtime/crt/module.h>\n"]
)
def test_long_tables_take_linear_time(piece: str) -> None:
    def lines(count: int) -> int:
        head, tail = registry_source([("a", "a")], 2, ["net"]).split('"a\\000"')
        return executed_lines(
            lambda: parse_registry(head + piece * count + tail),
            lambda: parse_registry(head.replace("TVM_DLL", piece * count + "TVM_DLL")),
        )

    none, small, large = lines(0), lines(200), lines(2_000)
    assert 0 < large - none <= 11 * (small - none)


def executed_lines(*calls: Callable[[], object]) -> int:
    """Return how many lines of Python ``calls`` execute: unlike their time, that does not depend on the machine."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for call in calls:
            call()
    finally:
        sys.settrace(before)
    return count


TraceFunction = Callable[[FrameType, str, object], Any]


# Objects -------------------------------------------------------------------------------------------------------------


def test_table_of_an_object_is_parsed(shared: Path) -> None:
    (module,) = open_archive(shared / "archives/conv-llvm_graph_m4.tar").modules
    table, code = (file.data for file in module.codegen)
    registry = parse_object_registry(table, object_symbols(table, "lib0.o"))
    assert registry is not None
    assert {name for name, _ in registry.functions} <= object_symbols(code, "lib1.o").defined
    assert sorted(name for name, _ in registry.functions) == [
        "tvmgen_conv_fused_nn_batch_flatten", "tvmgen_conv_fused_nn_conv2d_nn_relu",
        "tvmgen_conv_fused_nn_global_avg_pool2d", "tvmgen_conv_fused_nn_max_pool2d", "tvmgen_conv_fused_nn_softmax",
    ]  # fmt: skip
    assert parse_object_registry(code, object_symbols(code, "lib1.o")) is None


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        (b"\2\0f\0g\0", {"f", "h"}), (b"\2\0f\0f\0", {"f", "g"}), (b"\2\0f\0g", {"f", "g"}),
        (b"\3\0f\0g\0", {"f", "g"}), (b"\2\0f\0", {"f", "g"}), (b"", set()),
    ],
)  # fmt: skip
def test_objects_with_other_strings_have_no_table(data: bytes, declared: set[str]) -> None:
    symbols = Symbols(defined=frozenset({"TVMSystemLibEntryPoint"}), declared=frozenset(declared))
    assert parse_object_registry(data, symbols) is None
    more = Symbols(defined=frozenset({"TVMSystemLibEntryPoint", "more"}), declared=frozenset({"f", "g"}))
    assert parse_object_registry(b"\2\0f\0g\0", more) is None


def test_a_hundred_archives_are_merged_in_linear_time() -> None:
    def lines(count: int) -> int:
        libraries = [(f"net{number}.tar", native_library(f"net{number}")) for number in range(count)]
        return executed_lines(lambda: merge(libraries))

    assert 0 < lines(100) <= 11 * lines(10)
