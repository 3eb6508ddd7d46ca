"""Networks as frozen, checked values, with a numpy reference of each operator.

A ``Graph`` has tensors by name and nodes in order of execution; its constructor checks both. ``ops`` defines the
operators, ``bases`` their base classes and common rules. ``evaluate`` runs a network in numpy::

    x = Tensor("x", (1, 4), DType.FLOAT32)
    y = Tensor("y", (1, 4), DType.FLOAT32)
    graph = Graph("net", [x, y], [Node("relu", ops.Relu(), ("x",), ("y",))], ["x"], ["y"])
    evaluate(graph, {"x": numpy.array([[-1, 0, 1, 2]], numpy.float32)})["y"]

This package does not read model files (``mlfbuild.frontends``) or choose kernels (``mlfbuild.compilers``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.graph.constant_budget import MAX_CONSTANTS as MAX_CONSTANTS, ConstantBudget as ConstantBudget
    from mlfbuild.graph.evaluation import evaluate as evaluate, evaluate_in_turn as evaluate_in_turn
    from mlfbuild.graph.fixed_point import high_multiply as high_multiply
    from mlfbuild.graph.half_even import HalfEvenRescale as HalfEvenRescale
    from mlfbuild.graph.logistic_table import LOGISTIC_TABLE as LOGISTIC_TABLE
    from mlfbuild.graph.lookup_table import look_up as look_up
    from mlfbuild.graph.operator import Activation as Activation, Operator as Operator
    from mlfbuild.graph.quantize import (
        Rescale as Rescale,
        activation_range as activation_range,
        double_scale as double_scale,
        float_activation_range as float_activation_range,
        integer_range as integer_range,
        log_softmax_rescale as log_softmax_rescale,
        multiply_by_quantized_multiplier as multiply_by_quantized_multiplier,
        quantize_value as quantize_value,
        requantize_rescale as requantize_rescale,
        scale_of as scale_of,
        softmax_rescale as softmax_rescale,
        softmax_table_rescale as softmax_table_rescale,
        whole_activation_range as whole_activation_range,
        zero_point_of as zero_point_of,
    )
    from mlfbuild.graph.rescales import (
        SUM_LEFT_SHIFT as SUM_LEFT_SHIFT,
        BinaryRescales as BinaryRescales,
        add_rescales as add_rescales,
        comparison_rescale as comparison_rescale,
        leaky_rescale as leaky_rescale,
        multiply_rescale as multiply_rescale,
        prelu_rescales as prelu_rescales,
        squared_difference_rescales as squared_difference_rescales,
    )
    from mlfbuild.graph.types import (
        EVERY as EVERY,
        UNSIGNED as UNSIGNED,
        Array as Array,
        DType as DType,
        Graph as Graph,
        GraphError as GraphError,
        Node as Node,
        OperatorError as OperatorError,
        Quantization as Quantization,
        State as State,
        Tensor as Tensor,
    )
    from mlfbuild.graph.wide_sums import fine_multiplier as fine_multiplier, wide_rescale as wide_rescale
else:
    __getattr__ = lazy_attributes(__name__)
