"""One operator of a file with its tensors and options, and the rows that make operators of the graph.

``TfliteSite`` is what rows read, and has the errors that they raise.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.BuiltinOptions import BuiltinOptions
from tflite.Padding import Padding as PaddingMode

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.tflite.reader import SEE, reading
from mlfbuild.native.graph import Activation, Array, DType, GraphError, Operator, OperatorError, Tensor
from mlfbuild.native.graph.bases import Binary, Padding, Pair, WrongShape, resolve_padding

ACTIVATIONS = {
    ActivationFunctionType.NONE: Activation.NONE,
    ActivationFunctionType.RELU: Activation.RELU,
    ActivationFunctionType.RELU_N1_TO_1: Activation.RELU_N1_TO_1,
    ActivationFunctionType.RELU6: Activation.RELU6,
}


@dataclass(frozen=True)
class TfliteSite:
    """One operator of the file with its tensors; ``place`` names it in messages.

    The ``make`` of a ``TfliteRow`` gets one and returns the operator of the graph. It raises ``wrong(...)`` for
    operands that break the rules of the operator, and ``unsupported(...)`` for what is valid but not supported.
    """

    place: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options_type: int
    options: Any
    unsigned: bool = False
    """Whether the operator computes with uint8, held as int8, and rounds like LiteRT's uint8 kernels."""
    has_complex: bool = False
    """Whether tensors have complex numbers, whose parts are a last dimension of 2."""

    def input(self, index: int) -> Tensor:
        """Return input ``index``; raises ``GraphError`` if it is absent."""
        tensor = self.optional_input(index)
        if tensor is None:
            raise GraphError(self.place, f"input {index} is absent")
        return tensor

    def optional_input(self, index: int) -> Tensor | None:
        """Return input ``index``, ``None`` if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self) -> Tensor:
        """Return the first output; raises ``GraphError`` if there is none."""
        if not self.outputs:
            raise GraphError(self.place, "has no output")
        return self.outputs[0]

    def constant(self, index: int, what: str) -> Array:
        """Return the elements of the constant integer input ``index``; ``what`` names its meaning in messages."""
        tensor = self.input(index)
        if tensor.data is None:
            raise self.unsupported(f"the {what} {tensor} must be constant", code="input-not-constant")
        if tensor.dtype not in {DType.INT32, DType.INT64}:
            raise self.wrong(f"the {what} {tensor} must be int32 or int64")
        return tensor.data.reshape(-1)

    def integers(self, index: int, what: str, count: int) -> list[int]:
        """Return the ``count`` elements of the constant input ``index``, which messages call ``what``."""
        values = [int(value) for value in self.constant(index, what)]
        if len(values) != count:
            raise self.wrong(f"the {what} {values} does not fit {self.input(0)}")
        return values

    def scalar(self, index: int, what: str) -> float:
        """Return the only element of the constant float32 input ``index``."""
        tensor = self.input(index)
        if tensor.data is None:
            raise self.unsupported(f"the {what} {tensor} must be constant", code="input-not-constant")
        if tensor.data.dtype != np.float32 or tensor.elements != 1:
            raise self.wrong(f"the {what} {tensor} must be one float32")
        return float(tensor.data.reshape(-1)[0])

    def dimension(self, axis: int, rank: int) -> int:
        """Return ``axis`` counted from 0, of ``rank`` dimensions."""
        if not -rank <= axis < rank:
            raise self.wrong(f"axis {axis} is not one of {rank} dimensions")
        return axis % rank

    def dimension_in(self, index: int, rank: int) -> int:
        """Return the one axis in the constant input ``index``, counted from 0, of ``rank`` dimensions."""
        found = self.constant(index, "axis")
        if found.size != 1:
            raise self.wrong(f"has {found.size} axes, takes 1")
        return self.dimension(int(found[0]), rank)

    def axes(self) -> list[int]:
        """Return the axes of the first input that the second one lists, counted from 0."""
        rank = len(self.input(0).shape)
        found = [int(axis) for axis in self.constant(1, "axes")]
        for axis in found:
            if not -rank <= axis < rank:
                raise self.wrong(f"axis {axis} is not a dimension of {self.input(0)}")
        return [axis % rank for axis in found]

    def axis(self) -> int:
        """Return the one axis of the first input that the second one has, counted from 0."""
        found = self.axes()
        if len(found) != 1:
            raise self.wrong(f"has {len(found)} axes, takes 1")
        return found[0]

    def check_shape(self, index: int, what: str = "shape") -> None:
        """Refuse an output whose shape is not the one in the constant input ``index``."""
        wanted = self.constant(index, what).tolist()
        if wanted != list(self.output().shape):
            raise self.misshapen(wanted)

    def fields(self, table: str, *names: str) -> list[Any]:
        """Return the fields ``names`` of the options, by the accessors of the generated class ``table``.

        Classes are imported by name, so that only those that a model needs are loaded. Raises ``GraphError`` if the
        file holds other options, or none.
        """
        if self.options_type != getattr(BuiltinOptions, table) or self.options is None:
            raise GraphError(self.place, f"its options are not {table}")
        options = getattr(importlib.import_module(f"tflite.{table}"), table)()
        with reading(self.place):
            options.Init(self.options.Bytes, self.options.Pos)
            return [getattr(options, name)() for name in names]

    def numbers(self, *names: str) -> list[int]:
        """Return the options of a custom operator: int32 in a FlexBuffer, under ``names`` in alphabetical order.

        TensorFlow Lite Micro reads them by position and ignores the names, so a buffer with others is refused. So are
        unsigned numbers, which it reads as signed ones of the same bytes.
        """
        from flatbuffers import flexbuffers

        with reading(self.place):
            # Keys and values are offsets, which may lead anywhere in a damaged file.
            try:
                options = flexbuffers.GetRoot(bytearray(self.options)).AsMap
                known = len(options) == len(names) and [key.AsKey for key in options.Keys] == list(names)
                integers = [value.AsInt for value in options.Values if _signed(value)] if known else []
            except KeyError:
                raise ValueError from None
        if len(integers) != len(names) or any(not -(1 << 31) <= value < 1 << 31 for value in integers):
            raise self.wrong(f"its options are not the int32 numbers {' and '.join(names)}")
        return integers

    def wrong(self, reason: str) -> OperatorError:
        """Return the error for tensors or options that contradict the rules of the operator."""
        # An ``OperatorError``, because the file is intact and may run in another runtime.
        return OperatorError(self.place, reason)

    def misshapen(self, wanted: Sequence[int]) -> OperatorError:
        """Return the error for an output that should have the shape ``wanted``."""
        return self.wrong(WrongShape.of(self.output(), wanted))

    def unsupported(
        self, reason: str, hint: str = SEE, code: str = "operator-variant-unsupported"
    ) -> UnsupportedModelError:
        """Return the error for a valid operator that is not supported."""
        return UnsupportedModelError(code, place=self.place, reason=reason, hint=hint)

    def type_unsupported(self, tensor: Tensor, supported: str) -> UnsupportedModelError:
        """Return the error for an unsupported element type; ``supported`` names the supported ones."""
        reason = f"type {tensor.dtype.value} of {tensor.name!r} is not supported"
        return self.unsupported(reason, f"use {supported}", "type-unsupported")

    def activation(self, code: int) -> Activation:
        """Return the fused activation of TFLite's ``code``.

        Raises ``UnsupportedModelError`` for TANH and others that no kernel fuses.
        """
        if code not in ACTIVATIONS:
            name = name_of(ActivationFunctionType, code)
            raise self.unsupported(
                f"fused activation {name} is not supported",
                f"use {' or '.join(activation.name for activation in ACTIVATIONS.values())}",
            )
        return ACTIVATIONS[code]

    def check_no_activation(self, code: int) -> None:
        """Refuse a fused activation in operators for which no reference computes one."""
        activation = self.activation(code)
        if activation is not Activation.NONE:
            raise self.unsupported(
                f"fused activation {activation.name} is not supported", "use a separate operator for the activation"
            )

    def padding(
        self, mode: int, filter_size: Pair, stride: Pair, dilation: Pair, image: Tensor | None = None
    ) -> Padding:
        """Return TFLite's SAME or VALID as explicit numbers for the NHWC ``image``, by default that in input 0.

        Rows and columns come as ((top, bottom), (left, right)); an odd pixel goes to the end, as in TFLite.
        """
        if mode not in {PaddingMode.SAME, PaddingMode.VALID}:
            raise self.wrong(f"padding {mode} is neither SAME nor VALID")
        image = image or self.input(0)
        if len(image.shape) != 4:
            raise self.wrong(f"{image} must have 4 dimensions")
        if min(*filter_size, *stride, *dilation) < 1:
            raise self.wrong(f"filter {filter_size}, stride {stride}, dilation {dilation}: one is below 1")
        rows, columns = (
            resolve_padding(image.shape[1 + axis], filter_size[axis], stride[axis], dilation[axis],
                            same=mode == PaddingMode.SAME)
            for axis in (0, 1)
        )  # fmt: skip
        return rows, columns


def name_of(enumeration: type[Any], code: int) -> str:
    """Return the name of ``code`` in a generated enumeration, or the number if it has none."""
    # Python 3.13 stores a class's line number, also an integer, in __firstlineno__.
    names = (name for name, value in vars(enumeration).items() if value == code and not name.startswith("_"))
    return next(names, str(code))


def _signed(value: Any) -> bool:
    """Return whether a value of a FlexBuffer is a signed integer or a truth value."""
    from flatbuffers.flexbuffers import Type

    return value._type in {Type.INT, Type.BOOL}  # noqa: SLF001 - IsInt includes unsigned and indirect integers


def ordered(indices: Sequence[int], order: Sequence[int]) -> Sequence[int]:
    """Return ``indices`` in another ``order``, with -1 for absent ones."""
    return [indices[at] if at < len(indices) else -1 for at in order] if order else indices


ANY_NUMBER = 1 << 16
"""The number of values of operators that take any number of inputs."""


@dataclass(frozen=True)
class TfliteRow:
    """The conversion of one operator of a file to one of a graph.

    Its inputs are first ``values``, which stay inputs, then constant ``attributes``, which ``make`` gets from its
    ``TfliteSite``. If the file has them in another order, ``order`` is the position of each in the file.
    """

    make: Callable[..., Operator]
    """Makes the operator of the graph from the ``TfliteSite``, and the ``options`` or ``numbers``."""
    values: int = 1
    attributes: int = 0
    options: tuple[str, ...] = ()
    """The table of the options, and the fields that ``make`` gets."""
    numbers: tuple[str, ...] = ()
    """The names of the options of a custom operator, which ``make`` gets."""
    order: tuple[int, ...] = ()
    layer: bool = False
    """Whether the values are (input, weights, bias)."""
    states: tuple[int, ...] = ()
    """Positions of the values that are variables, which the operator updates; the node has an extra output for each."""
    made_states: Callable[[TfliteSite, Any], tuple[tuple[int, ...], ...]] = lambda *_: ()
    """Makes, from the site and the operator, the shapes of states that no tensor of the file represents.

    They have the type of the first output. The node has an extra input and an extra output for each; they are 0 before
    the first run.
    """

    def read(self, site: TfliteSite) -> Operator:
        """Return the operator at ``site``; raises the errors of ``TfliteSite``.

        Raises ``GraphError`` or ``UnsupportedModelError`` if options or constant inputs do not fit the operator.
        """
        if self.numbers:
            return self.make(site, *site.numbers(*self.numbers))
        return self.make(site, *(site.fields(*self.options) if self.options else ()))


def plain_row(operator: type[Operator]) -> TfliteRow:
    """Return the row of an operator that has no attributes, or only a fused activation."""
    values = 2 if issubclass(operator, Binary) else 1
    attributes = [field.name for field in fields(operator)]
    if not attributes:
        return TfliteRow(lambda _: operator(), values)
    if attributes != ["activation"]:
        raise TypeError(f"{operator.name}: a row in frontends/tflite/operators says what its options mean")
    options = (f"{operator.__name__}Options", "FusedActivationFunction")
    return TfliteRow(lambda site, code: operator(site.activation(code)), values, options=options)  # type: ignore[call-arg]  # the attribute
