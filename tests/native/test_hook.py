"""The option ``hook`` in C: a function of the firmware is called before each operator and can end the run."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.archive.conversion import rename_modules
from mlfbuild.core.files import sha256
from mlfbuild.library import Library
from mlfbuild.library.keys import Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import Graph, ops
from mlfbuild.native.graph.nodes import evaluate, evaluate_in_turn
from mlfbuild.targets import BOARDS, CPUS
from support.board_cases import BOARD_SUPPORT
from support.host_c import SANITIZERS, WARNINGS, build, run, write_tree
from support.native import request
from support.sketch import Sketch, stream

Array = npt.NDArray[Any]


def hooked(graph: Graph, *, trace: bool = False, placement: Placement | None = None) -> Library:
    wanted = request(graph.name, placement, memory="smallest")
    options = {**wanted.options, "hook": True, "trace": trace}
    return compile_graph(graph, replace(wanted, options=options), sha256(graph.name.encode()))


def rows() -> Graph:
    """Convolutions that run row by row, which makes them one operator, and a reshape without effect."""
    s = Sketch("rows")
    same = ((1, 1), (1, 1))
    s.tensor("image", 1, 16, 16, 4)
    s.node(ops.Conv2D(padding=same), "image", s.weights("w1", 8, 3, 3, 4), s.tensor("wide", 1, 16, 16, 8))
    s.node(ops.DepthwiseConv2D(padding=same), "wide", s.weights("w2", 1, 3, 3, 8), s.tensor("deep", 1, 16, 16, 8))
    s.node(ops.Conv2D(stride=(2, 2)), "deep", s.weights("w3", 4, 1, 1, 8), s.tensor("small", 1, 8, 8, 4))
    s.node(ops.Reshape(), "small", s.tensor("flat", 1, 256))
    s.node(ops.FullyConnected(), "flat", s.weights("w4", 3, 256), s.tensor("y", 1, 3, scale=4.0))
    return s.graph(["image"], ["y"])


ROWS = rows()
OPERATORS = [
    ("node wide + node deep + node small", "CONV_2D + DEPTHWISE_CONV_2D + CONV_2D"),
    ("node flat", "RESHAPE"),
    ("node y", "FULLY_CONNECTED"),
]
"""As it is executed."""
IMAGE = np.random.default_rng(11).integers(-128, 128, (1, 16, 16, 4), np.int8)

# Checks that runs call the hook with 0, 1, 2, ... in order, stops a run before each operator, and checks the result.
_PROGRAM = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_rows.h"

static int8_t image[1024] = {%(image)s};
static uint8_t workspace[TVMGEN_ROWS_WORKSPACE_SIZE] __attribute__((aligned(MLF_ROWS_WORKSPACE_ALIGNMENT)));

struct asked { uint32_t calls, stop; int32_t code; int wrong; };

static int32_t ask(void *context, uint32_t operator_index)
{
    struct asked *const asked = context;
    asked->wrong |= operator_index != asked->calls++;
    return operator_index == asked->stop ? asked->code : 0;
}

static int once(struct tvmgen_rows_inputs *inputs, int own, uint32_t stop, int32_t code, int32_t status, uint32_t calls)
{
    static const int8_t right[3] = {%(right)s};
    struct asked asked = {0, stop, code, 0};
    int8_t y[3] = {0, 0, 0};
    struct tvmgen_rows_outputs outputs = {y};
    const int32_t got = own ? mlf_rows_run_hooked(inputs, &outputs, workspace, ask, &asked)
                            : tvmgen_rows_run_hooked(inputs, &outputs, ask, &asked);
    const int fine = got == status && asked.calls == calls && !asked.wrong && (status || !memcmp(y, right, sizeof y));
    printf("%%s %%d: %%d calls, result %%d%%s\\n", own ? "own" : "static", (int)stop, (int)asked.calls, (int)got,
           fine ? "" : " WRONG");
    return !fine;
}

int main(void)
{
    struct tvmgen_rows_inputs inputs = {image}, none = {NULL};
    int8_t y[3] = {0}, other[3] = {0};
    struct tvmgen_rows_outputs outputs = {y}, others = {other};
    int wrong = 0;
    for (int i = 0; i < MLF_ROWS_OPERATORS; i++) {
        printf("%%d: %%s, %%s\\n", i, mlf_rows_operators[i].name, mlf_rows_operators[i].operator_name);
    }
    for (int own = 0; own < 2; own++) {
        wrong |= once(&inputs, own, MLF_ROWS_OPERATORS, 7, 0, MLF_ROWS_OPERATORS);
        for (uint32_t stop = 0; stop < MLF_ROWS_OPERATORS; stop++) {
            wrong |= once(&inputs, own, stop, stop %% 2 ? -77 : INT32_MAX, stop %% 2 ? -77 : INT32_MAX, stop + 1);
            wrong |= once(&inputs, own, UINT32_MAX, 7, 0, MLF_ROWS_OPERATORS);
        }
        wrong |= once(NULL, own, 0, 7, -1, 0);
        wrong |= once(&none, own, 0, 7, -1, 0);
    }
    wrong |= mlf_rows_run_hooked(&inputs, &outputs, workspace, NULL, NULL) != 0;
    wrong |= tvmgen_rows_run_hooked(&inputs, &others, NULL, NULL) != 0 || memcmp(y, other, sizeof y);
    wrong |= tvmgen_rows_run(&inputs, &others) != 0 || memcmp(y, other, sizeof y);
    wrong |= mlf_rows_run(&inputs, &others, workspace) != 0 || memcmp(y, other, sizeof y);
    printf("done\\n");
    return wrong;
}
"""


def program() -> str:
    right = evaluate(ROWS, {"image": IMAGE})["y"]
    return _PROGRAM % {name: ", ".join(map(str, values.reshape(-1))) for name, values in
                       (("image", IMAGE), ("right", right))}  # fmt: skip


def expected() -> list[str]:
    """Return the program's output for both run functions: two complete runs, and one stopped before each operator."""
    lines = [f"{index}: {name}, {operator}" for index, (name, operator) in enumerate(OPERATORS)]
    for kind in ("static", "own"):
        lines.append(f"{kind} 3: 3 calls, result 0")
        for stop in range(3):
            lines.append(f"{kind} {stop}: {stop + 1} calls, result {-77 if stop % 2 else 2**31 - 1}")
            lines.append(f"{kind} -1: 3 calls, result 0")
        lines += 2 * [f"{kind} 0: 0 calls, result -1"]
    return [*lines, "done"]


def test_hook_on_this_machine(tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("gcc")
    built = build(write_tree(hooked(ROWS), tmp_path), program(), ("-O1", *SANITIZERS))
    assert run([built]).splitlines() == expected()


def test_hook_on_a_board(tmp_path: Path, tool: Callable[[str], str]) -> None:
    from mlfbuild.verify.emulator import run_elf

    tool("qemu-system-arm")
    board = BOARDS["mps2-an386"]
    folder = write_tree(hooked(ROWS), tmp_path)
    (folder / "main.c").write_text(program())
    flags = [*CPUS["cortex-m4"].flags, "-O2", "--specs=nano.specs", "-nostartfiles", "-Wl,--gc-sections"]
    include = ["-I", folder / "host/include"]
    gcc = tool("arm-none-eabi-gcc")
    run([gcc, *WARNINGS, *flags[:-3], *include, "-c", folder / "host/src/rows_lib0.c", "-o", folder / "rows.o"])
    sources = [folder / "main.c", folder / "rows.o", *sorted(BOARD_SUPPORT.glob("*.c"))]
    script = ["-I", BOARD_SUPPORT, "-L", BOARD_SUPPORT, "-T", BOARD_SUPPORT / f"{board.name}.ld"]
    run([gcc, *flags, *include, *sources, *script, "-o", folder / "app.elf"])
    result = run_elf(folder / "app.elf", board, timeout=60)
    assert (result.stdout.splitlines(), result.exit_status) == (expected(), 0)


def test_operators_that_run_row_by_row_count_as_one() -> None:
    """The hook does not change how a network is executed, so the workspace is as small as without it."""
    library = hooked(ROWS)
    plain = compile_graph(ROWS, request("rows", memory="smallest"), sha256(b"rows"))
    assert library.modules[0].main == plain.modules[0].main
    assert len(ROWS.nodes) == len(OPERATORS) + 2
    assert library.modules[0].operator_functions == plain.modules[0].operator_functions


_NESTED = """
#include <stddef.h>
#include <string.h>
#include "tvmgen_rows.h"
static int8_t image[1024] = {%s};
static uint8_t inner[TVMGEN_ROWS_WORKSPACE_SIZE] __attribute__((aligned(MLF_ROWS_WORKSPACE_ALIGNMENT)));
static int8_t right[3];
static int32_t ask(void *context, uint32_t operator_index)
{
    int8_t negated[1024], y[3];
    struct tvmgen_rows_inputs inputs = {operator_index %% 2 ? image : negated};
    struct tvmgen_rows_outputs outputs = {y};
    for (int i = 0; i < 1024; i++) {
        negated[i] = (int8_t)(-1 - image[i]);
    }
    ++*(int *)context;
    return mlf_rows_run_hooked(&inputs, &outputs, inner, NULL, NULL) != 0
               ? 9 : operator_index %% 2 ? memcmp(y, right, sizeof y) : !memcmp(y, right, sizeof y);
}
int main(void)
{
    int8_t y[3];
    int calls = 0;
    struct tvmgen_rows_inputs inputs = {image};
    struct tvmgen_rows_outputs outputs = {right};
    if (tvmgen_rows_run(&inputs, &outputs) != 0) {
        return 1;
    }
    outputs.y = y;
    if (tvmgen_rows_run_hooked(&inputs, &outputs, ask, &calls) != 0) {
        return 2;
    }
    return calls != MLF_ROWS_OPERATORS || memcmp(y, right, sizeof y) ? 3 : 0;
}
"""


def test_hook_can_run_the_network_itself(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """All data belongs to the caller, so a run during another one has no effect on it."""
    tool("gcc")
    main = _NESTED % ", ".join(map(str, IMAGE.reshape(-1)))
    run([build(write_tree(hooked(ROWS), tmp_path), main, SANITIZERS)])


# With a state --------------------------------------------------------------------------------------------------------


_STREAM = """
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "tvmgen_stream.h"

static uint8_t kept[MLF_STREAM_STATE_SIZE] __attribute__((aligned(MLF_STREAM_STATE_ALIGNMENT)));
static float x[4] = {1, 2, 3, 4}, y[4];
static struct tvmgen_stream_inputs inputs = {x};
static struct tvmgen_stream_outputs outputs = {y};

static int32_t stop_before(void *context, uint32_t operator_index)
{
    return operator_index == *(uint32_t *)context ? 5 : 0;
}

static void own(uint32_t stop)
{
    const int32_t status = mlf_stream_run_hooked(&inputs, &outputs, NULL, kept, stop_before, &stop);
    printf("%d: %g %g\\n", (int)status, (double)y[0], (double)y[3]);
}

static void fixed(uint32_t stop)
{
    const int32_t status = tvmgen_stream_run_hooked(&inputs, &outputs, stop_before, &stop);
    printf("%d: %g %g\\n", (int)status, (double)y[0], (double)y[3]);
}

int main(void)
{
    uint8_t before[sizeof kept];
    if (mlf_stream_reset(kept) != 0) {
        return 1;
    }
    own(2);
    memcpy(before, kept, sizeof kept);
    own(0);
    printf("%s\\n", memcmp(before, kept, sizeof kept) ? "changed" : "as it was");
    own(1);
    printf("%s\\n", memcmp(before, kept, sizeof kept) ? "changed" : "as it was");
    memcpy(kept, before, sizeof kept);
    own(2);
    fixed(2);
    fixed(1);
    if (tvmgen_stream_reset() != 0) {
        return 2;
    }
    fixed(2);
    fixed(2);
    return 0;
}
"""


def test_state_after_a_cancelled_run(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """As documented: half of the state is new, but it can be restored or reset."""
    tool("gcc")
    runs = evaluate_in_turn(stream(), [{"x": np.array([[1, 2, 3, 4]], np.float32)} for _ in range(2)])
    first, second = (f"{values['y'][0, 0]:g} {values['y'][0, 3]:g}" for values in runs)
    built = build(write_tree(hooked(stream()), tmp_path), _STREAM, SANITIZERS)
    assert run([built]).splitlines() == [
        f"0: {first}", f"5: {first}", "as it was", f"5: {first}", "changed", f"0: {second}",
        f"0: {first}", f"5: {first}", f"0: {first}", f"0: {second}",
    ]  # fmt: skip


# In a workspace that models share ------------------------------------------------------------------------------------


def test_shared_workspace_is_free_after_a_cancelled_run(tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("gcc")
    main = """
#include <stddef.h>
#include "tvmgen_rows.h"
static int8_t image[1024], y[3];
static struct tvmgen_rows_inputs inputs = {image};
static struct tvmgen_rows_outputs outputs = {y};
static int32_t busy;
static int32_t ask(void *context, uint32_t operator_index)
{
    busy = tvmgen_rows_run(&inputs, &outputs);
    return operator_index == 1 ? 6 : context != NULL;
}
int main(void)
{
    const int32_t cancelled = tvmgen_rows_run_hooked(&inputs, &outputs, ask, NULL);
    return cancelled != 6 || busy != MLF_ROWS_WORKSPACE_BUSY || tvmgen_rows_run(&inputs, &outputs) != 0;
}
"""
    run([build(write_tree(hooked(ROWS, placement=Placement(shares_workspace=1)), tmp_path), main, SANITIZERS)])


# Together with the option trace --------------------------------------------------------------------------------------


_BOTH = """
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "tvmgen_rows.h"
static int8_t image[1024] = {%s}, y[3];
static uint8_t workspace[TVMGEN_ROWS_WORKSPACE_SIZE] __attribute__((aligned(MLF_ROWS_WORKSPACE_ALIGNMENT)));
static int32_t ask(void *context, uint32_t operator_index)
{
    printf("%%s asks for %%d\\n", (const char *)context, (int)operator_index);
    return strcmp(context, "stop") == 0 && operator_index == 2 ? 3 : 0;
}
static void look(void *context, uint32_t tensor, const void *data)
{
    printf("%%s sees %%d%%s\\n", (const char *)context, (int)tensor, data == NULL ? " WRONG" : "");
}
int main(void)
{
    static char both[] = "both", stop[] = "stop", hook[] = "hook", trace[] = "trace";
    struct tvmgen_rows_inputs inputs = {image};
    struct tvmgen_rows_outputs outputs = {y};
    printf("%%d\\n", (int)mlf_rows_run_hooked_and_traced(&inputs, &outputs, workspace, ask, look, both));
    printf("%%d\\n", (int)mlf_rows_run_hooked_and_traced(&inputs, &outputs, workspace, ask, look, stop));
    printf("%%d\\n", (int)mlf_rows_run_hooked(&inputs, &outputs, workspace, ask, hook));
    printf("%%d\\n", (int)mlf_rows_run_traced(&inputs, &outputs, workspace, look, trace));
    printf("%%d\\n", (int)mlf_rows_run_hooked_and_traced(&inputs, &outputs, workspace, NULL, NULL, NULL));
    return (int)(mlf_rows_run(&inputs, &outputs, workspace) + tvmgen_rows_run_hooked(&inputs, &outputs, NULL, NULL));
}
"""


def test_hook_and_trace_together(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """With trace no operators run row by row, so there are five; each has a call of the hook and of the callback."""
    tool("gcc")
    main = _BOTH % ", ".join(map(str, IMAGE.reshape(-1)))
    lines = run([build(write_tree(hooked(ROWS, trace=True), tmp_path), main, SANITIZERS)]).splitlines()
    each = [line for at in range(5) for line in (f"both asks for {at}", f"both sees {at}")]
    stopped = [line.replace("both", "stop") for line in each[:5]]
    asked = [f"hook asks for {at}" for at in range(5)]
    seen = [f"trace sees {at}" for at in range(5)]
    assert lines == [*each, "0", *stopped, "3", *asked, "0", *seen, "0", "0"]


# In an RTOS ----------------------------------------------------------------------------------------------------------


_RTOS = {
    "FreeRTOS.h": """
#define pdTRUE 1
""",
    "task.h": """
static int yields, given;
#define taskYIELD() (yields++)
static unsigned ulTaskNotifyTake(int clear, unsigned ticks) { return clear && ticks == 0 && yields == given; }
""",
}
"""The functions of FreeRTOS that the example uses; the run is cancelled at the second switch."""


def test_the_example_in_the_documentation(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """It compiles without warnings, runs the operators, and cancels when it should."""
    tool("gcc")
    page = (Path(__file__).parents[2] / "docs/rtos.md").read_text()
    (example,) = [block for block in re.findall(r"```c\n(.*?)```", page, re.DOTALL) if "/* FreeRTOS" in block]
    for path, text in _RTOS.items():
        (tmp_path / path).write_text(f"#pragma once\n{text}")
    main = f"""
#include <stddef.h>
#include "tvmgen_rows.h"
{example.replace("kws", "rows")}
static int8_t image[1024], y[3];
static uint8_t workspace[TVMGEN_ROWS_WORKSPACE_SIZE] __attribute__((aligned(MLF_ROWS_WORKSPACE_ALIGNMENT)));
int main(void)
{{
    struct tvmgen_rows_inputs inputs = {{image}};
    struct tvmgen_rows_outputs outputs = {{y}};
    given = 2;
    return classify(&inputs, &outputs, workspace) != 1 || yields != 2;
}}
"""
    flags = [*WARNINGS[1:-1], *SANITIZERS, "-isystem", str(tmp_path)]
    run([build(write_tree(hooked(ROWS), tmp_path), main, flags, main_flags=flags)])


def test_renamed_module_has_a_renamed_hook(tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("gcc")
    library = rename_modules(hooked(ROWS), {"rows": "lines"})
    main = program().replace("rows", "lines").replace("ROWS", "LINES")
    assert run([build(write_tree(library, tmp_path), main, SANITIZERS)]).splitlines() == expected()
