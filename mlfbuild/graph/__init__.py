"""Networks as frozen, checked values, with a numpy reference of each operator."""

from mlfbuild.graph.operator import Activation, Operator
from mlfbuild.graph.types import Array, DType, Graph, GraphError, Node, OperatorError, Quantization, State, Tensor

__all__ = [
    "Activation",
    "Array",
    "DType",
    "Graph",
    "GraphError",
    "Node",
    "Operator",
    "OperatorError",
    "Quantization",
    "State",
    "Tensor",
]
