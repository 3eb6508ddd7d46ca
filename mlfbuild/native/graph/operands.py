"""The operands of a node by position: a required one is there, or the graph is wrong; an optional one may be absent.

A node names an absent operand ``None``, and may leave trailing ones out; both are the same here. ``inputs[0]`` is an
operand that the operator requires, ``inputs.optional(2)`` one that it can do without::

    source, weights, bias = inputs[0], inputs[1], inputs.optional(2)
    rows, points = inputs                # exactly two, both required
    tensors = inputs.present             # as many as there are
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar, overload

from mlfbuild.native.graph.tensors import Array, OperatorError, Tensor

Item = TypeVar("Item")
Other = TypeVar("Other")


class Operands(Generic[Item]):
    """What a node reads: its tensors (``Inputs``), or their values (``Values``), in the order of the operator.

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
        """Return the operand at ``index``, ``None`` if it is absent."""
        return self._items[index] if index < len(self._items) else None

    def with_operand(self, index: int, item: Item) -> Operands[Item]:
        """Return these operands with ``item`` at ``index``.

        ``index`` may be the position of an absent operand, but not one behind the last.
        """
        return Operands((*self._items[:index], item, *self._items[index + 1 :]), self.place)

    def map(self, function: Callable[[Item], Other]) -> Operands[Other]:
        """Return what ``function`` makes of each operand; absent ones stay absent."""
        return Operands((None if item is None else function(item) for item in self._items), self.place)

    @property
    def present(self) -> tuple[Item, ...]:
        """The operands that are there, in order."""
        return tuple(item for item in self._items if item is not None)


Inputs = Operands[Tensor]
Values = Operands[Array]
