"""Builds firmware around one network and measures an inference: instructions, flash, arena and stack."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from counting.roofline import CONVOLUTION, DEPTHWISE, OTHER
from mlfbuild.compilers import CompileRequest
from mlfbuild.compilers.native import NATIVE
from mlfbuild.frontends import parse_model
from mlfbuild.graph import Graph
from mlfbuild.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.library import Library
from mlfbuild.targets import CPUS

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("MLFBUILD_SHARED", REPOSITORY.parent / "shared"))
BOARD_SUPPORT = REPOSITORY / "mlfbuild/runtime/board"
HARNESS = REPOSITORY / "benchmarks/firmware/measure.c"
COMPILER = "arm-none-eabi-gcc"
BOARDS = {
    "cortex-m4": "mps2-an386",
    "cortex-m7": "mps2-an500",
    "cortex-m33": "mps2-an505",
    "cortex-m55": "mps3-an547",
}
NETWORKS = ("kws", "ic", "ad", "vww", "ic_f32", "ad_f32", "vww_f32")
FLAGS = ("-O2", "-ffunction-sections", "-fdata-sections", "--specs=nano.specs", "-Wno-psabi")
CHECKED = 2
"""Cases of a network's vectors that every measurement checks."""

_DEPTHWISE = re.compile(r"tvmgen_\w+?_depthwise|mlf_(depthwise|fill_p|expand_filters)")
_CONVOLUTION = re.compile(
    r"tvmgen_\w+?_(conv2d|fully_connected)"
    r"|mlf_(conv2d|fully_connected|gem[mv]|mat(mul|vec)|pixel|expand|copy_clipped|\w*windows)"
)


class MeasurementError(Exception):
    """A program failed, or an output is not the expected one."""


@dataclass(frozen=True)
class Case:
    """A network, compiled for a CPU with a value of the option ``memory``."""

    network: str
    cpu: str
    memory: str = "balanced"

    def __str__(self) -> str:
        return f"{self.network}-{self.cpu.removeprefix('cortex-')}-{self.memory}"

    @property
    def file(self) -> str:
        """The name of the network's files in ``SHARED``."""
        return self.network if self.network.endswith("_f32") else f"{self.network}_int8"

    def graph(self) -> Graph:
        """Return the network."""
        path = SHARED / "models" / f"{self.file}.tflite"
        return parse_model(path.read_bytes(), self.network, path)


@dataclass(frozen=True)
class Result:
    """What a case takes; sizes in bytes."""

    instructions: int
    kinds: dict[str, int]
    """Of these instructions, those of each kind of operator."""
    code: int
    """Code and read-only data in flash, with what it takes from the C library, without the constants."""
    constants: int
    constants_ratio: float
    """Constants over weights + biases + 5 bytes for each quantised channel."""
    arena: int
    arena_bound: int
    """Bytes of the arena that are in use at one time."""
    io: int
    stack: int


def compiler_version() -> str:
    """Return the version of the C compiler, which the counts are those of; raises ``MeasurementError``."""
    return _run([COMPILER, "-dumpfullversion"]).strip()


def measure(case: Case, folder: Path, *, flags: Sequence[str] = (), top: int = 0) -> Result:
    """Compile, build, run and count ``case`` in ``folder``; ``flags`` come behind those of the compiler.

    Prints the ``top`` functions by instructions. Raises ``MeasurementError`` where a program fails, or an output
    differs from that of TensorFlow Lite Micro, float32 by more than 1e-5.
    """
    model = SHARED / "models" / f"{case.file}.tflite"
    library = NATIVE.compile(CompileRequest(case.network, model, CPUS[case.cpu], options={"memory": case.memory}))
    (module,) = library.modules
    (main,) = module.main
    _write(library, case, folder)
    elf, harness = (_build(case, folder, [*flags, *defines]) for defines in ([], ["-DBASELINE"]))
    counted = _run([sys.executable, SHARED / "tools/count.py", elf, "--board", BOARDS[case.cpu], "--top", "999"])
    instructions = int(_found(r"region 0 insns (\d+)", counted))
    kinds = _by_kind(counted)
    if sum(kinds.values()) != instructions:
        raise MeasurementError(f"{case}: {instructions} instructions, but by function {sum(kinds.values())}")
    if top:
        print(f"{case}", *counted.splitlines()[1 : top + 1], sep="\n")
    used = dict(re.findall(r"(arena|stack|wrong) (-?\d+)", _qemu(elf, case)))
    if used.get("wrong") != "0":
        raise MeasurementError(f"{case}: the outputs differ from the vectors: {used}")
    if not int(used["arena"]) <= main.workspace_size:
        raise MeasurementError(f"{case}: writes to {used['arena']} bytes of an arena of {main.workspace_size}")
    return Result(
        instructions=instructions,
        kinds=kinds,
        code=_flash(elf) - _flash(harness) - main.constants_size,
        constants=main.constants_size,
        constants_ratio=round(main.constants_size / _least_constants(case.graph()), 4),
        arena=main.workspace_size,
        arena_bound=module.workspace_bound or 0,
        io=main.io_size,
        stack=int(used["stack"]),
    )


def _by_kind(counted: str) -> dict[str, int]:
    """Return the instructions of each kind of operator, by the names of the functions that executed them."""
    kinds: Counter[str] = Counter({CONVOLUTION: 0, DEPTHWISE: 0, OTHER: 0})
    for count, name in re.findall(r"^ *(\d+) +[\d.]+ %  (\S+)$", counted, re.MULTILINE):
        # A chain of operators is a function that is called by the first one's name; only the rest of it runs in there.
        kind = DEPTHWISE if _DEPTHWISE.match(name) else CONVOLUTION if _CONVOLUTION.match(name) else OTHER
        kinds[kind] += int(count)
    return dict(kinds)


def _write(library: Library, case: Case, folder: Path) -> None:
    for file in library.modules[0].codegen:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
    vectors = np.load(SHARED / "golden" / f"{case.file}.npz")
    inputs, expected = (vectors[key].reshape(len(vectors[key]), -1)[:CHECKED] for key in ("in0", "out0"))
    name = f"tvmgen_{case.network}"
    floating = expected.dtype == np.float32
    lines = [
        f'#define MODEL_HEADER "{name}.h"',
        f"#define MODEL_INPUTS {name}_inputs",
        f"#define MODEL_OUTPUTS {name}_outputs",
        f"#define MODEL_RUN mlf_{case.network}_run",
        f"#define WORKSPACE_SIZE {library.modules[0].main[0].workspace_size}",
        f"#define OUTPUT_SIZE {expected.shape[1]}",
        f"#define CASES {len(inputs)}",
        f"#define ELEMENT {'float' if floating else 'int8_t'}",
        f"#define TOLERANCE {f'{1e-5 * np.abs(expected).max():.9g}f' if floating else 0}",
        *_array("inputs", inputs),
        *_array("expected", expected),
    ]
    (folder / "case_data.h").write_text("\n".join(lines) + "\n")


def _array(name: str, values: np.ndarray) -> Sequence[str]:
    number, c_type = ("{:.9e}f", "float") if values.dtype == np.float32 else ("{}", "int8_t")
    rows = (f"    {{{', '.join(map(number.format, row))}}}," for row in values.tolist())
    return (f"static const {c_type} {name}[{values.shape[0]}][{values.shape[1]}] = {{", *rows, "};")


def _build(case: Case, folder: Path, flags: Sequence[str]) -> Path:
    elf = folder / ("harness.elf" if "-DBASELINE" in flags else "model.elf")
    _run(
        [
            COMPILER, *CPUS[case.cpu].flags, *FLAGS, *flags, "-I", folder, "-I", folder / "host/include",
            "-I", BOARD_SUPPORT, HARNESS, *sorted((folder / "host/src").glob("*.c")),
            *sorted(BOARD_SUPPORT.glob("*.c")),
            "-nostartfiles", "-L", BOARD_SUPPORT, "-T", BOARD_SUPPORT / f"{BOARDS[case.cpu]}.ld", "-Wl,--gc-sections",
            "-o", elf,
        ]
    )  # fmt: skip
    return elf


def _qemu(elf: Path, case: Case) -> str:
    return _run(
        [
            "qemu-system-arm", "-M", BOARDS[case.cpu], "-nographic", "-monitor", "none", "-serial", "none",
            "-semihosting-config", "enable=on,target=native", "-kernel", elf,
        ]
    )  # fmt: skip


def _run(command: Sequence[object]) -> str:
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


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise MeasurementError(f"no {pattern!r} in:\n{text}")
    return found[1]


def _flash(elf: Path) -> int:
    """Return the bytes that the image takes in flash."""
    with elf.open("rb") as file:
        segments = [s for s in ELFFile(file).iter_segments() if s["p_type"] == "PT_LOAD"]
        return sum(int(segment["p_filesz"]) for segment in segments)


def _least_constants(graph: Graph) -> int:
    """Return the bytes of weights and biases of the network, and five for each quantised channel."""
    total = 0
    for node in graph.nodes:
        if isinstance(node.operator, Conv2D | DepthwiseConv2D | FullyConnected):
            constants = [tensor for tensor in graph.inputs_of(node) if tensor is not None and tensor.constant]
            output = graph.outputs_of(node)[0]
            total += sum(tensor.size for tensor in constants) + (5 * output.shape[-1] if output.quantization else 0)
    return total
