"""Names of operator functions: operator and geometry, unique, and short enough for C99."""

import pytest

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import Add, Conv2D, MaxPool2D
from mlfbuild.native.printing import FunctionNames
from support.sketch import Sketch


def _first(graph: Graph) -> Node:
    return graph.nodes[0]


def _convolution() -> Graph:
    s = Sketch()
    weights = s.weights("w", 4, 3, 3, 2)
    s.node(Conv2D((1, 2), (1, 1), ((1, 1), (0, 1))), s.tensor("x", 1, 8, 8, 2), weights, s.tensor("y", 1, 8, 4, 4))
    return s.graph(["x"], ["y"])


def _pool() -> Graph:
    s = Sketch()
    s.node(MaxPool2D((2, 2), (2, 2)), s.tensor("x", 2, 8, 8, 3), s.tensor("y", 2, 4, 4, 3))
    return s.graph(["x"], ["y"])


def _sum() -> Graph:
    s = Sketch()
    s.node(Add(), s.tensor("x", 1, 1), s.tensor("c", 1, 1, constant=True), s.tensor("y", 1, 1))
    return s.graph(["x"], ["y"])


@pytest.mark.parametrize(
    ("graph", "word", "name"),
    [
        (_convolution(), "conv2d", "tvmgen_net_conv2d_3x3_s1x2_8x8x2_to_8x4x4"),
        (_pool(), "max_pool", "tvmgen_net_max_pool_2x2_s2_2x8x8x3_to_2x4x4x3"),
        (_sum(), "add", "tvmgen_net_add_1"),
    ],
)
def test_names_tell_operator_window_and_shapes(graph: Graph, word: str, name: str) -> None:
    names = FunctionNames(graph, "tvmgen_net")
    assert [names.add(_first(graph), word) for _ in range(3)] == [name, f"{name}_2", f"{name}_3"]


@pytest.mark.parametrize(
    ("prefix", "ending", "name"),
    [
        (20, "", "_conv2d_3x3_s1x2_8x8x2_to_8x4x4"),
        (40, "", "_conv2d_3x3_s1x2_8x4x4"),
        (40, "_operator", "_conv2d_8x4x4_operator"),
        (55, "", "_conv2d"),
        (70, "", "_conv2d"),
    ],
)
def test_long_names_omit_what_matters_least(prefix: int, ending: str, name: str) -> None:
    graph = _convolution()
    names = FunctionNames(graph, "p" * prefix, ending)
    found = [names.add(_first(graph), "conv2d") for _ in range(12)]
    assert found[0] == "p" * prefix + name and len({*found}) == 12
    assert max(map(len, found)) <= 63 or prefix > 52
