"""Read float16 networks as float32 networks.

Microcontrollers compute float16 in few cases, and the graph has no such type. Tensors that a file declares float16 are
therefore float32: weights are converted, which is exact, and operators compute with more digits than a runtime that
rounds each result to float16. A Cast between both types changes nothing then. Inputs and outputs of the network become
float32, too; ``widened`` returns their names.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

_TYPE_ATTRIBUTES = frozenset({"dtype", "output_dtype", "to"})
"""Attributes that name an element type, of Cast, EyeLike, DequantizeLinear and others."""


def widened(model: onnx.ModelProto) -> tuple[str, ...]:
    """Replace float16 by float32 in ``model``, except in initializers; return the inputs and outputs that had it."""
    for node in _nodes(model.graph):
        for attribute in node.attribute:
            if attribute.name in _TYPE_ATTRIBUTES and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT
            elif attribute.type == AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT16:
                values = numpy_helper.to_array(attribute.t).astype(np.float32)
                attribute.t.CopyFrom(numpy_helper.from_array(values, attribute.t.name))
    found = []
    for port in (*model.graph.input, *model.graph.output):
        if port.type.tensor_type.elem_type == TensorProto.FLOAT16:
            port.type.tensor_type.elem_type = TensorProto.FLOAT
            found.append(port.name)
    constants = {tensor.name for tensor in model.graph.initializer}
    return tuple(name for name in found if name not in constants)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes(attribute.g)
