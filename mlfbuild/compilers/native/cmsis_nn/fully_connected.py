"""FULLY_CONNECTED by ``arm_fully_connected_s8``, ``_per_channel_s8`` or ``_s16``.

In int8 MVE wants to be told the sums of the weights, which other libraries add up in every inference; here they are
constants.
"""

from __future__ import annotations

import numpy as np

from mlfbuild.compilers.native.cmsis_nn.layer import DSP, FEATURES, MVE, PLAIN, features_of
from mlfbuild.compilers.native.cmsis_nn.rights import clamp_fits, fits_int16, fitting_rescales
from mlfbuild.compilers.native.cmsis_nn.text import RESCALES, call, channel_parameters, context, dims, params
from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.literals import braces
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter, folded_bias
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Array, DType, Graph, Node, Tensor
from mlfbuild.graph.ops import FullyConnected
from mlfbuild.graph.ops.convolution import convolution_tensors
from mlfbuild.graph.ops.rules import QUANTIZED
from mlfbuild.graph.quantize import Rescale, activation_range, fully_connected_rescales, zero_point_of


def lower(graph: Graph, node: Node, settings: Settings) -> Call | None:
    """Return the call of the library; ``None`` where our own kernel has to compute ``node``."""
    operator, features = node.operator, features_of(settings)
    assert isinstance(operator, FullyConnected)
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if output.dtype not in QUANTIZED or weights.data is None:
        return None
    outputs, inputs = weights.shape
    int16 = output.dtype is DType.INT16
    kind = np.int64 if int16 else np.int32
    offsets = np.zeros(outputs, kind) if bias is None or bias.data is None else bias.data.reshape(-1).astype(kind)
    rescales = _rescales(operator, source, weights, bias, output, offsets)
    clamp = activation_range(operator.activation, output)
    if rescales is None or not clamp_fits(clamp, output):
        return None
    fields = {
        "input_offset": str(-zero_point_of(source)),
        "filter_offset": "0",
        "output_offset": str(zero_point_of(output)),
        "activation": braces(clamp),
    }
    sums_known, alike = features == MVE and not int16, len(set(rescales)) == 1
    per_tensor, per_channel = _per_tensor(offsets, rescales[0]), channel_parameters(offsets, rescales, features)
    rows, c_type = source.elements // inputs, C_TYPES[output.dtype]
    function = "s16" if int16 else "s8" if alike else "per_channel_s8"
    return Call("fully_connected", "compiler.h", (
        params("layer", "cmsis_nn_fc_params", fields),
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter("const int8_t *", "filter", Constant.array("filter", "int8_t", weights.data)),
        *(per_tensor if alike else per_channel),
        *((_sums(folded_bias(offsets, weights.data, 0, zero_point_of(source))),) if sums_known else ()),
        Parameter(f"{c_type} *", "output", output.name),
    ), (
        f"const cmsis_nn_context context = {{(int32_t *)sums, {4 * outputs}}}; /* which is only read */"
        if sums_known else context(0),
        *(() if alike else RESCALES),
        dims("input_size", (rows, 1, 1, inputs)),
        dims("filter_size", (inputs, 1, 1, outputs)),
        dims("bias_size", (1, 1, 1, outputs)),
        dims("output_size", (rows, 1, 1, outputs)),
        *call(f"arm_fully_connected_{function}", "&context", "layer", "rescale" if alike else "&rescales",
              "&input_size", "input", "&filter_size", "filter", "&bias_size", "bias", "&output_size", "output"),
    ), cmsis_nn=frozenset(FEATURES if sums_known or int16 else (PLAIN, DSP)))  # fmt: skip


def _rescales(
    operator: FullyConnected, source: Tensor, weights: Tensor, bias: Tensor | None, output: Tensor, offsets: Array
) -> tuple[Rescale, ...] | None:
    """Return the rescalings for the library, which in int16 has one for all outputs and adds a bias of int64."""
    assert weights.data is not None
    rescales = fully_connected_rescales(source, weights, output)
    if output.dtype is DType.INT8:
        return fitting_rescales(weights.data, offsets, rescales)
    one = operator.sums_are_wide(source, bias) and len(set(rescales)) == 1
    return rescales if one and fits_int16(weights.data, offsets, rescales, wide=True) else None


def _per_tensor(offsets: Array, rescale: Rescale) -> tuple[Parameter, ...]:
    fields = {"multiplier": str(rescale.multiplier), "shift": str(rescale.shift)}
    c_type = f"int{8 * offsets.itemsize}_t"
    return (
        Parameter(f"const {c_type} *", "bias", Constant.array("bias", c_type, offsets)),
        params("rescale", "cmsis_nn_per_tensor_quant_params", fields),
    )


def _sums(sums: Array) -> Parameter:
    return Parameter("const int32_t *", "sums", Constant.array("sums", "int32_t", sums))
