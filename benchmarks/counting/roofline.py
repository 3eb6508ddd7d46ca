"""A model of what the best micro-kernels take for a network, to see what is left.

Instructions for each multiplication of int8 numbers: measured in a hand-written kernel of 2x3 blocks for convolutions,
estimated for depthwise ones and products with one vector; estimated for each output (requantisation), each input of a
convolution (its expansion to 16 bits, where the core multiplies those) and each element of an ADD. The convolutions of
the model need no im2col, whatever their shape. It is something to compare with, not a bound: kernels that need less
are below it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.ops import Add, Conv2D, DepthwiseConv2D, FullyConnected

CONVOLUTION = "convolution"
"""With the fully connected layers, which are products of matrices as well."""
DEPTHWISE = "depthwise"
OTHER = "other"
"""Residual sums, pools, softmax, copies, calls."""
KINDS = (CONVOLUTION, DEPTHWISE, OTHER)


@dataclass(frozen=True)
class Model:
    """Instructions of one core for int8."""

    convolution: float
    depthwise: float
    fully_connected: float
    output: float
    expansion: float
    addition: float


DSP = Model(0.945, 2.0, 1.2, 8, 1, 10)
"""Cortex-M4 and its like: SMLAD multiplies two pairs of 16 bits."""
MVE = Model(0.165, 0.6, 0.14, 3, 0, 2)
"""Cortex-M55: VMLADAVA.S8 multiplies sixteen pairs of 8 bits."""


def model_of(cpu: str) -> Model:
    """Return the model of a core of the benchmark."""
    return MVE if cpu == "cortex-m55" else DSP


def roofline(graph: Graph, model: Model) -> dict[str, int]:
    """Return the instructions that ``model`` expects of the int8 network ``graph``, by kind of operator."""
    kinds = dict.fromkeys(KINDS, 0.0)
    for node in graph.nodes:
        operator, output = node.operator, graph.outputs_of(node)[0]
        if isinstance(operator, Conv2D | DepthwiseConv2D | FullyConnected):
            source, weights = graph.inputs_of(node)[:2]
            assert source is not None
            assert weights is not None
            if isinstance(operator, DepthwiseConv2D):
                products = weights.shape[1] * weights.shape[2] * output.elements
                kinds[DEPTHWISE] += model.depthwise * products + model.output * output.elements
            else:
                products = weights.elements // weights.shape[0] * output.elements
                each = model.convolution if isinstance(operator, Conv2D) else model.fully_connected
                kinds[CONVOLUTION] += each * products + model.output * output.elements
                kinds[CONVOLUTION] += model.expansion * source.elements
        elif isinstance(operator, Add):
            kinds[OTHER] += model.addition * output.elements
    return {kind: round(count) for kind, count in kinds.items()}
