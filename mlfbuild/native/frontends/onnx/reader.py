"""Read an ``.onnx`` file as plain values; no other module uses its protocol buffers.

Inputs may become constant, such as the sample rate that selects a branch of ``If``. Everything that depends only on
constants is computed when the model is read, so that branches that are never taken leave the network, and so do their
weights.

Microcontrollers compute float16 in few cases, and the graph has no such type. Tensors that a file declares float16 are
therefore float32: weights are converted, which is exact, and operators compute with more digits than a runtime that
rounds each result to float16. A Cast between both types changes nothing then. Inputs and outputs of the network also
become float32; ``widened`` returns their names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, numpy_helper

from mlfbuild.core import UnsupportedModelError, UsageError, listed, suggestion
from mlfbuild.native.frontends.errors import DamagedFileError
from mlfbuild.native.frontends.node_budget import MOST_NODES, NodeBudget
from mlfbuild.native.frontends.onnx.dimensions import fixed_shape
from mlfbuild.native.frontends.onnx.normalise import (
    LATER_DOMAIN,
    all_nodes,
    all_tensors,
    needs_rewriting,
    one_line,
    opset_of,
    rewritten,
    sort_nodes,
    tolerate,
)
from mlfbuild.native.frontends.onnx.raw_graph import ELEMENT_TYPES, Attribute, RawGraph, RawModel, RawNode, RawPort
from mlfbuild.native.frontends.onnx.refused import REFUSED, SEE, refusal
from mlfbuild.native.frontends.onnx.weights import LARGEST_ELEMENT, CutTensor, external_bytes, without_large_weights
from mlfbuild.native.graph import Array, GraphError


def with_constants(raw: RawModel, constants: Mapping[str, int | float | bool], name: str) -> RawModel:
    """Return ``raw`` with ``constants`` in the place of inputs: each element of the input is the number.

    Raises ``UsageError`` if there is no such input, if it cannot hold the number, or if no input would be left.
    """
    inputs = {port.name: port for port in raw.inputs}
    for key in constants:
        if key not in inputs:
            near = suggestion(key, inputs) or f"; it has {listed([*inputs])}"
            reason = f"the model has no input {key!r}{near}"
            raise UsageError("constant-without-input", place=f"{name}: constants.{key}", reason=reason)
    arrays = {key: _filled(inputs[key], value, f"{name}: constants.{key}") for key, value in constants.items()}
    left = tuple(port for port in raw.inputs if port.name not in constants)
    return replace(raw, inputs=left, constants={**raw.constants, **arrays})


def _filled(port: RawPort, value: float | bool, place: str) -> Array:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(port.type)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            element = np.array(value).astype(dtype)
    except OverflowError:
        element = None
    # A float may be rounded to its type, an integer may not.
    fits = element is not None and (np.isfinite(element) if dtype.kind == "f" else element == value)
    if element is None or not fits or isinstance(value, bool) != (dtype == np.bool_):
        reason = f"the input is {dtype.name}, which cannot be {value}"
        raise UsageError("constant-of-another-type", place=place, reason=reason, hint=f"write a value of {dtype.name}")
    return np.broadcast_to(element, fixed_shape(port))  # takes no memory, regardless of the shape


_TYPE_ATTRIBUTES = frozenset({"dtype", "output_dtype", "to"})
"""Attributes that name an element type, of Cast, EyeLike, DequantizeLinear and others."""


def widened(model: onnx.ModelProto) -> tuple[str, ...]:
    """Replace float16 by float32 in ``model``, except in initializers; return the inputs and outputs that had it."""
    for node in all_nodes(model.graph):
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


def read_model(data: bytes, known: Collection[str] | None = None, files: Mapping[str, bytes] | None = None) -> RawModel:
    """Return the model in ``data``; ``files`` are those with further weights, by the name that the model has.

    Functions become nodes, and so do operators that are not in ``known`` and that ONNX defines with others. Raises
    ``GraphError`` if it is not an ONNX model, ``UnsupportedModelError`` for sparse tensors, and versions that are too
    old or too new for the ``onnx`` package.
    """
    model = onnx.ModelProto()
    # protobuf would copy all weights, and so would the checker below: the model is parsed without the large ones.
    small, weights = without_large_weights(data)
    try:
        model.ParseFromString(small)
        return _plain(model, small, data, list(weights), known, files or {})
    except (DecodeError, RuntimeError) as error:
        raise DamagedFileError("the file", f"cannot be decoded as an ONNX model: {one_line(error)}") from None
    except UnicodeDecodeError:  # names are decoded on access
        raise DamagedFileError("the file", "holds a name that is not UTF-8") from None


def port_names_of(data: bytes) -> tuple[list[str], list[str]]:
    """Return the names of the inputs and outputs of the model in ``data``; raises ``GraphError`` for other data."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(without_large_weights(data)[0])
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = [value.name for value in model.graph.input if value.name not in constants]
        return inputs, [value.name for value in model.graph.output]
    except (DecodeError, UnicodeDecodeError) as error:
        raise DamagedFileError("the file", f"cannot be decoded as an ONNX model: {one_line(error)}") from None


def _plain(
    model: onnx.ModelProto,
    small: bytes,
    data: bytes,
    weights: list[CutTensor | None],
    known: Collection[str] | None,
    files: Mapping[str, bytes],
) -> RawModel:
    """Return ``model``, which ``small`` encodes; ``data`` is the file, and ``weights`` are cut out of the model."""
    _check_opset(model)
    if external := _cut_external(model, weights, files):
        small = model.SerializeToString()
    # Not "or": both must run.
    if sort_nodes(model.graph) | tolerate(model, known or ()):
        small = model.SerializeToString()
    _check(small)
    expanded = 0
    if known is not None and needs_rewriting(model, known):
        whole = _with_weights(data, files) if external or weights else model
        sort_nodes(whole.graph)
        tolerate(whole, known)
        # What functions take from it is passed on (``expanded``), so that loops have only the rest.
        budget = NodeBudget()
        model = rewritten(whole, known, budget)
        expanded = MOST_NODES - budget.left
        # What onnx's own tools made is checked again: definitions of functions come from the file.
        _check(model.SerializeToString())
        # The rewritten model has all weights in it again.
        weights = []
    halves = widened(model)
    graph = model.graph
    if graph.sparse_initializer:
        raise UnsupportedModelError(
            "weights-sparse", reason="sparse weights are not supported", hint="store them as dense tensors"
        )
    pairs = zip_longest(graph.initializer, weights)
    constants = {tensor.name: _weights(tensor, cut) for tensor, cut in pairs}
    inputs = tuple(_port(value) for value in graph.input if value.name not in constants)
    opset = opset_of(model) or onnx.defs.onnx_opset_version()
    outputs = tuple(_map(value) or _port(value) for value in graph.output)
    shapes = dict(_fixed_shapes(graph))
    return RawModel(opset, inputs, outputs, constants, tuple(_nodes(graph)), shapes, halves, expanded)


def _fixed_shapes(graph: onnx.GraphProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    # Hints, not facts: the importer computes shapes itself, and needs these only where data would decide.
    for value in (*graph.value_info, *graph.output):
        sizes = tuple(size.dim_value for size in value.type.tensor_type.shape.dim)  # 0 if it is free
        if value.type.tensor_type.HasField("shape") and min(sizes, default=1) > 0:
            yield value.name, sizes


def _check_opset(model: onnx.ModelProto) -> None:
    if not model.HasField("graph"):
        raise GraphError("the file", "holds no graph")
    try:
        version = opset_of(model)
    except ValueError as error:
        raise GraphError("the file", str(error)) from None
    known = onnx.defs.onnx_opset_version()
    if version is not None and version > known:
        raise UnsupportedModelError(
            "opset-too-new",
            reason=f"the model uses version {version} of ONNX's operators, and the installed onnx {onnx.__version__} "
            f"supports versions up to {known}",
            hint=f"upgrade onnx, or export the model for version {known}",
        )


def _cut_external(model: onnx.ModelProto, weights: list[CutTensor | None], files: Mapping[str, bytes]) -> bool:
    """Make the weights of ``model`` in other files entries of ``weights``; return whether there are any.

    ONNX's checker would open the files itself, so scalars take the place of their tensors.
    """
    found = False
    for index, tensor in enumerate(model.graph.initializer):
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        raw = external_bytes(tensor, files)
        header = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        weights.extend([None] * (len(model.graph.initializer) - len(weights)))
        weights[index] = CutTensor(header.SerializeToString(), raw)
        tensor.CopyFrom(TensorProto(name=tensor.name, data_type=tensor.data_type, raw_data=bytes(LARGEST_ELEMENT)))
        found = True
    return _load_external(model, files) or found


def _with_weights(data: bytes, files: Mapping[str, bytes]) -> onnx.ModelProto:
    """Return the model ``data`` with all weights in it."""
    model = onnx.ModelProto.FromString(data)
    _load_external(model, files)
    return model


def _load_external(model: onnx.ModelProto, files: Mapping[str, bytes]) -> bool:
    """Put the data of other files into the tensors of ``model``; return whether there are any."""
    tensors = [tensor for tensor in all_tensors(model) if tensor.data_location == TensorProto.EXTERNAL]
    for tensor in tensors:
        tensor.raw_data = bytes(external_bytes(tensor, files))
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]
    return bool(tensors)


def _check(data: bytes) -> None:
    """Run ONNX's own checker on the whole model, ``data``."""
    try:
        onnx.checker.check_model(data)
    except (onnx.checker.ValidationError, RuntimeError) as error:
        raise GraphError("the model", one_line(error)) from None


def read_tensor(tensor: TensorProto, where: str) -> Array:
    """Return the values of ``tensor``; raises ``GraphError`` if they do not fit its shape."""
    try:
        values: Array = np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, IndexError, RuntimeError) as error:
        raise DamagedFileError(where, one_line(error)) from None
    return values


def _weights(tensor: TensorProto, cut: CutTensor | None) -> Array:
    """Return the values of an initializer, which are in ``cut`` if they were cut out of ``tensor``."""
    where = f"weights {tensor.name!r}"
    if cut is None:
        return _wide(read_tensor(tensor, where))
    header = TensorProto.FromString(cut.header)
    if header.data_type not in ELEMENT_TYPES:
        header.raw_data = bytes(cut.raw)
        return _wide(read_tensor(header, where))
    # raw_data is little-endian by ONNX's specification, on every machine.
    kind = np.dtype(ELEMENT_TYPES[header.data_type].value).newbyteorder("<")
    if min(header.dims, default=0) < 0:
        raise GraphError(where, f"have a negative dimension: {list(header.dims)}")
    try:
        return np.frombuffer(cut.raw, kind).reshape(tuple(header.dims))
    except ValueError as error:
        raise DamagedFileError(where, one_line(error)) from None


def _wide(values: Array) -> Array:
    """Return float16 ``values`` as float32, as the nodes of the network have them."""
    # Exact: each float16 is a float32.
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _map(value: onnx.ValueInfoProto) -> RawPort | None:
    """Return the output ``value`` if it is a list of maps."""
    is_map = value.type.HasField("sequence_type") and value.type.sequence_type.elem_type.HasField("map_type")
    return RawPort(value.name, TensorProto.UNDEFINED, (), is_map=True) if is_map else None


def _port(value: onnx.ValueInfoProto) -> RawPort:
    if not value.type.HasField("tensor_type"):
        raise UnsupportedModelError(
            "type-unsupported",
            place=repr(value.name),
            reason="a sequence or a map is not supported",
            hint="export the model with tensors only",
        )
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        raise UnsupportedModelError(
            "shape-dynamic",
            place=repr(value.name),
            reason="the tensor has no shape",
            hint="export the model with fixed shapes",
        )
    sizes = (size.dim_value if size.HasField("dim_value") else size.dim_param or None for size in tensor.shape.dim)
    return RawPort(value.name, tensor.elem_type, tuple(sizes))


def _graph(graph: onnx.GraphProto) -> RawGraph:
    constants = {tensor.name: read_tensor(tensor, f"weights {tensor.name!r}") for tensor in graph.initializer}
    inputs = tuple(port.name for port in graph.input if port.name not in constants)
    return RawGraph(inputs, tuple(port.name for port in graph.output), constants, tuple(_nodes(graph)))


def _nodes(graph: onnx.GraphProto) -> Iterator[RawNode]:
    for index, node in enumerate(graph.node):
        # Its bytes would be a second copy of weights.
        tensor = node.op_type == "Constant" and any(found.name == "value" for found in node.attribute)
        proto = b"" if tensor else node.SerializeToString()
        domain = "" if node.domain == LATER_DOMAIN else node.domain
        raw = RawNode(index, node.name, node.op_type, domain, tuple(node.input), tuple(node.output), {}, proto)
        yield replace(raw, attributes={found.name: _attribute(raw, found) for found in node.attribute})


_VALUES: Mapping[int, Callable[[AttributeProto], Attribute]] = {
    AttributeProto.INT: lambda attribute: attribute.i,
    AttributeProto.FLOAT: lambda attribute: attribute.f,
    AttributeProto.STRING: lambda attribute: attribute.s.decode(errors="replace"),
    AttributeProto.INTS: lambda attribute: tuple(attribute.ints),
    AttributeProto.FLOATS: lambda attribute: tuple(attribute.floats),
    AttributeProto.STRINGS: lambda attribute: tuple(text.decode(errors="replace") for text in attribute.strings),
    AttributeProto.GRAPH: lambda attribute: _graph(attribute.g),
}


def _attribute(node: RawNode, attribute: AttributeProto) -> Attribute:
    """Return the value of ``attribute``; ONNX's checker ensures that the field for its type is set."""
    kind = attribute.type
    if kind in _VALUES:
        return _VALUES[kind](attribute)
    if kind == AttributeProto.TENSOR:
        return read_tensor(attribute.t, f"{node.place}: attribute {attribute.name}")
    name = AttributeProto.AttributeType.Name(kind).lower()
    if node.operator in REFUSED:
        raise refusal(node.place, node.operator)
    raise UnsupportedModelError(
        "operator-variant-unsupported",
        place=node.place,
        reason=f"attribute {attribute.name} is a {name}, which is not supported",
        hint=SEE,
    )
