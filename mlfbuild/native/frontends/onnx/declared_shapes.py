"""Find parameters of operators that the declared shape of the result determines, although they are not constant.

A file may compute the shape of a Reshape in every run, or have it as an input, and declare a fixed shape for the
result. Any other value of the parameter would contradict the file, so the declared one is used. If several values fit,
such as the two axes that may be reduced from [2, 2] to [2], the shapes determine a choice.
An operator is then computed with each of them, and one of the results is selected in every run (``one_of``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.onnx.inlining import Body
from mlfbuild.native.frontends.onnx.raw_graph import RawNode

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Shapes:
    """A node with the shapes of its inputs, as computed, and of its outputs, as the file declares them."""

    node: RawNode
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape | None, ...]

    @property
    def made(self) -> Shape:
        """The declared shape of the first output, no dimensions if there is none."""
        return self.outputs[0] or ()

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
Parameters = tuple[tuple[int, Callable[[Shapes], Values]], ...]

_SAME_SHAPE = frozenset({
    "Abs", "BatchNormalization", "Cast", "CastLike", "Ceil", "Clip", "Cos", "Dropout", "Elu", "Erf", "Exp", "Floor",
    "Gelu", "HardSigmoid", "HardSwish", "Identity", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "Neg",
    "Not", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softmax", "Softplus", "Sqrt", "Tanh",
})  # fmt: skip
"""Operators whose result has the shape of their first input."""


def all_declared(nodes: Sequence[RawNode], shapes: Mapping[str, Shape]) -> Mapping[str, Shape]:
    """Return ``shapes``, and those of tensors from which operators make a declared one of the same shape."""
    found = dict(shapes)
    # Backwards, so that one pass follows a chain of such operators.
    for node in reversed(nodes):
        if node.operator in _SAME_SHAPE and node.inputs and node.outputs[:1] and node.outputs[0] in found:
            found.setdefault(node.inputs[0], found[node.outputs[0]])
    return found


def parameters(operator: str) -> tuple[int, ...]:
    """Return the positions of the inputs that a declared shape may determine."""
    return tuple(index for index, _ in _of(operator))


def _of(operator: str) -> Parameters:
    return (_PARAMETERS[operator],) if operator in _PARAMETERS else _SEVERAL.get(operator, ())


def implied(shapes: Shapes, index: int) -> np.ndarray | Choice | None:
    """Return the value of the parameter at ``index``, or the possible ones, ``None`` if they are not determined.

    ``index`` is an input of the node. A ``Choice`` has several values that fit, between which a computed sum of keys
    decides.
    """
    if shapes.outputs[0] is None and shapes.node.operator not in _LIKE_THE_INPUT:
        return None
    found = dict(_of(shapes.node.operator))[index](shapes)
    return found if found is None or isinstance(found, Choice) else np.array(found, np.int64)


def _whole(shapes: Shapes) -> Values:
    return shapes.made


def _repeats(shapes: Shapes) -> Values:
    source = shapes.source
    if source is None or len(source) != len(shapes.made):
        return None
    pairs = list(zip(source, shapes.made, strict=True))
    # Every axis must divide: otherwise the declared shape contradicts the repetition.
    return tuple(new // old for old, new in pairs) if all(old and new % old == 0 for old, new in pairs) else None


def _missing(few: Shape | None, many: Shape) -> Values:
    """Return axes of size 1 in ``many`` without which it is ``few``."""
    if few is None or math.prod(few) != math.prod(many):
        return None
    # Greedy is right: which of several equal sizes is left out changes neither order nor elements.
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
    """Return the reduced axes; one of size 1 does not matter if another one is also reduced."""
    source, made = shapes.source, shapes.made
    if source is None:
        return None
    # Axes of 1 in the source may be reduced or not, without a difference in the result.
    large = [axis for axis, size in enumerate(source) if size != 1]
    if shapes.node.attributes.get("keepdims", 1):
        if len(source) != len(made):
            return None
        axes = tuple(axis for axis in large if made[axis] != source[axis])
        return axes if axes and all(made[axis] in {1, source[axis]} for axis in range(len(made))) else None
    count = len(source) - len(made)
    # A tensor of many dimensions would have too many sets.
    if count < 0 or math.comb(len(source), count) > _MOST_SETS:
        return None
    found = {
        tuple(axis for axis in axes if source[axis] > 1): axes
        for axes in combinations(range(len(source)), count)
        if tuple(size for axis, size in enumerate(source) if axis not in axes) == made
    }
    # A single possibility needs no choice at run time.
    if len(found) < 2 or count == 0:
        return next(iter(found.values())) if found and count > 0 else None
    # A sum of such keys identifies a set of axes; those of size 1 do not count, as reducing them changes nothing.
    keys = tuple(1 << axis if size > 1 else 0 for axis, size in enumerate(source))
    return Choice(keys, {sum(keys[axis] for axis in axes): axes for axes in found.values()})


_MOST_SETS = 10000
"""Sets of axes that are tried."""


def _accumulated(shapes: Shapes) -> Values:
    """Return any axis of the input, whose shape is also that of the result."""
    if not shapes.source:
        return None
    axes = tuple(range(len(shapes.source)))
    return 0 if len(axes) == 1 else Choice(axes, {axis: axis for axis in axes})


def _length(shapes: Shapes) -> Values:
    return shapes.made[0] if len(shapes.made) == 1 else None


def _grid(shapes: Shapes) -> Values:
    """Return the sizes of an image for a grid; the number of channels does not matter."""
    return (shapes.made[0], 1, *shapes.made[1:-1]) if len(shapes.made) > 2 else None


def _pieces(shapes: Shapes) -> Values:
    axis = shapes.axis(0)
    sizes = [
        None if shape is None or axis is None or len(shape) != len(shapes.made) else shape[axis]
        for shape in shapes.outputs
    ]
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


def _transformed(shapes: Shapes) -> Values:
    """Return the axes of a DFT that fit, if its length is that of the input."""
    source, made, attributes = shapes.source, shapes.made, shapes.node.attributes
    if source is None or len(source) != len(made) or len(source) < 2 or shapes.node.inputs[1]:
        return None
    half, inverse = attributes.get("onesided", 0), attributes.get("inverse", 0)
    # Half of a spectrum has size // 2 + 1 bins; its inverse has an even number of samples by default.
    bins = [2 * (size - 1) if inverse else size // 2 + 1 for size in source] if half else list(source)
    fit = [axis for axis in range(len(source) - 1) if (*source[:axis], bins[axis], *source[axis + 1 : -1]) == made[:-1]]
    return Choice(tuple(range(len(source))), {axis: axis for axis in fit}) if len(fit) > 1 else next(iter(fit), None)


def _framed(shapes: Shapes) -> tuple[int, int] | None:
    """Return the only step and length of the frames of an STFT that fit."""
    source, made = shapes.source, shapes.made
    window = shapes.inputs[2] if len(shapes.inputs) > 2 and shapes.node.inputs[2] else None
    if source is None or len(source) < 2 or len(made) != 4:
        return None
    frames, bins = made[1:3]
    half = shapes.node.attributes.get("onesided", 1)
    # Two lengths have the same number of bins if only half of the spectrum is there.
    lengths = window or ((2 * bins - 2, 2 * bins - 1) if half else (bins,))
    found = [(_strides(source[1] - length, frames), length) for length in lengths if 0 < length <= source[1]]
    fit = [(steps[0], length) for steps, length in found if steps]
    # Only if a single pair of step and length fits is the value determined.
    return fit[0] if sum(len(steps) for steps, _ in found) == 1 else None


def _strides(room: int, frames: int) -> range:
    """Return the steps by which the last of ``frames`` is moved by at most ``room``, and another one by more."""
    if frames < 2:
        return range(1, 2 if frames == 1 and room == 0 else 1)
    return range(room // frames + 1, room // (frames - 1) + 1)


def _step(shapes: Shapes) -> Values:
    found = _framed(shapes)
    return None if found is None else found[0]


def _frame(shapes: Shapes) -> Values:
    found = _framed(shapes)
    return None if found is None else found[1]


def _block(shapes: Shapes) -> Values:
    """Return the only window of a Col2Im that has as many elements, and fits as often."""
    source, image = shapes.source, shapes.made[2:]
    count = len(image)
    if source is None or len(source) != 3 or not 1 <= count <= 3 or source[1] % shapes.made[1]:
        return None
    lists = [shapes.node.attributes.get(name, default) for name, default in
             (("strides", (1,) * count), ("dilations", (1,) * count), ("pads", (0,) * 2 * count))]  # fmt: skip
    numbers = [tuple(number for number in each if isinstance(number, int)) for each in lists if isinstance(each, tuple)]
    if [len(each) for each in numbers] != [count, count, 2 * count]:
        return None
    strides, dilations, pads = (np.array(each, np.int64) for each in numbers)
    if min(*strides, *dilations) < 1:
        return None
    taps, room = source[1] // shapes.made[1], np.array(image) + pads[:count] + pads[-count:] - 1
    # Sizes of windows whose product is the number of taps, so that the search is short.
    found = [
        block
        for block in _blocks(taps, [min(int(size), _LARGEST) for size in room // dilations + 1])
        if ((room - dilations * (np.array(block) - 1)) // strides + 1).prod() == source[2]
    ]
    return found[0] if len(found) == 1 else None


# Larger ones would make the search slow; no image for a microcontroller has them.
_LARGEST = 1 << 12
"""The greatest size of a window that is tried."""


def _blocks(taps: int, limits: Sequence[int]) -> list[Shape]:
    """Return the sizes of windows of ``taps`` elements, none of which is above its limit."""
    if len(limits) == 1:
        return [(taps,)] if taps <= limits[0] else []
    sizes = [size for size in range(1, min(taps, limits[0]) + 1) if taps % size == 0]
    return [(size, *rest) for size in sizes for rest in _blocks(taps // size, limits[1:])]


_LIKE_THE_INPUT = frozenset({"CumProd", "CumSum"})
"""Operators whose parameters do not change the shape of the result."""

_PARAMETERS: Mapping[str, tuple[int, Callable[[Shapes], Values]]] = {
    "AffineGrid": (1, _grid),
    "CenterCropPad": (1, _on_axes),
    "ConstantOfShape": (0, _whole),
    "DFT": (2, _transformed),
    "Expand": (1, _whole),
    "MaxUnpool": (2, _whole),
    "OneHot": (1, _size(-1)),
    "Reshape": (1, _whole),
    "Resize": (3, _resized),
    "Split": (1, _pieces),
    "Squeeze": (1, lambda shapes: None if shapes.source is None else _missing(shapes.made, shapes.source)),
    "Tile": (1, _repeats),
    "TopK": (1, _size(-1)),
    "Unsqueeze": (1, lambda shapes: _missing(shapes.source, shapes.made)),  # all that fit give the same elements
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

_SEVERAL: Mapping[str, Parameters] = {
    "Col2Im": ((1, lambda shapes: shapes.made[2:] if len(shapes.made) > 2 else None), (2, _block)),
    "STFT": ((1, _step), (3, _frame)),
}


# All results are computed in every run.
MOST = 8
"""Values of one parameter."""


def one_of(body: Body, index: int, choice: Choice) -> Iterator[RawNode]:
    """Yield the nodes that compute the node of ``body`` with the value in ``choice`` that its input ``index`` has."""
    node, name = body.node, body.node.inputs[index]
    if len(choice.values) > MOST:
        raise UnsupportedModelError(
            "input-not-constant",
            place=node.place,
            reason=f"{name!r} must be constant, because it may have {len(choice.values)} values",
            hint=f"make it constant, or declare a shape of the result that at most {MOST} values lead to",
        )
    body.around.notes.append(
        f"{node.place}: {len(choice.values)} results are computed, because {name!r} is computed in every run"
    )
    row, each, key = body.name("row"), body.name("keys of the elements"), body.name("key")
    yield body.make("Reshape", [name, body.number("one dimension", np.array([-1]))], row)
    yield body.make("Gather", [body.number("keys", np.array(choice.keys)), row], each, {"axis": 0})
    yield body.make("ReduceSum", [each], key, {"keepdims": 0})
    selected = ""
    for position, (number, value) in enumerate(choice.values.items()):
        known = body.number(f"value {position}", np.array(value, np.int64))
        made = body.name("result", position)
        yield replace(node, inputs=(*node.inputs[:index], known, *node.inputs[index + 1 :]), outputs=(made,))
        if selected:
            last = position == len(choice.values) - 1
            equal, result = body.name("is", position), node.outputs[0] if last else body.name("selected", position)
            yield body.make("Equal", [key, body.number(f"key {position}", np.array(number, np.int64))], equal)
            yield from body.selected(equal, made, selected, result)
            made = result
        selected = made
