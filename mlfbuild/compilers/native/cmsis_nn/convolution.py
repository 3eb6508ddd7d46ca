"""CONV_2D and DEPTHWISE_CONV_2D by ``arm_convolve_wrapper_s8`` and ``arm_depthwise_conv_wrapper_s8``, or ``_s16``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlfbuild.compilers.native.cmsis_nn.buffers import convolve_s8, convolve_s16, depthwise_s8, depthwise_s16
from mlfbuild.compilers.native.cmsis_nn.layer import FEATURES, MVE, PLAIN, Layer, features_of
from mlfbuild.compilers.native.cmsis_nn.rights import (
    clamp_fits,
    fits_int16,
    fitting_rescales,
    reads_depthwise,
    reads_row,
)
from mlfbuild.compilers.native.cmsis_nn.text import (
    LANES,
    RESCALES,
    call,
    channel_parameters,
    context,
    convolution_fields,
    dims,
    image_dims,
    params,
    scratch,
)
from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Array, DType, Graph, Node, Tensor
from mlfbuild.graph.ops import Conv2D, DepthwiseConv2D
from mlfbuild.graph.ops.convolution import Convolution, convolution_tensors
from mlfbuild.graph.ops.rules import QUANTIZED
from mlfbuild.graph.quantize import Rescale, activation_range, zero_point_of

_SIZES: dict[tuple[str, DType], Callable[[Layer, str], int]] = {
    ("convolve", DType.INT8): convolve_s8,
    ("convolve", DType.INT16): convolve_s16,
    ("depthwise_conv", DType.INT8): depthwise_s8,
    ("depthwise_conv", DType.INT16): depthwise_s16,
}


def lower(graph: Graph, node: Node, settings: Settings) -> Call | None:
    """Return the call of the library; ``None`` where our own kernel has to compute ``node``."""
    operator, features = node.operator, features_of(settings)
    assert isinstance(operator, Conv2D | DepthwiseConv2D)
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    layer = Layer.of(operator.window(weights), source, output)
    clamp = _clamp(operator, output) if output.dtype in QUANTIZED else None
    grouped = isinstance(operator, Conv2D) and weights.shape[3] != source.shape[3]
    if weights.data is None or clamp is None or grouped or not layer.small:
        return None
    offsets = _offsets(operator, source, weights, bias)
    rescales = _rescales(operator, source, weights, bias, output, offsets)
    depthwise = isinstance(operator, DepthwiseConv2D)
    reads = reads_depthwise if depthwise else reads_row
    right = frozenset(each for each in FEATURES if output.dtype is DType.INT16 or reads(layer, each))
    if rescales is None or not {features, PLAIN} <= right:
        return None
    function = "depthwise_conv" if depthwise else "convolve"
    size_of = _SIZES[function, output.dtype]
    size = max(size_of(layer, each) for each in (features, PLAIN))
    fields = convolution_fields(layer, (-zero_point_of(source), zero_point_of(output)), clamp)
    if depthwise:
        fields["ch_mult"] = str(layer.output_channels // layer.channels)
    kind = "cmsis_nn_dw_conv_params" if depthwise else "cmsis_nn_conv_params"
    outputs, inputs = (1, layer.output_channels) if depthwise else (layer.output_channels, layer.channels)
    boxed = output.dtype is DType.INT16 and not depthwise
    c_type = C_TYPES[output.dtype]
    return Call("depthwise_conv2d" if depthwise else "conv2d", "compiler.h", (
        params("layer", kind, fields),
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter("const int8_t *", "filter", _filter(weights, features, depthwise=depthwise)),
        *channel_parameters(offsets, rescales, features),
        Parameter(f"{c_type} *", "output", output.name),
        *scratch(size),
    ), (
        context(size),
        *RESCALES,
        image_dims("input_size", layer.batches, layer.image, layer.channels),
        image_dims("filter_size", outputs, layer.filter, inputs),
        dims("bias_size", (1, 1, 1, layer.output_channels)),
        image_dims("output_size", layer.batches, layer.output, layer.output_channels),
        *((f"const cmsis_nn_bias_data biases = {{bias, {'true' if offsets.itemsize == 4 else 'false'}}};",)
          if boxed else ()),
        *call(f"arm_{function}_wrapper_s{8 * output.dtype.size}", "&context", "layer", "&rescales", "&input_size",
              "input", "&filter_size", "filter", "&bias_size", "&biases" if boxed else "bias", "&output_size",
              "output"),
    ), cmsis_nn=frozenset(each for each in right if size_of(layer, each) <= size))  # fmt: skip


def _clamp(operator: Convolution, output: Tensor) -> tuple[int, int] | None:
    clamp = activation_range(operator.activation, output)
    return clamp if clamp_fits(clamp, output) else None


def _offsets(operator: Convolution, source: Tensor, weights: Tensor, bias: Tensor | None) -> Array:
    """Return the bias, zeros where there is none, in the type that the sums are finished in: int32 or int64."""
    kind = np.int64 if source.dtype is DType.INT16 and operator.sums_are_wide(source, bias) else np.int32
    if bias is None or bias.data is None:
        return np.zeros(weights.shape[operator.channel_axis], kind)
    return bias.data.reshape(-1).astype(kind)


def _rescales(
    operator: Convolution, source: Tensor, weights: Tensor, bias: Tensor | None, output: Tensor, offsets: Array
) -> tuple[Rescale, ...] | None:
    assert weights.data is not None
    channels = operator.channel_axis
    matrix = np.moveaxis(weights.data, channels, 0).reshape(weights.shape[channels], -1)
    rescales = operator.rescales(source, weights, output)
    if output.dtype is DType.INT8:
        return fitting_rescales(matrix, offsets, rescales)
    wide = operator.sums_are_wide(source, bias)
    if isinstance(operator, DepthwiseConv2D) and not wide:
        return None
    return rescales if fits_int16(matrix, offsets, rescales, wide=wide) else None


def _filter(weights: Tensor, features: str, *, depthwise: bool) -> Constant:
    """Return the weights; code for MVE reads beyond the last channels of a depthwise convolution."""
    assert weights.data is not None
    flat = weights.data.reshape(-1)
    more = -weights.shape[3] % LANES if depthwise and features == MVE else 0
    return Constant.array("filter", "int8_t", np.pad(flat, (0, more)))
