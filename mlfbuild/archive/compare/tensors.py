"""Inputs and outputs compared in call order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlfbuild.archive.compare.types import Difference, told
from mlfbuild.library import Module, TensorInfo

_FIELDS = ("dtype", "size", "shape", "scale", "zero_point")


def tensor_differences(
    module: str, what: str, left: Sequence[TensorInfo], right: Sequence[TensorInfo]
) -> Iterator[Difference]:
    """Yield differences of the inputs or outputs of one module; nothing where one side does not tell any.

    The order is part of the meaning: it is the order of the arguments.
    """
    if not left or not right:
        return
    sides = [{tensor.name: tensor for tensor in side} for side in (left, right)]
    old, new = ([name for name in side if name in sides[0] and name in sides[1]] for side in sides)
    for name in [*sides[0], *(name for name in sides[1] if name not in sides[0])]:
        if name not in sides[1]:
            yield Difference(module, what, name, _type(sides[0][name]), None, "only in the first")
        elif name not in sides[0]:
            yield Difference(module, what, name, None, _type(sides[1][name]), "only in the second")
        else:
            yield from _changes(module, what, sides[0][name], sides[1][name])
    if old != new:
        yield Difference(module, what, "", old, new, f"order {told(', '.join(old), ', '.join(new))}")


def _changes(module: str, what: str, left: TensorInfo, right: TensorInfo) -> Iterator[Difference]:
    """Yield a difference for each property that both sides tell and tell differently."""
    for key in _FIELDS:
        first, second = _plain(getattr(left, key)), _plain(getattr(right, key))
        if first != second and first is not None and second is not None:
            yield Difference(module, what, left.name, first, second, f"{key.replace('_', ' ')} {told(first, second)}")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _type(tensor: TensorInfo) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "size": tensor.size, "shape": _plain(tensor.shape)}


def tensor_notes(left: Module, right: Module) -> Iterator[str]:
    """Yield a note for inputs or outputs that only one of two modules tells."""
    for what in ("inputs", "outputs"):
        first, second = getattr(left, what), getattr(right, what)
        if bool(first) != bool(second):
            yield f"{left.name}: only the {'first' if first else 'second'} tells its {what}"
