"""SOFTMAX of int8 by ``arm_softmax_s8`` and ``arm_softmax_s8_s16``.

Not of int16: where all but one exponential vanish, ``arm_softmax_s16`` of v7.0.0 gives -1 for 1.
"""

from __future__ import annotations

from mlfbuild.compilers.native.cmsis_nn.layer import FEATURES
from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.ops.call import Call, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node
from mlfbuild.graph.ops import Softmax
from mlfbuild.graph.quantize import softmax_rescale

_LARGEST_DEPTH = 4095
"""Exponentials of at most 1 whose sum fits Q12.19 with a sign."""
_SHIFTS = range(31)


def lower(graph: Graph, node: Node, _settings: Settings) -> Call | None:
    """Return the call of the library; ``None`` where our own kernel has to compute ``node``."""
    operator = node.operator
    assert isinstance(operator, Softmax)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    depth = source.shape[-1]
    if source.dtype is not DType.INT8 or depth > _LARGEST_DEPTH:
        return None
    scaling = softmax_rescale(source, operator.beta)
    rescale = scaling.rescale
    if rescale.shift not in _SHIFTS:
        return None
    numbers = (source.elements // depth, depth, rescale.multiplier, rescale.shift, scaling.least_difference)
    narrow = output.dtype is DType.INT8
    return Call("softmax", "compiler.h", (
        Parameter("const int8_t *", "input", source.name),
        Parameter(f"{C_TYPES[output.dtype]} *", "output", output.name),
    ), (
        f"arm_softmax_s8{'' if narrow else '_s16'}(input, {', '.join(map(str, numbers))}, output);",
    ), (0,) if narrow else (), cmsis_nn=frozenset(FEATURES))  # fmt: skip
