"""Count the instructions of one inference of the MLPerf Tiny networks, and measure flash, arena and stack.

    python benchmarks/instructions.py [--cpus cortex-m4 ...] [--networks kws ...] [--memory balanced ...]
                                      [--cases 2] [--profile] [--json FILE] [--markdown FILE]

Networks called _f32 compute in float32, for which the M4, M7 and M33 have an FPU.

Needs ../shared beside the repository: the networks, their vectors and the counter. Each network is compiled for each
CPU, built with arm-none-eabi-gcc -O2, run on QEMU, and its outputs compared with the vectors of TensorFlow Lite Micro,
float32 within 1e-5.
Counts are instructions, not cycles, and repeat exactly.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from mlfbuild.compilers import CompileRequest
from mlfbuild.compilers.native import NATIVE
from mlfbuild.compilers.native.settings import MEMORY
from mlfbuild.frontends import parse_model
from mlfbuild.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.library import Library
from mlfbuild.targets import CPUS

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("MLFBUILD_SHARED", REPOSITORY.parent / "shared"))
BOARD_SUPPORT = REPOSITORY / "mlfbuild/runtime/board"
BOARDS = {
    "cortex-m4": "mps2-an386",
    "cortex-m7": "mps2-an500",
    "cortex-m33": "mps2-an505",
    "cortex-m55": "mps3-an547",
}
FLAGS = ("-O2", "-ffunction-sections", "-fdata-sections", "--specs=nano.specs", "-Wno-psabi")

PEER = {
    "kws": {"cortex-m4": 7_699_799, "cortex-m7": 7_645_617, "cortex-m55": 1_816_354},
    "ic": {"cortex-m4": 29_863_871, "cortex-m7": 30_026_640, "cortex-m55": 4_912_655},
    "ad": {"cortex-m4": 582_927, "cortex-m7": 583_231, "cortex-m55": 285_547},
    "vww": {"cortex-m4": 24_101_877, "cortex-m7": 24_025_504, "cortex-m55": 6_558_687},
    "ic_f32": {"cortex-m4": 99_931_108, "cortex-m7": 99_082_778, "cortex-m55": 77_579_173},
    "ad_f32": {"cortex-m4": 1_340_999, "cortex-m7": 1_344_345, "cortex-m55": 950_022},
    "vww_f32": {"cortex-m4": 53_395_923, "cortex-m7": 66_560_147, "cortex-m55": 56_007_771},
}
"""Instructions of the best peer, built and counted in the same way: TensorFlow Lite Micro 90b983c2 with CMSIS-NN
4ab83cc3; for float32 its reference kernels, TVM 0.14 or onnx2c ea045cc1, whichever is best."""
ROOFLINE = {
    "kws": {"cortex-m4": 3_423_332, "cortex-m55": 779_664},
    "ic": {"cortex-m4": 12_886_477, "cortex-m55": 2_378_175},
    "ad": {"cortex-m4": 332_078, "cortex-m55": 42_003},
    "vww": {"cortex-m4": 9_889_148, "cortex-m55": 2_277_720},
}
"""What a model of the best micro-kernels expects."""


@dataclass(frozen=True)
class Result:
    """What one network needs on one CPU; sizes in bytes."""

    network: str
    cpu: str
    memory: str
    instructions: int
    code: int
    """Code and read-only data in flash, with what it takes from the C library, without the constants."""
    constants: int
    constants_ratio: float
    """Constants over weights + biases + 5 bytes for each quantised channel."""
    arena: int
    arena_used: int
    io: int
    stack: int


def measure(network: str, cpu: str, memory: str, cases: int, folder: Path, *, profile: bool) -> Result:
    """Compile, build, run and count one network; stops where an output is not the expected one."""
    model = SHARED / "models" / f"{_file(network)}.tflite"
    library = NATIVE.compile(CompileRequest(network, model, CPUS[cpu], options={"memory": memory}))
    _write(library, network, cases, folder)
    elf = _build(cpu, folder, ())
    baseline = _build(cpu, folder, ("-DBASELINE",))
    counted = _run(
        [sys.executable, SHARED / "tools/count.py", elf, "--board", BOARDS[cpu], *(["--top", "60"] if profile else [])]
    )
    if profile:
        print(counted)
    found = re.search(r"region 0 insns (\d+)", counted)
    used = dict(re.findall(r"(arena|stack|wrong) (-?\d+)", _qemu(elf, cpu)))
    if found is None or used["wrong"] != "0":
        sys.exit(f"{network} on {cpu}: the outputs differ from the vectors: {used}")
    (module,) = library.modules
    assert module.main is not None
    (main,) = module.main
    return Result(
        network=network,
        cpu=cpu,
        memory=memory,
        instructions=int(found[1]),
        code=_flash(elf) - _flash(baseline) - main.constants_size,
        constants=main.constants_size,
        constants_ratio=round(main.constants_size / _least_constants(model), 4),
        arena=main.workspace_size,
        arena_used=int(used["arena"]),
        io=main.io_size,
        stack=int(used["stack"]),
    )


def _write(library: Library, network: str, cases: int, folder: Path) -> None:
    for file in library.modules[0].codegen:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
    vectors = np.load(SHARED / "golden" / f"{_file(network)}.npz")
    inputs, expected = (vectors[key].reshape(len(vectors[key]), -1)[:cases] for key in ("in0", "out0"))
    name = f"tvmgen_{network}"
    lines = [
        f'#define MODEL_HEADER "{name}.h"',
        f"#define MODEL_INPUTS {name}_inputs",
        f"#define MODEL_OUTPUTS {name}_outputs",
        f"#define MODEL_RUN mlf_{network}_run",
        f"#define WORKSPACE_SIZE {library.modules[0].main[0].workspace_size}",
        f"#define OUTPUT_SIZE {expected.shape[1]}",
        f"#define CASES {len(inputs)}",
        f"#define ELEMENT {'float' if expected.dtype == np.float32 else 'int8_t'}",
        f"#define TOLERANCE {f'{1e-5 * np.abs(expected).max():.9g}f' if expected.dtype == np.float32 else 0}",
        *_array("inputs", inputs),
        *_array("expected", expected),
    ]
    (folder / "case_data.h").write_text("\n".join(lines) + "\n")


def _file(network: str) -> str:
    return network if network.endswith("_f32") else f"{network}_int8"


def _array(name: str, values: np.ndarray) -> Sequence[str]:
    number, c_type = ("{:.9e}f", "float") if values.dtype == np.float32 else ("{}", "int8_t")
    rows = (f"    {{{', '.join(map(number.format, row))}}}," for row in values.tolist())
    return (f"static const {c_type} {name}[{values.shape[0]}][{values.shape[1]}] = {{", *rows, "};")


def _build(cpu: str, folder: Path, defines: Sequence[str]) -> Path:
    elf = folder / ("baseline.elf" if defines else "model.elf")
    _run(
        [
            "arm-none-eabi-gcc", *CPUS[cpu].flags, *FLAGS, *defines, "-I", folder, "-I", folder / "host/include",
            "-I", BOARD_SUPPORT, Path(__file__).with_name("firmware") / "measure.c",
            *sorted((folder / "host/src").glob("*.c")), *sorted(BOARD_SUPPORT.glob("*.c")),
            "-nostartfiles", "-L", BOARD_SUPPORT, "-T", BOARD_SUPPORT / f"{BOARDS[cpu]}.ld", "-Wl,--gc-sections",
            "-o", elf,
        ]
    )  # fmt: skip
    return elf


def _qemu(elf: Path, cpu: str) -> str:
    return _run(
        [
            "qemu-system-arm", "-M", BOARDS[cpu], "-nographic", "-monitor", "none", "-serial", "none",
            "-semihosting-config", "enable=on,target=native", "-kernel", elf,
        ]
    )  # fmt: skip


def _run(command: Sequence[object]) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{words[0]}: failed with exit status {done.returncode}:\n{done.stdout}")
    return done.stdout


def _flash(elf: Path) -> int:
    """Return the bytes that the image takes in flash."""
    with elf.open("rb") as file:
        segments = [s for s in ELFFile(file).iter_segments() if s["p_type"] == "PT_LOAD"]
        return sum(int(segment["p_filesz"]) for segment in segments)


def _least_constants(model: Path) -> int:
    """Return the bytes of weights and biases of the network, and five for each quantised channel."""
    graph = parse_model(model.read_bytes(), model.stem, model)
    total = 0
    for node in graph.nodes:
        if isinstance(node.operator, Conv2D | DepthwiseConv2D | FullyConnected):
            constants = [tensor for tensor in graph.inputs_of(node) if tensor is not None and tensor.constant]
            output = graph.outputs_of(node)[0]
            total += sum(tensor.size for tensor in constants) + (5 * output.shape[-1] if output.quantization else 0)
    return total


def markdown(results: Sequence[Result]) -> str:
    """Return the results as a table."""
    lines = [
        "| network | cpu | memory | instructions | best peer | roofline | code | constants | arena | I/O | stack |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in results:
        peer = PEER[r.network].get(r.cpu)
        peer_text = "" if peer is None else f"{peer:,} ({peer / r.instructions:.2f} x)"
        roof = ROOFLINE.get(r.network, {}).get(r.cpu if r.cpu == "cortex-m55" else "cortex-m4")
        roof_text = "" if roof is None else f"{roof:,}"
        lines.append(
            f"| {r.network} | {r.cpu.removeprefix('cortex-').upper()} | {r.memory} | {r.instructions:,} | {peer_text} "
            f"| {roof_text} | {r.code:,} | {r.constants:,} ({r.constants_ratio:.3f} x) "
            f"| {r.arena:,} | {r.io:,} | {r.stack:,} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", nargs="+", choices=BOARDS, default=list(BOARDS))
    parser.add_argument("--networks", nargs="+", choices=PEER, default=list(PEER))
    parser.add_argument("--memory", nargs="+", choices=MEMORY, default=["balanced"], help="values of the option memory")
    parser.add_argument("--cases", type=int, default=2, help="cases of the vectors to check")
    parser.add_argument("--profile", action="store_true", help="print instructions by function")
    parser.add_argument("--keep", type=Path, help="leave sources and images in this folder")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    results = []
    for network in options.networks:
        for cpu, memory in product(options.cpus, options.memory):
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary) if options.keep is None else options.keep / f"{network}-{cpu}-{memory}"
                results.append(measure(network, cpu, memory, options.cases, folder, profile=options.profile))
    print(markdown(results), end="")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    if options.markdown is not None:
        options.markdown.write_text(markdown(results))


if __name__ == "__main__":
    main()
