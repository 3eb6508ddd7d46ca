"""What decides, beside the graph, how operators are lowered."""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.compilers.types import CompileRequest
from mlfbuild.targets import Cpu

MEMORY = ("smallest", "balanced", "fastest")
"""The values of the option ``memory``."""

TFLM = ("2026-10-12", "2026-10-13")
"""The values of the option ``tflm``: dates of tflite-micro releases between which numbers changed; the last is the
default."""


@dataclass(frozen=True)
class CodegenSettings:
    """The processor that code is made for: its ``features`` choose kernels and the layouts of weights."""

    cpu: Cpu
    memory: str = "balanced"
    """How much a small arena is worth: one of ``MEMORY``."""
    trace: bool = False
    """Whether every tensor that an operator writes is handed out; then all of them are in memory as a whole."""

    def has(self, feature: str) -> bool:
        """Return whether the processor has ``feature``, a word of ``Cpu.features``."""
        return feature in self.cpu.features


def tflm_of(request: CompileRequest) -> str:
    """Return the date of the tflite-micro release whose numbers the code has; empty for ONNX models."""
    return "" if request.source.suffix.lower() == ".onnx" else str(request.options.get("tflm", TFLM[-1]))
