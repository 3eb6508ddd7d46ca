"""GRU and RNN of ONNX against their formulas in numpy, as graphs and as C, and refused variants."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import model
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]

STEPS, BATCH, FEATURES, UNITS = 3, 2, 3, 5
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
GATES = {"GRU": 3, "RNN": 1}


def weights(operator: str, count: int) -> dict[str, Array]:
    """Return all inputs after the sequence except its lengths."""
    random, rows = np.random.default_rng(4), GATES[operator] * UNITS
    shapes = {
        "W": (count, rows, FEATURES),
        "R": (count, rows, UNITS),
        "B": (count, 2 * rows),
        "H": (count, BATCH, UNITS),
    }
    return {name: random.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}


def network(
    operator: str, constants: dict[str, Array], names: str = "XWRB H", layout: int = 0, **attributes: Any
) -> bytes:
    """Return a layer with inputs by their letters; its initial states are an input of the network."""
    count = constants["W"].shape[0]
    given = {name: value for name, value in constants.items() if name != "H" and name in names}
    shape = (BATCH, STEPS, FEATURES) if layout else (STEPS, BATCH, FEATURES)
    ports = [("X", shape)]
    if "H" in names:
        ports.append(("H", (BATCH, count, UNITS) if layout else (count, BATCH, UNITS)))
    node = helper.make_node(
        operator, [name.strip() for name in names], ["Y", "Y_h"], hidden_size=UNITS, layout=layout, **attributes
    )
    return model([node], ports, [("Y", [None] * 4), ("Y_h", [None] * 3)], given)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def expected(operator: str, x: Array, w: dict[str, Array], direction: str, *, reset_last: bool) -> tuple[Array, Array]:
    """Return Y [steps, directions, batch, units] and the last states [directions, batch, units] of ONNX's formulas."""
    result = np.zeros((STEPS, len(DIRECTIONS[direction]), BATCH, UNITS))
    last = []
    for at, backwards in enumerate(DIRECTIONS[direction]):
        state = w["H"][at].astype(np.float64)
        bias, own_bias = np.split(w["B"][at], 2)
        for step in reversed(range(STEPS)) if backwards else range(STEPS):
            inputs = np.split(x[step] @ w["W"][at].T + bias, GATES[operator], axis=1)
            own = np.split(state @ w["R"][at].T + own_bias, GATES[operator], axis=1)
            if operator == "RNN":
                state = np.tanh(inputs[0] + own[0])
            else:
                update, reset = sigmoid(inputs[0] + own[0]), sigmoid(inputs[1] + own[1])
                late = (reset * state) @ w["R"][at][2 * UNITS :].T + own_bias[2 * UNITS :]
                candidate = np.tanh(inputs[2] + (reset * own[2] if reset_last else late))
                state = (1 - update) * candidate + update * state
            result[step, at] = state
        last.append(state)
    return result, np.stack(last)


@pytest.mark.parametrize(("operator", "reset_last"), [("RNN", False), ("GRU", False), ("GRU", True)])
def test_layers(operator: str, reset_last: bool) -> None:
    """Test all directions and both layouts, in numpy and as C."""
    x = np.random.default_rng(1).normal(size=(STEPS, BATCH, FEATURES)).astype(np.float32)
    jobs, wanted = [], []
    for number, (direction, layout) in enumerate((d, n) for d in DIRECTIONS for n in (0, 1)):
        w = weights(operator, len(DIRECTIONS[direction]))
        attributes = {"linear_before_reset": 1} if reset_last else {}
        data = network(operator, w, layout=layout, direction=direction, **attributes)
        inputs = [x.swapaxes(0, 1), w["H"].swapaxes(0, 1)] if layout else [x, w["H"]]
        result, last = expected(operator, x, w, direction, reset_last=reset_last)
        both = (np.moveaxis(result, 2, 0), last.swapaxes(0, 1)) if layout else (result, last)
        graph = parse_onnx(data, f"m{number}", "net.onnx")
        values = evaluate(graph, {"X": inputs[0], "H": inputs[1]})
        for name, right in zip(("Y", "Y_h"), both, strict=True):
            np.testing.assert_allclose(values[name], right, rtol=0, atol=2e-6)
        library = compile_network(graph)
        jobs.append((library, library.modules[0], inputs))
        wanted.append(both)
    for outputs, rights in zip(run_many_on_host(jobs), wanted, strict=True):
        for value, right in zip(outputs, rights, strict=True):
            np.testing.assert_allclose(value.reshape(right.shape), right, rtol=0, atol=2e-6)


def test_layers_without_biases_and_initial_states() -> None:
    w = weights("GRU", 1)
    x = np.random.default_rng(1).normal(size=(STEPS, BATCH, FEATURES)).astype(np.float32)
    zeros = {**w, "B": w["B"] * 0, "H": w["H"] * 0}
    made = evaluate(parse_onnx(network("GRU", w, "XWR"), "net", "net.onnx"), {"X": x})
    np.testing.assert_allclose(made["Y"], expected("GRU", x, zeros, "forward", reset_last=False)[0], rtol=0, atol=2e-6)


def test_other_activation_functions() -> None:
    w = weights("RNN", 1)
    x = np.random.default_rng(1).normal(size=(STEPS, BATCH, FEATURES)).astype(np.float32)
    made = evaluate(parse_onnx(network("RNN", w, activations=["Relu"]), "net", "net.onnx"), {"X": x, "H": w["H"]})
    state = w["H"][0]
    for step in range(STEPS):
        sums = x[step] @ w["W"][0].T + state @ w["R"][0].T + w["B"][0].reshape(2, -1).sum(0)
        state = np.maximum(sums, 0)
    np.testing.assert_allclose(made["Y_h"][0], state, rtol=1e-5, atol=1e-5)


REFUSED: dict[str, tuple[dict[str, Any], Refusal]] = {
    "direction": ({"direction": "upwards"}, ("onnx-malformed", "node 0 (GRU) writing 'Y'", "'upwards'")),
    "two directions": ({"direction": "bidirectional"},
     ("onnx-malformed", "node 0 (GRU) writing 'Y'", "[1, 15, 5]", "2 directions, 5 units")),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_unsupported_variants_are_refused(kind: str) -> None:
    attributes, expected = REFUSED[kind]
    assert_onnx_refused(network("GRU", weights("GRU", 1), "XWRB", **attributes), *expected)


@pytest.mark.parametrize(
    ("name", "shape", "facts"),
    [
        ("W", (1, 15, 7), ["[1, 15, 7]", "5 units and 3 features"]),
        ("R", (1, 15, 4), ["[1, 15, 4]", "4 units"]),
        ("B", (1, 29), ["[1, 29]", "5 units"]),
        ("R", (), ["[]", "3 dimensions"]),
    ],
)
def test_wrong_sizes_are_refused(name: str, shape: tuple[int, ...], facts: list[str]) -> None:
    constants = {**weights("GRU", 1), name: np.ones(shape, np.float32)}
    assert_onnx_refused(network("GRU", constants, "XWRB"), "onnx-malformed", "node 0 (GRU) writing 'Y'", *facts)


def test_long_sequences_are_refused() -> None:
    """A layer with bounded gates is unrolled."""
    node = helper.make_node("GRU", ["X", "W", "R"], ["Y"], hidden_size=UNITS, clip=1.0)
    w = weights("GRU", 1)
    data = model([node], [("X", (500, 1, FEATURES))], [("Y", [None] * 4)], {"W": w["W"], "R": w["R"]})
    assert_onnx_refused(data, "operator-variant-unsupported", "node 0 (GRU) writing 'Y'", "500 steps")
