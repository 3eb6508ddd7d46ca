"""Builds the C of native libraries for a core, runs all of them in one firmware on QEMU, and brings the outputs back.

Inputs lie at odd addresses, and what follows an output must stay as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.emulator import run_elf
from mlfbuild.library import Library
from mlfbuild.targets import BOARDS, CPUS
from support.host_c import run, write_tree

Array = npt.NDArray[Any]

BOARD_SUPPORT = Path(__file__).parents[2] / "mlfbuild/runtime/board"

_MAIN = """
#include <stdint.h>
#include "mlf_board.h"
%(includes)s

enum { GUARD = 8, PATTERN = 0x5a };

%(cases)s

int main(void)
{
    int wrong = 0;
%(calls)s
    return wrong != 0;
}
"""

_CASE = """
static const int8_t in%(index)d[1 + %(input_size)d] __attribute__((aligned(8))) = {0, %(input)s};
static const int8_t wanted%(index)d[] = {%(wanted)s};
static int8_t out%(index)d[%(output_size)d + GUARD];

static int run%(index)d(void)
{
    int wrong = 0;
    struct tvmgen_%(name)s_inputs inputs = {(void *)(uintptr_t)&in%(index)d[1]};
    struct tvmgen_%(name)s_outputs outputs = {out%(index)d};
    for (int i = 0; i < GUARD; i++) {
        out%(index)d[%(output_size)d + i] = PATTERN;
    }
    wrong += tvmgen_%(name)s_run(&inputs, &outputs) != 0;
    for (int i = 0; i < %(output_size)d; i++) {
        wrong += out%(index)d[i] != wanted%(index)d[i];
    }
    for (int i = 0; i < GUARD; i++) {
        wrong += out%(index)d[%(output_size)d + i] != PATTERN;
    }
    return wrong;
}
"""


def wrong_on_board(
    jobs: Sequence[tuple[Library, Array, Array]], cpu: str, folder: Path, tool: Callable[[str], str], *flags: str
) -> list[int]:
    """Run (library, int8 input, int8 output) jobs, libraries of different names; return how much of each is wrong.

    The firmware is compiled with ``flags`` and runs on the first board that has a ``cpu``.
    """
    board = next(board for board in BOARDS.values() if board.cpu == cpu)
    for library, _, _ in jobs:
        write_tree(library, folder)
    (folder / "main.c").write_text(_main(jobs))
    sources = [folder / "main.c", *sorted((folder / "host/src").glob("*.c")), *sorted(BOARD_SUPPORT.glob("*.c"))]
    run([tool("arm-none-eabi-gcc"), *CPUS[cpu].flags, *flags, "--specs=nano.specs", "-I", folder / "host/include",
         "-I", BOARD_SUPPORT, *sources, "-nostartfiles", "-L", BOARD_SUPPORT, "-T", BOARD_SUPPORT / f"{board.name}.ld",
         "-Wl,--gc-sections", "-o", folder / "app.elf"])  # fmt: skip
    tool("qemu-system-arm")
    result = run_elf(folder / "app.elf", board, timeout=120)
    found = [int(number) for number in re.findall(r"wrong (\d+)", result.stdout)]
    assert len(found) == len(jobs), result.stdout
    return found


def _main(jobs: Sequence[tuple[Library, Array, Array]]) -> str:
    names = [library.modules[0].name for library, _, _ in jobs]
    cases = [
        _CASE
        % {
            "index": index,
            "name": library.modules[0].name,
            "input": _numbers(value),
            "input_size": value.size,
            "wanted": _numbers(wanted),
            "output_size": wanted.size,
        }
        for index, (library, value, wanted) in enumerate(jobs)
    ]
    calls = (
        f'    wrong += run{index}();\n    mlf_board_puts("wrong ");\n    mlf_board_put_decimal(run{index}());\n'
        '    mlf_board_puts("\\n");'
        for index in range(len(jobs))
    )
    return _MAIN % {
        "includes": "\n".join(f'#include "tvmgen_{name}.h"' for name in names),
        "cases": "\n".join(cases),
        "calls": "\n".join(calls),
    }


def _numbers(values: Array) -> str:
    return ", ".join(str(value) for value in np.asarray(values).reshape(-1).tolist())
