"""Tensors and memory of a module, as the metadata of Model Library Format and the generated code tell of them."""

from __future__ import annotations

from dataclasses import dataclass

CPU_DEVICE = 1
"""DLPack's kDLCPU, the ``device`` of every entry that TVM writes for microcontrollers."""


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a module: TVM records name, dtype and bytes; the rest is known for native models."""

    name: str
    dtype: str
    size: int
    shape: tuple[int, ...] | None = None
    scale: float | None = None
    zero_point: int | None = None


@dataclass(frozen=True)
class TracedTensor:
    """What an operator of a module has written, as a traced run hands it out."""

    tensor: TensorInfo
    """By its name in the model, with its shape."""
    operator: str
    """Its kind, as ``CONV_2D``; empty where the module does not tell."""
    function: str
    """The C function that writes it; empty where nothing is to be done, as its bytes are in place already."""


@dataclass(frozen=True)
class MainMemory:
    """Memory of a module's entry function on one device, in bytes (``memory.functions.main[]``)."""

    workspace_size: int
    constants_size: int
    io_size: int
    device: int = CPU_DEVICE


@dataclass(frozen=True)
class OperatorFunction:
    """One generated operator function and the workspace bytes it uses by device."""

    name: str
    workspace: tuple[tuple[int, int], ...]
    """(device, bytes) pairs."""


@dataclass(frozen=True)
class StorageEntry:
    """One storage id of a graph (``memory.sids[]``)."""

    storage_id: int
    size: int
    input_binding: str | None = None


@dataclass(frozen=True)
class OperatorBuffer:
    """One argument of an operator's function (``memory.<function>[]`` of operator style)."""

    function: str
    size: int
    shape: tuple[int, ...]
    dtype: str
    input_binding: str | None = None


@dataclass(frozen=True)
class Pool:
    """A memory pool of a module's generated code."""

    name: str
    kind: str
    """``workspace`` or ``constant``."""
    size: int | None
    """Bytes; ``None`` where the code does not tell."""
    external: bool
    """Whether the caller passes it (``struct tvmgen_<module>_workspace_pools``) or the code defines it itself."""
