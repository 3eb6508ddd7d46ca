"""The result of a compiler and the content of an archive, as one typed value: ``Library``.

The terms are those of Model Library Format: a library has *modules* (one network or one operator each); a module has an
executor, targets, memory sizes, codegen files, parameters, and for the graph executor a graph. Inputs and outputs are
in call order, the order of the members in the structs of the C interface. Sizes are bytes::

    for module in library.modules:
        print(module.name, module.executor, [tensor.name for tensor in module.inputs])

Tensors and memory are as the metadata of the archive and the generated code state them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mlfbuild.library.content import Content
from mlfbuild.library.names import sanitize_name
from mlfbuild.library.network import Network
from mlfbuild.library.npu import NpuFacts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from mlfbuild.library.params import Array

CPU_DEVICE = 1
"""DLPack's kDLCPU, the ``device`` of all entries that TVM writes for microcontrollers."""


EXTENSION_DEVICE = 12
"""DLPack's kDLExtDev: an accelerator."""

_FAR = float(1 << 40)
"""Beyond the range of every quantised dtype, and exact in float32."""


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a module: TVM records name, dtype and bytes, native models also the other fields."""

    name: str
    dtype: str
    size: int
    """Bytes."""
    shape: tuple[int, ...] | None = None
    scale: float | None = None
    """``None`` without quantisation, as ``zero_point``."""
    zero_point: int | None = None
    source_name: str = ""
    """The name in the model file, if ``name`` is another one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which arrays for it are accepted: its own and that in the model file, each also as in C."""
        known = [name for name in (self.name, self.source_name) if name]
        return tuple(dict.fromkeys(form for name in known for form in (name, sanitize_name(name))))

    def __str__(self) -> str:
        """Return name, dtype, shape and quantisation on one line."""
        shape = "" if self.shape is None else f" {list(self.shape)}"
        scale = "" if self.scale is None else f", scale {self.scale:.6g}, zero point {self.zero_point}"
        return f"{self.name} {self.dtype}{shape}{scale}"

    def quantized(self, real: npt.ArrayLike) -> Array:
        """Return real numbers as the tensor stores them: to nearest, ties away from zero, saturated; NaN as 0.0.

        As ``mlf_<model>_quantize_<tensor>`` of the C header, in float32. A tensor without a scale gets its dtype only.
        """
        import numpy as np  # here, because a build that does nothing reads tensors, and importing numpy takes 0.1 s

        from mlfbuild.library.numpy_types import dtype_called, round_half_away

        dtype = dtype_called(self.dtype)
        if self.scale is None:
            return np.asarray(real).astype(dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.asarray(real, np.float32) / np.float32(self.scale)
        limited = np.clip(np.nan_to_num(value, nan=0.0, posinf=_FAR, neginf=-_FAR), -_FAR, _FAR)
        stored = round_half_away(limited).astype(np.int64) + (self.zero_point or 0)
        bits = 8 * dtype.itemsize
        low, high = (0, (1 << bits) - 1) if dtype.kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        result: Array = np.clip(stored, low, high).astype(dtype)
        return result

    def dequantized(self, stored: Array) -> Array:
        """Return the real numbers, float32, of an array of the tensor; the array itself without a scale.

        ``stored`` has the tensor's dtype and any shape. The formula is (stored - zero point) * scale, in
        float32, as ``mlf_<model>_dequantize_<tensor>`` of the C header computes it.
        """
        import numpy as np

        if self.scale is None:
            return stored
        real: Array = (stored.astype(np.int64) - (self.zero_point or 0)).astype(np.float32) * np.float32(self.scale)
        return real


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
    """Of tensors between operators."""
    constants_size: int
    io_size: int
    """Of all inputs and outputs."""
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
    """Bytes."""
    input_binding: str | None = None
    """The input or parameter that it holds first; ``None`` for results."""


@dataclass(frozen=True)
class OperatorBuffer:
    """One argument of an operator's function (``memory.<function>[]`` of operator style)."""

    function: str
    size: int
    """Bytes."""
    shape: tuple[int, ...]
    dtype: str
    """By its name in TVM."""
    input_binding: str | None = None


@dataclass(frozen=True)
class Pool:
    """A memory pool of a module's generated code."""

    name: str
    """As the user of TVM has called it."""
    kind: str
    """``workspace`` or ``constant``."""
    size: int | None
    """Bytes; ``None`` if the code does not record it."""
    external: bool
    """Whether the caller passes it (``struct tvmgen_<module>_workspace_pools``) or the generated code defines it."""


FULL_MODEL = "full-model"
OPERATOR = "operator"
Fact = str | int | float | bool
"""A value of ``Module.extensions``."""


@dataclass(frozen=True)
class ArchiveFile:
    """A file of an archive that belongs to no module; ``path`` is relative to the archive's root."""

    path: PurePosixPath
    content: Content

    @property
    def data(self) -> bytes:
        """The bytes of the content, read now if they are in an archive."""
        return bytes(self.content)


@dataclass(frozen=True)
class CodegenFile(ArchiveFile):
    """A generated file; ``path`` is relative to ``codegen/``, for example ``host/src/kws_lib0.c``."""


@dataclass(frozen=True)
class ModuleTarget:
    """A target of a module: TVM's target string, for example ``c -keys=arm_cpu,cpu -mcpu=cortex-m4``."""

    text: str
    device: int | None = None
    """DLDeviceType, which versions 1 to 5 record; ``None`` if the archive does not record it."""


@dataclass(frozen=True)
class UnknownField:
    """A field of the metadata that the format does not define; every conversion keeps it."""

    place: str
    """JSON pointer (RFC 6901) in version 7, from the object of the module or of the dependency: ``/memory/x``."""
    value: str
    """JSON text with sorted keys."""


@dataclass(frozen=True)
class DeviceContext:
    """A device that the module runs on, an idea of the first RFC of the format; TVM's archives have none."""

    device_type: str
    device_id: int = 0
    compiler: str = ""
    """The external code generator for the device; empty if the archive does not record it."""
    config: str = ""
    """The code generator's configuration as JSON text with sorted keys, because the RFC does not define its form."""
    target: str = ""


@dataclass(frozen=True)
class ExternalDependency:
    """An external library that the code needs (pre-RFC of external dependencies; in TVM since 0.9)."""

    short_name: str
    url: str
    url_type: str
    """``path``, ``url``, ``git``, or TVM's ``mlf_path``: a folder of the archive."""
    version_spec: str = ""
    """A release, a branch or a commit."""
    unknown: tuple[UnknownField, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModuleFacts:
    """Facts of a module that TVM's metadata does not have; archives record them in the key ``mlfbuild``."""

    model_id: str = ""
    """SHA-256 of the model file, and of the files with its weights if there are any, for native libraries."""
    state_size: int = 0
    """Bytes that the module keeps from one run to the next, in addition to its workspace."""
    workspace_bound: int | None = None
    """Peak of the bytes in use, a lower bound for any plan of the workspace; ``None`` if unknown."""
    trace: tuple[TracedTensor, ...] = ()
    """The tensors that a traced run reports, in order: by ``mlf_<module>_run_traced``, or by the calls of a graph."""
    network: Network | None = None
    """Operators and tensors with the places that the compiler planned; ``None`` if the archive does not record them."""
    hook: bool = False
    """Whether ``tvmgen_<module>_run_hooked`` can call the firmware before each operator (``library.hook``)."""
    runtime: str = ""
    """The configuration of TVM's runtime in the archive, if the firmware uses that runtime; empty for mlfbuild's."""
    tflm: str = ""
    """Date of the release of tflite-micro whose numbers the code has; empty if it was not compiled for any."""
    source_sha256: str = ""
    """SHA-256 of the source file, for modules of other compilers; empty if unknown."""
    notes: tuple[str, ...] = ()
    """The compiler's remarks on the network, one sentence each, such as operators that run in float32."""
    npu: NpuFacts | None = None
    """The NPU that computes a part of the network; ``None`` if the core computes all of it."""
    extensions: Mapping[str, Fact] = field(default_factory=dict)
    """Facts that later stages need, such as the board, by name; the exporter of the module chose the names."""


@dataclass(frozen=True)
class Module(ModuleFacts):
    """One network of a library, or one operator."""

    name: str
    executor: str
    """``aot`` or ``graph``; empty for an operator."""
    targets: tuple[ModuleTarget, ...]
    main: tuple[MainMemory, ...]
    """Memory of the entry function, one entry per device type; empty in version 1 and for an operator."""
    operator_functions: tuple[OperatorFunction, ...]
    codegen: tuple[CodegenFile, ...]
    """The files for the host, sorted by path."""
    inputs: tuple[TensorInfo, ...] = ()
    """In call order; empty if unknown."""
    outputs: tuple[TensorInfo, ...] = ()
    """In call order; empty if unknown."""
    params: Mapping[str, npt.NDArray[np.generic]] = field(default_factory=dict)
    """Each access reads the array from the archive."""
    graph_json: Content | None = None
    """The graph executor's JSON, unchanged; ``graph_json.parse_graph`` parses it."""
    storage: tuple[StorageEntry, ...] = ()
    """Storage ids of a graph, in the metadata's order."""
    style: str = FULL_MODEL
    """``full-model``, or ``operator``."""
    buffers: tuple[OperatorBuffer, ...] = ()
    """Arguments of an operator's function, in its order."""
    interface: str = ""
    """``c`` (structs of a header), ``packed`` (TVM's packed functions), or empty for executors other than AOT."""
    pools: tuple[Pool, ...] = ()
    """Memory pools that the unified static memory planner laid out, sorted by name."""
    workspace_io: bool = False
    """Whether inputs and outputs are in the caller's pools, which ``tvmgen_<module>_map_inputs`` finds."""
    devices: tuple[str, ...] = ()
    """Device contexts that the entry function takes (``struct tvmgen_<module>_devices``), in its order."""
    contexts: tuple[DeviceContext, ...] = ()
    source_text: Content = b""
    """Text of the program before code generation (``src/<module>.relay``), opaque."""
    tir: tuple[tuple[int, Content], ...] = ()
    """Text of an operator's TIR by device type (``src/tir-<device>.txt``), opaque, sorted by device type."""
    external_dependencies: tuple[ExternalDependency, ...] = ()
    export_datetime: str = field(default="", compare=False)
    """``YYYY-MM-DD HH:MM:SSZ``; if empty, the writer uses its fixed date. Not compared."""
    export_utc: bool = field(default=False, compare=False)
    """Whether the date is known to be UTC, although TVM writes local time marked Z. Not compared."""
    device_files: tuple[CodegenFile, ...] = ()
    """The files for other devices, ``accel/src/kws_lib0.c``, sorted by path (``library.device_code`` groups them)."""
    unknown: tuple[UnknownField, ...] = ()
    """Sorted by place; without the fields of the external dependencies, which have their own."""

    def __post_init__(self) -> None:
        for name in ("codegen", "device_files"):
            # Sorted, so that libraries are equal regardless of the order in which files were found.
            object.__setattr__(self, name, tuple(sorted(getattr(self, name), key=lambda file: str(file.path))))

    @property
    def complete(self) -> bool:
        """Whether its code has all that firmware calls, as the native compiler's has for the AOT executor."""
        return bool(self.model_id) and self.executor != "graph" and self.interface != "packed"

    def bound(self, output: int) -> int:
        """Return the greatest magnitude of the output with this index; 0 if it is unknown (``Network.bound``).

        It is 1 behind operators such as LOGISTIC, and sets the tolerance by which float outputs are compared.
        """
        tensor = self.outputs[output]
        return self.network.bound(output, tensor.source_name or tensor.name) if self.network else 0

    def __eq__(self, other: object) -> bool:
        """Compare all fields except the date; parameters by order, type, shape and bytes."""
        if not isinstance(other, Module):
            return NotImplemented
        compared = (item.name for item in fields(self) if item.compare and item.name != "params")
        same = all(getattr(self, name) == getattr(other, name) for name in compared)
        return same and _same_params(self.params, other.params)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def _same_params(left: Mapping[str, npt.NDArray[np.generic]], right: Mapping[str, npt.NDArray[np.generic]]) -> bool:
    return left is right or (list(left) == list(right) and all(same_array(left[name], right[name]) for name in left))


def same_array(left: npt.NDArray[np.generic], right: npt.NDArray[np.generic]) -> bool:
    """Return whether two arrays have the same type, shape and bytes."""
    # Bytes instead of values, because NaN is not equal to itself.
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


@dataclass(frozen=True)
class Library:
    """All modules of an archive, sorted by name; ``version`` is the format version they were read from."""

    modules: tuple[Module, ...]
    version: int = 7
    other_files: tuple[ArchiveFile, ...] = ()
    """Files that belong to no module, sorted by path, for example TVM's ``runtime/`` and ``templates/``."""
    unknown: tuple[UnknownField, ...] = ()
    """Unknown fields beside ``modules``, sorted by place."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "modules", tuple(sorted(self.modules, key=lambda module: module.name)))
        object.__setattr__(self, "other_files", tuple(sorted(self.other_files, key=lambda file: str(file.path))))

    def module(self, name: str) -> Module:
        """Return the module called ``name``; raises ``KeyError``.

        Names are case-sensitive, as in the archive. For a name that a user wrote, look it up with
        ``executor.chosen_module``, which raises an error with the known names.
        """
        for module in self.modules:
            if module.name == name:
                return module
        raise KeyError(name)
