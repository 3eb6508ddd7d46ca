"""CUMSUM."""

from __future__ import annotations

import math

from mlfbuild.native.graph import C_TYPES, DType, Graph, Node, Tensor, add_rescales
from mlfbuild.native.graph.ops import Cumsum
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.activation import suffix, zero_point
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_cumsum_<type>``."""
    operator = node.operator
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert isinstance(operator, Cumsum)
    shape, axis, c_type = source.shape, operator.axis, C_TYPES[source.dtype]
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
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter(f"{c_type} *", "output", output.name),
    ), (
        *struct_lines("mlf_cumsum", "shape", {name: str(value) for name, value in fields.items()}),
        f"mlf_cumsum_{suffix(source.dtype)}({arguments});",
    ), (0,))  # fmt: skip


def sum_rescaling(source: Tensor, output: Tensor) -> tuple[Parameter, ...]:
    """Return the constant of an int8 kernel, which brings sums of elements of ``source`` to the scale of ``output``."""
    # Other types have no scale: their sums are stored as they are.
    if source.dtype is not DType.INT8:
        return ()
    constant = Constant.struct(
        "rescaling",
        "mlf_rescaling",
        {
            "input_zero_point": zero_point(source),
            "output_zero_point": zero_point(output),
            "rescale": add_rescales(source, source, output).output,
        },
    )
    return (Parameter("const struct mlf_rescaling *", "rescaling", constant),)
