"""GATHER."""

from __future__ import annotations

import math

from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.ops.activation import suffix
from mlfbuild.compilers.native.ops.call import Call, Parameter, struct_lines
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Graph, Node
from mlfbuild.graph.ops import Gather


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_gather_<type of the indices>``."""
    operator = node.operator
    assert isinstance(operator, Gather)
    (source, indices), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None and indices is not None
    axis, common = operator.axis, operator.batch_dims
    fields = {
        "batches": math.prod(source.shape[:common]),
        "slices": math.prod(source.shape[common:axis]),
        "size": source.shape[axis],
        "count": math.prod(indices.shape[common:]),
        "run": math.prod(source.shape[axis + 1 :]) * source.dtype.size,
    }
    return Call("gather", "gather.h", (
        Parameter("const void *", "input", source.name),
        Parameter(f"const {C_TYPES[indices.dtype]} *", "indices", indices.name),
        Parameter("void *", "output", output.name),
    ), (
        *struct_lines("mlf_gather", "shape", {name: str(value) for name, value in fields.items()}),
        f"mlf_gather_{suffix(indices.dtype)}(&shape, input, indices, output);",
    ))  # fmt: skip
