"""In which order the dimensions of a tensor are stored, and as which type.

ONNX counts the dimensions of images as batch, channel, height, width. A ``Value`` is a tensor of the graph together
with its ``order``: dimension i of the stored tensor is ONNX's dimension ``order[i]``.

Its ``dtype`` is ONNX's. If that is float32 and the tensor int8 or int16, the value is *held* quantised: the real
numbers are what the tensor's scale and zero point make of its elements. If it is uint8 and the tensor int8, all
elements and the zero point are 128 lower.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.graph import DType, Quantization, Tensor

Order = tuple[int, ...]

UNSIGNED_OFFSET = 128
"""What is taken off a uint8 tensor to hold it as int8."""


def as_onnx(rank: int) -> Order:
    """Return the order in which nothing is moved."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """Return batch, height and width, then channels; as ONNX has it if there are no channels."""
    return (0, *range(2, rank), 1) if rank > 2 else as_onnx(rank)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the graph, the order of its dimensions, and the type that ONNX gives it."""

    tensor: Tensor
    order: Order
    declared: DType | None = None
    """ONNX's type if the tensor has another one."""

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
        """What a held float32 means by its elements; ``None`` for any other value."""
        return self.tensor.quantization if self.dtype is DType.FLOAT32 else None

    def stored(self, axis: int) -> int:
        """Return the stored dimension that is ONNX's dimension ``axis``."""
        return self.order.index(axis)

    def moved(self, tensor: Tensor, order: Order | None = None) -> Value:
        """Return ``tensor``, which holds elements of this value, as a value; in ONNX's order by default."""
        return Value(tensor, as_onnx(len(tensor.shape)) if order is None else order, self.declared)


def permutation(source: Order, target: Order) -> Order:
    """Return the axes by which numpy transposes a tensor stored in ``source`` to ``target``."""
    return tuple(source.index(axis) for axis in target)


def moves_data(shape: tuple[int, ...], order: Order) -> bool:
    """Whether transposing a tensor of ``shape`` by ``order`` moves any element: not if only sizes of 1 move."""
    kept = [axis for axis in order if shape[axis] > 1]
    return kept != sorted(kept)
