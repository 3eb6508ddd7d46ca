"""From the plain values of a file to a graph, node by node."""

from __future__ import annotations

import functools

import numpy as np
import onnx

from mlfbuild.errors import UnsupportedModelError
from mlfbuild.frontends.onnx.builder import GraphBuilder
from mlfbuild.frontends.onnx.folding import FOLDABLE, fold
from mlfbuild.frontends.onnx.layout import Value, as_onnx
from mlfbuild.frontends.onnx.operators import OPERATORS
from mlfbuild.frontends.onnx.reader import DOMAINS, RawModel, RawNode, RawPort
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Array, DType, Graph, GraphError

_TYPES = {
    int(onnx.TensorProto.FLOAT): DType.FLOAT32,
}
"""Element types of inputs."""


def import_graph(raw: RawModel, name: str) -> Graph:
    """Return ``raw`` as a graph called ``name``; raises ``GraphError`` and ``UnsupportedModelError``."""
    return _Importer(raw).graph(name)


class _Importer:
    """What is known so far: constants as arrays, everything else as values of the graph."""

    def __init__(self, raw: RawModel) -> None:
        self._raw = raw
        self._builder = GraphBuilder([port.name for port in (*raw.inputs, *raw.outputs)])
        self._constants: dict[str, Array] = dict(raw.constants)
        self._values: dict[str, Value] = {}

    def graph(self, name: str) -> Graph:
        self._check_operators()
        for port in self._raw.inputs:
            self._values[port.name] = self._builder.input(port.name, _shape(port), _type(port))
        with np.errstate(all="ignore"):  # numbers that are none are the model's own
            for node in self._raw.nodes:
                self._convert(node)
        if not self._raw.outputs:
            raise GraphError("the model", "has no outputs")
        outputs = [(port.name, self._value("the model's outputs", port.name)) for port in self._raw.outputs]
        return self._builder.graph(name, [port.name for port in self._raw.inputs], outputs)

    def _check_operators(self) -> None:
        """Refuse what is not supported before looking at anything else, naming the first operator of every kind."""
        missing: dict[tuple[str, str], RawNode] = {}
        for node in self._raw.nodes:
            if node.domain not in DOMAINS or node.operator not in {*OPERATORS, *FOLDABLE}:
                missing.setdefault((node.domain, node.operator), node)
        if missing:
            found = "; ".join(node.place for node in missing.values())
            raise UnsupportedModelError(f"{found}: not supported; supported are {', '.join(sorted(OPERATORS))}")

    def _convert(self, node: RawNode) -> None:
        known = [self._constants.get(name) for name in node.inputs]
        if node.operator in {"Shape", "Size"} and node.inputs[0] in self._values:
            self._fold_shape(node, self._values[node.inputs[0]])
        elif node.operator in FOLDABLE and all(
            value is not None for name, value in zip(node.inputs, known, strict=True) if name
        ):
            self._constants.update(zip(node.outputs, fold(node, known, self._raw.opset), strict=True))
        elif node.operator not in OPERATORS:
            raise UnsupportedModelError(f"{node.place}: supported only where its inputs are constant")
        else:
            find = functools.partial(self._value, node.place)
            site = Site(node, self._raw.opset, self._builder, self._constants, find)
            self._values.update(zip(node.outputs, OPERATORS[node.operator](site), strict=False))

    def _fold_shape(self, node: RawNode, value: Value) -> None:
        """Compute what depends on nothing but the shape of ``value``."""
        anything = np.broadcast_to(np.int8(0), value.shape)  # takes no memory, however large the shape
        self._constants.update(zip(node.outputs, fold(node, [anything], self._raw.opset), strict=True))

    def _value(self, place: str, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        if name not in self._constants:
            raise GraphError(place, f"reads {name!r} before anything wrote it (a cycle, or nodes out of order)")
        data = self._constants[name]
        self._values[name] = Value(self._builder.constant(name, data), as_onnx(data.ndim))
        return self._values[name]


def _type(port: RawPort) -> DType:
    if port.type not in _TYPES:
        known = ", ".join(map(_type_name, _TYPES))
        raise UnsupportedModelError(f"input {port.name!r} has type {_type_name(port.type)}; supported is {known}")
    return _TYPES[port.type]


def _type_name(code: int) -> str:
    names = onnx.TensorProto.DataType
    return names.Name(code) if code in names.values() else str(code)


def _shape(port: RawPort) -> tuple[int, ...]:
    """Return the shape with a batch of 1 where the batch, which comes first, is free."""
    if any(size is None for size in port.shape[1:]):
        shape = ["?" if size is None else size for size in port.shape]
        raise UnsupportedModelError(
            f"input {port.name!r} has the dynamic shape [{', '.join(map(str, shape))}]; export the model with a fixed "
            f"one, or fix it with onnx's update_model_dims"
        )
    return tuple(1 if size is None else size for size in port.shape)
