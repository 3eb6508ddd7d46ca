"""GATHER and GATHER_ND."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import C_TYPES, Graph, Node, Tensor
from mlfbuild.native.graph.ops import Gather, GatherNd
from mlfbuild.native.lowering.call import KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.settings import CodegenSettings

_DIMENSIONS = 8


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_gather_<type of the indices>`` or ``mlf_gather_nd_<type of the indices>``."""
    operator = node.operator
    if isinstance(operator, GatherNd):
        return _gather_nd(graph, node)
    assert isinstance(operator, Gather)
    (source, indices), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    # Dimensions before, between and behind the axes are one loop each.
    axis, common = operator.axis, operator.batch_dims
    fields = {
        "batches": math.prod(source.shape[:common]),
        "slices": math.prod(source.shape[common:axis]),
        "size": source.shape[axis],
        "count": math.prod(indices.shape[common:]),
        # Runs are copied as bytes, whatever the type.
        "run": math.prod(source.shape[axis + 1 :]) * source.dtype.size,
    }
    return _call("gather", fields, source, indices, output)


def _gather_nd(graph: Graph, node: Node) -> KernelCall:
    (source, indices), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    depth = indices.shape[-1]
    # Kernels have arrays of a fixed number of dimensions; the rest is never read.
    unused = [1] * (_DIMENSIONS - depth)
    strides = [math.prod(source.shape[axis + 1 :]) * source.dtype.size for axis in range(depth)]
    fields = {
        "places": indices.elements // depth,
        "depth": depth,
        "sizes": braces([*source.shape[:depth], *unused]),
        "strides": braces([*strides, *unused]),
        "run": math.prod(source.shape[depth:]) * source.dtype.size,
    }
    return _call("gather_nd", fields, source, indices, output)


def _call(word: str, fields: Mapping[str, object], source: Tensor, indices: Tensor, output: Tensor) -> KernelCall:
    return KernelCall(word, "gather.h", (
        Parameter("const void *", "input", source.name),
        Parameter(f"const {C_TYPES[indices.dtype]} *", "indices", indices.name),
        Parameter("void *", "output", output.name),
    ), (
        *struct_lines(f"mlf_{word}", "shape", fields),
        f"mlf_{word}_{suffix(indices.dtype)}(&shape, input, indices, output);",
    ))  # fmt: skip
