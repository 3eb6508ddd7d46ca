"""Build graphs tensor by tensor, for tests without a model file."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import DType, Graph, Node, Operator, Quantization, State, Tensor, ops

RANDOM = np.random.default_rng(7)


class Sketch:
    """A graph under construction; int8 tensors have scale 0.1 and zero point 3 by default."""

    def __init__(self, name: str = "net") -> None:
        self.name = name
        self.tensors: list[Tensor] = []
        self.nodes: list[Node] = []

    def tensor(self, name: str, *shape: int, scale: float = 0.1, zero_point: int = 3, constant: bool = False) -> str:
        data = RANDOM.integers(-128, 128, shape, dtype=np.int8) if constant else None
        self.tensors.append(Tensor(name, shape, DType.INT8, Quantization((scale,), (zero_point,)), data))
        return name

    def real(self, name: str, *shape: int) -> str:
        self.tensors.append(Tensor(name, shape, DType.FLOAT32))
        return name

    def weights(self, name: str, *shape: int, data: npt.NDArray[np.int8] | None = None) -> str:
        values = RANDOM.integers(-127, 128, shape, dtype=np.int8) if data is None else data
        self.tensors.append(Tensor(name, values.shape, DType.INT8, Quantization((0.02,), (0,)), values))
        return name

    def node(self, operator: Operator, *names: str) -> str:
        *inputs, output = names
        self.nodes.append(Node(f"node {output}", operator, tuple(inputs), (output,)))
        return output

    def graph(self, inputs: list[str], outputs: list[str]) -> Graph:
        return Graph(self.name, self.tensors, self.nodes, inputs, outputs)


def stream() -> Graph:
    """Return a network with a state that the first of its two operators updates in place."""
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "kept", "sum", "y")]
    nodes = [Node("sum", ops.Add(), ("x", "kept"), ("sum",)), Node("twice", ops.Add(), ("sum", "sum"), ("y",))]
    return Graph("stream", tensors, nodes, ["x"], ["y"], [State("kept", "sum", np.ones((1, 4), np.float32))])


def face_detector() -> Graph:
    """Layers as in BlazeFace: a large input that one convolution reads, blocks with a sum, and two outputs."""
    s = Sketch("net")
    same = ((1, 1), (1, 1))
    s.tensor("image", 1, 32, 32, 3)
    s.node(
        ops.Conv2D(stride=(2, 2), padding=((0, 1), (0, 1))),
        "image",
        s.weights("w0", 8, 3, 3, 3),
        s.tensor("a", 1, 16, 16, 8),
    )
    s.node(ops.DepthwiseConv2D(padding=same), "a", s.weights("w1", 1, 3, 3, 8), s.tensor("b", 1, 16, 16, 8))
    s.node(ops.Conv2D(), "b", s.weights("w2", 8, 1, 1, 8), s.tensor("c", 1, 16, 16, 8))
    s.node(ops.Add(), "a", "c", s.tensor("d", 1, 16, 16, 8))
    s.node(ops.MaxPool2D((2, 2), (2, 2)), "d", s.tensor("e", 1, 8, 8, 8))
    s.node(ops.Conv2D(), "e", s.weights("w3", 2, 1, 1, 8), s.tensor("f", 1, 8, 8, 2))
    s.node(ops.Reshape(), "f", s.tensor("scores", 1, 128, 1))
    s.node(ops.Conv2D(), "e", s.weights("w4", 16, 1, 1, 8), s.tensor("boxes", 1, 8, 8, 16))
    return s.graph(["image"], ["scores", "boxes"])


def values_of(graph: Graph, seed: int = 1) -> list[Any]:
    """Return random inputs for ``graph``, in its order."""
    random = np.random.default_rng(seed)
    tensors = [graph.tensor(name) for name in graph.inputs]
    return [random.integers(-99, 100, tensor.shape).astype(tensor.dtype.numpy) for tensor in tensors]
