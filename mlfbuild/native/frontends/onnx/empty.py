"""Nodes that read or write tensors without elements.

Such a tensor has only one value, so it is a constant. A node whose results have no elements disappears, and one whose
operands are all constant is computed by ONNX's evaluator: the sum of nothing is 0, its maximum is minus infinity.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mlfbuild.core import UnsupportedModelError, printable
from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.folding import run_evaluator
from mlfbuild.native.frontends.onnx.raw_graph import ELEMENT_TYPES, Attribute, RawGraph, RawModel, RawNode, Size
from mlfbuild.native.graph import Array, ConstantBudget, DType, GraphError

Operand = tuple[str, tuple[int, ...], np.dtype[Any], Array | None]
"""The name of an input, its shape and type, and its elements if it is constant."""


_SLOW = frozenset({"DeformConv", "GridSample", "MaxRoiPool", "Resize", "RoiAlign", "Upsample"})
"""Operators that onnx's evaluator computes element by element."""


def without_elements(name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return a tensor of ``shape``, which has a 0; raises ``GraphError`` or ``UnsupportedModelError`` for huge ones."""
    checked(name, [size or 1 for size in shape], DType.INT64)
    return np.zeros(shape, dtype)


def inputs_without_elements(raw: RawModel) -> dict[str, Array]:
    """Return the inputs of ``raw`` that have no elements, which are constants, because they have only one value."""
    found = {}
    for port in raw.inputs:
        sizes = [size for size in port.shape if isinstance(size, int)]
        if 0 in sizes and len(sizes) == len(port.shape) and port.type in ELEMENT_TYPES:
            with contextlib.suppress(GraphError, UnsupportedModelError):  # it is refused when it is added
                found[port.name] = without_elements(port.name, sizes, ELEMENT_TYPES[port.type].numpy)
    return found


def empty_results(node: RawNode, operands: Sequence[Operand], opset: int) -> tuple[Array | None, ...]:
    """Return the outputs of ``node`` that have no elements; ``None`` for others, and if the shape is not known.

    The shapes are those of ONNX's own inference. Outputs that are absent in the node are ``None``.
    """
    model = _model_of(node, operands, opset)
    types = {} if model is None else _inferred(model)
    return tuple(_empty(name, types[name]) if name in types else None for name in node.outputs)


def _inferred(model: onnx.ModelProto) -> dict[str, onnx.TypeProto.Tensor]:
    """Return the types of the outputs of ``model``, none if they cannot be found."""
    if any(one.name == "batch_dims" and one.i < 0 for node in model.graph.node for one in node.attribute):
        return {}  # onnx crashes
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, IndexError, ValueError):  # for inputs of a wrong rank
        return {}
    types = {port.name: port.type.tensor_type for port in inferred.graph.output}
    return {name: found for name, found in types.items() if found.elem_type in helper.get_all_tensor_dtypes()}


def declared_empty(node: RawNode, operands: Sequence[Operand], declared: Mapping[str, Sequence[Size]]) -> list[Array]:
    """Return the outputs of ``node``, which moves or reduces a first operand without elements, if none has elements.

    The parameters are computed, so the shapes are those in ``declared``, of the outputs of the model.
    """
    made = []
    for name in node.outputs:
        shape = declared.get(name, ())
        sizes = tuple(size for size in shape if isinstance(size, int))
        if not operands or 0 not in operands[0][1] or 0 not in sizes or len(sizes) != len(shape) or min(sizes) < 0:
            return []
        made.append(without_elements(name, sizes, operands[0][2]))
    # Only operators whose result may be taken from the declaration without knowing their parameters.
    return made if node.operator in {"Reshape", "Split"} or node.operator.startswith("Reduce") else []


def _empty(name: str, tensor: onnx.TypeProto.Tensor) -> Array | None:
    sizes = _sizes(tensor)
    if sizes is None or 0 not in sizes:
        return None
    return without_elements(name, sizes, helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def _bytes(tensor: onnx.TypeProto.Tensor) -> int:
    """Return the size of ``tensor``, 0 if its shape is not known."""
    sizes = _sizes(tensor)
    return 0 if sizes is None else math.prod(sizes) * helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize


def _sizes(tensor: onnx.TypeProto.Tensor) -> list[int] | None:
    """Return the shape of ``tensor`` if it is known."""
    sizes = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim]
    return sizes if tensor.HasField("shape") and min(sizes, default=0) >= 0 else None


def evaluated(node: RawNode, operands: Sequence[Operand], opset: int, budget: ConstantBudget) -> tuple[Array, ...]:
    """Return the outputs of ``node``, whose operands are all constant, and take their bytes from ``budget``.

    Raises ``GraphError`` if ONNX's evaluator cannot compute it, and ``UnsupportedModelError`` if the budget does not
    suffice.
    """
    model = _model_of(node, operands, opset)
    if model is None or node.operator in _SLOW:
        raise GraphError(node.place, "cannot be computed from tensors without elements")
    budget.check(node.place, sum(map(_bytes, _inferred(model).values())))  # before they are allocated
    try:
        outputs = run_evaluator(model, {})
    except Exception as error:  # noqa: BLE001 - the evaluator raises whatever numpy and its own operators do
        raise GraphError(node.place, f"cannot be computed: {printable(' '.join(str(error).split()))}") from None
    budget.take(node.place, sum(value.nbytes for value in outputs))
    return outputs


def _model_of(node: RawNode, operands: Sequence[Operand], opset: int) -> onnx.ModelProto | None:
    """Return a model that contains only ``node``; ``None`` if the node has an attribute that is not written here."""
    attributes = _attributes(node.attributes)
    if attributes is None:
        return None
    known = {name: numpy_helper.from_array(np.asarray(data), name) for name, _, _, data in operands if data is not None}
    ports = {
        name: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
        for name, shape, dtype, data in operands
        if data is None
    }
    # The outputs have no type yet: inference is called to find it.
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in node.outputs if name]
    proto = helper.make_node(node.operator, node.inputs, node.outputs)
    proto.attribute.extend(attributes)
    graph = helper.make_graph([proto], "node", [*ports.values()], outputs, [*known.values()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _attributes(attributes: Mapping[str, Attribute]) -> list[onnx.AttributeProto] | None:
    made = []
    for name, value in attributes.items():
        if isinstance(value, RawGraph):
            return None
        if isinstance(value, np.ndarray):
            made.append(helper.make_attribute(name, numpy_helper.from_array(value)))
        # An empty list has no element from which the attribute's type could be told.
        elif value != ():
            made.append(helper.make_attribute(name, value))
    return made
