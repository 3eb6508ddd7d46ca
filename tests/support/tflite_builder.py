"""Build small ``.tflite`` files in memory; tests edit the network before ``build`` to get invalid ones.

    network = Network()
    image = network.input((1, 8, 8, 3), scale=0.05, zero_point=-3)
    features = network.conv2d(image, weights, bias, weight_scales=[0.01] * 4, scale=0.1, padding="SAME")
    model = network.build(outputs=[network.softmax(features)])

Tensors are int8 if they have a ``scale``, otherwise float32. Methods with the names of operators compute the output's
shape like TFLite, and return the index of the output tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from flatbuffers import flexbuffers
from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators.site import name_of
from mlfbuild.native.graph.bases.window import output_size
from support.tflite_writer import OperatorSpec, SubgraphSpec, TensorSpec, Writer

Array = npt.NDArray[Any]
PADDING = {"SAME": 0, "VALID": 1}


@dataclass
class Network:
    """A network under construction; every list may be edited before ``build``."""

    tensors: list[TensorSpec] = field(default_factory=list)
    operators: list[OperatorSpec] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    subgraphs: int = 1
    """The number of copies of the network in the file."""
    others: list[Network] = field(default_factory=list)
    """Further subgraphs, for example for CALL_ONCE."""
    signatures: dict[str, int] = field(default_factory=dict)
    """Names of subgraphs."""
    version: int = 3

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str = "float32",
        *,
        data: Array | None = None,
        scales: Sequence[float] = (),
        zero_points: Sequence[int] = (),
        axis: int = 0,
        name: str | None = None,
    ) -> int:
        """Add a tensor and return its index."""
        index = len(self.tensors)
        content = b"" if data is None else np.ascontiguousarray(data).tobytes()
        tag = getattr(TensorType, dtype.upper())
        name = f"t{index}" if name is None else name
        self.tensors.append(TensorSpec(name, list(shape), tag, content, list(scales), list(zero_points), axis))
        return index

    def activation(
        self,
        shape: Sequence[int],
        scale: float | None = None,
        zero_point: int = 0,
        name: str | None = None,
        dtype: str | None = None,
    ) -> int:
        """Add a tensor without content: by default int8 if it has a ``scale``, else float32."""
        if scale is None:
            return self.tensor(shape, dtype or "float32", name=name)
        return self.tensor(shape, dtype or "int8", scales=[scale], zero_points=[zero_point], name=name)

    def input(
        self,
        shape: Sequence[int],
        scale: float | None = None,
        zero_point: int = 0,
        name: str | None = None,
        dtype: str | None = None,
    ) -> int:
        """Add an input of the network."""
        self.inputs.append(self.activation(shape, scale, zero_point, name, dtype))
        return self.inputs[-1]

    def constant(self, data: Array, scale: float | None = None, zero_point: int = 0) -> int:
        """Add a constant; int8 ones have a ``scale``."""
        scales, zero_points = ([], []) if scale is None else ([scale], [zero_point])
        return self.tensor(data.shape, str(data.dtype), data=data, scales=scales, zero_points=zero_points)

    def operator(self, name: str, inputs: Sequence[int], output: int, kind: str | None = None, **options: float) -> int:
        """Add the operator ``name`` with options of the table ``kind`` and return ``output``."""
        return self.many(name, inputs, [output], kind, **options)[0]

    def many(
        self, name: str, inputs: Sequence[int], outputs: Sequence[int], kind: str | None = None, **options: float | str
    ) -> list[int]:
        """Add the operator ``name`` with several ``outputs``, and return them."""
        self.operators.append(OperatorSpec(getattr(BuiltinOperator, name), list(inputs), list(outputs), kind, options))
        return list(outputs)

    def custom(self, name: str, inputs: Sequence[int], outputs: Sequence[int], **options: float) -> list[int]:
        """Add the custom operator ``name`` with options in a FlexBuffer."""
        code, options_bytes = BuiltinOperator.CUSTOM, bytes(flexbuffers.Dumps(options))
        spec = OperatorSpec(code, list(inputs), list(outputs), custom_code=name, custom_options=options_bytes)
        self.operators.append(spec)
        return list(outputs)

    def integers(self, values: Sequence[int] | Array, dtype: str = "int32") -> int:
        """Add a constant of integers such as axes, sizes and indices."""
        return self.constant(np.array(values, dtype))

    def move(
        self,
        name: str,
        source: int,
        shape: Sequence[int],
        *attributes: int,
        kind: str | None = None,
        before: Sequence[int] = (),
        **options: float,
    ) -> int:
        """Add an operator whose output has elements of ``source``, with the same type and scale, and ``shape``.

        Constant ``attributes`` are inputs after the source, those in ``before`` inputs before it.
        """
        return self.operator(name, [*before, source, *attributes], self.like(source, shape), kind, **options)

    def conv2d(
        self,
        source: int,
        weights: Array,
        bias: Array | None = None,
        *,
        weight_scales: Sequence[float] = (),
        stride: tuple[int, int] = (1, 1),
        dilation: tuple[int, int] = (1, 1),
        padding: str = "VALID",
        activation: str = "NONE",
        **affine: Any,
    ) -> int:
        """Add CONV_2D; ``weights`` are OHWI."""
        options = _window_options(stride, dilation, padding, activation)
        shape = self._image(source, weights.shape[1:3], stride, dilation, padding, weights.shape[0])
        inputs = [source, *self._parameters(source, weights, bias, weight_scales, 0)]
        return self.operator("CONV_2D", inputs, self.activation(shape, **affine), "Conv2DOptions", **options)

    def depthwise_conv2d(
        self,
        source: int,
        weights: Array,
        bias: Array | None = None,
        *,
        weight_scales: Sequence[float] = (),
        stride: tuple[int, int] = (1, 1),
        dilation: tuple[int, int] = (1, 1),
        padding: str = "VALID",
        activation: str = "NONE",
        **affine: Any,
    ) -> int:
        """Add DEPTHWISE_CONV_2D; ``weights`` are 1HWC, and determine the depth multiplier."""
        options = _window_options(stride, dilation, padding, activation)
        options["DepthMultiplier"] = weights.shape[3] // self.tensors[source].shape[3]
        shape = self._image(source, weights.shape[1:3], stride, dilation, padding, weights.shape[3])
        inputs = [source, *self._parameters(source, weights, bias, weight_scales, 3)]
        output = self.activation(shape, **affine)
        return self.operator("DEPTHWISE_CONV_2D", inputs, output, "DepthwiseConv2DOptions", **options)

    def transpose_conv(
        self,
        source: int,
        wanted: Sequence[int],
        weights: Array,
        bias: Array | None = None,
        *,
        weight_scales: Sequence[float] = (),
        stride: tuple[int, int] = (1, 1),
        padding: str = "VALID",
        **affine: Any,
    ) -> int:
        """Add TRANSPOSE_CONV to ``wanted`` rows and columns; ``weights`` are OHWI."""
        shape = [self.tensors[source].shape[0], *wanted, weights.shape[0]]
        parameters = self._parameters(source, weights, bias, weight_scales, 0)
        inputs = [self.integers(shape), parameters[0], source, *parameters[1:]]
        output = self.activation(shape, **affine)
        options = {"Padding": PADDING[padding], "StrideH": stride[0], "StrideW": stride[1]}
        return self.operator("TRANSPOSE_CONV", inputs, output, "TransposeConvOptions", **options)

    def fully_connected(
        self,
        source: int,
        weights: Array,
        bias: Array | None = None,
        *,
        weight_scales: Sequence[float] = (),
        activation: str = "NONE",
        keep_num_dims: bool = False,
        **affine: Any,
    ) -> int:
        """Add FULLY_CONNECTED; ``weights`` are [out, in]."""
        channels, depth = weights.shape
        shape = self.tensors[source].shape
        leading = shape[:-1] if keep_num_dims else [int(np.prod(shape)) // depth]
        inputs = [source, *self._parameters(source, weights, bias, weight_scales, 0)]
        output = self.activation([*leading, channels], **affine)
        options = {"FusedActivationFunction": _activation(activation), "KeepNumDims": keep_num_dims}
        return self.operator("FULLY_CONNECTED", inputs, output, "FullyConnectedOptions", **options)

    def add(self, first: int, second: int, **options: Any) -> int:
        """Add ADD with broadcasting; ``options`` are those of ``binary``."""
        return self.binary("ADD", first, second, **options)

    def binary(self, name: str, first: int, second: int, *, activation: str | None = None, **affine: Any) -> int:
        """Add the operator ``name`` of two tensors that broadcast; its options table has the ``activation``."""
        shape = np.broadcast_shapes(tuple(self.tensors[first].shape), tuple(self.tensors[second].shape))
        output = self.activation(shape, **affine)
        kind = f"{name.title().replace('_', '')}Options"
        options = {} if activation is None else {"FusedActivationFunction": _activation(activation)}
        if name in {"ADD", "DIV", "MUL", "SUB"}:
            options.setdefault("FusedActivationFunction", 0)
        return self.operator(name, [first, second], output, kind if options else None, **options)

    def unary(
        self, name: str, source: int, kind: str | None = None, options: dict[str, Any] | None = None, **affine: Any
    ) -> int:
        """Add the operator ``name`` of one tensor, with an output of the same shape."""
        output = self.activation(self.tensors[source].shape, **affine)
        return self.operator(name, [source], output, kind, **(options or {}))

    def pool2d(
        self,
        kind: str,
        source: int,
        filter_size: tuple[int, int],
        *,
        stride: tuple[int, int] = (1, 1),
        padding: str = "VALID",
        activation: str = "NONE",
    ) -> int:
        """Add a pool; ``kind`` is "AVERAGE" or "MAX"; the output has the input's scale and zero point."""
        options = _window_options(stride, (1, 1), padding, activation)
        del options["DilationHFactor"], options["DilationWFactor"]
        options.update(FilterHeight=filter_size[0], FilterWidth=filter_size[1])
        shape = self._image(source, filter_size, stride, (1, 1), padding, self.tensors[source].shape[3])
        return self.operator(f"{kind}_POOL_2D", [source], self.like(source, shape), "Pool2DOptions", **options)

    def mean(self, source: int, axes: Sequence[int], **options: Any) -> int:
        """Add MEAN; ``options`` are those of ``reduce``."""
        return self.reduce("MEAN", source, axes, **options)

    def reduce(self, name: str, source: int, axes: Sequence[int], *, keep_dims: bool = False, **affine: Any) -> int:
        """Add the reduction ``name`` over ``axes``, which may be negative."""
        reduced = {axis % len(self.tensors[source].shape) for axis in axes}
        shape = [1 if axis in reduced else size for axis, size in enumerate(self.tensors[source].shape)]
        if not keep_dims:
            shape = [size for axis, size in enumerate(shape) if axis not in reduced]
        inputs = [source, self.constant(np.array(axes, np.int32))]
        output = self.activation(shape, **affine)
        return self.operator(name, inputs, output, "ReducerOptions", KeepDims=keep_dims)

    def softmax(self, source: int, beta: float = 1.0) -> int:
        """Add SOFTMAX; an int8 output has the scale and zero point that TFLite prescribes."""
        quantized = self.tensors[source].type == TensorType.INT8
        output = self.activation(self.tensors[source].shape, 1 / 256 if quantized else None, -128)
        return self.operator("SOFTMAX", [source], output, "SoftmaxOptions", Beta=beta)

    def reshape(self, source: int, shape: Sequence[int], *, with_shape_tensor: bool = True) -> int:
        """Add RESHAPE; the new shape is a constant input, or only that of the output."""
        inputs = [source]
        if with_shape_tensor:
            inputs.append(self.constant(np.array(shape, np.int32)))
        return self.operator("RESHAPE", inputs, self.like(source, shape))

    def pad(self, source: int, paddings: Sequence[tuple[int, int]]) -> int:
        """Add PAD with (before, after) for each dimension."""
        shape = [size + sum(pair) for size, pair in zip(self.tensors[source].shape, paddings, strict=True)]
        inputs = [source, self.constant(np.array(paddings, np.int32))]
        return self.operator("PAD", inputs, self.like(source, shape), "PadOptions")

    def quantize(self, source: int, scale: float, zero_point: int = 0) -> int:
        """Add QUANTIZE from float32 or int8."""
        output = self.activation(self.tensors[source].shape, scale, zero_point)
        return self.operator("QUANTIZE", [source], output, "QuantizeOptions")

    def dequantize(self, source: int) -> int:
        """Add DEQUANTIZE to float32."""
        return self.operator("DEQUANTIZE", [source], self.activation(self.tensors[source].shape), "DequantizeOptions")

    def variable(self, name: str, container: str = "") -> int:
        """Add VAR_HANDLE: return the tensor that represents the variable ``name``."""
        options = {"SharedName": name, "Container": container}  # TensorFlow Lite Micro crashes without a container
        return self.many("VAR_HANDLE", [], [self.tensor((), "resource")], "VarHandleOptions", **options)[0]

    def read(self, variable: int, shape: Sequence[int], **affine: Any) -> int:
        """Add READ_VARIABLE of ``shape``; the type is chosen as in ``activation``."""
        return self.operator("READ_VARIABLE", [variable], self.activation(shape, **affine), "ReadVariableOptions")

    def assign(self, variable: int, value: int) -> None:
        """Add ASSIGN_VARIABLE."""
        self.many("ASSIGN_VARIABLE", [variable, value], [], "AssignVariableOptions")

    def call_once(self, subgraph: int) -> None:
        """Add CALL_ONCE of the subgraph with this index."""
        self.many("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=subgraph)

    def build(self, outputs: Sequence[int] | None = None) -> bytes:
        """Return the file; ``outputs`` default to those of the last operator."""
        if outputs is not None:
            self.outputs = list(outputs)
        elif not self.outputs:
            self.outputs = list(self.operators[-1].outputs)
        subgraphs = [self._subgraph()] * self.subgraphs + [other._subgraph() for other in self.others]
        return Writer(subgraphs, self.version, self.signatures).write()

    def _subgraph(self) -> SubgraphSpec:
        return SubgraphSpec(self.tensors, self.operators, self.inputs, self.outputs)

    def _image(
        self, source: int, filter_size: Sequence[int], stride: Sequence[int], dilation: Sequence[int], padding: str,
        channels: int,
    ) -> list[int]:  # fmt: skip
        shape = self.tensors[source].shape
        rows, columns = (
            output_size(shape[1 + axis], filter_size[axis], stride[axis], dilation[axis], same=padding == "SAME")
            for axis in (0, 1)
        )
        return [shape[0], rows, columns, channels]

    def like(self, source: int, shape: Sequence[int]) -> int:
        """Add a tensor of ``shape`` with the type, scale and zero point of ``source``."""
        spec = self.tensors[source]
        scale = spec.scales[0] if spec.scales else None
        zero_point = spec.zero_points[0] if spec.zero_points else 0
        return self.activation(shape, scale, zero_point, dtype=name_of(TensorType, spec.type).lower())

    def _parameters(
        self, source: int, weights: Array, bias: Array | None, weight_scales: Sequence[float], axis: int
    ) -> list[int]:
        scales = list(weight_scales)
        indices = [
            self.tensor(weights.shape, str(weights.dtype), data=weights, scales=scales, zero_points=[0] * len(scales),
                        axis=axis)
        ]  # fmt: skip
        if bias is not None:
            # In float32, like TFLite's converter.
            input_scales = self.tensors[source].scales
            bias_scales = [float(np.float32(input_scales[0]) * np.float32(scale)) for scale in scales]
            indices.append(
                self.tensor(bias.shape, str(bias.dtype), data=bias, scales=bias_scales, zero_points=[0] * len(scales))
            )
        return indices


def _activation(name: str) -> int:
    return int(getattr(ActivationFunctionType, name))


def _window_options(
    stride: tuple[int, int], dilation: tuple[int, int], padding: str, activation: str
) -> dict[str, int | float]:
    return {
        "Padding": PADDING[padding], "StrideH": stride[0], "StrideW": stride[1], "DilationHFactor": dilation[0],
        "DilationWFactor": dilation[1], "FusedActivationFunction": _activation(activation),
    }  # fmt: skip
