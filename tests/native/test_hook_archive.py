"""The option ``hook`` in the code that is generated, in images and in archives."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import open_archive, write_archive
from mlfbuild.archive.compare.library import compare
from mlfbuild.archive.describe import describe_text
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.library import Library
from mlfbuild.native.graph import DType, Graph, Tensor, ops
from mlfbuild.targets import CPUS
from support.errors import raises
from support.host_c import SANITIZERS, build, run, write_tree
from support.native import compile_network, generated, request
from support.sketch import Sketch, stream


def hooked(graph: Graph, *, trace: bool = False) -> Library:
    return compile_network(graph, options={"memory": "smallest", "hook": True, "trace": trace})


def small() -> Graph:
    s = Sketch("net")
    weights = (np.arange(6) % 5 - 2).astype(np.int8).reshape(2, 3)
    s.node(ops.FullyConnected(), s.tensor("x", 1, 3), s.weights("w", data=weights), s.tensor('mid\\dle"?', 1, 2))
    s.node(ops.Reshape(), 'mid\\dle"?', s.tensor("y", 2))
    return s.graph(["x"], ["y"])


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
def test_table_is_in_the_image_only_if_it_is_used(tmp_path: Path, tool: Callable[[str], str], named: bool) -> None:
    folder = write_tree(hooked(small()), tmp_path)
    (folder / "main.c").write_text(f"""
#include <stddef.h>
#include "tvmgen_net.h"
static int32_t ask(void *context, uint32_t operator_index)
{{
    *(const void **)context = {"&mlf_net_operators[operator_index]" if named else "context"};
    return (int32_t)operator_index - 1;
}}
int main(void)
{{
    static const void *seen;
    static int8_t x[3], y[2];
    struct tvmgen_net_inputs inputs = {{x}};
    struct tvmgen_net_outputs outputs = {{y}};
    return tvmgen_net_run_hooked(&inputs, &outputs, ask, &seen) + (seen == NULL);
}}
""")
    flags = [*CPUS["cortex-m4"].flags, "-O2", "--specs=nano.specs", "--specs=nosys.specs", "-Wl,--gc-sections"]
    sources = [folder / "main.c", folder / "host/src/net_lib0.c"]
    run([tool("arm-none-eabi-gcc"), *flags, "-I", folder / "host/include", *sources, "-o", folder / "app.elf"])
    symbols = run([tool("arm-none-eabi-nm"), folder / "app.elf"])
    assert ("mlf_net_operators" in symbols) == named
    assert (b"FULLY_CONNECTED" in (folder / "app.elf").read_bytes()) == named


@pytest.mark.parametrize("trace", [False, True], ids=["hook", "both"])
def test_golden_files(golden: Callable[[str, str], None], trace: bool) -> None:
    library = hooked(small(), trace=trace)
    golden(generated(library), "net_lib0.c")
    golden(generated(library, "tvmgen_net.h"), "tvmgen_net.h")


@pytest.mark.parametrize("trace", [False, True], ids=["hook", "both"])
def test_networks_without_operators_have_the_function(tmp_path: Path, trace: bool) -> None:
    graph = Graph("none", [Tensor("x", (1, 4), DType.FLOAT32)], [], ["x"], ["x"])
    main = """
#include <stddef.h>
#include "tvmgen_none.h"
#if MLF_NONE_OPERATORS != 0
#error "nothing is computed"
#endif
static int32_t never(void *context, uint32_t operator_index) { return *(int *)context = 3 + (int)operator_index; }
int main(void)
{
    float x[4] = {1, 2, 3, 4}, y[4];
    int seen = 2;
    struct tvmgen_none_inputs inputs = {x};
    struct tvmgen_none_outputs outputs = {y};
    return tvmgen_none_run_hooked(&inputs, &outputs, never, &seen) != 0 || seen != 2 || y[3] != 4.0f;
}
"""
    run([build(write_tree(hooked(graph, trace=trace), tmp_path), main, SANITIZERS)])


@pytest.mark.parametrize("graph", [small(), stream()], ids=["small", "stream"])
def test_without_the_option_there_is_no_hook(graph: Graph) -> None:
    plain = compile_network(graph)
    assert compile_network(graph, options={"hook": False}) == plain, "false is the default"
    assert "hook" not in generated(plain) + generated(plain, f"tvmgen_{graph.name}.h")
    assert not plain.modules[0].hook


def test_archive_records_the_option(tmp_path: Path) -> None:
    library = hooked(small())
    for version in (5, 6, 7):
        write_archive(library, tmp_path / "net.tar", version)
        assert open_archive(tmp_path / "net.tar").modules[0].hook
    assert re.search(r"^  hook +called before each operator$", describe_text(library), re.MULTILINE)


def test_archives_with_and_without_it_differ() -> None:
    differences = compare(compile_network(stream()), hooked(stream())).differences
    assert [each.text for each in differences if each.what == "hook"] == ["none -> called before each operator"]
    assert compare(hooked(stream()), hooked(stream())).differences == ()


def test_recorded_option_must_be_a_boolean(tmp_path: Path) -> None:
    write_archive(hooked(small()), tmp_path / "net.tar")
    data = (tmp_path / "net.tar").read_bytes()
    assert data.count(b'"hook": true') == 1
    (tmp_path / "net.tar").write_bytes(data.replace(b'"hook": true', b'"hook": 1   '))
    with raises(InputFileError, "json-type-wrong", "modules.net.mlfbuild.hook"):
        open_archive(tmp_path / "net.tar")


@pytest.mark.parametrize("value", ["yes", 1, "true"])
def test_option_must_be_a_boolean(value: str | int) -> None:
    with raises(UsageError, "invalid-option", at="net: options.hook"):
        compiler_called("native").compile(replace(request("net"), options={"hook": value}))
