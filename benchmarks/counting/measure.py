"""Builds firmware around one network and measures an inference: instructions, flash, arena and stack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from counting.firmware import (
    SHARED,
    MeasurementError,
    Subject,
    build,
    checked_run,
    count_instructions,
    flash_of,
    found_in,
    write_case_data,
)
from counting.roofline import CONVOLUTION, DEPTHWISE, OTHER
from mlfbuild.library import CompileRequest, Module
from mlfbuild.native import NATIVE
from mlfbuild.native.frontends import parse_model
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.targets import CPUS

NETWORKS = ("kws", "ic", "ad", "vww", "ic_f32", "ad_f32", "vww_f32")

_DEPTHWISE = re.compile(r"tvmgen_\w+?_depthwise|mlf_(depthwise|planes_|fill_p|expand_filters|spread_filters)")
_CONVOLUTION = re.compile(
    r"tvmgen_\w+?_(conv2d|fully_connected)"
    r"|mlf_(conv2d|fully_connected|gem[mv]|mat(mul|vec)|\w*pixels|quads|kept|pairs_of|expand|copy_clipped|\w*windows)"
)


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
    """The instructions, bytes and cycles of a case."""

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


def measure(
    case: Case,
    folder: Path,
    *,
    flags: Sequence[str] = (),
    top: int = 0,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Result:
    """Compile, build, run and count ``case`` in ``folder``; ``flags`` come behind those of the compiler.

    ``options`` are those of the model besides ``memory``. Prints the ``top`` functions by instructions. Raises
    ``MeasurementError`` if a program fails, or if an output differs from that of TensorFlow Lite Micro, float32 by more
    than 1e-5.
    """
    model = SHARED / "models" / f"{case.file}.tflite"
    given = {"memory": case.memory, **options}
    library = NATIVE.compile(CompileRequest(case.network, model, CPUS[case.cpu], options=given))
    (module,) = library.modules
    (main,) = module.main
    subject = write_sources(module, folder)
    write_case_data(subject, SHARED / "golden" / f"{case.file}.npz", folder)
    elf, harness = build(subject, case.cpu, folder, flags)
    counted = count_instructions(elf, case.cpu)
    instructions = int(found_in(r"region 0 insns (\d+)", counted))
    kinds = _by_kind(counted)
    if sum(kinds.values()) != instructions:
        raise MeasurementError(f"{case}: {instructions} instructions, but by function {sum(kinds.values())}")
    if top:
        print(f"{case}", *counted.splitlines()[1 : top + 1], sep="\n")
    used = checked_run(elf, case.cpu, case)
    if not int(used["arena"]) <= main.workspace_size:
        raise MeasurementError(f"{case}: writes to {used['arena']} bytes of an arena of {main.workspace_size}")
    return Result(
        instructions=instructions,
        kinds=kinds,
        code=flash_of(elf) - flash_of(harness) - main.constants_size,
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


def write_sources(module: Module, folder: Path) -> Subject:
    """Write the C sources of ``module`` to ``folder`` and return how firmware calls it."""
    for file in module.codegen:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
    arguments = [*([] if module.workspace_io else ["inputs", "outputs"]), "workspace"]
    arguments += ["kept"] if module.state_size else []
    return Subject(
        name=module.name,
        sources=sorted((folder / "host/src").glob("*.c")),
        include_dirs=[folder / "host/include"],
        call=f"mlf_{module.name}_run({', '.join(arguments)})",
        workspace_size=module.main[0].workspace_size,
        state_size=module.state_size,
        reset=f"(void)mlf_{module.name}_reset(kept)" if module.state_size else "(void)0",
    )


def _least_constants(graph: Graph) -> int:
    """Return the bytes of weights and biases of the network, and five for each quantised channel."""
    total = 0
    for node in graph.nodes:
        if isinstance(node.operator, Conv2D | DepthwiseConv2D | FullyConnected):
            constants = [tensor for tensor in graph.inputs_of(node) if tensor is not None and tensor.constant]
            output = graph.outputs_of(node)[0]
            total += sum(tensor.size for tensor in constants) + (5 * output.shape[-1] if output.quantization else 0)
    return total
