"""Make ``.tflite`` files that differ from another one in their trained values only: weights, biases, scales."""

from __future__ import annotations

from math import frexp
from typing import Any

import numpy as np
from tflite import BuiltinOperator as Kind, Model, TensorType

_WEIGHTED = (Kind.CONV_2D, Kind.DEPTHWISE_CONV_2D, Kind.FULLY_CONNECTED)
_Affine = tuple[float, int]
_OWN_SCALE = (Kind.SOFTMAX, Kind.LOG_SOFTMAX, Kind.LOGISTIC, Kind.TANH, Kind.L2_NORMALIZATION)
"""Operators whose output has a fixed scale."""
_TYPES = {
    TensorType.INT8: np.int8, TensorType.UINT8: np.uint8, TensorType.INT16: np.int16, TensorType.INT32: np.int32,
    TensorType.INT64: np.int64, TensorType.FLOAT32: np.float32,
}  # fmt: skip


def with_other_values(data: bytes, seed: int) -> bytes:
    """Return the network ``data`` with random weights, biases, scales and zero points.

    Tensors that have one quantisation in ``data`` have one in the result, and outputs of ``_OWN_SCALE`` keep theirs.
    """
    changed = bytearray(data)
    model = Model.GetRootAs(changed)
    random, known = np.random.default_rng(seed), dict[_Affine, _Affine]()
    for at in range(model.SubgraphsLength()):
        _change(model, model.Subgraphs(at), random, known)
    return bytes(changed)


def _change(model: Any, graph: Any, random: np.random.Generator, known: dict[_Affine, _Affine]) -> None:
    """Change the values of a subgraph; ``known`` has the new scales and zero points of those that were changed."""
    tensors = [graph.Tensors(at) for at in range(graph.TensorsLength())]
    nodes = [graph.Operators(at) for at in range(graph.OperatorsLength())]
    kinds = [_kind(model, node) for node in nodes]
    fixed = {node.Outputs(0) for node, kind in zip(nodes, kinds, strict=True) if kind in _OWN_SCALE}
    weights = {node.Inputs(1): node for node, kind in zip(nodes, kinds, strict=True) if kind in _WEIGHTED}
    for at, tensor in enumerate(tensors):
        values, scales, points = _views(model, tensor)
        if values is not None:
            _fill(values, random)
        if at in fixed or scales is None or points is None or (values is not None and at not in weights):
            continue
        if at in weights:
            scales *= random.uniform(0.5, 1.5, scales.shape).astype(np.float32)
        else:
            # A power of two remains one: the cell state of an LSTM must have such a scale.
            factor = random.choice([0.5, 1.0]) if frexp(scales[0])[0] == 0.5 else random.uniform(0.7, 1.5)
            new = float(scales[0]) * factor, _zero_point(tensor.Type(), random)
            scales[0], points[0] = known.setdefault((float(scales[0]), int(points[0])), new)
    for tensor in tensors:
        values, scales, points = _views(model, tensor)
        if values is not None and scales is not None and points is not None:
            # A constant operand that must have the scale of an activation.
            scales[0], points[0] = known.get((float(scales[0]), int(points[0])), (scales[0], points[0]))
    for at, node in weights.items():
        if node.InputsLength() > 2 and node.Inputs(2) >= 0:
            scales, source = (_views(model, tensors[each])[1] for each in (node.Inputs(2), node.Inputs(0)))
            if scales is not None and source is not None:
                scales[:] = source[0] * _views(model, tensors[at])[1]


def _kind(model: Any, node: Any) -> int:
    code = model.OperatorCodes(node.OpcodeIndex())
    return int(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()))


def _views(model: Any, tensor: Any) -> tuple[Any, Any, Any]:
    """Return the elements, scales and zero points of ``tensor``: views of the file, or ``None``."""
    buffer, dtype = model.Buffers(tensor.Buffer()), _TYPES.get(tensor.Type())
    quantization = tensor.Quantization()
    scales = points = None
    if quantization is not None and quantization.ScaleLength():
        scales, points = quantization.ScaleAsNumpy(), quantization.ZeroPointAsNumpy()
    # An integer without a scale is a shape or an axis, not a bias.
    trained = dtype is not None and buffer.DataLength() > 0 and (dtype is np.float32 or scales is not None)
    return buffer.DataAsNumpy().view(dtype) if trained else None, scales, points


def _fill(values: Any, random: np.random.Generator) -> None:
    if values.dtype == np.int8:
        values[:] = np.clip(np.rint(random.normal(0, random.uniform(15, 35), values.size)), -127, 127)
    elif values.dtype == np.uint8:
        values[:] = np.clip(np.rint(random.normal(128, random.uniform(15, 35), values.size)), 0, 255)
    elif values.dtype.kind == "i":
        values[:] = random.integers(-2000, 2000, values.size)
    else:
        values[:] = random.normal(0, 0.1, values.size)


def _zero_point(kind: int, random: np.random.Generator) -> int:
    signed = int(random.integers(-128, 128))
    return {TensorType.INT8: signed, TensorType.UINT8: signed + 128}.get(kind, 0)
