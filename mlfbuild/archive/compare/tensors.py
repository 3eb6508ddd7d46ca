"""Compare inputs and outputs in call order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlfbuild.archive.compare.library_difference import LibraryDifference, change
from mlfbuild.library import Module, TensorInfo

_FIELDS = ("dtype", "size", "shape", "scale", "zero_point")


def tensor_differences(
    module: str, what: str, left: Sequence[TensorInfo], right: Sequence[TensorInfo]
) -> Iterator[LibraryDifference]:
    """Yield differences between the inputs or outputs of one module; none if they are unknown on one side.

    The order is part of the meaning, because it is the order of the arguments.
    """
    if not left or not right:
        return
    sides = [{tensor.name: tensor for tensor in side} for side in (left, right)]
    old, new = ([name for name in side if name in sides[0] and name in sides[1]] for side in sides)
    for name in [*sides[0], *(name for name in sides[1] if name not in sides[0])]:
        if name not in sides[1]:
            yield LibraryDifference(module, what, name, _type(sides[0][name]), None, "only in the first")
        elif name not in sides[0]:
            yield LibraryDifference(module, what, name, None, _type(sides[1][name]), "only in the second")
        else:
            yield from _changes(module, what, sides[0][name], sides[1][name])
    if old != new:
        yield LibraryDifference(module, what, "", old, new, f"order {change(', '.join(old), ', '.join(new))}")


def _changes(module: str, what: str, left: TensorInfo, right: TensorInfo) -> Iterator[LibraryDifference]:
    """Yield a difference for each property that is known on both sides and differs."""
    for key in _FIELDS:
        first, second = _plain(getattr(left, key)), _plain(getattr(right, key))
        if first != second and first is not None and second is not None:
            yield LibraryDifference(
                module, what, left.name, first, second, f"{key.replace('_', ' ')} {change(first, second)}"
            )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _type(tensor: TensorInfo) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "size": tensor.size, "shape": _plain(tensor.shape)}


def tensor_notes(left: Module, right: Module) -> Iterator[str]:
    """Yield a note for inputs or outputs that are known for only one of two modules."""
    for what in ("inputs", "outputs"):
        first, second = getattr(left, what), getattr(right, what)
        if bool(first) != bool(second):
            yield f"{left.name}: the {what} are known only in the {'first' if first else 'second'}"
