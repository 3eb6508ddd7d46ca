"""Compute nodes whose inputs are all constant, such as the shapes that exporters compute in the graph.

Arithmetic on shapes is done in numpy (``shape_arithmetic``), everything else by ONNX's reference evaluator. The
evaluator allocates results of any size, so the size is checked first if a result can be larger than the inputs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx

from mlfbuild.core import UnsupportedModelError, printable
from mlfbuild.native.frontends.onnx.raw_graph import RawNode
from mlfbuild.native.frontends.onnx.shape_arithmetic import computed
from mlfbuild.native.graph import Array, ConstantBudget, GraphError


def _broadcast(inputs: Sequence[Array]) -> int:
    return math.prod(np.broadcast_shapes(*(value.shape for value in inputs)))


def _range(inputs: Sequence[Array]) -> int:
    start, limit, delta = (float(value.reshape(-1)[0]) for value in inputs)
    # The length of Range: the quotient rounded up, at least 0.
    return max(0, math.ceil((limit - start) / delta))


def _gather(inputs: Sequence[Array]) -> int:
    # A bound, not the exact size: the axis is not known here.
    return inputs[0].size * inputs[1].size


def _mel_filters(inputs: Sequence[Array]) -> int:
    """Return the number of elements of [half of the spectrum, bins]."""
    bins, length = (int(value.reshape(-1)[0]) for value in inputs[:2])
    return (length // 2 + 1) * bins


def _places(inputs: Sequence[Array]) -> int:
    # NonZero: a position of each element in each dimension, if no element is 0.
    return inputs[0].size * inputs[0].ndim


def _no_larger(inputs: Sequence[Array]) -> int:
    return sum(value.size for value in inputs)


_BROADCASTING = (
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul",
    "Or", "Pow", "Sub", "Where", "Xor",
)  # fmt: skip
_NO_LARGER = (
    "Abs", "Cast", "CastLike", "Ceil", "Concat", "Constant", "Cos", "CumSum", "Erf", "Exp", "Flatten", "Floor",
    "Identity", "IsInf", "IsNaN", "Log", "Neg", "Not", "QuantizeLinear", "Reciprocal", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Round", "ScatterND", "Sign", "Sin", "Slice",
    "Split", "Sqrt", "Squeeze", "Transpose", "Trilu", "Unsqueeze",
)  # fmt: skip

_OWN_TYPE = frozenset({
    "ArgMax", "ArgMin", "BlackmanWindow", "Cast", "CastLike", "ConstantOfShape", "HammingWindow", "HannWindow",
    "MelWeightMatrix", "NonZero", "Shape", "Size",
})  # fmt: skip
"""Operators whose result may be of a wider type than their inputs."""

FOLDABLE: Mapping[str, Callable[[Sequence[Array]], int]] = {
    **dict.fromkeys(_BROADCASTING, _broadcast),
    **dict.fromkeys(_NO_LARGER, _no_larger),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), lambda inputs: int(inputs[0].reshape(-1)[0])),
    "ConstantOfShape": lambda inputs: math.prod(int(size) for size in inputs[0]),
    "Expand": lambda inputs: math.prod(np.broadcast_shapes(inputs[0].shape, tuple(int(size) for size in inputs[1]))),
    "Gather": _gather,
    "MelWeightMatrix": _mel_filters,
    "NonZero": _places,
    "Range": _range,
    "Shape": lambda inputs: inputs[0].ndim,
    "Size": lambda _: 1,
    "Tile": lambda inputs: inputs[0].size * math.prod(int(count) for count in inputs[1]),
}
"""Operators that are computed here if their inputs are constant, with the maximum number of elements of the result."""


_DOUBLES: Mapping[str, Callable[[Sequence[Array]], int]] = {
    **dict.fromkeys(
        (
            "Acos", "Acosh", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "Clip", "Cosh", "LogSoftmax",
            "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "Relu", "Sigmoid", "Sinh",
            "Softmax", "Softplus", "Tan", "Tanh",
        ),
        _no_larger,
    ),
    **dict.fromkeys(("Mean", "Sum"), _broadcast),
    **dict.fromkeys(("Gemm", "MatMul"), _gather),
}  # fmt: skip
"""Operators that are computed here only if a constant is float64, a type that no operator of the graph has."""


def is_foldable(node: RawNode, constants: Sequence[Array | None]) -> bool:
    """Return whether ``fold`` computes ``node``, whose inputs are ``constants``."""
    if node.operator in FOLDABLE:
        return True
    return node.operator in _DOUBLES and any(value is not None and value.dtype == np.float64 for value in constants)


def fold(node: RawNode, inputs: Sequence[Array | None], opset: int, budget: ConstantBudget) -> tuple[Array, ...]:
    """Return the outputs of ``node``, for which ``is_foldable`` holds, and take their bytes from ``budget``.

    Raises ``GraphError`` if it cannot be computed, ``UnsupportedModelError`` if the result would be huge.
    """
    present = [value for value in inputs if value is not None]
    try:
        elements = (FOLDABLE.get(node.operator) or _DOUBLES[node.operator])(present)
        # Before the evaluator allocates the result.
        budget.check(node.place, elements * _width(node, present))
        found = computed(node, inputs)
        feeds = {name: value for name, value in zip(node.inputs, inputs, strict=True) if value is not None}
        outputs = (found,) if found is not None else run_evaluator(_model_of(node, inputs, opset), feeds)
        if node.operator != "Constant":  # which is in the file
            budget.take(node.place, sum(value.nbytes for value in outputs))
        return outputs
    except UnsupportedModelError:
        raise
    except Exception as error:  # noqa: BLE001 - the evaluator raises whatever numpy and its own operators do
        raise GraphError(node.place, f"cannot be computed: {printable(' '.join(str(error).split()))}") from None


def _width(node: RawNode, inputs: Sequence[Array]) -> int:
    """Return the bytes of an element of the result at most."""
    # Shapes and positions are int64, whatever the type of the input.
    return 8 if node.operator in _OWN_TYPE else max((value.itemsize for value in inputs), default=8)


def run_evaluator(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return the outputs of ``model`` in ONNX's evaluator, without warnings, such as that of the mean of nothing.

    ``feeds`` are the values of inputs by name. Raises whatever the operators of the evaluator raise.
    """
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(np.asarray(value) for value in ReferenceEvaluator(model).run(None, dict(feeds)))


def _model_of(node: RawNode, inputs: Sequence[Array | None], opset: int) -> onnx.ModelProto:
    """Return a model that contains only ``node``."""
    ports = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in zip(node.inputs, inputs, strict=True)
        if value is not None
    ]
    unknown = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in node.outputs]
    proto = onnx.NodeProto.FromString(node.proto)
    del proto.input[:], proto.output[:]  # the names in the file, which are others in an unrolled loop
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    # The types of outputs are not known, and the evaluator does not read them.
    graph = onnx.helper.make_graph([proto], "node", ports, unknown)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
