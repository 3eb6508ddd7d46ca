"""In which order the dimensions of a tensor are stored.

ONNX counts the dimensions of images as batch, channel, height, width. A ``Value`` is a tensor of the graph together
with its ``order``: dimension i of the stored tensor is ONNX's dimension ``order[i]``.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.graph import Tensor

Order = tuple[int, ...]


def as_onnx(rank: int) -> Order:
    """Return the order in which nothing is moved."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """Return batch, height and width, then channels; as ONNX has it where there are no channels."""
    return (0, *range(2, rank), 1) if rank > 2 else as_onnx(rank)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the graph and the order of its dimensions."""

    tensor: Tensor
    order: Order

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.order)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as ONNX counts it."""
        return tuple(self.tensor.shape[self.stored(axis)] for axis in range(self.rank))

    def stored(self, axis: int) -> int:
        """Return the stored dimension that is ONNX's dimension ``axis``."""
        return self.order.index(axis)


def permutation(source: Order, target: Order) -> Order:
    """Return the axes by which numpy transposes a tensor stored in ``source`` to ``target``."""
    return tuple(source.index(axis) for axis in target)


def moves_data(shape: tuple[int, ...], order: Order) -> bool:
    """Whether transposing a tensor of ``shape`` by ``order`` moves any element: not where only sizes of 1 move."""
    kept = [axis for axis in order if shape[axis] > 1]
    return kept != sorted(kept)
