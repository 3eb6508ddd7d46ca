"""Find parameters of operators that the declared shape of the result determines, although they are not constant.

A file may compute the shape of a Reshape in every run, or have it as an input, and declare a fixed shape for the
result. Any other value of the parameter would contradict the file, so the declared one is used. If several values fit,
such as the two axes that may be reduced from [2, 2] to [2], the shapes determine a choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mlfbuild.frontends.onnx.reader import RawNode

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Shapes:
    """A node with the shapes of its inputs, as computed, and of its outputs, as the file declares them."""

    node: RawNode
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape | None, ...]

    @property
    def made(self) -> Shape:
        """The declared shape of the first output."""
        assert self.outputs[0] is not None
        return self.outputs[0]

    @property
    def source(self) -> Shape | None:
        """The shape of the first input."""
        return self.inputs[0]

    def axis(self, default: int) -> int | None:
        """Return the attribute ``axis`` as an index of the result's dimensions."""
        axis = self.node.attributes.get("axis", default)
        return axis % len(self.made) if isinstance(axis, int) and -len(self.made) <= axis < len(self.made) else None


@dataclass(frozen=True)
class Choice:
    """Several possible values of a parameter. A value's number is the sum of the keys at its elements."""

    keys: tuple[int, ...]
    values: Mapping[int, tuple[int, ...] | int]


Values = tuple[int, ...] | int | Choice | None


def parameter(operator: str) -> int | None:
    """Return the position of the input that a declared shape may determine."""
    return _PARAMETERS[operator][0] if operator in _PARAMETERS else None


def implied(shapes: Shapes) -> np.ndarray | Choice | None:
    """Return the value of the parameter, or the possible ones, ``None`` if the shapes do not determine it."""
    if shapes.outputs[0] is None and shapes.node.operator not in _LIKE_THE_INPUT:
        return None
    found = _PARAMETERS[shapes.node.operator][1](shapes)
    return found if found is None or isinstance(found, Choice) else np.array(found, np.int64)


def _whole(shapes: Shapes) -> Values:
    return shapes.made


def _repeats(shapes: Shapes) -> Values:
    source = shapes.source
    if source is None or len(source) != len(shapes.made):
        return None
    pairs = list(zip(source, shapes.made, strict=True))
    return tuple(new // old for old, new in pairs) if all(new % old == 0 for old, new in pairs) else None


def _inserted(shapes: Shapes) -> Values:
    """Return any axes that fit: all give the same elements in the same order."""
    return _missing(shapes.source, shapes.made)


def _removed(shapes: Shapes) -> Values:
    return None if shapes.source is None else _missing(shapes.made, shapes.source)


def _missing(few: Shape | None, many: Shape) -> Values:
    """Return axes of size 1 in ``many`` without which it is ``few``."""
    if few is None or math.prod(few) != math.prod(many):
        return None
    axes, left = [], list(few)
    for axis, size in enumerate(many):
        if left and left[0] == size:
            left.pop(0)
        elif size == 1:
            axes.append(axis)
        else:
            return None
    return tuple(axes) if not left else None


def _reduced(shapes: Shapes) -> Values:
    """Return the reduced axes; one of size 1 does not matter if another one is reduced, too."""
    source, made = shapes.source, shapes.made
    if source is None:
        return None
    large = [axis for axis, size in enumerate(source) if size > 1]
    if shapes.node.attributes.get("keepdims", 1):
        if len(source) != len(made):
            return None
        axes = tuple(axis for axis in large if made[axis] != source[axis])
        return axes if axes and all(made[axis] in {1, source[axis]} for axis in range(len(made))) else None
    count = len(source) - len(made)
    found = {
        tuple(axis for axis in axes if source[axis] > 1): axes
        for axes in combinations(range(len(source)), count)
        if tuple(size for axis, size in enumerate(source) if axis not in axes) == made
    }
    if len(found) < 2 or count == 0:
        return next(iter(found.values())) if found and count > 0 else None
    keys = tuple(1 << axis if size > 1 else 0 for axis, size in enumerate(source))
    return Choice(keys, {sum(keys[axis] for axis in axes): axes for axes in found.values()})


def _accumulated(shapes: Shapes) -> Values:
    """Return any axis of the input, whose shape is also that of the result."""
    if not shapes.source:
        return None
    axes = tuple(range(len(shapes.source)))
    return 0 if len(axes) == 1 else Choice(axes, {axis: axis for axis in axes})


def _length(shapes: Shapes) -> Values:
    return shapes.made[0] if len(shapes.made) == 1 else None


def _pieces(shapes: Shapes) -> Values:
    axis = shapes.axis(0)
    sizes = [None if shape is None or axis is None else shape[axis] for shape in shapes.outputs]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def _size(default: int) -> Callable[[Shapes], Values]:
    def found(shapes: Shapes) -> Values:
        axis = shapes.axis(default)
        return None if axis is None else (shapes.made[axis],)

    return found


def _resized(shapes: Shapes) -> Values:
    policy = shapes.node.attributes.get("keep_aspect_ratio_policy", "stretch")
    return _on_axes(shapes) if policy == "stretch" else None


def _on_axes(shapes: Shapes) -> Values:
    axes = shapes.node.attributes.get("axes", tuple(range(len(shapes.made))))
    if not isinstance(axes, tuple):
        return None
    whole = [axis for axis in axes if isinstance(axis, int) and -len(shapes.made) <= axis < len(shapes.made)]
    return tuple(shapes.made[axis] for axis in whole) if len(whole) == len(axes) else None


_LIKE_THE_INPUT = frozenset({"CumProd", "CumSum"})
"""Operators whose parameters do not change the shape of the result."""

_PARAMETERS: Mapping[str, tuple[int, Callable[[Shapes], Values]]] = {
    "CenterCropPad": (1, _on_axes),
    "ConstantOfShape": (0, _whole),
    "Expand": (1, _whole),
    "MaxUnpool": (2, _whole),
    "OneHot": (1, _size(-1)),
    "Reshape": (1, _whole),
    "Resize": (3, _resized),
    "Split": (1, _pieces),
    "Squeeze": (1, _removed),
    "Tile": (1, _repeats),
    "TopK": (1, _size(-1)),
    "Unsqueeze": (1, _inserted),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), (0, _length)),
    **dict.fromkeys(sorted(_LIKE_THE_INPUT), (1, _accumulated)),
    **dict.fromkeys(
        (
            "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
            "ReduceProd", "ReduceSum", "ReduceSumSquare",
        ),
        (1, _reduced),
    ),
}  # fmt: skip
