"""Compare the networks of two model files, tensor by tensor, the largest change first.

Operators are paired by position if both networks have the same kinds in the same order, because a new training often
changes names, and by the name of their first output otherwise. Weights are compared as real numbers, so that a change
of a scale alone counts with its effect, and is not counted if the quantised values compensate it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mlfbuild.archive.compare.arrays import differing_elements
from mlfbuild.archive.compare.library_difference import LibraryDifference, change
from mlfbuild.native import Array, Graph, Node, Tensor

_PLAIN = (bool, int, float, str, enum.Enum, type(None))
"""Types of the attributes of operators that are compared; others are networks and tables."""


@dataclass(frozen=True)
class _Found:
    """A difference, and its size relative to the largest weight; infinite if the structure differs."""

    size: float
    difference: LibraryDifference


def network_differences(module: str, left: Graph, right: Graph) -> list[LibraryDifference]:
    """Return the differences of operators and tensors of ``right`` from ``left``, the largest change first.

    Each has the ``module``, the kind ``tensor``, and the tensor's name in ``left``. Operators, attributes and shapes
    come first, in the order of the network, then weights by the largest difference relative to the largest weight, then
    the types and quantisation of computed tensors.
    """
    pairs, single = _paired(left, right)
    found = [*single]
    for index, (before, after) in enumerate(pairs):
        place = f"{before.operator.name} {index}"
        found += _attributes(place, before, after)
        sides = zip(left.inputs_of(before).present, right.inputs_of(after).present, strict=False)
        results = zip(left.outputs_of(before), right.outputs_of(after), strict=False)
        for old, new in (*((a, b) for a, b in sides if a.constant and b.constant), *results):
            found += _tensors(place, old, new)
    ports = zip(left.inputs, right.inputs, strict=False)
    found += [each for old, new in ports for each in _tensors("input", left.tensor(old), right.tensor(new))]
    # Stable, so that equal sizes stay in the order of the network.
    found.sort(key=lambda each: -each.size)
    return [replace(each.difference, module=module) for each in found]


_MANY_TIMES = 10.0
"""From this relative size on, percent are hard to read."""
_COMPUTED = -1.0
"""The size of changes of computed tensors, below every weight: they follow from the weights."""


def _difference(name: str, left: Any, right: Any, text: str, size: float = math.inf) -> _Found:
    return _Found(size, LibraryDifference(None, "tensor", name, left, right, text))


def _paired(left: Graph, right: Graph) -> tuple[list[tuple[Node, Node]], list[_Found]]:
    """Return the operators that belong together, and a difference for each that has no partner."""
    if [node.operator.name for node in left.nodes] == [node.operator.name for node in right.nodes]:
        return list(zip(left.nodes, right.nodes, strict=True)), []
    before, after = ({node.outputs[0]: node for node in graph.nodes} for graph in (left, right))
    pairs = [
        (old, after[name])
        for name, old in before.items()
        if name in after and old.operator.name == after[name].operator.name
    ]
    paired = {old.outputs[0] for old, _ in pairs}
    gone = [node for name, node in before.items() if name not in paired]
    single = [_difference(node.outputs[0], True, None, f"{node.operator.name} only in the first") for node in gone]
    more = [node for name, node in after.items() if name not in paired]
    single += [_difference(node.outputs[0], None, True, f"{node.operator.name} only in the second") for node in more]
    return pairs, single


def _attributes(place: str, left: Node, right: Node) -> Iterator[_Found]:
    before, after = (
        {each.name: getattr(node.operator, each.name) for each in fields(node.operator)} for node in (left, right)
    )
    changed = {name: value for name, value in before.items() if _is_plain(value) and value != after.get(name)}
    if changed:
        words = [
            f"{name.replace('_', ' ')} {change(_word(old), _word(after.get(name)))}" for name, old in changed.items()
        ]
        old, new = ({name: _word(side.get(name)) for name in changed} for side in (before, after))
        yield _difference(left.outputs[0], old, new, f"{place}: {', '.join(words)}")


def _is_plain(value: object) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))


def _word(value: object) -> str:
    return value.name.lower() if isinstance(value, enum.Enum) else str(value)


def _tensors(place: str, left: Tensor, right: Tensor) -> Iterator[_Found]:
    """Yield at most one difference of two tensors, as one of its parts usually explains the others."""
    old, new = ({"dtype": each.dtype.value, "shape": list(each.shape)} for each in (left, right))
    words = change(*(f"{each.dtype.value}{list(each.shape)}" for each in (left, right)))
    if left.shape != right.shape:
        yield _difference(left.name, old, new, f"{place}: {words}")
    elif left.data is not None and right.data is not None:
        yield from _weights(place, left, right)
    elif left.dtype != right.dtype:
        yield _difference(left.name, old, new, f"{place}: {words}", _COMPUTED)
    elif left.quantization != right.quantization:
        before, after = _scales(left), _scales(right)
        words = ", ".join(
            f"{name.replace('_', ' ')} {change(before.get(name), after.get(name))}"
            for name in ("scale", "zero_point")
            if before.get(name) != after.get(name)
        )
        yield _difference(left.name, before, after, f"{place}: {words}", _COMPUTED)


def _scales(tensor: Tensor) -> dict[str, Any]:
    found = tensor.quantization
    if found is None:
        return {}
    scales = [float(f"{scale:.6g}") for scale in found.scales]
    return {
        "scale": scales if found.per_channel else scales[0],
        "zero_point": list(found.zero_points) if found.per_channel else found.zero_points[0],
    }


def _weights(place: str, left: Tensor, right: Tensor) -> Iterator[_Found]:
    old, new = _real(left), _real(right)
    differing, most = differing_elements(old, new)
    if not differing:
        return
    largest = float(np.max(np.abs(old), initial=0.0, where=np.isfinite(old)))
    size = math.inf if most is None else most / largest if largest else most
    share = ""
    if largest and math.isfinite(size):
        share = f", {100 * size:.3g} % of the largest" if size < _MANY_TIMES else f", {size:.3g} times the largest"
    by = "" if most is None else f", by at most {most:.4g}{share}"
    facts = {"elements": left.elements, "differing": differing, "max_difference": most, "largest": largest}
    types = "" if left.dtype is right.dtype else f"{change(left.dtype.value, right.dtype.value)}, "
    text = f"{place}: {types}{differing:,} of {left.elements:,} elements differ{by}"
    yield _difference(left.name, {"dtype": left.dtype.value}, {"dtype": right.dtype.value, **facts}, text, size)


def _real(tensor: Tensor) -> Array:
    """Return the values of a constant as float64, without its quantisation."""
    # +0.0 makes one zero of both: -0.0 is no other weight.
    values = tensor.known.astype(np.float64) + 0.0
    found = tensor.quantization
    if found is None:
        return values
    shape = [-1 if at == found.axis else 1 for at in range(values.ndim)] if found.per_channel else []
    scales, zeros = (np.array(each, np.float64).reshape(shape) if shape else each[0]
                     for each in (found.scales, found.zero_points))  # fmt: skip
    return np.asarray((values - zeros) * scales)
