"""Run networks in one firmware on QEMU and find those with wrong outputs.

Inputs have only the alignment of their type, and memory after an output must not change.
"""

import functools
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.library import Library
from mlfbuild.targets import CPUS, Board, emulated_board
from mlfbuild.verify.emulator import run_elf
from support.host_c import launcher, run, write_tree

Array = npt.NDArray[Any]

BOARD_SUPPORT = Path(__file__).parents[2] / "mlfbuild/runtime/board"

Job = tuple[Library, Sequence[Array], Sequence[Array]]
"""A library, the inputs of its only module and the expected outputs, in call order."""

_START = """
#include <stdint.h>
#include "mlf_board.h"

#define ALIGNED __attribute__((aligned(8)))

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

static inline int far(const float *got, const float *wanted, uint32_t count, float limit)
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


@dataclass(frozen=True)
class Build:
    """How firmware is compiled: the compiler's arguments after those for the core, and how sources are arranged."""

    flags: tuple[str, ...] = ("-O1",)
    clang: str = ""
    """The path of a clang that compiles in GCC's place."""
    lld: str = ""
    """The path of LLVM's linker, which then links what clang compiled."""
    unity: bool = True
    """Whether all networks are one source with ``main``."""
    cxx: bool = False
    """Whether ``main`` is C++, which includes the headers of the networks."""


def wrong_networks(
    jobs: Sequence[Job],
    cpu: str,
    folder: Path,
    tool: Callable[[str], str],
    *,
    optimise: str = "-O1",
    flags: Sequence[str] = (),
) -> list[str]:
    """Run ``jobs`` in order on the first board with a ``cpu``; return the names of the modules with wrong outputs.

    The modules have different names. A module may have several jobs, between which it keeps its state. Integers must be
    equal, float32 within 1e-5 of an output's greatest magnitude.
    """
    return wrong_on_board(build_image(jobs, cpu, folder, tool, Build((optimise, *flags))), cpu, tool)


def wrong_on_board(image: Path, cpu: str, tool: Callable[[str], str]) -> list[str]:
    """Run what ``build_image`` made; return the names of the modules that come out wrong."""
    tool("qemu-system-arm")
    result = run_elf(image, _board(cpu), timeout=120)
    assert result.stdout.endswith("done\n"), result.stdout
    return re.findall(r"wrong (\w+)", result.stdout)


def build_image(jobs: Sequence[Job], cpu: str, folder: Path, tool: Callable[[str], str], how: Build) -> Path:
    """Build the firmware that runs ``jobs`` on the first board with a ``cpu``."""
    for library, _, _ in jobs:
        write_tree(library, folder)
    names = list(dict.fromkeys(library.modules[0].name for library, _, _ in jobs))
    found = [path for name in names for path in sorted((folder / "host/src").glob(f"{name}_lib?.c"))]
    sources = [str(path.relative_to(folder)) for path in found]
    included = sources if how.unity else [f"host/include/tvmgen_{name}.h" for name in names]
    parts = [_START, *(f'#include "{path}"' for path in included)]
    parts += [_case(job, f"case{at}") for at, job in enumerate(jobs)]
    calls = [
        f'    if (run_case{at}()) {{\n        mlf_board_puts("wrong {library.modules[0].name}\\n");\n    }}'
        for at, (library, _, _) in enumerate(jobs)
    ]
    parts.append("\n".join(["int main(void)", "{", *calls, '    mlf_board_puts("done\\n");', "    return 0;", "}"]))
    return build_program("\n".join(parts), cpu, folder, tool, how, () if how.unity else sources)


def build_program(
    text: str, cpu: str, folder: Path, tool: Callable[[str], str], how: Build, sources: Sequence[str] = ()
) -> Path:
    """Build the program ``text`` with ``sources`` of ``folder`` for the first board with a ``cpu``."""
    main = "main.cpp" if how.cxx else "main.c"
    (folder / main).write_text(text)
    gcc = [tool("arm-none-eabi-gcc"), *CPUS[cpu].flags, "--specs=nano.specs"]
    compiler = [*(clang_command(how.clang, cpu, tool) if how.clang else gcc), *how.flags]
    headers = ["-I", "host/include", "-I", BOARD_SUPPORT]
    objects = []
    for source in [main, *sources]:
        objects.append(f"{Path(source).stem}.o")
        standard = "-std=c++11" if source == "main.cpp" else "-std=c11" if source == "main.c" else "-std=c99"
        run([*launcher(), *compiler, standard, *headers, "-c", source, "-o", objects[-1]], folder)
    objects += _board_support(tuple(compiler))
    script = ["-L", BOARD_SUPPORT, "-T", BOARD_SUPPORT / f"{_board(cpu).name}.ld"]
    if how.lld:
        libraries = [run([*gcc, f"-print-file-name={name}"]).strip() for name in ("libc_nano.a", "libm.a", "libgcc.a")]
        run([how.lld, *script, "--gc-sections", *objects, "--start-group", *libraries, "--end-group", "-o", "app.elf"],
            folder)  # fmt: skip
    else:
        linker = gcc if how.clang else compiler
        run([*linker, *objects, "-nostartfiles", *script, "-Wl,--gc-sections", "-o", "app.elf"], folder)
    return folder / "app.elf"


@functools.cache
def _board_support(compiler: tuple[str, ...]) -> list[str]:
    """Return the objects of the board support by ``compiler``, which all programs with these arguments share."""
    folder = Path(tempfile.mkdtemp(dir=_objects().name))
    sources = sorted(BOARD_SUPPORT.glob("*.c"))
    run([*compiler, "-std=c99", "-c", *sources], folder)
    return [str(folder / f"{source.stem}.o") for source in sources]


@functools.cache
def _objects() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="board-")


def clang_command(clang: str, cpu: str, tool: Callable[[str], str]) -> list[str]:
    """Return the command that compiles for ``cpu`` with ``clang`` and the headers of the C library beside GCC."""
    newlib = Path(run([tool("arm-none-eabi-gcc"), "-print-file-name=libc.a"]).strip()).resolve().parents[1] / "include"
    return [clang, "--target=arm-none-eabi", "-isystem", str(newlib), *CPUS[cpu].flags]


def _board(cpu: str) -> Board:
    board = emulated_board(CPUS[cpu])
    assert board is not None
    return board


def _case(job: Job, name: str) -> str:
    library, inputs, outputs = job
    model = library.modules[0].name
    lines, tests, guards = [], [], []
    for at, value in enumerate(inputs):
        lines.append(_bytes(f"{name}_in{at}", value, skip=value.itemsize))
    for at, value in enumerate(outputs):
        lines.append(_bytes(f"{name}_wanted{at}", value))
        lines.append(f"static uint8_t {name}_out{at}[{value.nbytes} + GUARD] ALIGNED;")
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
    return f"static const uint8_t {name}[] ALIGNED = {{{content}}};"
