"""Library: what a compiler makes of a model and what an archive holds, as one typed value.

The words are Model Library Format's own: a library has *modules* (one network each), a module has an executor,
targets, memory figures, codegen files, parameters, and for the graph executor a graph. Inputs and outputs stand in
call order, the order of the members in the C interface's structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

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
class MainMemory:
    """Memory of a module's entry function on one device, in bytes (``memory.functions.main[]``)."""

    workspace_size: int
    constants_size: int
    io_size: int
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
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
class CodegenFile:
    """A generated file; ``path`` is relative to ``codegen/``, as ``host/src/kws_lib0.c``."""

    path: PurePosixPath
    data: bytes


@dataclass(frozen=True)
class ArchiveFile:
    """A file of an archive that belongs to no module; ``path`` is relative to the archive's root."""

    path: PurePosixPath
    data: bytes


@dataclass(frozen=True)
class ExternalDependency:
    """Something outside the archive that its code needs, as TVM records it."""

    short_name: str
    url: str
    url_type: str
    version_spec: str


@dataclass(frozen=True)
class Module:
    """One network of a library."""

    name: str
    executor: str
    """``aot`` or ``graph``."""
    target: tuple[str, ...]
    """TVM target strings, as ``c -keys=arm_cpu,cpu -mcpu=cortex-m4``."""
    main: tuple[MainMemory, ...]
    operator_functions: tuple[OperatorFunction, ...]
    codegen: tuple[CodegenFile, ...]
    """Sorted by path."""
    params: Mapping[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    graph_json: str | None = None
    storage: tuple[StorageEntry, ...] = ()
    source_text: str = ""
    """Text of the program before code generation (``src/<module>.relay``), opaque."""
    external_dependencies: tuple[ExternalDependency, ...] = ()
    export_datetime: str = field(default="", compare=False)
    """``YYYY-MM-DD HH:MM:SSZ``; the writer puts its own fixed date where this is empty. Says when, not what."""
    model_id: str = ""
    """SHA-256 of the model file, for native libraries."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "codegen", tuple(sorted(self.codegen, key=lambda file: str(file.path))))

    def __eq__(self, other: object) -> bool:
        """Compare all fields but the date; parameters by order, type, shape and bytes."""
        if not isinstance(other, Module):
            return NotImplemented
        compared = (item.name for item in fields(self) if item.compare and item.name != "params")
        same = all(getattr(self, name) == getattr(other, name) for name in compared)
        return same and _parameter_bytes(self) == _parameter_bytes(other)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Inputs in call order."""
        return self.main[0].inputs if self.main else ()

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Outputs in call order."""
        return self.main[0].outputs if self.main else ()


def _parameter_bytes(module: Module) -> list[tuple[str, str, tuple[int, ...], bytes]]:
    return [(name, value.dtype.name, value.shape, value.tobytes()) for name, value in module.params.items()]


@dataclass(frozen=True)
class Library:
    """All modules of an archive, sorted by name; ``version`` is the format version they were read from."""

    modules: tuple[Module, ...]
    version: int = 7
    other_files: tuple[ArchiveFile, ...] = ()
    """What stands beside the modules, sorted by path: TVM's ``runtime/`` and ``templates/``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "modules", tuple(sorted(self.modules, key=lambda module: module.name)))
        object.__setattr__(self, "other_files", tuple(sorted(self.other_files, key=lambda file: str(file.path))))

    def module(self, name: str) -> Module:
        """Return the module called ``name``; raises ``KeyError``."""
        for module in self.modules:
            if module.name == name:
                return module
        raise KeyError(name)
