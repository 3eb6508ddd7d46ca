"""Nodes, graphs and models of an ONNX file as plain values, without protocol buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Union

from onnx import TensorProto

from mlfbuild.core import quoted, shown
from mlfbuild.native.frontends.onnx.normalise import DOMAINS
from mlfbuild.native.graph import Array, DType

ELEMENT_TYPES: Mapping[int, DType] = {
    int(TensorProto.FLOAT): DType.FLOAT32,
    int(TensorProto.INT8): DType.INT8,
    int(TensorProto.UINT8): DType.UINT8,
    int(TensorProto.INT16): DType.INT16,
    int(TensorProto.UINT16): DType.UINT16,
    int(TensorProto.INT32): DType.INT32,
    int(TensorProto.INT64): DType.INT64,
    int(TensorProto.UINT32): DType.UINT32,
    int(TensorProto.UINT64): DType.UINT64,
    int(TensorProto.BOOL): DType.BOOL,
}
"""The element types of graphs, by ONNX's code."""

Attribute = Union[int, float, str, "tuple[int, ...]", "tuple[float, ...]", "tuple[str, ...]", Array, "RawGraph"]


Size = int | str | None


@dataclass(frozen=True)
class RawPort:
    """An input or output of the model: its ONNX element type, and its shape.

    A free size is the name of its dimension, or ``None`` if that has no name.
    """

    name: str
    type: int
    shape: tuple[Size, ...]
    is_map: bool = False
    """Whether it is a list of maps, which ZipMap writes; the shape is then unknown."""


@dataclass(frozen=True)
class RawNode:
    """A node as in the file; the names of absent optional inputs are empty.

    ``domain`` is ``""`` or ``ai.onnx`` for ONNX's own operators. ``inputs`` may end early: optional inputs at the end
    need not be named, so that readers must check the length and the name (``OpContext.has``).
    """

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
        target = f" writing {quoted(self.outputs[0])}" if self.outputs else ""
        return f"node {self.index} ({shown(self.qualified)}){target}"

    @property
    def qualified(self) -> str:
        """The operator, with its domain if that is not ONNX's own."""
        return self.operator if self.domain in DOMAINS else f"{self.domain}.{self.operator}"

    @property
    def reads(self) -> Iterator[str]:
        """The names that the node reads, also in its graphs."""
        yield from filter(None, self.inputs)
        for value in self.attributes.values():
            if isinstance(value, RawGraph):
                yield from value.outputs
                for node in value.nodes:
                    yield from node.reads


@dataclass(frozen=True)
class RawGraph:
    """A graph in a node: the names of its ports, its constants, and its nodes in the order of execution."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    nodes: tuple[RawNode, ...]


@dataclass(frozen=True)
class RawModel:
    """A model: its version of ONNX's operators, ports, constants by name, and nodes in the order of execution.

    ``opset`` decides the meaning of operators whose attributes became inputs, such as the axes of Squeeze in version
    13.
    """

    opset: int
    inputs: tuple[RawPort, ...]
    outputs: tuple[RawPort, ...]
    constants: Mapping[str, Array]
    nodes: tuple[RawNode, ...]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The fixed shapes that the file declares for outputs and inner tensors."""
    halves: tuple[str, ...] = ()
    """The inputs and outputs that are float16 in the file, and float32 here."""
    expanded: int = 0
    """The nodes that functions became."""
