"""The settings of code generation: the CPU and the options that change how operators are lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlfbuild.core.keys import parse_size
from mlfbuild.library import CompileRequest, OptionValue
from mlfbuild.native.graph import MAX_CONSTANTS, Graph
from mlfbuild.targets import Cpu

MEMORY = ("smallest", "balanced", "fastest")
"""The values of the option ``memory``."""
DEFAULT_MEMORY = "balanced"

TFLM = ("2026-10-12", "2026-10-13")
"""The values of the option ``tflm``: dates of tflite-micro releases between which numbers changed; the last is the
default."""

DEAD_CHANNELS = ("remove", "keep")
"""The values of the option ``dead-channels``; the first one is the default."""

TREES = ("tables", "code")
"""The values of the option ``trees``: the form of decision trees; the first one is the default."""
TREES_AS_CODE = TREES[1]
TREE_ROOM = "tree-room"
"""The option with the bytes that a blob of parameters reserves for the trees of a network."""

IO = ("caller", "arena")
"""The values of the option ``io``: the memory of inputs and outputs; the first one is the default."""

# Not by the absence of features: RISC-V has none either.
_PLAIN_THUMB = ("armv6s-m", "armv7-m", "armv8-m.base")
"""Architectures with Thumb instructions and without SIMD."""


def most_constants(options: Mapping[str, OptionValue]) -> int | None:
    """Return the value of the option ``max-constants`` in bytes; ``None`` if it is not set or not a size."""
    return size_of(options, MAX_CONSTANTS)


def size_of(options: Mapping[str, OptionValue], key: str) -> int | None:
    """Return the value of the option ``key`` in bytes; ``None`` if it is not set or not a size.

    ``options`` are those of a compile request, where a size is a number of bytes or text such as "64 MiB".
    """
    value = options.get(key)
    size = parse_size(value) if isinstance(value, str) else value
    return size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None


@dataclass(frozen=True)
class CodegenSettings:
    """The target CPU, whose ``features`` select kernels and layouts of weights, and the options.

    They are fixed before the passes run, and equal settings give equal code. ``cpu`` decides about kernels by
    ``features``, with two exceptions that no feature tells apart: ``is_dual_issue`` and ``is_plain_thumb``.
    """

    cpu: Cpu
    memory: str = DEFAULT_MEMORY
    """The preference between a small arena and few instructions: one of ``MEMORY``."""
    trace: bool = False
    """Whether every tensor that an operator writes is passed to a callback, so that it must be complete in memory."""
    trees: str = TREES[0]
    """The form of decision trees: one of ``TREES``."""
    arena_io: bool = False
    """Whether inputs and outputs are in the arena, so that a run may overwrite its inputs."""
    replaceable: bool = False
    """Whether trained values are in a blob that can be replaced, so that the code must not depend on them."""
    tree_room: int | None = None
    """The option ``tree-room``: bytes."""

    def has(self, feature: str) -> bool:
        """Return whether the CPU has ``feature``, a word of ``Cpu.features``."""
        return feature in self.cpu.features

    @property
    def is_dual_issue(self) -> bool:
        """Whether the CPU is a Cortex-M7, which loads and multiplies in the same cycle and has a data cache."""
        # Armv7E-M like the Cortex-M4, so that no feature tells them apart.
        return self.cpu.name.startswith("cortex-m7")

    @property
    def is_plain_thumb(self) -> bool:
        """Whether the CPU is a Cortex-M without SIMD."""
        return self.cpu.architecture in _PLAIN_THUMB


def tflm_of(request: CompileRequest, graph: Graph) -> str:
    """Return the date of the tflite-micro release whose numbers the code has; empty if it does not run the network.

    ``request`` has the option ``tflm``, whose default is the latest date. Networks of ONNX, and those with
    ``graph.litert``, do not run there.
    """
    unknown = graph.litert or request.source.suffix.lower() == ".onnx"
    return "" if unknown else str(request.options.get("tflm", TFLM[-1]))
