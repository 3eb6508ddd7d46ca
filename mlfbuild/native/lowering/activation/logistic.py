"""LOGISTIC and TANH."""

from __future__ import annotations

from mlfbuild.native.graph import LOGISTIC_TABLE, DType, Graph, Node, Rescale, Tensor
from mlfbuild.native.graph.ops import Sigmoid
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter
from mlfbuild.native.lowering.common.unary import lower_unary, unary_call, unary_tensors
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_<operator>_<type>``, or of a table."""
    source, output = unary_tensors(graph, node)
    assert isinstance(node.operator, Sigmoid)
    if source.dtype is DType.INT16:
        return _int16(node.operator, source, output)
    return lower_unary(node.operator, source, output)


def _int16(operator: Sigmoid, source: Tensor, output: Tensor) -> KernelCall:
    scale = operator.table_scale(source)
    # The table is the same array in every network, so that it is stored once however many nodes use it.
    fields: dict[str, int | Rescale] = {"multiplier": scale.multiplier, "shift": scale.shift}
    parameters = (
        Parameter("const struct mlf_table_scale *", "scale", Constant.struct("scale", "mlf_table_scale", fields)),
        Parameter("const uint16_t *", "table", Constant.array("table", "uint16_t", LOGISTIC_TABLE)),
    )
    return unary_call(operator, source, output, f"{operator.name.lower()}_int16", ("scale", "table"), parameters)
