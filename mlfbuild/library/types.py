"""Library: what a compiler makes of a model and what an archive holds, as one typed value.

The words are Model Library Format's own: a library has *modules* (one network or one operator each), a module has an
executor, targets, memory figures, codegen files, parameters, and for the graph executor a graph. Inputs and outputs
stand in call order, the order of the members in the C interface's structs. Sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mlfbuild.library.content import Content
from mlfbuild.library.memory import (
    MainMemory,
    OperatorBuffer,
    OperatorFunction,
    Pool,
    StorageEntry,
    TensorInfo,
    TracedTensor,
)
from mlfbuild.library.network import Network

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FULL_MODEL = "full-model"
OPERATOR = "operator"


@dataclass(frozen=True)
class CodegenFile:
    """A generated file; ``path`` is relative to ``codegen/``, as ``host/src/kws_lib0.c``."""

    path: PurePosixPath
    content: Content

    @property
    def data(self) -> bytes:
        """The content, read now where it still lies in an archive."""
        return bytes(self.content)


@dataclass(frozen=True)
class ArchiveFile:
    """A file of an archive that belongs to no module; ``path`` is relative to the archive's root."""

    path: PurePosixPath
    content: Content

    @property
    def data(self) -> bytes:
        """The content, read now where it still lies in an archive."""
        return bytes(self.content)


@dataclass(frozen=True)
class Target:
    """What a module was compiled for: TVM's target string, as ``c -keys=arm_cpu,cpu -mcpu=cortex-m4``."""

    text: str
    device: int | None = None
    """DLDeviceType, which versions 1 to 5 record; ``None`` where the archive does not say."""


@dataclass(frozen=True)
class Context:
    """A device the module runs on, as the first RFC of the format lists them; no archive of TVM has any."""

    device_type: str
    device_id: int = 0


@dataclass(frozen=True)
class ExternalDependency:
    """Something outside the archive that its code needs (pre-RFC of external dependencies; TVM since 0.9)."""

    short_name: str
    url: str
    url_type: str
    """``path``, ``url``, ``git``, or TVM's own ``mlf_path``: a folder of the archive."""
    version_spec: str = ""
    """What version of it: a release, a branch or a commit."""


@dataclass(frozen=True)
class Module:
    """One network of a library, or one operator."""

    name: str
    executor: str
    """``aot`` or ``graph``; empty for an operator."""
    targets: tuple[Target, ...]
    main: tuple[MainMemory, ...]
    """Memory of the entry function, one entry a device type; empty in version 1 and for an operator."""
    operator_functions: tuple[OperatorFunction, ...]
    codegen: tuple[CodegenFile, ...]
    """Sorted by path."""
    inputs: tuple[TensorInfo, ...] = ()
    """In call order; empty where the archive does not tell."""
    outputs: tuple[TensorInfo, ...] = ()
    """In call order; empty where the archive does not tell."""
    params: Mapping[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    """Read from the archive when they are asked for, each time anew."""
    graph_json: Content | None = None
    """The graph executor's JSON as it stands in the archive; ``graph_json.parse_graph`` makes it a typed value."""
    storage: tuple[StorageEntry, ...] = ()
    """Storage ids of a graph, in the metadata's order."""
    style: str = FULL_MODEL
    """``full-model``, or ``operator``."""
    buffers: tuple[OperatorBuffer, ...] = ()
    """Arguments of an operator's function, in its order."""
    interface: str = ""
    """``c``: called through structs of a header; ``packed``: as a TVM packed function; empty where it is not AOT."""
    pools: tuple[Pool, ...] = ()
    """Memory pools that the unified static memory planner laid out, sorted by name."""
    workspace_io: bool = False
    """Whether inputs and outputs lie in the caller's pools, where ``tvmgen_<module>_map_inputs`` tells."""
    devices: tuple[str, ...] = ()
    """Device contexts that the entry function takes (``struct tvmgen_<module>_devices``), in its order."""
    contexts: tuple[Context, ...] = ()
    state_size: int = 0
    """Bytes that the module keeps from one run to the next, beside its workspace."""
    source_text: Content = b""
    """Text of the program before code generation (``src/<module>.relay``), opaque."""
    tir: tuple[tuple[int, Content], ...] = ()
    """Text of an operator's TIR by device type (``src/tir-<device>.txt``), opaque, sorted by device type."""
    external_dependencies: tuple[ExternalDependency, ...] = ()
    export_datetime: str = field(default="", compare=False)
    """``YYYY-MM-DD HH:MM:SSZ``; the writer puts its own fixed date where this is empty. Says when, not what."""
    model_id: str = ""
    """SHA-256 of the model file, for native libraries."""
    workspace_bound: int | None = None
    """Bytes of the workspace that are in use at one time, which no plan goes below; ``None`` where nobody knows."""
    trace: tuple[TracedTensor, ...] = ()
    """What is seen of a run, in order: what ``mlf_<module>_run_traced`` hands out, or what a graph's calls write."""
    network: Network | None = None
    """Its operators and tensors, as the compiler planned them; ``None`` where the archive does not tell."""
    hook: bool = False
    """Whether firmware may come between operators: ``tvmgen_<module>_run_hooked``, see ``library.hook``."""
    runtime: str = ""
    """The configuration of the archive's own TVM runtime, where firmware takes that; empty for mlfbuild's."""
    source_sha256: str = ""
    """SHA-256 of the file that the module was made from, where another compiler made it; empty where nobody knows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "codegen", tuple(sorted(self.codegen, key=lambda file: str(file.path))))

    def __eq__(self, other: object) -> bool:
        """Compare all fields but the date; parameters by order, type, shape and bytes."""
        if not isinstance(other, Module):
            return NotImplemented
        compared = (item.name for item in fields(self) if item.compare and item.name != "params")
        same = all(getattr(self, name) == getattr(other, name) for name in compared)
        return same and _same_params(self.params, other.params)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def _same_params(left: Mapping[str, npt.NDArray[np.generic]], right: Mapping[str, npt.NDArray[np.generic]]) -> bool:
    return left is right or (list(left) == list(right) and all(_same_array(left[name], right[name]) for name in left))


def _same_array(left: npt.NDArray[np.generic], right: npt.NDArray[np.generic]) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


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
