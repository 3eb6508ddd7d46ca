"""The interface of every operator of a graph: TFLite name, rules, and a numpy reference of its arithmetic."""

from __future__ import annotations

import abc
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mlfbuild.graph.types import DType

if TYPE_CHECKING:
    from mlfbuild.graph.types import Array, Tensor


class Activation(enum.Enum):
    """Bounds on results, by TFLite's names; the value is (lower bound, upper bound) of the real result.

    All but RELU_0_TO_1, which is only a separate operator, may be fused into others in a file.
    """

    NONE = (None, None)
    RELU = (0.0, None)
    RELU_0_TO_1 = (0.0, 1.0)
    RELU_N1_TO_1 = (-1.0, 1.0)
    RELU6 = (0.0, 6.0)


@dataclass(frozen=True)
class Operator(abc.ABC):
    """An operator with its attributes. Subclasses are frozen dataclasses, one file a family in ``graph/ops``."""

    name: ClassVar[str]
    """TFLite's name, as in ``BuiltinOperator`` of its schema: ``CONV_2D``."""
    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.FLOAT32)
    """The element types of the first input that it takes."""
    results: ClassVar[tuple[DType, ...]] = ()
    """The element types of the outputs, if they differ from ``types``."""

    @classmethod
    def family(cls) -> str:
        """Return the stem of its file in ``graph/ops``, which those in other rooms share."""
        return cls.__module__.rpartition(".")[2]

    @abc.abstractmethod
    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        """Return why these tensors break the operator's shape and type rules, or ``None`` if they keep them."""

    def macs(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> int:  # noqa: ARG002  # most have none
        """Return the multiply-accumulates of one run: the products of elements with weights, or of two matrices.

        Each is counted as in a loop without shortcuts: at the border of an image with the padding's zeros, and without
        biases, rescalings and activations. Operators that multiply element by element, or add up only, have none.
        """
        return 0

    @abc.abstractmethod
    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        """Compute the outputs in numpy, bit for bit as TensorFlow Lite Micro's reference kernels on integers.

        ``values`` holds the value of each of ``inputs`` (constants included); shapes and dtypes are the tensors'.
        """
