"""Networks as frozen, checked values, with a numpy reference of each operator.

A ``Graph`` has tensors by name and nodes in order of execution; its constructor checks both. ``ops`` defines the
operators, ``bases`` their base classes and common rules. ``evaluate`` runs a network in numpy::

    x = Tensor("x", (1, 4), DType.FLOAT32)
    y = Tensor("y", (1, 4), DType.FLOAT32)
    graph = Graph("net", [x, y], [Node("relu", ops.Relu(), ("x",), ("y",))], ["x"], ["y"])
    evaluate(graph, {"x": numpy.array([[-1, 0, 1, 2]], numpy.float32)})["y"]

This package does not read model files (``frontends``) or choose kernels (``lowering``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.graph.c_types import C_TYPES
    from mlfbuild.native.graph.constant_budget import MAX_CONSTANTS, ConstantBudget
    from mlfbuild.native.graph.evaluation import evaluate, evaluate_in_turn
    from mlfbuild.native.graph.fixed_point import high_multiply
    from mlfbuild.native.graph.half_even import HalfEvenRescale
    from mlfbuild.native.graph.logistic_table import LOGISTIC_TABLE
    from mlfbuild.native.graph.lookup_table import look_up
    from mlfbuild.native.graph.nodes import Graph, Node, State
    from mlfbuild.native.graph.operands import Inputs, Operands, Values
    from mlfbuild.native.graph.operator import Activation, Operator
    from mlfbuild.native.graph.quantize import (
        Rescale, activation_range, double_scale, float_activation_range, integer_range, log_softmax_rescale,
        multiply_by_quantized_multiplier, quantize_value, requantize_rescale, scale_of, softmax_rescale,
        softmax_table_rescale, whole_activation_range, zero_point_of,
    )
    from mlfbuild.native.graph.rescales import (
        SUM_LEFT_SHIFT, BinaryRescales, add_rescales, comparison_rescale, leaky_rescale, multiply_rescale,
        prelu_rescales, squared_difference_rescales,
    )
    from mlfbuild.native.graph.tensors import (
        EVERY, UNSIGNED, Array, DType, GraphError, OperatorError, Quantization, Tensor,
    )
    from mlfbuild.native.graph.wide_sums import fine_multiplier, wide_rescale
else:
    __getattr__ = lazy_attributes(__name__)
