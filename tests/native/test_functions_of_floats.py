"""Functions that TensorFlow Lite does not have, on boards; ``test_onnx_numbers.py`` has their accuracy on the host."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.native.graph import DType, Graph, Node, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate
from support.board_cases import wrong_networks
from support.examples import first_on_push
from support.native import compile_network

FUNCTIONS = (ops.Acos, ops.Asin, ops.Atan, ops.Atanh, ops.Acosh, ops.Asinh, ops.Cosh, ops.Sinh)


def network(elements: int) -> Graph:
    """Return all functions of one input; the arguments of ACOSH are at least 1."""
    operators = [function() for function in FUNCTIONS]
    names = ["x", "above", *(operator.name.lower() for operator in operators)]
    tensors = [Tensor(name, (elements,), DType.FLOAT32) for name in names]
    nodes = [Node("above", ops.Cosh(), ("x",), ("above",))]
    for operator, name in zip(operators, names[2:], strict=True):
        nodes.append(Node(name, operator, ("above" if name == "acosh" else "x",), (name,)))
    return Graph("net", tensors, nodes, ["x"], names[2:])


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m4", "cortex-m55"]))
def test_on_boards(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    x = np.linspace(-0.99, 0.99, 200, dtype=np.float32)
    graph = network(x.size)
    values = evaluate(graph, {"x": x})
    wanted = [values[name] for name in graph.outputs]
    assert all(np.isfinite(value).all() for value in wanted)
    assert wrong_networks([(compile_network(graph, cpu), [x], wanted)], cpu, tmp_path, tool) == []
