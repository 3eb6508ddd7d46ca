"""The option ``trace`` in C: the callback gets each tensor in order, on this machine and on a board."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.archive import open_archive, write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import UsageError
from mlfbuild.core.files import sha256
from mlfbuild.library import Library
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import DType, Graph, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate_in_turn
from mlfbuild.native.graph.ops.movement.views import Slice, Steps
from mlfbuild.targets import BOARDS, CPUS
from support.board_cases import BOARD_SUPPORT
from support.errors import raises
from support.host_c import SANITIZERS, build, run, write_tree
from support.native import compile_network, generated, request
from support.sketch import Sketch, stream

Array = npt.NDArray[Any]

_PROGRAM = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_{name}.h"

static const {c_type} input[{cases}][{elements}] = {{{values}}};
static uint8_t workspace[TVMGEN_{upper}_WORKSPACE_SIZE + 1] __attribute__((aligned(MLF_{upper}_WORKSPACE_ALIGNMENT)));
{state}

/* FNV-1a, of what the hook sees while it sees it. */
static void look(void *context, uint32_t tensor, const void *data)
{{
    const struct mlf_{name}_traced_tensor *const known = &mlf_{name}_traced_tensors[tensor];
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < known->size; i++) {{
        hash = (hash ^ ((const uint8_t *)data)[i]) * 16777619u;
    }}
    printf("%s %u %s %s %s %u %08x\\n", (const char *)context, (unsigned)tensor, known->name, known->operator_name,
           known->dtype, (unsigned)known->elements, (unsigned)hash);
}}

int main(void)
{{
    static char case_name[] = "case0";
{reset}
    for (int i = 0; i < {cases}; i++) {{
        {c_type} own[{elements}];
        static uint64_t output[64], plain[64];
        struct tvmgen_{name}_inputs inputs = {{own}};
        struct tvmgen_{name}_outputs outputs = {{output}};
        memcpy(own, input[i], sizeof own);
        case_name[4] = (char)('0' + i);
        if (mlf_{name}_run_traced(&inputs, &outputs, workspace{kept}, look, case_name) != 0) {{
            return 1;
        }}
        if (mlf_{name}_run_traced(NULL, &outputs, workspace{kept}, look, case_name) != -1) {{
            return 2;
        }}
        outputs.{output} = plain;
        if (tvmgen_{name}_run(&inputs, &outputs) != 0 || memcmp(output, plain, sizeof plain) != 0) {{
            return 3;
        }}
    }}
    printf("done\\n");
    return 0;
}}
"""


def traced(graph: Graph, cpu: str = "cortex-m4") -> Library:
    wanted = request(graph.name, cpu=cpu)
    return compile_graph(graph, replace(wanted, options={"trace": True}), sha256(graph.name.encode()))


def program(graph: Graph, runs: list[Array]) -> str:
    """Return a C program that runs ``graph`` with a trace and prints a line for each tensor."""
    name, upper = graph.name, graph.name.upper()
    source = graph.tensor(graph.inputs[0])
    state = f"static uint8_t kept[MLF_{upper}_STATE_SIZE] __attribute__((aligned(MLF_{upper}_STATE_ALIGNMENT)));"
    return _PROGRAM.format(
        name=name, upper=upper, cases=len(runs), elements=source.elements, output=graph.outputs[0],
        c_type="float" if source.dtype is DType.FLOAT32 else "int8_t",
        values=", ".join("{" + ", ".join(str(value) for value in values.reshape(-1)) + "}" for values in runs),
        state=state if graph.states else "",
        reset=f"    if (mlf_{name}_reset(kept) != 0) {{\n        return 4;\n    }}" if graph.states else "",
        kept=", kept" if graph.states else "",
    )  # fmt: skip


def fnv(value: Array) -> int:
    """Return the hash that the program prints."""
    found = 2166136261
    for byte in np.ascontiguousarray(value).tobytes():
        found = (found ^ byte) * 16777619 & 0xFFFFFFFF
    return found


def expected(graph: Graph, library: Library, runs: list[Array]) -> list[str]:
    """Return the lines for the results of each operator's numpy reference."""
    lines = []
    for case, values in enumerate(evaluate_in_turn(graph, [{graph.inputs[0]: value} for value in runs])):
        for number, each in enumerate(library.modules[0].trace):
            info, value = each.tensor, values[each.tensor.name]
            lines.append(f"case{case} {number} {info.name} {each.operator} {info.dtype} {value.size} {fnv(value):08x}")
    return [*lines, "done"]


def views() -> Graph:
    """Convolutions that could run row by row, views of one tensor, and operators that work in place."""
    s = Sketch("views")
    s.tensor("image", 1, 8, 8, 4)
    s.node(ops.Conv2D(padding=((1, 1), (1, 1))), "image", s.weights("w1", 8, 3, 3, 4), s.tensor("wide", 1, 8, 8, 8))
    s.node(ops.Conv2D(), "wide", s.weights("w2", 2, 1, 1, 8), s.tensor("narrow", 1, 8, 8, 2))
    s.node(
        Slice((Steps(0, 1, 1), Steps(0, 1, 4), Steps(0, 1, 8), Steps(0, 1, 2))), "narrow", s.tensor("upper", 1, 4, 8, 2)
    )
    s.node(
        Slice((Steps(0, 1, 1), Steps(4, 1, 4), Steps(0, 1, 8), Steps(0, 1, 2))), "narrow", s.tensor("lower", 1, 4, 8, 2)
    )
    s.node(ops.Add(), "upper", "lower", s.tensor("sum", 1, 4, 8, 2))
    s.node(ops.Reshape(), "sum", s.tensor("flat", 1, 64))
    s.node(ops.FullyConnected(), "flat", s.weights("w3", 3, 64), s.tensor("y", 1, 3, scale=2.0))
    return s.graph(["image"], ["y"])


def cases() -> list[tuple[Graph, list[Array]]]:
    random = np.random.default_rng(11)
    images = [random.integers(-128, 128, (1, 8, 8, 4), np.int8) for _ in range(2)]
    return [(views(), images), (stream(), [np.full((1, 4), value, np.float32) for value in (1, 2, 4)])]


def test_trace_on_this_machine(tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("gcc")
    for graph, runs in cases():
        library = traced(graph)
        folder = write_tree(library, tmp_path / graph.name)
        built = build(folder, program(graph, runs), ("-O1", *SANITIZERS))
        assert run([built]).splitlines() == expected(graph, library, runs)


def test_trace_on_a_board(tmp_path: Path, tool: Callable[[str], str]) -> None:
    from mlfbuild.verify.emulator import run_elf

    tool("qemu-system-arm")
    board = BOARDS["mps2-an386"]
    for graph, runs in cases():
        library = traced(graph)
        folder = write_tree(library, tmp_path / graph.name)
        (folder / "main.c").write_text(program(graph, runs))
        sources = [folder / "main.c", *sorted((folder / "host/src").glob("*.c")), *sorted(BOARD_SUPPORT.glob("*.c"))]
        paths = ["-I", folder / "host/include", "-I", BOARD_SUPPORT, "-L", BOARD_SUPPORT]
        flags = [*CPUS["cortex-m4"].flags, "-O2", "--specs=nano.specs", "-nostartfiles", "-Wl,--gc-sections"]
        script = ["-T", BOARD_SUPPORT / f"{board.name}.ld"]
        run([tool("arm-none-eabi-gcc"), *flags, *paths, *sources, *script, "-o", folder / "app.elf"])
        result = run_elf(folder / "app.elf", board, timeout=60)
        assert (result.stdout.splitlines(), result.exit_status) == (expected(graph, library, runs), 0)


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
def test_table_is_in_the_image_only_if_it_is_used(tmp_path: Path, tool: Callable[[str], str], named: bool) -> None:
    folder = write_tree(traced(views()), tmp_path)
    (folder / "main.c").write_text(f"""
#include <stddef.h>
#include "tvmgen_views.h"
static uint8_t workspace[TVMGEN_VIEWS_WORKSPACE_SIZE] __attribute__((aligned(MLF_VIEWS_WORKSPACE_ALIGNMENT)));
static void look(void *context, uint32_t tensor, const void *data)
{{
    *(const void **)context = {"&mlf_views_traced_tensors[tensor] + (data == NULL)" if named else "data"};
    (void)tensor;
}}
int main(void)
{{
    static const void *seen;
    static int8_t image[256], y[3];
    struct tvmgen_views_inputs inputs = {{image}};
    struct tvmgen_views_outputs outputs = {{y}};
    return mlf_views_run_traced(&inputs, &outputs, workspace, look, &seen) + (seen == NULL);
}}
""")
    flags = [*CPUS["cortex-m4"].flags, "-O2", "--specs=nano.specs", "--specs=nosys.specs", "-Wl,--gc-sections"]
    sources = [folder / "main.c", folder / "host/src/views_lib0.c"]
    run([tool("arm-none-eabi-gcc"), *flags, "-I", folder / "host/include", *sources, "-o", folder / "app.elf"])
    symbols = run([tool("arm-none-eabi-nm"), folder / "app.elf"])
    assert ("mlf_views_traced_tensors" in symbols) == named
    assert (b"FULLY_CONNECTED" in (folder / "app.elf").read_bytes()) == named


def test_golden_files(golden: Callable[[str, str], None]) -> None:
    s = Sketch("net")
    weights = (np.arange(6) % 5 - 2).astype(np.int8).reshape(2, 3)
    s.node(
        ops.FullyConnected(), s.tensor('a/b \u00e4"?', 1, 3), s.weights("w", data=weights), s.tensor("mid\\dle?", 1, 2)
    )
    s.node(ops.Reshape(), "mid\\dle?", s.tensor("y", 2))
    library = traced(s.graph(['a/b \u00e4"?'], ["y"]))
    golden(generated(library), "net_lib0.c")
    golden(generated(library, "tvmgen_net.h"), "tvmgen_net.h")


def test_networks_without_operators_have_the_function(tmp_path: Path) -> None:
    graph = Graph("none", [Tensor("x", (1, 4), DType.FLOAT32)], [], ["x"], ["x"])
    folder = write_tree(traced(graph), tmp_path)
    main = """
#include <stddef.h>
#include "tvmgen_none.h"
#if MLF_NONE_TRACED_TENSORS != 0
#error "nothing is written"
#endif
static void never(void *context, uint32_t tensor, const void *data) { *(int *)context = data != NULL && tensor == 0; }
int main(void)
{
    float x[4] = {1, 2, 3, 4}, y[4];
    int seen = 2;
    struct tvmgen_none_inputs inputs = {x};
    struct tvmgen_none_outputs outputs = {y};
    return mlf_none_run_traced(&inputs, &outputs, NULL, never, &seen) != 0 || seen != 2 || y[3] != 4.0f;
}
"""
    run([build(folder, main, SANITIZERS)])


def test_without_the_option_there_is_no_trace() -> None:
    plain = compile_network(stream())
    assert compile_graph(
        stream(), replace(request("stream"), options={"trace": False}), sha256(b"stream")
    ) == plain, "false is the default"  # fmt: skip
    assert "trace" not in generated(plain) + generated(plain, "tvmgen_stream.h")
    assert plain.modules[0].trace == ()


def test_archive_lists_the_traced_tensors(tmp_path: Path) -> None:
    library = traced(views())
    for version in (5, 6, 7):
        write_archive(library, tmp_path / "views.tar", version)
        assert open_archive(tmp_path / "views.tar").modules[0].trace == library.modules[0].trace
    names = [each.tensor.name for each in library.modules[0].trace]
    assert names == ["wide", "narrow", "upper", "lower", "sum", "flat", "y"]


@pytest.mark.parametrize("value", ["yes", 1, "true"])
def test_option_must_be_a_boolean(value: str | int) -> None:
    with raises(UsageError, "invalid-option", at="net: options.trace"):
        compiler_called("native").compile(replace(request("net"), options={"trace": value}))
