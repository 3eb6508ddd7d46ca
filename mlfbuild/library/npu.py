"""The part of a module that an NPU executes: facts for reports, and the estimate of the program that compiled it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NpuLayer:
    """Operations of the NPU that came from one operator, or from a part of it."""

    name: str
    """The tensor that they write."""
    operator: str
    """The kind of operator, in Vela's words."""
    cycles: int
    macs: int


@dataclass(frozen=True)
class NpuEstimate:
    """Vela's estimate; no NPU measured it."""

    cycles: int
    """Of the NPU, for one run."""
    clock: int
    """Hz, of Vela's system configuration."""
    macs: int
    sram: int
    """Bytes, as the next two."""
    dram: int
    flash: int
    layers: tuple[NpuLayer, ...] = ()


@dataclass(frozen=True)
class NpuFacts:
    """The NPU that a module needs, and what it gets."""

    accelerator: str
    """``ethos-u55-128``."""
    memory_mode: str
    system_config: str
    compiler: str
    """Program and version: ``vela 5.2.0``."""
    stream: int
    """Bytes of command streams, in flash."""
    weights: int
    """Bytes of constants of the NPU, in flash."""
    scratch: int
    """Bytes of working memory, the largest of all calls; they are part of the workspace."""
    fast: int
    """Bytes of the NPU's own memory."""
    on_core: tuple[str, ...]
    """The operators that stay on the core, each with the reason."""
    estimate: NpuEstimate
