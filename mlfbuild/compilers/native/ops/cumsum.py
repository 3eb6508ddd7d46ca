"""CUMSUM and ADD_N."""

from __future__ import annotations

import math

from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.ops.activation import suffix, zero_point
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter, struct_lines
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node, Tensor
from mlfbuild.graph.ops import AddN, Cumsum
from mlfbuild.graph.rescales import add_rescales

_HEADER = "cumsum.h"


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_cumsum_<type>`` or ``mlf_add_n_<type>``."""
    sources = [tensor for tensor in graph.inputs_of(node) if tensor is not None]
    (output,) = graph.outputs_of(node)
    if isinstance(node.operator, AddN):
        return _add_n(sources, output)
    assert isinstance(node.operator, Cumsum)
    return _cumsum(node.operator, sources[0], output)


def _cumsum(operator: Cumsum, source: Tensor, output: Tensor) -> Call:
    shape, axis, c_type = source.shape, operator.axis, C_TYPES[source.dtype]
    fields = {
        "outer": math.prod(shape[:axis]),
        "size": shape[axis],
        "inner": math.prod(shape[axis + 1 :]),
        "exclusive": int(operator.exclusive),
        "reverse": int(operator.reverse),
    }
    rescaling = _rescaling(source, output)
    arguments = ", ".join([*(parameter.name for parameter in rescaling), "&shape", "input", "output"])
    return Call("cumsum", _HEADER, (
        *rescaling,
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter(f"{c_type} *", "output", output.name),
    ), (
        *struct_lines("mlf_cumsum", "shape", {name: str(value) for name, value in fields.items()}),
        f"mlf_cumsum_{suffix(source.dtype)}({arguments});",
    ), (0,))  # fmt: skip


def _add_n(sources: list[Tensor], output: Tensor) -> Call:
    c_type, names = C_TYPES[output.dtype], [f"input{at}" for at in range(len(sources))]
    rescaling = _rescaling(sources[0], output)
    words = [*(parameter.name for parameter in rescaling), str(output.elements), str(len(sources)), "inputs", "output"]
    return Call("add_n", _HEADER, (
        *rescaling,
        *(Parameter(f"const {c_type} *", name, source.name) for name, source in zip(names, sources, strict=True)),
        Parameter(f"{c_type} *", "output", output.name),
    ), (
        f"const {c_type} *const inputs[] = {{{', '.join(names)}}};",
        f"mlf_add_n_{suffix(output.dtype)}({', '.join(words)});",
    ), tuple(range(len(sources))))  # fmt: skip


def _rescaling(source: Tensor, output: Tensor) -> tuple[Parameter, ...]:
    """Return the constant of an int8 kernel."""
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
