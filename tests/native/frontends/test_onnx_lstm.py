"""LSTM of ONNX against ONNX's evaluator, in numpy and as C, and refused variants."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_on_host
from support.native import compile_network
from support.onnx_models import model, reference
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]

BATCH, FEATURES, UNITS = 2, 3, 5
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


@dataclass(frozen=True)
class Layer:
    """A node, its inputs and its constants."""

    data: bytes
    feeds: dict[str, Array]


def layer(
    direction: str = "forward", layout: int = 0, *, steps: int = 4, fed: tuple[str, ...] = (), outputs: str = "YHC",
    inputs: str = "XWRB HC", constants: dict[str, Array] | None = None, **attributes: Any,
) -> Layer:  # fmt: skip
    """Return an LSTM with ``inputs`` by their first letters; those in ``fed`` are inputs of the model."""
    random, count = np.random.default_rng(2), DIRECTIONS[direction]
    kept = (BATCH, count, UNITS) if layout else (count, BATCH, UNITS)
    shapes = {
        "W": (count, 4 * UNITS, FEATURES),
        "R": (count, 4 * UNITS, UNITS),
        "B": (count, 8 * UNITS),
        "H": kept,
        "C": kept,
        "P": (count, 3 * UNITS),
        "X": (BATCH, steps, FEATURES) if layout else (steps, BATCH, FEATURES),
    }
    values = {name: random.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}
    values["L"] = np.full(BATCH, steps, np.int32)
    values.update(constants or {})
    ports = ("X", *fed)
    result = (BATCH, steps, count, UNITS) if layout else (steps, count, BATCH, UNITS)
    names = [{"Y": "Y", "H": "Y_h", "C": "Y_c"}.get(letter, "") for letter in outputs]
    node = helper.make_node(
        "LSTM", [letter.strip() for letter in inputs], names, hidden_size=UNITS, direction=direction, layout=layout,
        **attributes,
    )  # fmt: skip
    data = model(
        [node],
        [(name, values[name].shape) for name in ports],
        [(name, result if name == "Y" else kept) for name in names if name],
        {letter: values[letter] for letter in inputs if letter.strip() and letter not in ports},
    )
    return Layer(data, {name: values[name] for name in ports})


def check(found: Layer) -> None:
    graph = parse_onnx(found.data, "net", "net.onnx")
    feeds = [found.feeds[name] for name in graph.inputs]
    values = evaluate(graph, dict(zip(graph.inputs, feeds, strict=True)))
    made = run_on_host(compile_network(graph), feeds)
    for name, as_c, right in zip(graph.outputs, made, reference(found.data, found.feeds), strict=True):
        np.testing.assert_allclose(values[name], right, rtol=0, atol=2e-6)
        np.testing.assert_allclose(as_c.reshape(right.shape), right, rtol=0, atol=5e-6)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_directions_and_layouts(direction: str, layout: int) -> None:
    check(layer(direction, layout))


@pytest.mark.parametrize(
    "options",
    [
        {"inputs": "XWR"},
        {"inputs": "XWRBLHC"},
        {"inputs": "XWR  H"},
        {"inputs": "XWR   C", "outputs": " H"},
        {"outputs": "Y"},
        {"outputs": "Y C"},
        {"outputs": "  C", "direction": "reverse"},
        {"fed": ("H", "C")},
        {"fed": ("H", "C"), "direction": "bidirectional", "layout": 1},
        {"activations": ["Sigmoid", "Tanh", "Tanh"]},
    ],
    ids=str,
)
def test_inputs_and_outputs(options: dict[str, Any]) -> None:
    check(layer(**options))


def test_states_passed_to_a_second_layer() -> None:
    """Exporters make states of a stream inputs and outputs: two runs equal one run over both halves."""
    whole, half = layer(outputs="Y", fed=("H", "C")), layer(steps=2, fed=("H", "C"))
    (expected,) = reference(whole.data, whole.feeds)
    graph = parse_onnx(half.data, "net", "net.onnx")
    kept, rows = {"H": whole.feeds["H"], "C": whole.feeds["C"]}, []
    for part in np.split(whole.feeds["X"], 2):
        values = evaluate(graph, {"X": part, **kept})
        kept = {"H": values["Y_h"], "C": values["Y_c"]}
        rows.append(values["Y"])
    np.testing.assert_allclose(np.concatenate(rows), expected, rtol=0, atol=2e-6)


NODE = "node 0 (LSTM) writing 'Y'"


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


BROKEN: dict[str, tuple[dict[str, Any], Refusal]] = {
    "weights of other features": ({"constants": {"W": zeros(1, 20, 4)}}, ("onnx-malformed", NODE, "[1, 20, 4]", "5")),
    "weights of more directions": ({"constants": {"W": zeros(2, 20, 3)}}, ("onnx-malformed", NODE, "[2, 20, 3]", "5")),
    "recurrent weights of other units": ({"constants": {"R": zeros(1, 16, 5)}}, ("onnx-malformed", NODE, "[1, 16, 5]")),
    "recurrent weights without directions": (
        {"constants": {"R": zeros(20, 5)}}, ("onnx-malformed", NODE, "[20, 5]", "3"),
    ),
    "biases of one kind": ({"constants": {"B": zeros(1, 20)}}, ("onnx-malformed", NODE, "[1, 20]", "5")),
    "hidden rows of another batch": (
        {"constants": {"H": zeros(1, 3, 5)}}, ("onnx-malformed", NODE, "'H' float32[1, 3, 5]", "[1, 2, 5]"),
    ),
    "cells in the other layout": (
        {"layout": 1, "constants": {"C": zeros(1, 2, 5)}},
        ("onnx-malformed", NODE, "'C' float32[1, 2, 5]", "[2, 1, 5]"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "expected"), BROKEN.values(), ids=BROKEN)
def test_wrong_shapes_are_refused(options: dict[str, Any], expected: Refusal) -> None:
    assert_onnx_refused(layer(**options).data, *expected)
