"""ONNX's and Microsoft's operators on integers, which are rewritten as QuantizeLinear pairs around float ones."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import assert_many_on_host
from support.native import compile_network
from support.onnx_models import QuantizedNetwork, Scale
from support.onnx_networks import quantized_network
from support.onnx_quantized import RANDOM, assert_within_a_step, check, integers, values_of

pytestmark = pytest.mark.usefixtures("same_numbers")


def operator_by_operator() -> dict[str, QuantizedNetwork]:
    """Return networks of QLinearConv, QLinearMatMul, MatMulInteger and ConvInteger."""
    made = {}
    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, (1, 2, 5, 5)))
    network.constants |= {"w": integers((4, 2, 3, 3), "int8"), "b": RANDOM.integers(-900, 900, 4).astype(np.int32)}
    x, w = (
        network.parameters("x", Scale(0.02, 120)),
        network.parameters("w", Scale([0.01, 0.02, 0.01, 0.03], 0, "int8")),
    )
    y = network.parameters("y", Scale(0.1, 110))
    network.add("QLinearConv", ["x", *x, "w", *w, *y, "b"], "y", pads=[1, 1, 1, 1])
    network.output("y", 4)
    made["QLinearConv"] = network

    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, (3, 6)))
    network.constants |= {"b": RANDOM.integers(-127, 128, (6, 4)).astype(np.int8)}
    a, b = (
        network.parameters("a", Scale(0.02, 120)),
        network.parameters("b", Scale([0.01, 0.02, 0.01, 0.03], 0, "int8")),
    )
    network.add("QLinearMatMul", ["a", *a, "b", *b, *network.parameters("y", Scale(0.05, 110))], "y")
    network.output("y", 2)
    made["QLinearMatMul"] = network

    for operator, shape, weights in (("MatMulInteger", (3, 6), (6, 4)), ("ConvInteger", (1, 2, 5, 5), (4, 2, 3, 3))):
        network = QuantizedNetwork()
        network.inputs.append(helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, shape))
        network.constants |= {"w": integers(weights, "int8"), "zx": np.uint8(77), "zw": np.int8(3)}
        network.add(operator, ["x", "w", "zx", "zw"], "y")
        network.output("y", len(shape), "int32")
        made[operator] = network
    return made


@pytest.mark.parametrize("operator", ["QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"])
def test_operators_on_integers(operator: str) -> None:
    check(operator_by_operator()[operator])


def test_existing_names_are_kept_when_operators_are_rewritten() -> None:
    """The tensors of a rewritten QLinearMatMul get names that the file does not use."""
    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, (3, 6)))
    network.constants |= {"b": RANDOM.integers(-127, 128, (6, 4)).astype(np.int8)}
    network.add("Relu", [network.dequantized("a", Scale(0.5, 3))], "y/a")
    a, b = network.parameters("a", Scale(0.02, 120)), network.parameters("b", Scale(0.01, 0, "int8"))
    network.add("QLinearMatMul", ["a", *a, "b", *b, *network.parameters("y", Scale(0.05, 110))], "y")
    network.output("y", 2)
    network.output(network.quantized("y/a", Scale(0.5, 0)), 2)
    check(network, floats=True)


MICROSOFT = ("QLinearAdd", "QLinearMul", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearSigmoid",
             "QLinearLeakyRelu", "QLinearConcat")  # fmt: skip


@pytest.mark.parametrize("operator", MICROSOFT)
def test_rewritten_operators_of_com_microsoft(operator: str) -> None:
    """ONNX's evaluator does not support them, so they are compared with pairs around ONNX's own operator."""
    scale = Scale(1 / 256, 0) if operator == "QLinearSigmoid" else Scale(0.06, 100)
    attributes: dict[str, Any] = {"QLinearAveragePool": {"kernel_shape": [2, 2]}, "QLinearConcat": {"axis": 1}}.get(
        operator, {}
    )
    inputs = 2 if operator in {"QLinearAdd", "QLinearMul", "QLinearConcat"} else 1
    pairs, alone = QuantizedNetwork(), QuantizedNetwork()
    sources = [Scale(0.05, 100), Scale(0.03, 128)][:inputs]
    real = [pairs.input(f"x{index}", (1, 2, 4, 4), source) for index, source in enumerate(sources)]
    pairs.add(operator.removeprefix("QLinear"), real, "y", **attributes)
    pairs.output(pairs.quantized("y", scale), 4)
    names: list[str] = []
    for index, source in enumerate(sources):
        alone.inputs.append(pairs.inputs[index])
        names += [f"x{index}", *alone.parameters(f"x{index}", source)]
    final = alone.parameters("y", scale)
    ordered = [*final, *names] if operator == "QLinearConcat" else [*names, *final]
    alone.add(operator, ordered, "y", domain="com.microsoft", **attributes)
    alone.output("y", 4)
    found = values_of(pairs.bytes())
    assert_within_a_step(found[2], found[3])
    graph, inputs_, made, _ = found
    other = parse_onnx(alone.bytes(domains=["com.microsoft"]), "net", "net.onnx")
    values = evaluate(other, dict(zip(other.inputs, inputs_, strict=True)))
    np.testing.assert_array_equal(values["y"], made[0])
    assert [type(node.operator) for node in other.nodes] == [type(node.operator) for node in graph.nodes]


def test_networks_as_c() -> None:
    """All kinds of networks, in one program under sanitizers, equal the graph in numpy bit for bit."""
    networks = [quantized_network(), *operator_by_operator().values()]
    jobs, expected = [], []
    for number, network in enumerate(networks):
        graph, inputs, made, _ = values_of(network.bytes())
        renamed = Graph(f"m{number}", list(graph.tensors.values()), graph.nodes, graph.inputs, graph.outputs)
        library = compile_network(renamed)
        jobs.append((library, library.modules[0], inputs))
        expected.append(made)
    assert_many_on_host(jobs, expected)
