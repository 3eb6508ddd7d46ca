"""MEAN, SUM and the REDUCE_* operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import DType, Graph, HalfEvenRescale, Node, Rescale, Tensor
from mlfbuild.native.graph.bases import QUANTIZED
from mlfbuild.native.graph.ops import Reduction, Summing
from mlfbuild.native.lowering.call import LARGEST_SUM, KernelCall, Parameter, struct_lines, unsupported
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.parameters import input_and_output, rescaling_parameter
from mlfbuild.native.settings import CodegenSettings

_GROUPS = 3
_LARGEST_COUNT = {DType.INT8: LARGEST_SUM, DType.INT16: 1 << 15}
"""The most elements whose sum always fits in 32 bits."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_<word>_<type>``; a quantised mean is a sum with another rescaling."""
    operator = node.operator
    assert isinstance(operator, Reduction)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    groups = _groups(operator, source)
    # Sums of columns, as of the pixels of an image, are computed for four columns together.
    columns = isinstance(operator, Summing) and source.dtype in (*QUANTIZED, DType.FLOAT32) and _are_columns(groups)
    shape = _columns_lines(groups) if columns else _shape_lines(node, operator, source, groups)
    word, kind = operator.name.lower(), ("columns_" if columns else "") + suffix(source.dtype)
    operands = (*input_and_output(source, output),)
    if source.dtype not in QUANTIZED or not isinstance(operator, Summing):
        return KernelCall(word, "reduce.h", operands, (*shape, f"mlf_{word}_{kind}(&shape, input, output);"))
    rescaling = _rescaling(node, operator, source, output)
    way = "half_even_" if operator.half_even else ""
    header = "reduce_half_even.h" if operator.half_even else "reduce.h"
    line = f"mlf_sum_{way}{kind}(rescaling, &shape, input, output);"
    return KernelCall(word, header, (rescaling, *operands), (*shape, line))


def _rescaling(node: Node, operator: Summing, source: Tensor, output: Tensor) -> Parameter:
    count, most = operator.count(source.shape), _LARGEST_COUNT[source.dtype]
    if count > most:
        kind = source.dtype.value
        raise unsupported(node, f"an {kind} {operator.name} has at most {most} elements, this one {count}")
    factor: Rescale | HalfEvenRescale = (
        operator.half_even_rescale(source, output) if operator.half_even else operator.rescale(source, output)
    )
    return rescaling_parameter(source, output, factor)


def _groups(operator: Reduction, source: Tensor) -> list[tuple[bool, int]]:
    """Return whether each group of adjacent dimensions of one kind is reduced, and its number of elements."""
    axes = [axis for axis, size in enumerate(source.shape) if size > 1]
    return [
        (reduced, math.prod(source.shape[axis] for axis in members))
        for reduced, members in itertools.groupby(axes, lambda axis: axis in operator.axes)
    ]


def _are_columns(groups: Sequence[tuple[bool, int]]) -> bool:
    """Return whether the last dimensions are kept, and only those before them are reduced."""
    return [reduced for reduced, _ in groups] in ([True, False], [False, True, False])


def _columns_lines(groups: Sequence[tuple[bool, int]]) -> Sequence[str]:
    """Return the local ``shape`` of a reduction to rows of sums."""
    count, rows, columns = ((1,) if len(groups) == 2 else ()) + tuple(size for _, size in groups)
    return struct_lines("mlf_reduced_columns", "shape", {"count": count, "rows": rows, "columns": columns})


def _shape_lines(node: Node, operator: Reduction, source: Tensor, groups: Sequence[tuple[bool, int]]) -> Sequence[str]:
    """Return the local ``shape`` of a reduction of ``groups``."""
    pairs: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    stride = source.elements
    for reduced, size in groups:
        stride //= size
        pairs[reduced].append((size, stride))
    if max(len(group) for group in pairs.values()) > _GROUPS:
        raise unsupported(node, f"the axes {list(operator.axes)} of {source} alternate too often")
    kept, reduced_groups = ([(1, 0)] * (_GROUPS - len(pairs[kind])) + pairs[kind] for kind in (False, True))
    fields = {
        "kept": braces([size for size, _ in kept]),
        "kept_strides": braces([stride for _, stride in kept]),
        "reduced": braces([size for size, _ in reduced_groups]),
        "reduced_strides": braces([stride for _, stride in reduced_groups]),
    }
    return struct_lines("mlf_reduction", "shape", fields)
