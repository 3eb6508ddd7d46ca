"""Multiply-accumulates of operators, and of networks with published numbers."""

from pathlib import Path

import pytest

from mlfbuild.native.frontends import parse_model
from mlfbuild.native.graph import DType, Graph, Operands, Operator, Tensor, ops
from mlfbuild.native.graph.ops.fused import Fused
from support.sketch import Sketch

LSTM = [(2, 3, 5), *[(4, 5)] * 4, *[(4, 4)] * 4, *[(4,)] * 4, (2, 4), (2, 4)]
"""Two sequences of three steps of five features, four units."""


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "expected"),
    [
        (ops.Conv2D(padding=((1, 1), (1, 1))), [(1, 8, 6, 3), (16, 3, 3, 3), (16,)], [(1, 8, 6, 16)], 8 * 6 * 16 * 27),
        (ops.Conv2D(stride=(2, 2)), [(2, 9, 9, 4), (5, 3, 1, 4)], [(2, 4, 5, 5)], 2 * 4 * 5 * 5 * 3 * 4),
        (ops.DepthwiseConv2D(depth_multiplier=2), [(1, 5, 5, 3), (1, 3, 3, 6)], [(1, 3, 3, 6)], 3 * 3 * 6 * 9),
        (ops.TransposeConv(stride=(2, 2)), [(1, 3, 3, 4), (7, 2, 2, 4)], [(1, 6, 6, 7)], 3 * 3 * 4 * 7 * 2 * 2),
        (ops.FullyConnected(), [(3, 2, 10), (4, 20), (4,)], [(3, 4)], 3 * 4 * 20),
        (ops.FullyConnected(keep_num_dims=True), [(3, 2, 10), (4, 10)], [(3, 2, 4)], 3 * 2 * 4 * 10),
        (ops.BatchMatmul(), [(2, 1, 3, 4), (5, 4, 6)], [(2, 5, 3, 6)], 2 * 5 * 3 * 6 * 4),
        (ops.BatchMatmul(adj_x=True, adj_y=True), [(4, 3), (6, 4)], [(3, 6)], 3 * 6 * 4),
        (ops.Svdf(rank=2), [(3, 7), (8, 7), (8, 5), (4,), (3, 40)], [(3, 4), (3, 40)], 3 * 8 * (7 + 5)),
        (ops.UnidirectionalSequenceLstm(), LSTM, [(2, 3, 4), (2, 4), (2, 4)], 2 * 3 * 4 * (4 * 5 + 4 * 4)),
        (ops.Add(), [(1, 8, 8, 4), (1, 8, 8, 4)], [(1, 8, 8, 4)], 0),
        (ops.AveragePool2D((2, 2), (2, 2)), [(1, 8, 8, 4)], [(1, 4, 4, 4)], 0),
        (ops.Softmax(1.0), [(1, 10)], [(1, 10)], 0),
    ],
    ids=lambda value: value.name if isinstance(value, Operator) else "",
)
def test_macs_of_an_operator(
    operator: Operator, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]], expected: int
) -> None:
    read, written = ([Tensor("t", shape, DType.FLOAT32) for shape in shapes] for shapes in (inputs, outputs))
    assert operator.macs(Operands(read), written) == expected


def test_macs_of_fused_operators() -> None:
    s = Sketch()
    s.tensor("x", 1, 4, 4, 2)
    s.node(ops.Conv2D(), "x", s.weights("w1", 3, 1, 1, 2), s.tensor("a", 1, 4, 4, 3))
    s.node(ops.DepthwiseConv2D(padding=((1, 1), (1, 1))), "a", s.weights("w2", 1, 3, 3, 3), s.tensor("b", 1, 4, 4, 3))
    part = s.graph(["x"], ["b"])
    assert Fused(part).macs(part.inputs_of(part.nodes[0]), [part.tensor("b")]) == 16 * 3 * 2 + 16 * 3 * 9


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ad_int8", 264_192), ("kws_int8", 2_656_768), ("vww_int8", 7_489_664), ("ic_int8", 12_501_632)],
)
def test_macs_of_the_networks_of_mlperf_tiny(name: str, expected: int, shared: Path) -> None:
    """The published numbers are 0.27, 2.66, 7.49 and 12.5 millions (Banbury et al., MLPerf Tiny Benchmark, 2021)."""
    path = shared / "models" / f"{name}.tflite"
    assert total(parse_model(path.read_bytes(), name, path)) == expected


def total(graph: Graph) -> int:
    return sum(node.operator.macs(graph.inputs_of(node), graph.outputs_of(node)) for node in graph.nodes)
