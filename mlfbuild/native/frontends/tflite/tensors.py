"""Convert the tensors of one subgraph of a TFLite file to tensors of a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tflite.QuantizationDetails import QuantizationDetails
from tflite.TensorType import TensorType

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.errors import DamagedFileError
from mlfbuild.native.frontends.tflite.operators import type_name
from mlfbuild.native.frontends.tflite.operators.shapes import zeros
from mlfbuild.native.frontends.tflite.reader import BLOCKWISE, RawSubgraph, RawTensor
from mlfbuild.native.graph import Array, DType, GraphError, OperatorError, Quantization, State, Tensor
from mlfbuild.native.graph.bases import WrongShape

TYPES = {
    TensorType.BOOL: DType.BOOL,
    TensorType.COMPLEX64: DType.FLOAT32,
    TensorType.FLOAT32: DType.FLOAT32,
    TensorType.INT8: DType.INT8,
    TensorType.INT16: DType.INT16,
    TensorType.INT32: DType.INT32,
    TensorType.INT64: DType.INT64,
    TensorType.UINT8: DType.UINT8,
    TensorType.UINT32: DType.UINT32,
    TensorType.UINT64: DType.UINT64,
}
"""The types in graphs; that of complex numbers is the type of their parts, which are a last dimension of 2."""

MAXIMUM_TENSOR_SIZE = (1 << 31) - 1
"""In bytes; C's int overflows beyond it."""

# Any positive scale will do: the elements are 0 whatever it is, and no division by it overflows.
_LEAST_SCALE = 2.0**-126
"""The least normal float32."""


class Tensors:
    """The tensors of one subgraph, created on first use, so that unused ones may have unsupported types."""

    def __init__(self, raw: RawSubgraph) -> None:
        self._all = list(raw.tensors)
        self.names = unique_names(raw.tensors)
        """The names of all tensors of the subgraph, by index."""
        self._taken = set(self.names)
        self._made: dict[int, Tensor] = {}
        self._added: list[Tensor] = []
        self._kept: dict[int, str] = {}
        self.refused: set[int] = set()
        """The tensors that could not be converted."""

    def at(self, place: str, index: int) -> Tensor:
        """Return tensor ``index``; ``place`` names the operator that uses it."""
        raw = self.raw(place, index)
        if raw.is_variable:
            where = self._where(place, raw)
            raise UnsupportedModelError(
                "variable-misused",
                place=where,
                reason="a variable may be used only by the operator that keeps its state in it",
            )
        return self._make(place, raw)

    def kept(self, place: str, index: int) -> tuple[Tensor, State]:
        """Return the variable tensor ``index`` that the operator at ``place`` keeps from run to run, and its state.

        The initial value is that of TensorFlow Lite Micro: the zero point for int8, 0 for all other types.
        """
        raw = self.raw(place, index)
        where = self._where(place, raw)
        if not raw.is_variable:
            raise UnsupportedModelError(
                "variable-misused",
                place=where,
                reason="the operator keeps its state in the tensor, which is not a variable",
            )
        if 0 in raw.shape:
            raise UnsupportedModelError(
                "tensor-empty", place=where, reason=f"the shape {list(raw.shape)} has no elements"
            )
        if raw.data is not None:
            raise UnsupportedModelError(
                "variable-misused", place=where, reason="the variable has content, as only constants may have"
            )
        if index in self._kept:
            raise UnsupportedModelError(
                "variable-misused", place=where, reason=f"the variable already keeps the state of {self._kept[index]}"
            )
        self._kept[index] = place
        before = self._make(place, raw)
        after = self.add(f"{before.name}_after", before)
        return before, State(before.name, after.name, zeros(before))

    def in_blocks(self, place: str, index: int) -> Tensor:
        """Return tensor ``index``, constant int4 weights with a scale for each block, as int8 without a scale."""
        raw = self.raw(place, index)
        plain = replace(raw, quantization_details=QuantizationDetails.NONE, scales=(), zero_points=())
        return self._make(place, plain if raw.type == TensorType.INT4 and raw.data is not None else raw)

    def half(self, place: str, index: int) -> Array | None:
        """Return the elements of tensor ``index`` in float32 if it is a constant of float16."""
        raw = self.raw(place, index)
        if raw.type != TensorType.FLOAT16 or raw.data is None or raw.is_sparse or raw.is_variable:
            return None
        where = self._where(place, raw)
        _check_shape(raw, np.dtype(np.float16).itemsize, where)
        return _elements(raw, raw.data, np.dtype(np.float16), where).astype(np.float32)

    def extend(self, tensors: Sequence[RawTensor]) -> int:
        """Add ``tensors`` of another subgraph; return the index of the first."""
        first = len(self._all)
        for index, tensor in enumerate(tensors, first):
            name = tensor.name if tensor.name and tensor.name not in self._taken else f"{tensor.name}_{index}"
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            self.names.append(name)
            blocks = tensor.blocks and tensor.blocks._replace(scales=first + tensor.blocks.scales)
            self._all.append(replace(tensor, index=index, blocks=blocks))
        return first

    def made(self, output: Tensor, shape: tuple[int, ...]) -> State:
        """Return a new state of the operator that writes ``output``, of the same type; it is 0 before the first run."""
        like = Tensor(output.name, shape, output.dtype)
        before, after = (self.add(f"{output.name}_{when}", like) for when in ("before", "after"))
        return State(before.name, after.name, zeros(before))

    def by_name(self) -> dict[str, Tensor]:
        """Return the tensors that were made or added before."""
        return {tensor.name: tensor for tensor in (*self._made.values(), *self._added)}

    def fill(self, index: int, data: Array) -> None:
        """Make tensor ``index``, whose shape and type are those of ``data``, a constant."""
        self._made[index] = replace(self._made[index], data=data)

    def are_open(self, indices: Sequence[int]) -> bool:
        """Return whether the file leaves the shape of a tensor in ``indices`` open."""
        return any(0 <= index < len(self._all) and _is_open(self._all[index]) for index in indices)

    def reshape(self, index: int, reason: str | None) -> bool:
        """Give tensor ``index`` the shape that ``reason`` demands, if the file leaves it open; return whether it does.

        Converters write 1 for sizes that they do not know, and -1 into the signature of the shape; old ones wrote no
        shapes between operators.
        """
        if not isinstance(reason, WrongShape) or self._made.get(index) is not reason.tensor:
            return False
        raw, wanted = self._all[index], reason.wanted
        if raw.type == TensorType.COMPLEX64:
            if wanted[-1:] != (2,):
                return False
            wanted = wanted[:-1]
        signature = (-1,) * len(wanted) if _has_no_shape(raw) else raw.signature
        fits = len(signature) == len(wanted) and all(
            own in {-1, size} for own, size in zip(signature, wanted, strict=True)
        )
        if fits:
            del self._made[index]
            self._all[index] = replace(raw, shape=wanted, signature=signature)
            self._make("shapes", self._all[index])
        return fits

    def are_complex(self, indices: Sequence[int]) -> bool:
        """Return whether a tensor in ``indices`` has complex numbers."""
        return any(0 <= index < len(self._all) and self._all[index].type == TensorType.COMPLEX64 for index in indices)

    def add(self, name: str, like: Tensor, data: Array | None = None) -> Tensor:
        """Add a tensor like ``like`` with ``data``, called ``name`` or, if that is taken, ``name`` with a suffix."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        tensor = Tensor(name, like.shape, like.dtype, like.quantization, data)
        self._added.append(tensor)
        return tensor

    def among(self, names: set[str]) -> list[Tensor]:
        """Return the tensors that are in ``names``."""
        return [tensor for tensor in (*self._made.values(), *self._added) if tensor.name in names]

    def raw(self, place: str, index: int) -> RawTensor:
        """Return tensor ``index`` as in the file."""
        if not 0 <= index < len(self._all):
            raise GraphError(place, f"tensor index {index} of {len(self._all)}")
        return self._all[index]

    def _where(self, place: str, raw: RawTensor) -> str:
        return f"{place}: tensor {raw.index} {self.names[raw.index]!r}"

    def _make(self, place: str, raw: RawTensor) -> Tensor:
        if raw.index not in self._made:
            # Until the conversion succeeds, so that operators on a tensor that was refused are not reported as well.
            self.refused.add(raw.index)
            self._made[raw.index] = _convert(raw, self.names[raw.index], self._where(place, raw))
            self.refused.remove(raw.index)
        return self._made[raw.index]


def unique_names(tensors: Sequence[RawTensor]) -> list[str]:
    """Return unique names of the tensors; a number is appended if a name is empty or taken."""
    taken = {tensor.name for tensor in tensors}
    seen: set[str] = set()
    names = []
    for tensor in tensors:
        name = tensor.name
        if not name or name in seen:
            name = f"{name or 'tensor'}_{tensor.index}"
            while name in taken:
                name += "_"
            taken.add(name)
        seen.add(name)
        names.append(name)
    return names


def _is_open(raw: RawTensor) -> bool:
    return -1 in raw.signature or _has_no_shape(raw)


def _has_no_shape(raw: RawTensor) -> bool:
    """Return whether the file has no shape of ``raw``, which can also mean a scalar."""
    return not raw.shape and not raw.signature and raw.data is None


def _convert(raw: RawTensor, name: str, where: str) -> Tensor:
    """Return ``raw`` as a checked tensor, with its data as a view; ``where`` is the place in messages."""
    dtype = TYPES.get(raw.type)
    if raw.type == TensorType.INT4 and raw.data is not None:
        dtype = DType.INT8
    if dtype is None or (raw.type == TensorType.COMPLEX64 and raw.data is not None):
        raise UnsupportedModelError(
            "type-unsupported",
            place=where,
            reason=f"the type {type_name(raw.type)} is not supported",
            hint="use another type, such as FLOAT32 or INT8",
        )
    if raw.is_sparse:
        raise UnsupportedModelError(
            "weights-sparse", place=where, reason="sparse weights are not supported", hint="store them as dense tensors"
        )
    if raw.quantization_details != QuantizationDetails.NONE:
        blocks = raw.quantization_details == BLOCKWISE
        raise UnsupportedModelError(
            "quantization-unsupported",
            place=where,
            reason=f"{'a scale for each block of numbers' if blocks else 'a custom quantisation'} is not supported",
            hint="quantise the weights per channel" if blocks else "convert the model with full integer quantisation",
        )
    _check_shape(raw, dtype.size, where)
    # Some converters write scales for float32 and bool tensors, where they have no meaning.
    data = _data(raw, dtype, where)
    if data is None and 0 in raw.shape:
        data = np.zeros(raw.shape, dtype.numpy)  # its only value
    quantization = None if dtype in {DType.FLOAT32, DType.BOOL} else _quantization(raw, data, where)
    parts = (2,) if raw.type == TensorType.COMPLEX64 else ()
    return Tensor(name, (*raw.shape, *parts), dtype, quantization, data)


def _check_shape(raw: RawTensor, element: int, where: str) -> None:
    if any(size < 0 for size in raw.shape):
        raise OperatorError(where, f"the shape {list(raw.shape)} has a negative dimension")
    if math.prod(size or 1 for size in raw.shape) * element > MAXIMUM_TENSOR_SIZE:
        raise OperatorError(where, f"the shape {list(raw.shape)} takes more than 2 GiB")


def dequantized(tensor: Tensor) -> Array | None:
    """Return the real numbers of a constant, ``None`` if the tensor is not one, or if scales do not fit its shape.

    LiteRT multiplies in float32 if there is a scale for each channel.
    """
    quantization, data = tensor.quantization, tensor.data
    if quantization is None or data is None:
        return None
    if quantization.per_channel and data.shape[quantization.axis : quantization.axis + 1] != (
        len(quantization.scales),
    ):
        return None
    kind: type[Any] = np.float32 if quantization.per_channel else np.float64
    shape = [-1 if quantization.per_channel and axis == quantization.axis else 1 for axis in range(data.ndim)]
    scales = np.array(quantization.scales, kind).reshape(shape)
    zero_points = np.array(quantization.zero_points, np.int32).reshape(shape)
    with np.errstate(over="ignore"):
        return np.asarray((data.astype(np.int32) - zero_points).astype(kind) * scales, np.float32)


def _quantization(raw: RawTensor, data: Array | None, where: str) -> Quantization | None:
    if not raw.scales:
        return None
    zero_points = raw.zero_points * len(raw.scales) if len(raw.zero_points) == 1 else raw.zero_points
    axis = raw.axis if len(raw.shape) > 1 else 0  # converters also write the dimension of the weights for biases
    scales = raw.scales
    if data is not None and 0 in scales and len(zero_points) == len(scales):
        scales = _positive(scales, zero_points, axis, data)
    try:
        return Quantization(scales, zero_points, axis)
    except GraphError as error:
        raise OperatorError(where, error.reason) from None


def _positive(scales: Sequence[float], zero_points: Sequence[int], axis: int, data: Array) -> tuple[float, ...]:
    """Return ``scales`` with the least normal number instead of 0 where all of ``data`` is 0.0, whatever the scale is.

    Multipliers that follow from it are 0, as those that runtimes compute from a scale of 0.
    """
    per_channel = len(scales) > 1
    if per_channel and (axis >= data.ndim or data.shape[axis] != len(scales)):
        return tuple(scales)
    parts = np.moveaxis(data, axis, 0) if per_channel else data[np.newaxis]
    return tuple(
        _LEAST_SCALE if scale == 0 and np.all(part == zero_point) else scale
        for scale, zero_point, part in zip(scales, zero_points, parts, strict=True)
    )


def _data(raw: RawTensor, dtype: DType, where: str) -> Array | None:
    if raw.data is None:
        return None
    if raw.type == TensorType.INT4:
        return _unpacked(raw, raw.data, where)
    return _elements(raw, raw.data, dtype.numpy, where)


def _elements(raw: RawTensor, data: Array, dtype: np.dtype[Any], where: str) -> Array:
    """Return ``data``, the bytes of ``raw``, as elements of ``dtype``."""
    _check_size(raw, data, math.prod(raw.shape) * dtype.itemsize, where)
    return data.view(dtype).reshape(raw.shape)


def _unpacked(raw: RawTensor, data: Array, where: str) -> Array:
    """Return int4 elements, of which a byte holds two, the first one in its lower half, as int8."""
    count = math.prod(raw.shape)
    _check_size(raw, data, -(-count // 2), where)
    halves = data.view(np.int8)
    # An arithmetic shift to the left and back extends the sign of the lower half.
    pairs = np.stack([np.left_shift(halves, 4) >> 4, halves >> 4], axis=-1)
    return pairs.reshape(-1)[:count].reshape(raw.shape)


def _check_size(raw: RawTensor, data: Array, size: int, where: str) -> None:
    if data.size != size:
        raise DamagedFileError(where, f"holds {data.size} bytes, its shape {list(raw.shape)} needs {size}")
