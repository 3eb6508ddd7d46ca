"""Tensors and their types, frozen values that are checked on construction, and the operands of a node by position."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LONGEST_NAME = 160
"""Characters of a tensor's name in messages."""


class GraphError(ValueError):
    """A graph breaks a rule; ``where`` names the node or tensor."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason

    # Exceptions with several arguments need this to be pickled, which jobs in other processes do.
    def __reduce__(self) -> tuple[type[GraphError], tuple[str, str]]:
        return type(self), (self.where, self.reason)


class OperatorError(GraphError):
    """The tensors of a node contradict the rules of its operator; the structure of the graph is valid."""


class DType(enum.Enum):
    """Element types; the value is numpy's name.

    Files of TFLite and ONNX have other types (float16, float64, int4, strings), which the front ends convert or refuse.
    No layer computes with uint8: the front ends make int8 of it, with values and zero points lower by 128.
    """

    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT32 = "float32"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype."""
        return np.dtype(self.value)

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize


C_TYPES = {
    DType.INT8: "int8_t",
    DType.UINT8: "uint8_t",
    DType.INT16: "int16_t",
    DType.UINT16: "uint16_t",
    DType.INT32: "int32_t",
    DType.INT64: "int64_t",
    DType.UINT32: "uint32_t",
    DType.UINT64: "uint64_t",
    DType.FLOAT32: "float",
    DType.BOOL: "uint8_t",
}
"""The C types of elements."""

UNSIGNED = (DType.UINT32, DType.UINT64)
"""The types that only CAST and operators of signal processing use."""

EVERY = tuple(dtype for dtype in DType if dtype not in (DType.UINT16, *UNSIGNED))
"""The types of operators that only move elements; CAST converts uint16, which only ONNX files have."""


@dataclass(frozen=True)
class Quantization:
    """Affine quantisation: real = scale * (stored - zero point), as in TFLite's specification.

    One scale and zero point for the tensor, or one for each index of dimension ``axis`` (per channel).
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0

    def __post_init__(self) -> None:
        if not self.scales or len(self.scales) != len(self.zero_points):
            raise GraphError("quantisation", f"{len(self.scales)} scales and {len(self.zero_points)} zero points")
        # Zero and infinite scales would make multipliers that do not exist.
        if not all(math.isfinite(scale) and scale > 0 for scale in self.scales):
            raise GraphError("quantisation", "every scale must be a positive number")

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return len(self.scales) > 1

    @property
    def scale(self) -> float:
        """The scale of a per-tensor quantisation (a float32 value); raises ``ValueError`` for per-channel ones."""
        (scale,) = self.scales
        return scale

    @property
    def zero_point(self) -> int:
        """The zero point of a per-tensor quantisation; raises ``ValueError`` for per-channel ones."""
        (zero_point,) = self.zero_points
        return zero_point


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the network: a name, a static shape (row-major, NHWC for images), a type, perhaps constant data.

    Only inputs and outputs of a network may have no elements: no node reads or writes them, and such an output is
    constant.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantization: Quantization | None = None
    data: Array | None = None
    labels: tuple[str, ...] = ()
    """For an output: the texts that its integers are positions of, or the names of its last dimension."""

    def __post_init__(self) -> None:
        if not self.name:
            raise GraphError("tensor", "has no name")
        if any(size < 0 for size in self.shape):
            raise GraphError(f"tensor {self.name!r}", f"shape {list(self.shape)} has a dimension below 0")
        self._check_quantization()
        if self.data is not None:
            self._check_data(self.data)

    def _check_quantization(self) -> None:
        quantization = self.quantization
        if quantization is None or not quantization.per_channel:
            return
        # The axis may be any of the dimensions; operators restrict it further.
        if not 0 <= quantization.axis < len(self.shape) or self.shape[quantization.axis] != len(quantization.scales):
            raise GraphError(
                f"tensor {self.name!r}",
                f"{len(quantization.scales)} scales do not fit dimension {quantization.axis} of {list(self.shape)}",
            )

    def _check_data(self, data: Array) -> None:
        if data.shape != self.shape or data.dtype != self.dtype.numpy:
            raise GraphError(
                f"tensor {self.name!r}",
                f"holds {data.dtype}{list(data.shape)}, declared {self.dtype.value}{list(self.shape)}",
            )
        # Kernels read a bool as a byte: a 2 would be true for a selection, and 2 for a CAST or a sum.
        if self.dtype is DType.BOOL and data.view(np.uint8).max(initial=0) > 1:
            raise GraphError(f"tensor {self.name!r}", "holds a byte that is neither false (0) nor true (1)")
        # Graphs share arrays, often views of the model file's bytes.
        data.setflags(write=False)

    @property
    def elements(self) -> int:
        """Number of elements (1 for a scalar)."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Size in bytes, without gaps between rows."""
        return self.elements * self.dtype.size

    @property
    def constant(self) -> bool:
        """Whether the value is known at compile time."""
        return self.data is not None

    @property
    def known(self) -> Array:
        """The data of a constant; raises ``GraphError`` if the value is computed."""
        if self.data is None:
            raise GraphError(f"tensor {self.name!r}", "is not constant")
        return self.data

    @property
    def affine(self) -> Quantization:
        """The quantisation; raises ``GraphError`` if there is none."""
        if self.quantization is None:
            raise GraphError(f"tensor {self.name!r}", "is not quantised")
        return self.quantization

    def __str__(self) -> str:
        # Names come from the file and may be of any length; a message should stay on its lines.
        name = self.name if len(self.name) <= _LONGEST_NAME else f"{self.name[:_LONGEST_NAME]}..."
        return f"{name!r} {self.dtype.value}{list(self.shape)}"


Item = TypeVar("Item")
Other = TypeVar("Other")


class Operands(Generic[Item]):
    """The operands of a node: its tensors (``Inputs``), or their values (``Values``), in the order of the operator.

    A required operand is there, or the graph is wrong; an optional one may be absent. A node names an absent operand
    ``None``, and may leave trailing ones out; both are the same here. ``inputs[0]`` is an operand that the operator
    requires, ``inputs.optional(2)`` one that it can do without::

        source, weights, bias = inputs[0], inputs[1], inputs.optional(2)
        rows, points = inputs                # exactly two, both required
        tensors = inputs.present             # as many as there are

    ``place`` names the node in errors, such as ``CONV_2D 'conv1'``.
    """

    __slots__ = ("_items", "place")

    def __init__(self, items: Iterable[Item | None], place: str = "operator") -> None:
        self._items = tuple(items)
        self.place = place

    def __len__(self) -> int:
        """Return the number of positions, including those of absent operands."""
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> Operands[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | Operands[Item]:
        """Return the operand at ``index``; raises ``OperatorError``, a ``GraphError``, if it is absent."""
        if isinstance(index, slice):
            return Operands(self._items[index], self.place)
        item = self.optional(index)
        if item is None:
            raise OperatorError(self.place, f"has no operand {index}")
        return item

    def __iter__(self) -> Iterator[Item]:
        """Yield all operands; raises ``OperatorError`` at an absent one."""
        return (self[index] for index in range(len(self._items)))

    # Trailing operands may be missing in files, which is the same as ``None`` here.
    def optional(self, index: int) -> Item | None:
        """Return the operand at ``index``, ``None`` if it is absent.

        An index behind the last operand is absent as well, because files leave out trailing operands.
        """
        return self._items[index] if index < len(self._items) else None

    def with_operand(self, index: int, item: Item) -> Operands[Item]:
        """Return these operands with ``item`` at ``index``.

        ``index`` may be the position of an absent operand, but not one behind the last.
        """
        return Operands((*self._items[:index], item, *self._items[index + 1 :]), self.place)

    def map(self, function: Callable[[Item], Other]) -> Operands[Other]:
        """Return what ``function`` makes of each operand; absent ones stay absent.

        The number of positions and the place for messages stay, so that the result can be read in the same way.
        """
        return Operands((None if item is None else function(item) for item in self._items), self.place)

    @property
    def present(self) -> tuple[Item, ...]:
        """The operands that are there, in order."""
        return tuple(item for item in self._items if item is not None)


Inputs = Operands[Tensor]
Values = Operands[Array]
