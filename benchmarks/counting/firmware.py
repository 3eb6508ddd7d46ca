"""Firmware for measuring: built around ``benchmarks/firmware/measure.c``, run on QEMU, its instructions counted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from mlfbuild.targets import CPUS

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("MLFBUILD_SHARED", REPOSITORY.parent / "shared"))
BOARD_SUPPORT = REPOSITORY / "mlfbuild/runtime/board"
HARNESS = REPOSITORY / "benchmarks/firmware/measure.c"
COMPILER = "arm-none-eabi-gcc"
BOARDS = {
    "cortex-m0plus": "mps2-an385",
    "cortex-m3": "mps2-an385",
    "cortex-m4": "mps2-an386",
    "cortex-m7": "mps2-an500",
    "cortex-m33": "mps2-an505",
    "cortex-m55": "mps3-an547",
    "cortex-m85": "mps3-an547",
}
GUARDED = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55")
"""The cores whose counts are committed."""
FLAGS = ("-O2", "-ffunction-sections", "-fdata-sections", "--specs=nano.specs", "-Wno-psabi")
CHECKED = 2
"""Cases of a network's vectors that every measurement checks."""


class MeasurementError(Exception):
    """A program failed, or an output is not the expected one."""


def compiler_version() -> str:
    """Return the version of the C compiler, which the counts are those of; raises ``MeasurementError``."""
    return run([COMPILER, "-dumpfullversion"]).strip()


@dataclass(frozen=True)
class Subject:
    """A network that the firmware runs: sources, folders of headers, and the call."""

    name: str
    """The prefix of the structs, without ``tvmgen_``."""
    sources: Sequence[Path]
    include_dirs: Sequence[Path]
    call: str
    """The inference, an expression of ``inputs``, ``outputs`` and ``workspace``."""
    workspace_size: int
    """Bytes that the caller brings."""
    state_size: int = 0
    """Bytes that it keeps between runs, ``kept`` in ``call`` and in ``reset``."""
    reset: str = "(void)0"
    """The expression that sets the state before the first run."""
    harness: Path = HARNESS
    """The program that calls it."""


def write_case_data(subject: Subject, vectors: Path, folder: Path) -> None:
    """Write ``case_data.h``, which tells the harness of ``subject`` and of the first cases of ``vectors``.

    Of a network with a state, all cases are checked, which are consecutive runs. Integers must be equal, floats within
    1e-5 of the largest.
    """
    arrays = np.load(vectors)
    first = "in0" if "in0" in arrays else next(name for name in arrays if name.startswith("in_"))
    checked = None if subject.state_size else CHECKED
    inputs, expected = (arrays[key].reshape(len(arrays[key]), -1)[:checked] for key in (first, "out0"))
    floating = expected.dtype == np.float32
    tolerance = f"{1e-5 * np.abs(expected).max():.9e}f" if floating else 0
    lines = [
        f'#define MODEL_HEADER "tvmgen_{subject.name}.h"',
        f"#define MODEL_INPUTS tvmgen_{subject.name}_inputs",
        f"#define MODEL_OUTPUTS tvmgen_{subject.name}_outputs",
        f"#define MODEL_RUN(inputs, outputs, workspace) {subject.call}",
        f"#define WORKSPACE_SIZE {subject.workspace_size}",
        f"#define STATE_SIZE {subject.state_size}",
        f"#define MODEL_RESET {subject.reset}",
        f"#define OUTPUT_SIZE {expected.shape[1]}",
        f"#define CASES {len(inputs)}",
        f"#define ELEMENT {'float' if floating else 'int8_t'}",
        f"#define TOLERANCE {tolerance}",
        *_array("inputs", inputs),
        *_array("expected", expected),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "case_data.h").write_text("\n".join(lines) + "\n")


def _array(name: str, values: np.ndarray) -> Sequence[str]:
    number, c_type = ("{:.9e}f", "float") if values.dtype == np.float32 else ("{}", "int8_t")
    rows = (f"    {{{', '.join(map(number.format, row))}}}," for row in values.tolist())
    return (f"static const {c_type} {name}[{values.shape[0]}][{values.shape[1]}] = {{", *rows, "};")


def build(subject: Subject, cpu: str, folder: Path, flags: Sequence[object] = ()) -> tuple[Path, Path]:
    """Return the image of ``subject`` for ``cpu``, built in ``folder``, and that of the harness alone."""
    return _link(subject, cpu, folder / "model.elf", flags), _link(
        subject, cpu, folder / "harness.elf", (*flags, "-DBASELINE")
    )


def _link(subject: Subject, cpu: str, elf: Path, flags: Sequence[object]) -> Path:
    includes = [word for path in (elf.parent, *subject.include_dirs, BOARD_SUPPORT) for word in ("-I", path)]
    # GCC 12 does not know the Cortex-M85: its link flags are those of the M55, whose instructions it has.
    core = CPUS[cpu].link_flags or CPUS[cpu].flags
    run(
        [
            COMPILER, *core, *FLAGS, *flags, *includes, subject.harness, *subject.sources,
            *sorted(BOARD_SUPPORT.glob("*.c")),
            "-nostartfiles", "-L", BOARD_SUPPORT, "-T", BOARD_SUPPORT / f"{BOARDS[cpu]}.ld", "-Wl,--gc-sections",
            "-lm", "-o", elf,
        ]
    )  # fmt: skip
    return elf


def count_instructions(elf: Path, cpu: str) -> str:
    """Return what the counter says of one inference: the region's instructions, then a line a function."""
    return run([sys.executable, SHARED / "tools/count.py", elf, "--board", BOARDS[cpu], "--top", "999"])


def checked_run(elf: Path, cpu: str, what: object) -> Mapping[str, str]:
    """Run the image and return the bytes of ``arena`` and ``stack`` that it used.

    Raises ``MeasurementError``, which begins with ``what``, where an output is not the expected one.
    """
    printed = run(
        [
            "qemu-system-arm", "-M", BOARDS[cpu], "-nographic", "-monitor", "none", "-serial", "none",
            "-semihosting-config", "enable=on,target=native", "-kernel", elf,
        ]
    )  # fmt: skip
    used = dict(re.findall(r"(arena|stack|wrong) (-?\d+)", printed))
    if used.get("wrong") != "0":
        raise MeasurementError(f"{what}: the outputs differ from the vectors: {used}")
    return used


def run(command: Sequence[object]) -> str:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except FileNotFoundError:
        raise MeasurementError(f"{words[0]} is not installed; `scripts/setup.sh` does that") from None
    if done.returncode != 0:
        raise MeasurementError(f"{words[0]}: failed with exit status {done.returncode}:\n{done.stdout}")
    return done.stdout


def found_in(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise MeasurementError(f"no {pattern!r} in:\n{text}")
    return found[1]


def flash_of(elf: Path) -> int:
    """Return the bytes that the image takes in flash."""
    with elf.open("rb") as file:
        segments = [s for s in ELFFile(file).iter_segments() if s["p_type"] == "PT_LOAD"]
        return sum(int(segment["p_filesz"]) for segment in segments)
