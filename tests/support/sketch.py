"""Build graphs tensor by tensor, for tests without a model file."""

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
