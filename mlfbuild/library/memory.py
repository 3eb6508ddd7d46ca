"""Tensors and memory of a module, as recorded in the metadata of the archive and in the generated code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.library.names import sanitize_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from mlfbuild.library.params import Array

CPU_DEVICE = 1
"""DLPack's kDLCPU, the ``device`` of all entries that TVM writes for microcontrollers."""


_FAR = float(1 << 40)
"""Beyond the range of every quantised dtype, and exact in float32."""


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
        """Return the real numbers, float32, of an array of the tensor; the array itself without a scale."""
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
