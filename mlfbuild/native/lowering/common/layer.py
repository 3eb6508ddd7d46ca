"""A layer with weights as its lowerings see it: convolutions, TRANSPOSE_CONV and FULLY_CONNECTED.

Each kernel of these operators begins with the same facts: the four tensors, the bias with the zero point of the input,
the factors of the channels, the number of pixels and the inputs of each output. ``Weighted`` has them in one place. A
FULLY_CONNECTED is a 1x1 convolution of an image with one row of pixels, which are its own rows.

Weights are read when they are asked for, and nothing but the tensors is kept: a call may hold a ``Weighted`` until its
constants are printed, as ``Constant.packed`` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from mlfbuild.native.graph import Array, DType, Graph, Node, Rescale, Tensor, activation_range
from mlfbuild.native.graph.bases import Window, convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv
from mlfbuild.native.lowering.call import Constant, Parameter, folded_bias
from mlfbuild.native.lowering.common.activation import bounds_text, quantization_constant, zero_point
from mlfbuild.native.lowering.common.parameters import constant, input_and_output

UNPADDED = ((0, 0), (0, 0))
_POINTWISE = Window((1, 1), (1, 1), (1, 1), UNPADDED)

WeightedOperator = Conv2D | DepthwiseConv2D | FullyConnected | TransposeConv
Kind_co = TypeVar("Kind_co", bound=WeightedOperator, covariant=True)


@dataclass(frozen=True, eq=False)
class Weighted(Generic[Kind_co]):
    """A node with weights, and what its kernels need to know."""

    graph: Graph
    node: Node
    operator: Kind_co
    replaceable: bool = False
    """Whether the call must suit other values of weights and scales as well."""

    @cached_property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Input, weights, bias and output; images are NHWC, and the bias may be missing."""
        return convolution_tensors(self.graph.inputs_of(self.node), self.graph.outputs_of(self.node))

    @property
    def word(self) -> str:
        """The operator in the names of functions and kernels, such as ``conv2d``."""
        return self.operator.family()

    @property
    def source(self) -> Tensor:
        """The input."""
        return self.tensors[0]

    @property
    def weights(self) -> Tensor:
        """[outputs, ..., inputs]; those of DEPTHWISE_CONV_2D are [1, rows, columns, channels]."""
        return self.tensors[1]

    @property
    def output(self) -> Tensor:
        """The output."""
        return self.tensors[3]

    @property
    def bias(self) -> Array | None:
        """The elements of the bias; ``None`` if there is none, or if it is computed at run time."""
        bias = self.tensors[2]
        return None if bias is None else bias.data

    @property
    def has_offset(self) -> bool:
        """Whether the int8 weights have a zero point."""
        quantization = self.weights.quantization
        return self.weights.dtype is DType.INT8 and quantization is not None and any(quantization.zero_points)

    @property
    def rows(self) -> int:
        """The number of output pixels, or of rows of a FULLY_CONNECTED."""
        return self.output.elements // self.output.shape[-1]

    @property
    def inputs(self) -> int:
        """The number of inputs that are multiplied for an output, if it depends on all input channels."""
        return self.weights.elements // self.weights.shape[0]

    @property
    def matrix(self) -> Array:
        """The weights [outputs, inputs]; not of DEPTHWISE_CONV_2D."""
        return self.weights.known.reshape(self.weights.shape[0], -1)

    @property
    def clamp(self) -> tuple[int, int]:
        """The least and the greatest stored output; not of float32."""
        return activation_range(self.operator.activation, self.output)

    @property
    def bounds(self) -> tuple[str, str]:
        """The same as C text, marked as trained if an activation makes them depend on the output's scale."""
        return bounds_text(self.operator.activation, self.output)

    @property
    def rescales(self) -> tuple[Rescale, ...]:
        """The factor of each output channel; none for float32.

        Raises ``OverflowError`` if a factor has no fixed-point form; the check of the operator has refused such nodes.
        """
        return self.operator.rescales(self.source, self.weights, self.output)

    @property
    def sums_are_wide(self) -> bool:
        """Whether sums have 64 bits, which only those of int16 activations can have."""
        return self.operator.sums_are_wide(self.source, self.tensors[2])

    def folded_bias(self, weights: Array | None = None) -> Array:
        """Return the bias that includes the zero point of the input, int32 [outputs].

        ``weights`` are those that the kernel multiplies, in the order of the file; by default the stored ones.
        """
        axis = 0 if isinstance(self.operator, FullyConnected) else self.operator.channel_axis
        return folded_bias(self.bias, self.weights.known if weights is None else weights, axis, zero_point(self.source))

    @property
    def window(self) -> Window:
        """The window that moves over ``images``."""
        return _POINTWISE if isinstance(self.operator, FullyConnected) else self.operator.window(self.weights)

    @property
    def images(self) -> tuple[Tensor, Tensor]:
        """Input and output as NHWC images."""
        source, output = self.source, self.output
        if not isinstance(self.operator, FullyConnected):
            return source, output
        shapes = ((1, 1, self.rows, size) for size in (self.inputs, output.shape[-1]))
        return replace(source, shape=next(shapes)), replace(output, shape=next(shapes))

    @property
    def is_padded(self) -> bool:
        """Whether windows reach beyond the image."""
        return self.window.padding != UNPADDED

    @property
    def is_pointwise(self) -> bool:
        """Whether each output pixel depends on the input pixel at the same position only."""
        window = self.window
        return window.filter == window.stride == (1, 1) and not self.is_padded


def int8_parameters(layer: Weighted[WeightedOperator], filter_: Parameter, channels: Constant) -> tuple[Parameter, ...]:
    """Return the parameters of an int8 kernel: quantisation, input, filter, constants of the channels, and output."""
    source, output = input_and_output(layer.source, layer.output)
    quantization = quantization_constant(layer.source, layer.output, layer.operator.activation)
    return constant(quantization), source, filter_, constant(channels), output
