"""Tensors and memory of a module, as recorded in the metadata of the archive and in the generated code."""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.library.names import sanitize_name

CPU_DEVICE = 1
"""DLPack's kDLCPU, the ``device`` of all entries that TVM writes for microcontrollers."""


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a module: TVM records name, dtype and bytes, native models also the other fields."""

    name: str
    dtype: str
    size: int
    shape: tuple[int, ...] | None = None
    scale: float | None = None
    zero_point: int | None = None
    source_name: str = ""
    """The name in the model file, if ``name`` is another one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which arrays for it are accepted: its own and that in the model file, each also as in C."""
        known = [name for name in (self.name, self.source_name) if name]
        return tuple(dict.fromkeys(form for name in known for form in (name, sanitize_name(name))))


@dataclass(frozen=True)
class TracedTensor:
    """The output of an operator, as a traced run reports it."""

    tensor: TensorInfo
    """The tensor, with its name in the model and its shape."""
    operator: str
    """The kind of operator, for example ``CONV_2D``; empty if the archive does not record it."""
    function: str
    """The C function that writes the tensor; empty if no function is called because the bytes are already in place."""


@dataclass(frozen=True)
class MainMemory:
    """Memory of a module's entry function on one device, in bytes (``memory.functions.main[]``)."""

    workspace_size: int
    constants_size: int
    io_size: int
    device: int = CPU_DEVICE


@dataclass(frozen=True)
class OperatorFunction:
    """One generated operator function and the workspace that it uses on each device."""

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
    """Bytes; ``None`` if the code does not record it."""
    external: bool
    """Whether the caller passes it (``struct tvmgen_<module>_workspace_pools``) or the generated code defines it."""
