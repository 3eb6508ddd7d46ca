"""SCATTER_ND."""

from __future__ import annotations

import math

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import C_TYPES, Graph, Node
from mlfbuild.native.lowering.call import KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.settings import CodegenSettings

_DIMENSIONS = 8


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_scatter_nd_<type>_<type of the indices>``."""
    (updates, indices), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    depth = indices.shape[-1]
    unused = [1] * (_DIMENSIONS - depth)
    fields = {
        "places": str(indices.elements // depth),
        "depth": str(depth),
        "sizes": braces([*output.shape[:depth], *unused]),
        "strides": braces([*(math.prod(output.shape[axis + 1 :]) for axis in range(depth)), *unused]),
        "run": str(math.prod(output.shape[depth:])),
        # Zeros are written first, so that the kernel needs the size of the whole output.
        "size": str(output.elements),
    }
    c_type = C_TYPES[output.dtype]
    return KernelCall("scatter_nd", "scatter.h", (
        Parameter(f"const {c_type} *", "input", updates.name),
        Parameter(f"const {C_TYPES[indices.dtype]} *", "indices", indices.name),
        Parameter(f"{c_type} *", "output", output.name),
    ), (
        *struct_lines("mlf_scatter_nd", "shape", fields),
        f"mlf_scatter_nd_{suffix(output.dtype)}_{suffix(indices.dtype)}(&shape, input, indices, output);",
    ))  # fmt: skip
