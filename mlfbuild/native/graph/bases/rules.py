"""Rules that several operators share: each returns a reason, or ``None`` if the tensors satisfy it.

Reasons chain with ``or``, so that ``check`` of an operator reads as a list in which a rule may rely on those before it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from mlfbuild.native.graph.quantize import integer_range
from mlfbuild.native.graph.tensors import DType, Inputs, Tensor

Reason = str | None
_O = TypeVar("_O")
_Check = Callable[[_O, Inputs, Sequence[Tensor]], Reason]


class WrongShape(str):
    """A reason that would not apply if ``tensor`` had the shape ``wanted``, which readers of files may give it."""

    __slots__ = ("tensor", "wanted")

    tensor: Tensor
    wanted: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor, wanted: Sequence[int], reason: str = "") -> WrongShape:
        """Return ``reason``, by default one that names the shape."""
        made = cls(reason or f"{tensor} should have the shape {list(wanted)}")
        made.tensor, made.wanted = tensor, tuple(wanted)
        return made


ARITHMETIC = (DType.INT8, DType.FLOAT32)
"""The element types that most operators support."""

QUANTIZED = (DType.INT8, DType.INT16)
"""The element types that represent real numbers with a scale and a zero point."""


def operands(
    inputs: Inputs, outputs: Sequence[Tensor], required: int, optional: int = 0, *, results: int = 1
) -> Reason:
    """Check that there are ``required`` inputs, at most ``optional`` more, and ``results`` outputs.

    A reason names the numbers that are found and wanted. Inputs among the required ones may not be absent; optional
    ones may be. ``takes`` applies this rule to a whole ``check``.
    """
    if not required <= len(inputs) <= required + optional:
        wanted = f"{required} to {required + optional}" if optional else str(required)
        return f"has {len(inputs)} inputs, takes {wanted}"
    if len(inputs[:required].present) < required:
        return "a required input is absent"
    return None if len(outputs) == results else f"has {len(outputs)} outputs, writes {results}"


def takes(required: int, optional: int = 0, writes: int = 1) -> Callable[[_Check[_O]], _Check[_O]]:
    """Return a decorator of ``check`` with which it is only called for the right numbers of inputs and outputs.

    These are ``required`` inputs, at most ``optional`` more, and as many outputs as the operator ``writes``.
    """

    def decorate(check: _Check[_O]) -> _Check[_O]:
        @functools.wraps(check)
        def checked(self: _O, inputs: Inputs, outputs: Sequence[Tensor]) -> Reason:
            return operands(inputs, outputs, required, optional, results=writes) or check(self, inputs, outputs)

        return checked

    return decorate


def arithmetic(*tensors: Tensor, types: Sequence[DType] = ARITHMETIC) -> Reason:
    """Check that all ``tensors`` have the same type, one of ``types``, and are quantised if it has 8 or 16 bits.

    The reason names the first tensor with another type, or without a scale. Tensors of plain integers, bool and float32
    need no quantisation, and int16 must have the zero point 0.
    """
    first = tensors[0]
    for tensor in tensors:
        if tensor.dtype not in types:
            return f"{tensor}: the type must be {alternatives(types)}"
        if tensor.dtype is not first.dtype:
            return f"mixes {first} and {tensor}"
        reason = affine(tensor) if tensor.dtype in {*QUANTIZED, DType.UINT8} else None
        if reason is not None:
            return reason
    return None


def alternatives(types: Sequence[DType]) -> str:
    """Return ``types`` as words for reasons and hints: ``int8, int16 or float32``."""
    *others, last = (dtype.value for dtype in types)
    return f"{', '.join(others)} or {last}" if others else last


def affine(tensor: Tensor, *, offset: bool = False) -> Reason:
    """Check that ``tensor`` has one scale and a zero point in range; for int16 it must be 0, unless ``offset``.

    A scale per channel is refused, because activations have one scale. ``offset`` is for QUANTIZE, which also reads
    int16 with a zero point.
    """
    quantization = tensor.quantization
    if quantization is None:
        return f"{tensor} has no scale and zero point"
    if quantization.per_channel:
        return f"{tensor} must have one scale, has {len(quantization.scales)}"
    if tensor.dtype is DType.INT16 and quantization.zero_point != 0 and not offset:
        return f"{tensor} must have the zero point 0, as int16 always has"
    least, greatest = integer_range(tensor.dtype)
    if not least <= quantization.zero_point <= greatest:
        return f"{tensor}: zero point {quantization.zero_point} is outside {tensor.dtype.value}"
    return None


def parameters(
    weights: Tensor,
    bias: Tensor | None,
    channels: int,
    axis: int,
    biases: Sequence[DType] | None = None,
    *,
    offset: bool = False,
    computed: bool = False,
) -> Reason:
    """Check constant weights, int8 symmetric (one scale, or one for each of ``channels``) or float32, and their bias.

    The bias has one of the types ``biases``, by default int32 for int8 weights and float32 for float32 weights. With
    ``offset``, weights with one scale may have a zero point; with ``computed``, float32 weights need not be constant.
    """
    return (
        (
            None
            if weights.constant or (computed and weights.dtype is DType.FLOAT32)
            else f"the weights {weights} are not constant"
        )
        or (_scaled(weights, channels, axis, offset=offset) if weights.dtype is DType.INT8 else None)
        or (_bias(bias, weights, channels, biases) if bias is not None else None)
    )


def _scaled(weights: Tensor, channels: int, axis: int, *, offset: bool) -> Reason:
    quantization = weights.quantization
    if quantization is None:
        return f"the weights {weights} have no scale"
    if offset and not quantization.per_channel:
        return affine(weights)
    # Kernels fold the zero point of the inputs into the bias, and have none for weights
    # (``passes/fold_weight_offsets``).
    if any(quantization.zero_points):
        return f"the weights {weights} have a zero point that is not 0"
    if quantization.per_channel and (quantization.axis != axis or len(quantization.scales) != channels):
        return f"the weights {weights} have {len(quantization.scales)} scales along dimension {quantization.axis}"
    return None


def _bias(bias: Tensor, weights: Tensor, channels: int, types: Sequence[DType] | None) -> Reason:
    wanted = types or (DType.INT32 if weights.dtype is DType.INT8 else DType.FLOAT32,)
    if not bias.constant:
        return f"the bias {bias} is not constant"
    if bias.dtype not in wanted:
        return f"the bias {bias} must be {alternatives(wanted)}"
    return None if bias.elements == channels else f"the bias {bias} does not fit {channels} output channels"


def rank(tensor: Tensor, dimensions: int) -> Reason:
    """Check that ``tensor`` has ``dimensions`` dimensions.

    The reason is a ``WrongShape`` with sizes of 1, so that a frontend can give a tensor that many dimensions if its
    file leaves the shape open.
    """
    if len(tensor.shape) == dimensions:
        return None
    return WrongShape.of(tensor, (1,) * dimensions, f"{tensor} must have {dimensions} dimensions")


def vectors(tensor: Tensor) -> Reason:
    """Check that ``tensor`` has a last dimension, that of its vectors."""
    return None if tensor.shape else f"{tensor} has no dimension to go over"


def shape(tensor: Tensor, wanted: Sequence[int]) -> Reason:
    """Check that ``tensor`` has the shape ``wanted``.

    Sizes are compared one by one, so -1 is not a placeholder. The reason is a ``WrongShape``: a frontend gives the
    tensor this shape if its file leaves it open.
    """
    return None if tensor.shape == tuple(wanted) else WrongShape.of(tensor, wanted)


def broadcast(inputs: Sequence[Tensor], output: Tensor) -> Reason:
    """Check that ``output`` has the shape to which ``inputs`` broadcast, as in numpy.

    Sizes are equal or 1, from the last dimension on. If the inputs broadcast but ``output`` differs, the reason is a
    ``WrongShape`` with the right shape.
    """
    try:
        wanted = np.broadcast_shapes(*(tensor.shape for tensor in inputs))
    except ValueError:
        return f"{' and '.join(str(tensor) for tensor in inputs)} do not broadcast"
    return shape(output, wanted)


def same_elements(source: Tensor, output: Tensor) -> Reason:
    """Check that ``source`` and ``output`` have the same number of elements."""
    if source.elements == output.elements:
        return None
    return f"{source} has {source.elements} elements, {output} has {output.elements}"


def same_quantization(source: Tensor, output: Tensor) -> Reason:
    """Check that integer ``source`` and ``output`` have the same quantisation (scales within 1e-6, as in TFLite).

    For operators that copy or compare stored values. float32 has no scale, and tensors without a quantisation,
    such as indices, are accepted. A scale per channel is refused.
    """
    if source.dtype is DType.FLOAT32:
        return None
    for tensor in (source, output):
        if tensor.quantization is not None and tensor.quantization.per_channel:
            return affine(tensor)
    if source.quantization is None or output.quantization is None:
        return None
    # An absolute tolerance, as in TensorFlow Lite, also for scales that are smaller than it.
    if source.quantization.zero_point != output.quantization.zero_point or not math.isclose(
        source.quantization.scale, output.quantization.scale, rel_tol=0, abs_tol=1e-6
    ):
        return f"{source} and {output} must have the same scale and zero point"
    return None


def resting(tensor: Tensor) -> int:
    """Return the stored value of the number 0: the zero point if ``tensor`` is quantised.

    For padding and other elements that no input writes. float32, int32 and other types without a zero point rest at 0.
    """
    if tensor.quantization is None or tensor.dtype not in {*QUANTIZED, DType.UINT8}:
        return 0
    return tensor.quantization.zero_point


def first(reasons: Iterable[Reason]) -> Reason:
    """Return the first of ``reasons`` that is not ``None``."""
    return next((reason for reason in reasons if reason is not None), None)


def computable(*computations: Callable[[], object]) -> Reason:
    """Check that none of ``computations``, which compute multipliers and clamps, overflows.

    Each of them takes no arguments and raises ``OverflowError`` with the reason, which is returned. So a checked node
    can be lowered without another error.
    """
    try:
        for computation in computations:
            computation()
    # Factors are computed once here, so that lowering a checked graph cannot fail for them.
    except OverflowError as error:
        return str(error)
    return None


def typed(tensor: Tensor, dtype: DType) -> Reason:
    """Check that ``tensor`` has elements of ``dtype``."""
    return None if tensor.dtype is dtype else f"{tensor} must be {dtype.value}"


def within(what: str, value: int, least: int, greatest: int) -> Reason:
    """Check that the attribute ``what`` is between two bounds, which belong to the range.

    ``what`` is the name of the attribute as the file has it, because the reason quotes it.
    """
    return None if least <= value <= greatest else f"{what} {value} is not between {least} and {greatest}"
