"""The order in which the dimensions of a tensor are stored, and the stored element type.

ONNX counts the dimensions of images as batch, channel, height, width. A ``Value`` is a tensor of the graph together
with its ``order``: dimension i of the stored tensor is ONNX's dimension ``order[i]``.

The ``dtype`` of a value is ONNX's. If it is float32 and the tensor is int8 or int16, the value is *held* quantised: the
tensor's scale and zero point give the real numbers. If it is uint8 and the tensor is int8, the elements and the zero
point of the tensor are lower by 128.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.native.graph import DType, Quantization, Tensor

Order = tuple[int, ...]

UNSIGNED_OFFSET = 128
"""Subtracted from uint8 elements to hold them as int8."""


def as_onnx(rank: int) -> Order:
    """Return ONNX's own order of dimensions."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """Return the order with the channels moved to the end; ONNX's own order if ``rank`` has no channels.

    For example, (0, 2, 3, 1) for images and (0, 2, 1) for sequences; (0, 1) for a matrix, which has no positions to
    move channels behind.
    """
    return (0, *range(2, rank), 1) if rank > 2 else as_onnx(rank)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the graph, the order of its dimensions, and the type that ONNX gives it.

    ``shape``, ``rank`` and ``dtype`` are ONNX's; those of ``tensor`` are the stored ones. For example, an image [1, 3,
    8, 9] in ONNX has a tensor [1, 8, 9, 3] and the order (0, 2, 3, 1): ``stored(1)`` is 3.
    """

    tensor: Tensor
    order: Order
    declared: DType | None = None
    """ONNX's type, if the tensor has a different one."""
    labels: tuple[str, ...] = ()
    """The texts that the integers are positions of, or the names of the last dimension of numbers."""

    @property
    def dtype(self) -> DType:
        """ONNX's type."""
        return self.declared or self.tensor.dtype

    @property
    def plain(self) -> bool:
        """Whether the tensor has ONNX's own type."""
        return self.dtype is self.tensor.dtype

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.order)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as ONNX counts it."""
        return tuple(self.tensor.shape[self.stored(axis)] for axis in range(self.rank))

    @property
    def quantization(self) -> Quantization | None:
        """The quantisation of a held float32 value; ``None`` for any other value."""
        return self.tensor.quantization if self.dtype is DType.FLOAT32 else None

    def stored(self, axis: int) -> int:
        """Return the index of ONNX's dimension ``axis`` among the stored dimensions."""
        return self.order.index(axis)

    def moved(self, tensor: Tensor, order: Order | None = None) -> Value:
        """Return a value like this one for ``tensor``, whose order is ONNX's by default."""
        return Value(tensor, as_onnx(len(tensor.shape)) if order is None else order, self.declared, self.labels)


def permutation(source: Order, target: Order) -> Order:
    """Return the axes for numpy's ``transpose`` from the order ``source`` to the order ``target``.

    For example, from (0, 1, 2, 3) to (0, 2, 3, 1) it is (0, 2, 3, 1), and back (0, 3, 1, 2).
    """
    return tuple(source.index(axis) for axis in target)


def moves_data(shape: tuple[int, ...], order: Order) -> bool:
    """Return whether transposing a tensor of ``shape`` by ``order`` moves elements in memory.

    Dimensions of 1 have no place in memory, so that exchanging them with others moves nothing.
    """
    kept = [axis for axis in order if shape[axis] > 1]
    return kept != sorted(kept)
