"""One operator of a file with its tensors, as the functions that read operators see it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.BuiltinOptions import BuiltinOptions
from tflite.Padding import Padding as PaddingMode

from mlfbuild.core import UnsupportedModelError
from mlfbuild.frontends.tflite.reader import SEE, reading
from mlfbuild.graph import Activation, Array, DType, GraphError, OperatorError, Tensor
from mlfbuild.graph.bases import Padding, Pair, WrongShape, resolve_padding

ACTIVATIONS = {
    ActivationFunctionType.NONE: Activation.NONE,
    ActivationFunctionType.RELU: Activation.RELU,
    ActivationFunctionType.RELU_N1_TO_1: Activation.RELU_N1_TO_1,
    ActivationFunctionType.RELU6: Activation.RELU6,
}


@dataclass(frozen=True)
class TfliteSite:
    """One operator of the file with its tensors; ``place`` names it in messages."""

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
        tensor = self.inputs[index] if index < len(self.inputs) else None
        if tensor is None:
            raise GraphError(self.place, f"input {index} is absent")
        return tensor

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

    def read_options(self, kind: str) -> Any:
        """Return the options as the table ``kind``; raises ``GraphError`` if the file holds another one.

        Tables are imported by name, so that only those that a model needs are loaded.
        """
        if self.options_type != getattr(BuiltinOptions, kind) or self.options is None:
            raise GraphError(self.place, f"its options are not {kind}")
        options = getattr(importlib.import_module(f"tflite.{kind}"), kind)()
        with reading(self.place):
            options.Init(self.options.Bytes, self.options.Pos)
        return options

    def numbers(self, *names: str) -> list[int]:
        """Return the options of a custom operator: int32 in a FlexBuffer, under ``names`` in alphabetical order.

        TensorFlow Lite Micro reads them by position and ignores the names, so a buffer with others is refused. So are
        unsigned numbers, which it reads as signed ones of the same bytes.
        """
        from flatbuffers import flexbuffers

        with reading(self.place):
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
        """Return the fused activation of TFLite's ``code``."""
        if code not in ACTIVATIONS:
            name = name_of(ActivationFunctionType, code)
            raise self.unsupported(
                f"fused activation {name} is not supported",
                f"use {' or '.join(activation.name for activation in ACTIVATIONS.values())}",
            )
        return ACTIVATIONS[code]

    def padding(
        self, mode: int, filter_size: Pair, stride: Pair, dilation: Pair, image: Tensor | None = None
    ) -> Padding:
        """Return TFLite's SAME or VALID as explicit numbers for the NHWC ``image``, by default that in input 0."""
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
