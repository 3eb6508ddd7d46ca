"""The interface of operators: TFLite name, rules, and a numpy reference."""

from __future__ import annotations

import abc
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import dataclass_transform

from mlfbuild.native.graph.tensors import DType, Inputs, Values

if TYPE_CHECKING:
    from mlfbuild.native.graph.tensors import Array, Tensor


class Activation(enum.Enum):
    """Bounds of results, by TFLite's names; the value is (lower bound, upper bound) of the real result.

    All except RELU_0_TO_1, which is always a separate operator, may be fused into other operators in a file.
    """

    NONE = (None, None)
    RELU = (0.0, None)
    RELU_0_TO_1 = (0.0, 1.0)
    RELU_N1_TO_1 = (-1.0, 1.0)
    RELU6 = (0.0, 6.0)


@dataclass(frozen=True)
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Operator(abc.ABC):
    """An operator with its attributes. Subclasses are in ``graph/ops``, one file per family.

    Each subclass becomes a frozen dataclass, without a decorator: its annotated names are the operator's attributes.
    Operators are compared by their attributes, and hashable. They know no tensors: methods get them as arguments, in
    the order of the node's inputs (``None``: an optional input that is absent) and outputs.
    """

    name: ClassVar[str]
    """TFLite's name in ``BuiltinOperator`` of its schema, such as ``CONV_2D``."""
    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.FLOAT32)
    """The supported element types of the first input."""
    results: ClassVar[tuple[DType, ...]] = ()
    """The element types of the outputs, if they differ from ``types``."""
    many_rows: ClassVar[bool] = False
    """Whether ``reference`` computes the same for values and outputs with one more dimension before the others."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        # The base class does it, because an operator without it would be compared by identity, unnoticed.
        dataclass(frozen=True)(cls)

    @classmethod
    def family(cls) -> str:
        """Return the stem of the operator's file in ``graph/ops`` and in other rooms."""
        return cls.__module__.rpartition(".")[2]

    @property
    def label(self) -> str:
        """The operator in texts for people; a chain names each of its operators."""
        return self.name

    @abc.abstractmethod
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        """Return why these tensors break the operator's shape and type rules, or ``None``.

        Called by the constructor of a graph, so that ``reference`` and kernels can rely on the rules. Returns one
        clause without the operator's name, which the caller puts before it.
        """

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:  # noqa: ARG002  # most have none
        """Return the number of multiply-accumulates of one run, with weights or of two matrices.

        Products with the zeros of a padding count; biases, rescalings and activations do not. Operators that multiply
        element by element, or only add, have none.
        """
        return 0

    @abc.abstractmethod
    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        """Compute the outputs in numpy; on integers, bit for bit like TensorFlow Lite Micro's reference kernels.

        ``values`` has the value of each of ``inputs``, including constants; shapes and dtypes are those of the tensors.
        """
