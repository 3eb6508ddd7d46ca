"""CUMSUM."""

from __future__ import annotations

import math

from mlfbuild.native.graph import DType, Graph, Node, Tensor, add_rescales
from mlfbuild.native.graph.ops import Cumsum
from mlfbuild.native.lowering.call import KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.parameters import input_and_output, rescaling_parameter
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_cumsum_<type>``."""
    operator = node.operator
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert isinstance(operator, Cumsum)
    shape, axis = source.shape, operator.axis
    # Three loops: before, along and behind the axis.
    fields = {
        "outer": math.prod(shape[:axis]),
        "size": shape[axis],
        "inner": math.prod(shape[axis + 1 :]),
        "exclusive": int(operator.exclusive),
        "reverse": int(operator.reverse),
    }
    rescaling = sum_rescaling(source, output)
    arguments = ", ".join([*(parameter.name for parameter in rescaling), "&shape", "input", "output"])
    return KernelCall("cumsum", "cumsum.h", (
        *rescaling,
        *input_and_output(source, output),
    ), (
        *struct_lines("mlf_cumsum", "shape", fields),
        f"mlf_cumsum_{suffix(source.dtype)}({arguments});",
    ), (0,))  # fmt: skip


def sum_rescaling(source: Tensor, output: Tensor) -> tuple[Parameter, ...]:
    """Return the constant of an int8 kernel, which brings sums of elements of ``source`` to the scale of ``output``.

    It is a tuple with one parameter, or an empty one for types whose sums are stored as they are.
    """
    # Other types have no scale: their sums are stored as they are.
    if source.dtype is not DType.INT8:
        return ()
    return (rescaling_parameter(source, output, add_rescales(source, source, output).output),)
