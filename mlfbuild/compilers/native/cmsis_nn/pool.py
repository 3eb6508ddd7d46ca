"""AVERAGE_POOL_2D and MAX_POOL_2D by ``arm_avgpool_s8`` and ``arm_max_pool_s8``, or those of ``_s16``."""

from __future__ import annotations

import math

from mlfbuild.compilers.native.cmsis_nn.buffers import average_pool
from mlfbuild.compilers.native.cmsis_nn.layer import FEATURES, PLAIN, Layer, features_of
from mlfbuild.compilers.native.cmsis_nn.rights import clamp_fits
from mlfbuild.compilers.native.cmsis_nn.text import call, context, image_dims, params, scratch, tile
from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.literals import braces
from mlfbuild.compilers.native.ops.call import LARGEST_SUM, Call, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node
from mlfbuild.graph.ops import AveragePool2D, MaxPool2D
from mlfbuild.graph.quantize import activation_range

_MOST_PIXELS = {DType.INT8: LARGEST_SUM, DType.INT16: 1 << 15}
"""Pixels that surely add up within 32 bits."""


def lower(graph: Graph, node: Node, settings: Settings) -> Call | None:
    """Return the call of the library; ``None`` where our own kernel has to compute ``node``."""
    operator = node.operator
    assert isinstance(operator, AveragePool2D | MaxPool2D)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    if math.prod(operator.filter) > _MOST_PIXELS.get(source.dtype, 0):
        return None
    layer, clamp = Layer.of(operator.window(), source, output), activation_range(operator.activation, output)
    if not layer.small or not clamp_fits(clamp, output):
        return None
    average = isinstance(operator, AveragePool2D)
    sizes = {each: average_pool(layer, each) if average else 0 for each in FEATURES}
    size = max(sizes[features_of(settings)], sizes[PLAIN])
    c_type, end = C_TYPES[output.dtype], f"s{8 * output.dtype.size}"
    fields = {"stride": tile(layer.stride), "padding": tile(layer.padding), "activation": braces(clamp)}
    return Call("average_pool" if average else "max_pool", "compiler.h", (
        params("layer", "cmsis_nn_pool_params", fields),
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter(f"{c_type} *", "output", output.name),
        *scratch(size),
    ), (
        context(size),
        image_dims("input_size", layer.batches, layer.image, layer.channels),
        image_dims("filter_size", 1, layer.filter, 1),
        image_dims("output_size", layer.batches, layer.output, layer.output_channels),
        *call(f"arm_{'avgpool' if average else 'max_pool'}_{end}", "&context", "layer", "&input_size", "input",
              "&filter_size", "&output_size", "output"),
    ), cmsis_nn=frozenset(each for each in FEATURES if sizes[each] <= size))  # fmt: skip
