"""Networks as frozen, checked values, with a numpy reference of each operator.

Data:

- ``Tensor``: a name, a static shape (row-major; images are NHWC), an element type, and perhaps a ``Quantization``,
  constant data, or labels.
- ``Quantization``: real = scale * (stored - zero point), with one scale for the tensor or one for each index of a
  dimension (per channel).
- ``Node``: an operator with its attributes, and the names of the tensors that it reads and writes. An absent optional
  input is ``None``.
- ``State``: two tensors, for the value before a run and the value after it, which the next run begins with.
- ``Graph``: tensors by name, nodes in order of execution, and the names of inputs, outputs and states.

The rules, which the constructors check, so that other code can rely on them:

1. Each tensor is written once, before it is read. So a name means one value, and there are no cycles.
2. Shapes are fixed. Only inputs and outputs of the network may have no elements.
3. ``Operator.check`` accepts the tensors of each node: number, types, shapes, scales, and that all multipliers exist. A
   violation is an ``OperatorError`` with the node's name; a broken structure is another ``GraphError``.
4. Arrays are read-only, and values are never changed: passes make another graph.
5. ``Operator.reference`` computes the outputs in numpy. For integers it equals TensorFlow Lite Micro bit for bit; other
   kinds of numbers are listed in docs/numbers.md. It folds constants, makes tables, and is what kernels are tested
   against.
6. The numbers of a rescaling come from one function (``quantize``, ``rescales``, ``wide_sums``, ``half_even``), which
   the reference and the lowering both call, so that they cannot differ.

Quantisation facts that the rest depends on:

- int8 has any zero point, int16 always 0. Weights are int8 and symmetric, so that a scale per channel needs no zero
  points; weights with one scale may have a zero point, as those of uint8 networks do.
- No layer computes with uint8: frontends make int8 of it by subtracting 128 from values and zero points.
- A bias is int32 over int8, and int64 or int32 over int16. Its unit is the product of the scales of input and weights.
- An operator that only moves elements needs no scale, but both sides must have the same one.

For example::

    x = Tensor("x", (1, 4), DType.FLOAT32)
    y = Tensor("y", (1, 4), DType.FLOAT32)
    graph = Graph("net", [x, y], [Node("relu", ops.Relu(), ("x",), ("y",))], ["x"], ["y"])
    evaluate(graph, {"x": numpy.array([[-1, 0, 1, 2]], numpy.float32)})["y"]   # [[0, 0, 1, 2]]

If ``y`` had the shape (1, 3), ``Graph`` would raise ``OperatorError``, with the node and the shape that it should have.

``ops`` defines the operators, one file per family, and ``bases`` their base classes and common rules. This package does
not read model files (``frontends``), choose kernels (``lowering``) or place tensors (``memory``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.graph.constant_budget import MAX_CONSTANTS, ConstantBudget
    from mlfbuild.native.graph.fixed_point import high_multiply
    from mlfbuild.native.graph.half_even import HalfEvenRescale
    from mlfbuild.native.graph.lookup_table import LOGISTIC_TABLE, look_up
    from mlfbuild.native.graph.nodes import Graph, Node, State, evaluate, evaluate_in_turn
    from mlfbuild.native.graph.operator import Activation, Operator
    from mlfbuild.native.graph.quantize import (
        Rescale, activation_range, double_scale, float_activation_range, integer_range, log_softmax_rescale,
        multiply_by_quantized_multiplier, quantize_value, requantize_rescale, softmax_rescale, softmax_table_rescale,
        whole_activation_range,
    )
    from mlfbuild.native.graph.rescales import (
        SUM_LEFT_SHIFT, BinaryRescales, add_rescales, comparison_rescale, leaky_rescale, multiply_rescale,
        prelu_rescales, squared_difference_rescales,
    )
    from mlfbuild.native.graph.tensors import (
        C_TYPES, EVERY, UNSIGNED, Array, DType, GraphError, Inputs, Operands, OperatorError, Quantization, Tensor,
        Values,
    )
    from mlfbuild.native.graph.wide_sums import fine_multiplier, wide_rescale
else:
    __getattr__ = lazy_attributes(__name__)
