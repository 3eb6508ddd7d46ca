"""Differences of two networks by tensor: what changed, by how much, and in which order."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlfbuild.archive.compare.networks import network_differences
from mlfbuild.native.graph import Activation, DType, Graph, Quantization, Tensor
from mlfbuild.native.graph.ops import FullyConnected, Softmax
from support.sketch import Sketch

VALUES = np.array([[1, -2, 3, 4], [5, 6, 7, 100]], np.int8)


def network(prefix: str = "", *, units: FullyConnected | None = None) -> Graph:
    sketch = Sketch()
    sketch.tensor("x", 1, 4)
    sketch.weights(f"{prefix}w1", data=VALUES)
    sketch.tensor(f"{prefix}hidden", 1, 2)
    sketch.weights(f"{prefix}w2", data=VALUES[:, :2].copy())
    sketch.tensor("y", 1, 2)
    layer = units or FullyConnected()
    sketch.node(layer, "x", f"{prefix}w1", f"{prefix}hidden")
    sketch.node(FullyConnected(), f"{prefix}hidden", f"{prefix}w2", "y")
    return sketch.graph(["x"], ["y"])


def edited(graph: Graph, **changes: Mapping[str, Any]) -> Graph:
    tensors = [replace(tensor, **changes.get(tensor.name, {})) for tensor in graph.tensors.values()]
    return Graph(graph.name, tensors, graph.nodes, graph.inputs, graph.outputs)


def plus(at: tuple[int, int], steps: int, values: np.ndarray = VALUES) -> np.ndarray:
    other = values.copy()
    other[at] += steps
    return other


def test_equal_networks_have_no_differences() -> None:
    assert network_differences("net", network(), network()) == []


def test_weights_are_sorted_by_their_relative_change() -> None:
    other = edited(network(), w1={"data": plus((1, 3), 10)}, w2={"data": plus((0, 0), 3, VALUES[:, :2])})
    first, second = network_differences("net", network(), other)
    assert [(each.module, each.what, each.name) for each in (first, second)] == [
        ("net", "tensor", "w2"), ("net", "tensor", "w1"),
    ]  # fmt: skip
    assert (second.right["elements"], second.right["differing"]) == (8, 1)
    assert math.isclose(second.right["max_difference"], 0.2) and math.isclose(second.right["largest"], 2)
    assert "10 % of the largest" in second.text and "FULLY_CONNECTED 0" in second.text


def test_names_do_not_matter_if_the_operators_are_the_same() -> None:
    (found,) = network_differences("net", network(), edited(network("new/"), **{"new/w1": {"data": plus((0, 0), 1)}}))
    assert found.name == "w1"


def test_a_scale_with_values_that_compensate_it_is_no_change() -> None:
    finer = edited(
        network(), w2={"data": (VALUES[:, :2] * 2).astype(np.int8), "quantization": Quantization((0.01,), (0,))}
    )
    assert network_differences("net", network(), finer) == []
    coarser = edited(network(), w2={"quantization": Quantization((0.04,), (0,))})
    (found,) = network_differences("net", network(), coarser)
    assert "100 % of the largest" in found.text


def test_a_scale_of_each_channel_is_applied_along_its_axis() -> None:
    channels = edited(network(), w1={"quantization": Quantization((0.02, 0.04), (0, 0), 0)})
    (found,) = network_differences("net", network(), channels)
    assert (found.right["differing"], found.right["max_difference"]) == (4, 2.0)


def floats(graph: Graph, **data: np.ndarray) -> Graph:
    """Return ``graph`` in float32, with its weights as real numbers or those of ``data``."""
    changes = {
        tensor.name: {
            "dtype": DType.FLOAT32,
            "quantization": None,
            "data": data.get(tensor.name, None if tensor.data is None else (tensor.data * 0.02).astype(np.float32)),
        }
        for tensor in graph.tensors.values()
    }
    return edited(graph, **changes)


def test_float_and_quantised_weights_are_compared_as_real_numbers() -> None:
    found = {each.name: each for each in network_differences("net", network(), floats(network()))}
    assert (found["w1"].left["dtype"], found["w1"].right["dtype"]) == ("int8", "float32")
    assert found["w1"].right["max_difference"] < 1e-6
    assert found["hidden"].right == {"dtype": "float32", "shape": [1, 2]}


def test_structure_comes_first_and_computed_tensors_last() -> None:
    wide = Tensor("w1", (2, 4), DType.INT8, Quantization((0.02,), (0,)), plus((0, 0), 1))
    other = edited(
        network(units=FullyConnected(Activation.RELU)),
        w1={"data": wide.data},
        hidden={"quantization": Quantization((0.2,), (5,))},
    )
    found = network_differences("net", network(), other)
    assert [each.name for each in found] == ["hidden", "w1", "hidden"]
    assert found[0].right == {"activation": "relu"}
    assert found[2].right == {"scale": 0.2, "zero_point": 5}


def test_operators_without_a_partner_are_named() -> None:
    sketch = Sketch()
    sketch.tensor("x", 1, 4)
    sketch.tensor("y", 1, 4, scale=1 / 256, zero_point=-128)
    sketch.node(Softmax(1.0), "x", "y")
    found = network_differences("net", network(), sketch.graph(["x"], ["y"]))
    assert [(each.name, each.left, each.right) for each in found] == [
        ("hidden", True, None), ("y", True, None), ("y", None, True),
    ]  # fmt: skip


def test_infinite_weights_come_before_others() -> None:
    before = floats(network())
    values = before.tensor("w1").known, before.tensor("w2").known
    moved, broken = values[0].copy(), values[1].copy()
    moved[0, 0], broken[0, 0] = 1000, np.nan
    found = network_differences("net", before, floats(network(), w1=moved, w2=broken))
    assert [(each.name, each.right["max_difference"]) for each in found] == [
        ("w2", None), ("w1", pytest.approx(999.98)),
    ]  # fmt: skip
