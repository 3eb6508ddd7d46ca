"""Make ``.tflite`` files that differ from another one in their trained values only: weights, biases, scales."""

from __future__ import annotations

from typing import Any

import numpy as np
from tflite import BuiltinOperator as Kind, Model, TensorType

_WEIGHTED = (Kind.CONV_2D, Kind.DEPTHWISE_CONV_2D, Kind.FULLY_CONNECTED)


def with_other_values(data: bytes, seed: int) -> bytes:
    """Return the network ``data`` with random weights, biases, scales and zero points.

    Tensors that have one quantisation in ``data`` have one in the result, and the output of a SOFTMAX keeps its own.
    """
    changed = bytearray(data)
    model = Model.GetRootAs(changed)
    graph = model.Subgraphs(0)
    random = np.random.default_rng(seed)
    tensors = [graph.Tensors(at) for at in range(graph.TensorsLength())]
    nodes = [graph.Operators(at) for at in range(graph.OperatorsLength())]
    kinds = [_kind(model, node) for node in nodes]
    fixed = {node.Outputs(0) for node, kind in zip(nodes, kinds, strict=True) if kind == Kind.SOFTMAX}
    weights = {node.Inputs(1): node for node, kind in zip(nodes, kinds, strict=True) if kind in _WEIGHTED}
    known: dict[tuple[float, int], tuple[float, int]] = {}
    for at, tensor in enumerate(tensors):
        values, scales, points = _views(model, tensor)
        if values is not None:
            _fill(values, random)
        if at in fixed or scales is None or points is None or (values is not None and at not in weights):
            continue
        if at in weights:
            scales *= random.uniform(0.5, 1.5, scales.shape).astype(np.float32)
        else:
            new = float(scales[0]) * random.uniform(0.7, 1.5), int(random.integers(-128, 128))
            scales[0], points[0] = known.setdefault((float(scales[0]), int(points[0])), new)
    for at, node in weights.items():
        if node.InputsLength() > 2 and node.Inputs(2) >= 0:
            scales, source = (_views(model, tensors[each])[1] for each in (node.Inputs(2), node.Inputs(0)))
            if scales is not None and source is not None:
                scales[:] = source[0] * _views(model, tensors[at])[1]
    return bytes(changed)


def _kind(model: Any, node: Any) -> int:
    code = model.OperatorCodes(node.OpcodeIndex())
    return int(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()))


def _views(model: Any, tensor: Any) -> tuple[Any, Any, Any]:
    """Return the elements, scales and zero points of ``tensor``: views of the file, or ``None``."""
    types = {TensorType.INT8: np.int8, TensorType.FLOAT32: np.float32}
    types[TensorType.INT32] = np.int32
    buffer, dtype = model.Buffers(tensor.Buffer()), types.get(tensor.Type())
    quantization = tensor.Quantization()
    scales = points = None
    if quantization is not None and quantization.ScaleLength():
        scales, points = quantization.ScaleAsNumpy(), quantization.ZeroPointAsNumpy()
    # An INT32 without a scale is a shape or an axis, not a bias.
    trained = dtype is not None and buffer.DataLength() > 0 and (dtype is not np.int32 or scales is not None)
    return buffer.DataAsNumpy().view(dtype) if trained else None, scales, points


def _fill(values: Any, random: np.random.Generator) -> None:
    if values.dtype == np.int8:
        values[:] = np.clip(np.rint(random.normal(0, random.uniform(15, 35), values.size)), -127, 127)
    elif values.dtype == np.int32:
        values[:] = random.integers(-2000, 2000, values.size)
    else:
        values[:] = random.normal(0, 0.1, values.size)
