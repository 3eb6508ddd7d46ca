"""All attributes and inputs of LSTM, GRU and RNN against the formulas of ONNX's specification, in numpy and as C."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.examples import first_on_push
from support.host_c import run_on_host
from support.native import compile_network, generated
from support.onnx_models import model
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]

STEPS, BATCH, FEATURES, UNITS = 4, 3, 2, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}

FUNCTIONS: dict[str, Callable[[Array, float, float], Array]] = {
    "Affine": lambda x, a, b: a * x + b,
    "Elu": lambda x, a, _: np.where(x >= 0, x, a * np.expm1(x)),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "LeakyRelu": lambda x, a, _: np.where(x >= 0, x, a * x),
    "Relu": lambda x, *_: np.maximum(x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "Sigmoid": lambda x, *_: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x, *_: np.log1p(np.exp(x)),
    "Softsign": lambda x, *_: x / (1 + np.abs(x)),
    "Tanh": lambda x, *_: np.tanh(x),
    "ThresholdedRelu": lambda x, a, _: np.where(x > a, x, 0),
}


@dataclass(frozen=True)
class Case:
    """A layer with the inputs of ``letters`` (X, W, R, B, L, H, C, P); those in ``fed`` are inputs of the network."""

    operator: str
    letters: str = "XWRBH"
    fed: str = "XLH"
    direction: str = "forward"
    layout: int = 0
    lengths: tuple[int, ...] = (4, 2, 1)
    functions: tuple[tuple[str, float, float], ...] = ()
    """Name, alpha and beta of each function, if they are not the default."""
    clip: float = np.inf
    coupled: bool = False
    reset_last: bool = False

    @property
    def values(self) -> dict[str, Array]:
        random, count, rows = np.random.default_rng(3), len(DIRECTIONS[self.direction]), GATES[self.operator] * UNITS
        kept = (BATCH, count, UNITS) if self.layout else (count, BATCH, UNITS)
        shapes = {
            "X": (BATCH, STEPS, FEATURES) if self.layout else (STEPS, BATCH, FEATURES),
            "W": (count, rows, FEATURES), "R": (count, rows, UNITS), "B": (count, 2 * rows),
            "H": kept, "C": kept, "P": (count, 3 * UNITS),
        }  # fmt: skip
        values = {name: random.normal(0, 0.6, shape).astype(np.float32) for name, shape in shapes.items()}
        values["L"] = np.array(self.lengths, np.int32)
        return {letter: value for letter, value in values.items() if letter in self.letters}

    @property
    def feeds(self) -> dict[str, Array]:
        return {letter: value for letter, value in self.values.items() if letter in self.fed}

    def data(self) -> bytes:
        values, count = self.values, len(DIRECTIONS[self.direction])
        order = "XWRBLH" + ("CP" if self.operator == "LSTM" else "")
        outputs = ["Y", "Y_h", "Y_c"] if self.operator == "LSTM" else ["Y", "Y_h"]
        attributes: dict[str, Any] = {"activations": [name for name, *_ in self.functions]} if self.functions else {}
        for position, word in enumerate(("activation_alpha", "activation_beta"), 1):
            numbers = [each[position] for each in self.functions if not np.isnan(each[position])]
            attributes.update({word: numbers} if numbers else {})
        attributes.update({"clip": self.clip} if self.clip != np.inf else {})
        attributes.update({"input_forget": 1} if self.coupled else {})
        attributes.update({"linear_before_reset": 1} if self.reset_last else {})
        node = helper.make_node(
            self.operator, [letter if letter in values else "" for letter in order], outputs, hidden_size=UNITS,
            direction=self.direction, layout=self.layout, **attributes,
        )  # fmt: skip
        kept = (BATCH, count, UNITS) if self.layout else (count, BATCH, UNITS)
        ports = [(name, value.shape) for name, value in self.feeds.items()]
        result = (BATCH, STEPS, count, UNITS) if self.layout else (STEPS, count, BATCH, UNITS)
        shapes = [(name, result if name == "Y" else kept) for name in outputs]
        constants = {name: value for name, value in values.items() if name not in self.fed}
        return model([node], ports, shapes, constants, types={"L": TensorProto.INT32})

    def expected(self) -> list[Array]:
        """Return Y, Y_h and Y_c, each sequence on its own, step by step."""
        values = {name: value.astype(np.float64) for name, value in self.values.items()}
        ways, zeros = DIRECTIONS[self.direction], np.zeros((len(DIRECTIONS[self.direction]), BATCH, UNITS))
        turn = (lambda value: value.swapaxes(0, 1)) if self.layout else (lambda value: value)
        x = turn(values["X"])
        hidden, cell = (turn(values[name]).copy() if name in values else zeros.copy() for name in "HC")
        lengths = self.lengths if "L" in values else (STEPS,) * BATCH
        result = np.zeros((STEPS, len(ways), BATCH, UNITS))
        for at, backwards in enumerate(ways):
            for row in range(BATCH):
                steps = range(lengths[row])
                if not steps:
                    hidden[at, row] = cell[at, row] = 0
                for step in reversed(steps) if backwards else steps:
                    hidden[at, row], cell[at, row] = self._step(
                        values, at, x[step, row], hidden[at, row], cell[at, row]
                    )
                    result[step, at, row] = hidden[at, row]
        last = [turn(hidden), turn(cell)] if self.operator == "LSTM" else [turn(hidden)]
        return [np.moveaxis(result, 2, 0) if self.layout else result, *last]

    def _step(self, values: dict[str, Array], at: int, x: Array, state: Array, cell: Array) -> tuple[Array, Array]:
        names = [(name, np.nan, np.nan) for name in DEFAULTS[self.operator]] * 2
        functions = (self.functions or names)[at * len(DEFAULTS[self.operator]) :]

        def f(number: int, sums: Array, limit: float = self.clip) -> Array:
            name, alpha, beta = functions[number]
            return np.asarray(FUNCTIONS[name](np.clip(sums, -limit, limit), alpha, beta))

        rows = GATES[self.operator] * UNITS
        bias, own_bias = np.split(values["B"][at] if "B" in values else np.zeros(2 * rows), 2)
        given = np.split(values["W"][at] @ x + bias, GATES[self.operator])
        own = np.split(values["R"][at] @ state + own_bias, GATES[self.operator])
        if self.operator == "RNN":
            return f(0, given[0] + own[0]), cell
        if self.operator == "GRU":
            update, reset = f(0, given[0] + own[0]), f(0, given[1] + own[1])
            late = values["R"][at][2 * UNITS :] @ (reset * state) + own_bias[2 * UNITS :]
            new = f(1, given[2] + (reset * own[2] if self.reset_last else late))
            return (1 - update) * new + update * state, cell
        peepholes = np.split(values["P"][at] if "P" in values else np.zeros(3 * UNITS), 3)
        taken = f(0, given[0] + own[0] + peepholes[0] * cell)
        kept = 1 - taken if self.coupled else f(0, given[2] + own[2] + peepholes[2] * cell)
        new = kept * cell + taken * f(1, given[3] + own[3])
        return f(0, given[1] + own[1] + peepholes[1] * new) * f(2, new, np.inf), new


NAN = float("nan")
CASES = {
    "computed weights of an RNN": Case("RNN", "XWRBL", "XWRBL", clip=0.6),
    "all inputs computed": Case("LSTM", "XWRBLHCP", "XWRBLHCP"),
    "all inputs computed, both directions": Case("LSTM", "XWRBLHCP", "XWRBLHCP", "bidirectional"),
    "peepholes and layout": Case("LSTM", "XWRBHCP", "XH", "bidirectional", layout=1),
    "coupled gates": Case("LSTM", "XWRHP", "XP", coupled=True, clip=0.5),
    "functions of an LSTM": Case(
        "LSTM", functions=(("HardSigmoid", 0.3, 0.4), ("ScaledTanh", 0.8, 0.7), ("Softsign", NAN, NAN)),
    ),
    "constant lengths": Case("LSTM", "XWRBLHC", "XHC", "reverse", lengths=(0, 4, 3)),
    "a computed bias": Case("GRU", "XWRBH", "XB", "reverse"),
    "computed weights of a GRU": Case("GRU", "XWRBLH", "XWRBL", "bidirectional", layout=1, lengths=(3, 0, 4)),
    "a bounded GRU": Case("GRU", "XWRBLH", "XL", clip=0.4, reset_last=True),
    "a GRU in a loop": Case("GRU", "XWRBH", "XH", "bidirectional"),
    "a GRU with the reset last, in a loop": Case("GRU", "XWRBH", "XH", "bidirectional", layout=1, reset_last=True),
    "an RNN in a loop": Case("RNN", "XWR", "X", "reverse"),
    "an RNN with RELU": Case("RNN", functions=(("Relu", NAN, NAN),)),
    "functions of a GRU": Case(
        "GRU", direction="bidirectional",
        functions=(("HardSigmoid", 0.1, 0.4), ("Elu", 0.7, NAN), ("Sigmoid", NAN, NAN), ("LeakyRelu", 0.2, NAN)),
    ),
    "functions of an RNN": Case(
        "RNN", direction="bidirectional", functions=(("Affine", 0.3, 0.1), ("ThresholdedRelu", 0.2, NAN)),
    ),
    "more functions of an RNN": Case(
        "RNN", direction="bidirectional", functions=(("Softplus", NAN, NAN), ("Relu", NAN, NAN)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_layers(name: str) -> None:
    case = CASES[name]
    values = evaluate(parse_onnx(case.data(), "net", "net.onnx"), case.feeds)
    for output, right in zip(("Y", "Y_h", "Y_c"), case.expected(), strict=False):
        np.testing.assert_allclose(values[output], right, rtol=0, atol=5e-6)


@pytest.mark.parametrize("name", first_on_push(list(CASES)))
def test_layers_as_c(name: str) -> None:
    case = CASES[name]
    graph = parse_onnx(case.data(), "net", "net.onnx")
    made = run_on_host(compile_network(graph), [case.feeds[each] for each in graph.inputs])
    for output, right in zip(made, case.expected(), strict=True):
        np.testing.assert_allclose(output.reshape(right.shape), right, rtol=0, atol=1e-5)


GRAPH_NAMES = {"GRU": "GRU", "RNN": "ELMAN_RNN"}


@pytest.mark.parametrize(("operator", "word"), [("GRU", "mlf_gru_float("), ("RNN", "mlf_rnn_tanh(")])
def test_a_long_layer_is_one_call(operator: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "STEPS", 500)
    case = Case(operator, direction="reverse", lengths=())
    graph = parse_onnx(case.data(), "net", "net.onnx")
    library = compile_network(graph)
    assert generated(library).count(word) == 1
    assert [node.operator.name for node in graph.nodes].count(GRAPH_NAMES[operator]) == 1
    made = run_on_host(library, [case.feeds[each] for each in graph.inputs])
    for output, right in zip(made, case.expected(), strict=True):
        np.testing.assert_allclose(output.reshape(right.shape), right, rtol=0, atol=1e-4)


NODE = "node 0 (LSTM) writing 'Y'"
UNSUPPORTED: dict[str, tuple[Case, Refusal]] = {
    "an unknown function": (
        Case("LSTM", functions=(("Sigmoid", NAN, NAN), ("Cosh", NAN, NAN), ("Tanh", NAN, NAN))),
        ("operator-variant-unsupported", NODE, "cosh"),
    ),
    "a default on which runtimes differ": (
        Case("RNN", functions=(("Affine", 0.5, NAN),)),
        ("operator-variant-unsupported", "node 0 (RNN) writing 'Y'", "activation_beta"),
    ),
    "too few functions": (
        Case("GRU", functions=(("Sigmoid", NAN, NAN),)), ("onnx-malformed", "node 0 (GRU) writing 'Y'", "1", "2"),
    ),
    "a sequence that is too long": (Case("LSTM", "XWRL", "X", lengths=(4, 5, 1)), ("onnx-malformed", NODE, "4")),
    "a limit that is not a number": (Case("LSTM", clip=NAN), ("onnx-malformed", NODE, "clip")),
    "lengths of other sequences": (
        Case("LSTM", "XWRL", "X", lengths=(STEPS,) * 4), ("onnx-malformed", NODE, "[4]", "3"),
    ),
    "too few lengths": (Case("LSTM", "XWRL", lengths=(4, 1)), ("onnx-malformed", NODE, "[2]", "3")),
}  # fmt: skip


@pytest.mark.parametrize(("case", "refusal"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_other_layers_are_refused(case: Case, refusal: Refusal) -> None:
    assert_onnx_refused(case.data(), *refusal)


def test_any_computed_length_is_safe() -> None:
    """A length above the number of steps counts as all of them, one below 0 as 0."""
    case = Case("GRU", "XWRBLH", "XL")
    graph = parse_onnx(case.data(), "net", "net.onnx")
    wild = evaluate(graph, {**case.feeds, "L": np.array([2**31 - 1, -5, 4], np.int32)})
    same = evaluate(graph, {**case.feeds, "L": np.array([4, 0, 4], np.int32)})
    np.testing.assert_array_equal(wild["Y"], same["Y"])
    np.testing.assert_array_equal(wild["Y_h"], same["Y_h"])
