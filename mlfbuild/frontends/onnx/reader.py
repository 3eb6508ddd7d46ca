"""Read an ``.onnx`` file as plain values; no other module uses its protocol buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, numpy_helper

from mlfbuild.core import UnsupportedModelError, printable, shown
from mlfbuild.frontends.onnx.float16 import widened
from mlfbuild.frontends.onnx.refused import REFUSED, SEE, refusal
from mlfbuild.frontends.onnx.wire import CutTensor, without_large_weights
from mlfbuild.graph import Array, DType, GraphError

FIRST_OPSET = 7
"""The first opset with numpy's broadcasting; current tools export no earlier one."""
DOMAINS = ("", "ai.onnx")
"""Names of ONNX's own domain."""

ELEMENT_TYPES: Mapping[int, DType] = {
    int(TensorProto.FLOAT): DType.FLOAT32,
    int(TensorProto.INT8): DType.INT8,
    int(TensorProto.UINT8): DType.UINT8,
    int(TensorProto.INT16): DType.INT16,
    int(TensorProto.INT32): DType.INT32,
    int(TensorProto.INT64): DType.INT64,
    int(TensorProto.BOOL): DType.BOOL,
}
"""The element types of graphs, by ONNX's code."""

Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array


@dataclass(frozen=True)
class RawPort:
    """An input or output of the model: its ONNX element type, and its shape with ``None`` if a size is free."""

    name: str
    type: int
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class RawNode:
    """A node as in the file; the names of absent optional inputs are empty."""

    index: int
    name: str
    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    proto: bytes
    """The node as in the file, for ONNX's own evaluator; empty for a Constant that is a tensor."""
    written: RawNode | None = None
    """The node of the file from which this one was made, if it is not in the file itself."""

    @property
    def place(self) -> str:
        """The name of the node in messages."""
        if self.written is not None:
            return self.written.place
        target = f" writing {self.outputs[0]!r}" if self.outputs else ""
        return f"node {self.index} ({shown(self.qualified)}){target}"

    @property
    def qualified(self) -> str:
        """The operator, with its domain if that is not ONNX's own."""
        return self.operator if self.domain in DOMAINS else f"{self.domain}.{self.operator}"


@dataclass(frozen=True)
class RawModel:
    """A model: its version of ONNX's operators, ports, constants by name, and nodes in the order of execution."""

    opset: int
    inputs: tuple[RawPort, ...]
    outputs: tuple[RawPort, ...]
    constants: Mapping[str, Array]
    nodes: tuple[RawNode, ...]
    halves: tuple[str, ...] = ()
    """The inputs and outputs that are float16 in the file, and float32 here."""


def read_model(data: bytes) -> RawModel:
    """Return the model in ``data``.

    Raises ``GraphError`` if it is not an ONNX model, ``UnsupportedModelError`` for control flow, sparse tensors,
    weights in other files, and versions that are too old or too new for the ``onnx`` package.
    """
    model = onnx.ModelProto()
    small, weights = without_large_weights(data)
    try:
        model.ParseFromString(small)
        return _plain(model, small, weights)
    except (DecodeError, RuntimeError) as error:
        raise GraphError("the file", f"cannot be decoded as an ONNX model: {_one_line(error)}") from None
    except UnicodeDecodeError:  # names are decoded on access
        raise GraphError("the file", "holds a name that is not UTF-8") from None


def _plain(model: onnx.ModelProto, data: bytes, weights: Sequence[CutTensor | None]) -> RawModel:
    opset = _opset(model)
    _check(model, data)
    halves = widened(model)
    graph = model.graph
    if model.functions:
        name = model.functions[0].name
        raise UnsupportedModelError(
            "function-unsupported",
            reason=f"the model defines functions, such as {name!r}",
            hint="write them out with onnx.inliner.inline_local_functions",
        )
    if graph.sparse_initializer:
        raise UnsupportedModelError(
            "weights-sparse", reason="sparse weights are not supported", hint="store them as dense tensors"
        )
    pairs = zip_longest(graph.initializer, weights)
    constants = {tensor.name: _weights(tensor, cut) for tensor, cut in pairs}
    inputs = tuple(_port(value) for value in graph.input if value.name not in constants)
    outputs = tuple(_port(value) for value in graph.output)
    return RawModel(opset, inputs, outputs, constants, tuple(_nodes(graph)), halves)


def _opset(model: onnx.ModelProto) -> int:
    if not model.HasField("graph"):
        raise GraphError("the file", "holds no graph")
    versions = {entry.version for entry in model.opset_import if entry.domain in DOMAINS} or {1}
    if len(versions) > 1:
        raise GraphError("the file", f"uses versions {' and '.join(map(str, sorted(versions)))} of ONNX's operators")
    (version,) = versions
    if version < FIRST_OPSET:
        raise UnsupportedModelError(
            "opset-too-old",
            reason=f"version {version} of ONNX's operators is not supported",
            hint=f"convert the model to version {FIRST_OPSET} or later with onnx.version_converter",
        )
    known = onnx.defs.onnx_opset_version()
    if version > known:
        raise UnsupportedModelError(
            "opset-too-new",
            reason=f"the model uses version {version} of ONNX's operators, and the installed onnx {onnx.__version__} "
            f"supports versions up to {known}",
            hint=f"upgrade onnx, or export the model for version {known}",
        )
    return int(version)


def _check(model: onnx.ModelProto, data: bytes) -> None:
    """Run ONNX's own checker on the whole model, ``data``."""
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            raise UnsupportedModelError(
                "weights-external",
                place=f"weights {tensor.name!r}",
                reason="the weights are in another file",
                hint="put them into it: onnx.save(onnx.load(FILE), FILE); in PyTorch, export with external_data=False",
            )
    try:
        onnx.checker.check_model(data)
    except (onnx.checker.ValidationError, RuntimeError) as error:
        raise GraphError("the model", _one_line(error)) from None


def _one_line(error: Exception) -> str:
    return printable(" ".join(str(error).split("\n\n")[0].split()))  # it may quote names from the file


def read_tensor(tensor: TensorProto, where: str) -> Array:
    """Return the values of ``tensor``; raises ``GraphError`` if they do not fit its shape."""
    try:
        values: Array = np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, IndexError, RuntimeError) as error:
        raise GraphError(where, _one_line(error)) from None
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
    kind = np.dtype(ELEMENT_TYPES[header.data_type].value).newbyteorder("<")
    if min(header.dims, default=0) < 0:
        raise GraphError(where, f"have a negative dimension: {list(header.dims)}")
    try:
        return np.frombuffer(cut.raw, kind).reshape(tuple(header.dims))
    except ValueError as error:
        raise GraphError(where, _one_line(error)) from None


def _wide(values: Array) -> Array:
    """Return float16 ``values`` as float32, as the nodes of the network have them."""
    return values.astype(np.float32) if values.dtype == np.float16 else values


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
    sizes = (size.dim_value if size.HasField("dim_value") else None for size in tensor.shape.dim)
    return RawPort(value.name, tensor.elem_type, tuple(sizes))


def _nodes(graph: onnx.GraphProto) -> Iterator[RawNode]:
    for index, node in enumerate(graph.node):
        tensor = node.op_type == "Constant" and any(found.name == "value" for found in node.attribute)
        proto = b"" if tensor else node.SerializeToString()
        raw = RawNode(index, node.name, node.op_type, node.domain, tuple(node.input), tuple(node.output), {}, proto)
        yield replace(raw, attributes={found.name: _attribute(raw, found) for found in node.attribute})


def _attribute(node: RawNode, attribute: AttributeProto) -> Attribute:
    """Return the value of ``attribute``; ONNX's checker ensures that the field for its type is set."""
    kind = attribute.type
    if kind == AttributeProto.INT:
        return attribute.i
    if kind == AttributeProto.FLOAT:
        return attribute.f
    if kind == AttributeProto.STRING:
        return attribute.s.decode(errors="replace")
    if kind == AttributeProto.INTS:
        return tuple(attribute.ints)
    if kind == AttributeProto.FLOATS:
        return tuple(attribute.floats)
    if kind == AttributeProto.STRINGS:
        return tuple(text.decode(errors="replace") for text in attribute.strings)
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
