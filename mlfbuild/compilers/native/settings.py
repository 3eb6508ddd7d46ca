"""The settings of code generation: the CPU and the options that change how operators are lowered."""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.targets import Cpu

MEMORY = ("smallest", "balanced", "fastest")
"""The values of the option ``memory``."""


@dataclass(frozen=True)
class CodegenSettings:
    """The target CPU, whose ``features`` select kernels and layouts of weights, and the options."""

    cpu: Cpu
    memory: str = "balanced"
    """The preference between a small arena and few instructions: one of ``MEMORY``."""
    trace: bool = False
    """Whether every tensor that an operator writes is passed to a callback, so that it must be complete in memory."""

    def has(self, feature: str) -> bool:
        """Return whether the CPU has ``feature``, a word of ``Cpu.features``."""
        return feature in self.cpu.features
