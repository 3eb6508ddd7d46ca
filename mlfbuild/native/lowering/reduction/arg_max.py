"""ARG_MAX and ARG_MIN."""

from __future__ import annotations

import math

from mlfbuild.native.graph import C_TYPES, Graph, Node
from mlfbuild.native.graph.ops import ArgMax, ArgMin
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_arg_max_<type>_<type of positions>`` or ``mlf_arg_min_...``."""
    operator = node.operator
    assert isinstance(operator, ArgMax | ArgMin)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    word, axis = operator.name.lower(), operator.axis
    sizes = (math.prod(source.shape[:axis]), source.shape[axis], math.prod(source.shape[axis + 1 :]))
    kernel = f"mlf_{word}_{suffix(source.dtype)}_{suffix(output.dtype)}"
    return KernelCall(word, "arg_max.h", (
        Parameter(f"const {C_TYPES[source.dtype]} *", "input", source.name),
        Parameter(f"{C_TYPES[output.dtype]} *", "output", output.name),
    ), (f"{kernel}({', '.join(map(str, sizes))}, input, output);",))  # fmt: skip
