"""Run networks in one firmware on QEMU and find those with wrong outputs.

Inputs have only the alignment of their type, and memory after an output must not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.library import Library
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.verify.emulator import run_elf
from support.host_c import launcher, run, write_tree

Array = npt.NDArray[Any]

BOARD_SUPPORT = Path(__file__).parents[2] / "mlfbuild/runtime/board"

Job = tuple[Library, Sequence[Array], Sequence[Array]]
"""A library, the inputs of its only module and the expected outputs, in call order."""

_START = """
#include <stdint.h>
#include "mlf_board.h"

enum { GUARD = 8, PATTERN = 0x5a };

static void guard(uint8_t *end)
{
    for (int i = 0; i < GUARD; i++) {
        end[i] = PATTERN;
    }
}

static int touched(const uint8_t *end)
{
    for (int i = 0; i < GUARD; i++) {
        if (end[i] != PATTERN) {
            return 1;
        }
    }
    return 0;
}

static int differ(const uint8_t *got, const uint8_t *wanted, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        if (got[i] != wanted[i]) {
            return 1;
        }
    }
    return 0;
}

static int far(const float *got, const float *wanted, uint32_t count, float limit)
{
    for (uint32_t i = 0; i < count; i++) {
        const float difference = got[i] - wanted[i];
        if (!(difference <= limit && -difference <= limit)) {
            return 1;
        }
    }
    return 0;
}
"""


def wrong_networks(
    jobs: Sequence[Job], cpu: str, folder: Path, tool: Callable[[str], str], *, optimise: str = "-O1"
) -> list[str]:
    """Run ``jobs`` in order on the first board with a ``cpu``; return the names of the modules with wrong outputs.

    The modules have different names. A module may have several jobs, between which it keeps its state. Integers must be
    equal, float32 within 1e-5 of an output's greatest magnitude.
    """
    board = next(board for board in BOARDS.values() if board.cpu == cpu)
    for library, _, _ in jobs:
        write_tree(library, folder)
    names = [library.modules[0].name for library, _, _ in jobs]
    parts = [_START, *(f'#include "host/src/{name}_lib0.c"' for name in dict.fromkeys(names))]
    parts += [_case(job, f"case{at}") for at, job in enumerate(jobs)]
    calls = [
        f'    if (run_case{at}()) {{\n        mlf_board_puts("wrong {name}\\n");\n    }}'
        for at, name in enumerate(names)
    ]
    parts.append("\n".join(["int main(void)", "{", *calls, '    mlf_board_puts("done\\n");', "    return 0;", "}"]))
    (folder / "main.c").write_text("\n".join(parts))
    compiler = [tool("arm-none-eabi-gcc"), *CPUS[cpu].flags, "-std=c99", optimise, "--specs=nano.specs"]
    headers = ["-I", "host/include", "-I", BOARD_SUPPORT]
    run([*launcher(), *compiler, *headers, "-c", "main.c", "-o", "main.o"], folder)
    run([*compiler, *headers, "main.o", *sorted(BOARD_SUPPORT.glob("*.c")), "-nostartfiles", "-L", BOARD_SUPPORT,
         "-T", BOARD_SUPPORT / f"{board.name}.ld", "-Wl,--gc-sections", "-o", "app.elf"], folder)  # fmt: skip
    tool("qemu-system-arm")
    result = run_elf(folder / "app.elf", board, timeout=120)
    assert result.stdout.endswith("done\n"), result.stdout
    return re.findall(r"wrong (\w+)", result.stdout)


def _case(job: Job, name: str) -> str:
    library, inputs, outputs = job
    model = library.modules[0].name
    lines, tests, guards = [], [], []
    for at, value in enumerate(inputs):
        lines.append(_bytes(f"{name}_in{at}", value, skip=value.itemsize))
    for at, value in enumerate(outputs):
        lines.append(_bytes(f"{name}_wanted{at}", value))
        lines.append(f"static uint8_t {name}_out{at}[{value.nbytes} + GUARD] MLF_ALIGNED(8);")
        guards.append(f"    guard({name}_out{at} + {value.nbytes});")
        names = f"{name}_out{at}, {name}_wanted{at}"
        tests.append(f"differ({names}, {value.nbytes})")
        if value.dtype == np.float32:
            limit = np.float32(1e-5 * float(np.abs(value).max()))
            pointers = f"(const float *)(const void *){name}_out{at}, (const float *)(const void *){name}_wanted{at}"
            tests[-1] = f"far({pointers}, {value.size}, {limit!s}f)"
        tests.append(f"touched({name}_out{at} + {value.nbytes})")
    ins = ", ".join(f"(void *)(uintptr_t)({name}_in{at} + {value.itemsize})" for at, value in enumerate(inputs))
    outs = ", ".join(f"{name}_out{at}" for at in range(len(outputs)))
    lines += [
        f"static int run_{name}(void)",
        "{",
        f"    struct tvmgen_{model}_inputs inputs = {{{ins}}};",
        f"    struct tvmgen_{model}_outputs outputs = {{{outs}}};",
        *guards,
        f"    return tvmgen_{model}_run(&inputs, &outputs) != 0 || {' || '.join(tests)};",
        "}",
    ]
    return "\n".join(lines)


def _bytes(name: str, value: Array, skip: int = 0) -> str:
    """Return a C array of ``skip`` zero bytes and the content of ``value``."""
    content = ", ".join(map(str, bytes(skip) + np.ascontiguousarray(value).tobytes()))
    return f"static const uint8_t {name}[] MLF_ALIGNED(8) = {{{content}}};"
