"""One node of a file, as the converters of operators see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.onnx.affine import Affine, Constants, Quantized
from mlfbuild.native.frontends.onnx.emission import Emission
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.refused import SEE
from mlfbuild.native.graph import Array, DType, GraphError, Quantization, Tensor

_T = TypeVar("_T")

_ON_TEXTS = frozenset({"Flatten", "Identity", "LabelEncoder", "Reshape", "Squeeze", "Unsqueeze", "ZipMap"})
"""Operators that keep texts or map them; texts are positions in a list of labels, which others would compute with."""


@dataclass(frozen=True, eq=False)
class OpContext(Emission):
    """A node, the opset, and the graph under construction.

    A converter gets one, reads inputs with ``held`` (perhaps quantised), ``value`` (ONNX's type) or ``tensor`` (ONNX's
    type and order), reads attributes, emits nodes to ``builder``, and returns a ``Value`` for each output. Every node
    that it emits computes what ONNX's specification says, or the converter raises: ``GraphError`` for a file that
    breaks the specification, and ``unsupported(...)`` for one that does not.
    """

    opset: int
    known: Constants
    """The constants of the model."""
    find: Callable[[str], Value]
    """Returns the value of a name; constants become tensors of the graph only on request."""
    target: Affine | None = None
    """The quantisation of the first output later in the network, if it has one."""
    only_dequantized: bool = False
    """Whether the integers of the first output are converted to real numbers wherever they are read."""
    shapes: Sequence[tuple[int, ...] | None] = ()
    """The fixed shapes that the file declares for the outputs."""
    notes: list[str] = field(default_factory=list)
    """Notes for the user."""

    def held(self, index: int = 0) -> Value:
        """Return input ``index`` in its stored type, perhaps quantised; raises ``GraphError`` if it is absent.

        Texts are refused unless the operator of the node keeps or maps them.
        """
        if not self.has(index):
            raise GraphError(self.node.place, f"input {index} is absent")
        value = self.find(self.node.inputs[index])
        # Texts are stored as positions: a sum of positions would be meaningless.
        if value.labels and self.node.operator not in _ON_TEXTS:
            raise self.unsupported("computing with texts is not supported", "do this in the firmware")
        return value

    def value(self, index: int = 0) -> Value:
        """Return input ``index`` in ONNX's own type; raises ``GraphError`` if it is absent."""
        return self.builder.plain(self.held(index))

    def has(self, index: int) -> bool:
        """Return whether input ``index`` is present."""
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def tensor(self, index: int = 0) -> Tensor:
        """Return input ``index`` in ONNX's type and order."""
        value = self.value(index)
        return self.builder.stored(value, as_onnx(value.rank))

    def held_in_order(self, index: int = 0) -> Value:
        """Return input ``index`` in its stored type and ONNX's order."""
        value = self.held(index)
        return value.moved(self.builder.stored(value, as_onnx(value.rank)))

    def constant(self, index: int, what: str) -> Array:
        """Return the elements of the constant input ``index``; ``what`` names its meaning in messages."""
        if not self.has(index):
            raise GraphError(self.node.place, f"input {index}, the {what}, is absent")
        name = self.node.inputs[index]
        data = self.known.get(name)
        if data is None:
            raise self.unsupported(f"the {what} {name!r} must be constant", code="input-not-constant")
        return data

    def declared(self, index: int, what: str, rank: int | None = None) -> tuple[int, ...]:
        """Return the fixed shape of the first output, of ``rank`` if given, which the file must declare.

        ``index`` is the input that is computed in every run, and ``what`` its meaning in messages.

        For operators whose parameter is computed: the declared shape then decides the result.
        """
        shape = self.shapes[0] if self.shapes else None
        if shape is None:
            raise self.unsupported(
                f"the {what} {self.node.inputs[index]!r} must be constant, because the file declares no fixed shape "
                f"for {self.name!r}",
                "make it constant, or declare the shape of the result in the file",
                code="input-not-constant",
            )
        if rank is not None and len(shape) != rank:
            raise GraphError(
                self.node.place, f"the shape {list(shape)} of {self.name!r} does not have {rank} dimensions"
            )
        return shape

    def not_read(self, index: int) -> None:
        """Note that the computed input ``index`` has no effect, because the declared shape determines it."""
        if self.has(index) and not self.is_constant(index):
            name = self.node.inputs[index]
            self.notes.append(
                f"{self.node.place}: {name!r} is not read, because the file declares the shape of the result"
            )

    def constant_number(self, index: int, what: str) -> Array:
        """Return the only element of the constant input ``index`` as an array without dimensions."""
        data = self.constant(index, what)
        if data.size != 1:
            raise GraphError(self.node.place, f"the {what} has {data.size} elements")
        return data.reshape(())

    def constant_integer(self, index: int, what: str) -> int:
        """Return the only element of the constant input ``index``, a whole number of any type."""
        number = self.constant_number(index, what)
        if not np.isfinite(number):
            raise GraphError(self.node.place, f"the {what} is {number}")
        return int(number)

    def constant_shape(self, index: int) -> tuple[int, ...] | None:
        """Return the shape of input ``index`` if it is constant."""
        return self.known.shape(self.node.inputs[index]) if self.has(index) else None

    def is_constant(self, index: int) -> bool:
        """Return whether input ``index`` is present and constant."""
        return self.has(index) and self.node.inputs[index] in self.known

    def quantized(self, index: int) -> Quantized | None:
        """Return the quantised form of the constant input ``index``, if it has one."""
        return self.known.quantized(self.node.inputs[index]) if self.has(index) else None

    @property
    def held_target(self) -> Quantization | None:
        """The quantisation of a tensor for the first output, if it is quantised later and integers can hold it.

        ``None`` if it would be int16 and no input is.
        """
        if self.target is None:
            return None
        # int16 is worth it only between int16 tensors; an int8 network may quantise one output to 16 bits.
        if self.target.holder is DType.INT16 and not any(map(self._is_int16, range(len(self.node.inputs)))):
            return None
        return self.target.held()

    def _is_int16(self, index: int) -> bool:
        if not self.has(index) or self.is_constant(index):
            return False
        value = self.held(index)
        return value.quantization is not None and value.tensor.dtype is DType.INT16

    def integers(self, name: str, index: int | None = None) -> tuple[int, ...] | None:
        """Return the integers of the attribute ``name`` or, in newer opsets, of the constant input ``index``."""
        if index is not None and self.has(index):
            values = self.constant(index, name)
            if values.dtype.kind not in "iu":
                raise GraphError(self.node.place, f"input {index}, the {name}, is {values.dtype.name}, not integers")
            return tuple(int(value) for value in values.reshape(-1))
        found = self.node.attributes.get(name)
        if found is None:
            return None
        if not isinstance(found, tuple) or not all(isinstance(value, int) for value in found):
            raise GraphError(self.node.place, f"attribute {name} is not a list of integers")
        return tuple(int(value) for value in found)

    def integer(self, name: str, default: int) -> int:
        """Return the integer attribute ``name``."""
        return self._attribute(name, default, int, "an integer")

    def real_attribute(self, name: str, default: float) -> float:
        """Return the attribute ``name``, a float."""
        found = self.node.attributes.get(name, default)
        if not isinstance(found, int | float):
            raise GraphError(self.node.place, f"attribute {name} is not a number")
        return float(found)

    def text(self, name: str, default: str) -> str:
        """Return the attribute ``name``, a string."""
        return self._attribute(name, default, str, "a string")

    def _attribute(self, name: str, default: _T, kind: type[_T], words: str) -> _T:
        found = self.node.attributes.get(name, default)
        if not isinstance(found, kind):
            raise GraphError(self.node.place, f"attribute {name} is not {words}")
        return found

    def axis(self, axis: int, rank: int) -> int:
        """Return ``axis`` counted from the front; raises ``GraphError`` if the dimension does not exist."""
        if not -rank <= axis < rank:
            raise GraphError(self.node.place, f"there is no dimension {axis} of {rank}")
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Return ``axes`` counted from the front, sorted; raises ``GraphError`` if one occurs twice."""
        return tuple(sorted(self.axes_in_order(axes, rank)))

    def axes_in_order(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Return ``axes`` counted from the front; raises ``GraphError`` if one occurs twice."""
        found = tuple(self.axis(axis, rank) for axis in axes)
        if len(set(found)) != len(found):
            raise GraphError(self.node.place, f"the dimensions {list(axes)} name one twice")
        return found

    def required(self, made: _T | None) -> _T:
        """Return ``made``, which only a form in integers may lack; raises ``GraphError`` if it is absent."""
        if made is None:
            raise GraphError(self.node.place, "has no form in float32")
        return made

    def unsupported(
        self, reason: str, hint: str = SEE, code: str = "operator-variant-unsupported"
    ) -> UnsupportedModelError:
        """Return the error for a valid node that is not supported."""
        return UnsupportedModelError(code, place=self.node.place, reason=reason, hint=hint)

    def type_unsupported(self, tensor: Tensor, supported: str) -> UnsupportedModelError:
        """Return the error for an unsupported element type; ``supported`` names the supported ones."""
        reason = f"type {tensor.dtype.value} of {tensor.name!r} is not supported"
        return self.unsupported(reason, f"use {supported}", "type-unsupported")


Converter = Callable[[OpContext], tuple[Value, ...]]
