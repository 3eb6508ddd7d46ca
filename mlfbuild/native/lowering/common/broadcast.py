"""Describe shapes that broadcast, for the loops of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import Node, Tensor
from mlfbuild.native.lowering.call import struct_lines, unsupported

_DIMENSIONS = 6
_OPERANDS = ("first", "second", "third")


def broadcast_lines(node: Node, sources: Sequence[Tensor], output: Tensor, c_type: str) -> Sequence[str]:
    """Return the local struct ``shape``: sizes, and the strides of each of ``sources``.

    Adjacent dimensions are merged if the same operands repeat along both. Raises ``UnsupportedModelError`` if too many
    remain.
    """
    rank = len(output.shape)
    shapes = [(1,) * (rank - len(tensor.shape)) + tensor.shape for tensor in sources]
    merged: list[tuple[int, tuple[bool, ...]]] = []
    for axis, size in enumerate(output.shape):
        repeats = tuple(shape[axis] == 1 for shape in shapes)
        if size == 1:
            continue
        # Adjacent dimensions with the same operands are one loop: most broadcasts have two or three left.
        if merged and merged[-1][1] == repeats:
            merged[-1] = (merged[-1][0] * size, repeats)
        else:
            merged.append((size, repeats))
    if len(merged) > _DIMENSIONS:
        names = " and ".join(str(tensor) for tensor in sources)
        raise unsupported(node, f"{names} broadcast over more than {_DIMENSIONS} dimensions")
    merged = [(1, (True,) * len(sources))] * (_DIMENSIONS - len(merged)) + merged
    fields = {"sizes": braces([size for size, _ in merged])}
    for operand in range(len(sources)):
        fields[f"{_OPERANDS[operand]}_strides"] = braces(_strides(merged, operand))
    return struct_lines(c_type, "shape", fields)


def _strides(merged: list[tuple[int, tuple[bool, ...]]], operand: int) -> list[int]:
    strides = []
    step = 1
    for size, repeats in reversed(merged):
        strides.append(0 if repeats[operand] else step)
        step *= 1 if repeats[operand] else size
    return strides[::-1]


def in_place(sources: Sequence[Tensor], output: Tensor) -> tuple[int, ...]:
    """Return the positions of ``sources`` that the output may overwrite: kernels read elements in order.

    Only inputs with as many elements and bytes for each as the output. An input that is repeated is read again later,
    and elements that grow would overwrite those that are not read yet.
    """
    return tuple(
        at
        for at, source in enumerate(sources)
        if source.elements == output.elements and source.dtype.size == output.dtype.size
    )
