"""MEAN."""

from __future__ import annotations

import itertools

from mlfbuild.compilers.native.literals import braces
from mlfbuild.compilers.native.ops.activation import zero_point
from mlfbuild.compilers.native.ops.call import LARGEST_SUM, Call, Constant, Parameter, struct_lines, unsupported
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node, Tensor
from mlfbuild.graph.ops import Mean
from mlfbuild.graph.quantize import mean_rescale

_GROUPS = 2


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_mean_int8`` or ``mlf_mean_float``."""
    operator = node.operator
    assert isinstance(operator, Mean)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    shape = struct_lines("mlf_reduction", "shape", _reduction_fields(node, operator, source))
    if source.dtype is DType.FLOAT32:
        return Call("mean", "mean.h", (
            Parameter("const float *", "input", source.name),
            Parameter("float *", "output", output.name),
        ), (*shape, "mlf_mean_float(&shape, input, output);"))  # fmt: skip
    count = operator.count(source.shape)
    if count > LARGEST_SUM:
        raise unsupported(node, f"an int8 mean is supported of at most {LARGEST_SUM} elements, here {count}")
    rescaling = Constant.struct(
        "rescaling",
        "mlf_rescaling",
        {
            "input_zero_point": zero_point(source),
            "output_zero_point": zero_point(output),
            "rescale": mean_rescale(source, output, count),
        },
    )
    return Call("mean", "mean.h", (
        Parameter("const struct mlf_rescaling *", "rescaling", rescaling),
        Parameter("const int8_t *", "input", source.name),
        Parameter("int8_t *", "output", output.name),
    ), (*shape, "mlf_mean_int8(&shape, rescaling, input, output);"))  # fmt: skip


def _reduction_fields(node: Node, operator: Mean, source: Tensor) -> dict[str, str]:
    """Return the fields of a ``struct mlf_reduction``; neighbouring dimensions of one kind are merged."""
    groups: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    stride = source.elements
    axes = [axis for axis, size in enumerate(source.shape) if size > 1]
    for reduced, members in itertools.groupby(axes, lambda axis: axis in operator.axes):
        size = 1
        for axis in members:
            size *= source.shape[axis]
        stride //= size
        groups[reduced].append((size, stride))
    if max(len(group) for group in groups.values()) > _GROUPS:
        raise unsupported(node, f"the mean of {source} over the axes {list(operator.axes)} alternates too often")
    kept, reduced_groups = ([(1, 0)] * (_GROUPS - len(groups[kind])) + groups[kind] for kind in (False, True))
    return {
        "kept": braces([size for size, _ in kept]),
        "kept_strides": braces([stride for _, stride in kept]),
        "reduced": braces([size for size, _ in reduced_groups]),
        "reduced_strides": braces([stride for _, stride in reduced_groups]),
    }
