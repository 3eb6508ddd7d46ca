"""AVERAGE_POOL_2D and MAX_POOL_2D of int8 by ``arm_avgpool_s8`` and ``arm_max_pool_s8``."""

from __future__ import annotations

import math

from mlfbuild.compilers.native.cmsis_nn.buffers import average_pool
from mlfbuild.compilers.native.cmsis_nn.layer import FEATURES, PLAIN, Layer, features_of
from mlfbuild.compilers.native.cmsis_nn.rights import clamp_fits
from mlfbuild.compilers.native.cmsis_nn.text import call, context, image_dims, params, scratch, tile
from mlfbuild.compilers.native.literals import braces
from mlfbuild.compilers.native.ops.call import LARGEST_SUM, Call, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node
from mlfbuild.graph.ops import AveragePool2D, MaxPool2D
from mlfbuild.graph.quantize import activation_range


def lower(graph: Graph, node: Node, settings: Settings) -> Call | None:
    """Return the call of the library; ``None`` where our own kernel has to compute ``node``."""
    operator = node.operator
    assert isinstance(operator, AveragePool2D | MaxPool2D)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    if source.dtype is not DType.INT8 or math.prod(operator.filter) > LARGEST_SUM:
        return None
    layer, clamp = Layer.of(operator.window(), source, output), activation_range(operator.activation, output)
    if not layer.small or not clamp_fits(clamp, output):
        return None
    average = isinstance(operator, AveragePool2D)
    sizes = {each: average_pool(layer, each) if average else 0 for each in FEATURES}
    size = max(sizes[features_of(settings)], sizes[PLAIN])
    fields = {"stride": tile(layer.stride), "padding": tile(layer.padding), "activation": braces(clamp)}
    return Call("average_pool" if average else "max_pool", "compiler.h", (
        params("layer", "cmsis_nn_pool_params", fields),
        Parameter("const int8_t *", "input", source.name),
        Parameter("int8_t *", "output", output.name),
        *scratch(size),
    ), (
        context(size),
        image_dims("input_size", layer.batches, layer.image, layer.channels),
        image_dims("filter_size", 1, layer.filter, 1),
        image_dims("output_size", layer.batches, layer.output, layer.output_channels),
        *call("arm_avgpool_s8" if average else "arm_max_pool_s8", "&context", "layer", "&input_size", "input",
              "&filter_size", "&output_size", "output"),
    ), cmsis_nn=frozenset(each for each in FEATURES if sizes[each] <= size))  # fmt: skip
