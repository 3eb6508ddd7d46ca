"""Variables of TFLite files become states, as in TensorFlow Lite Micro; invalid uses are refused."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.nodes import evaluate_in_turn
from support.oracle import tflite_micro_cases
from support.refusals import Refusal, invalid, malformed, refused
from support.tflite_builder import Network
from support.tflite_edits import Edit

Array = npt.NDArray[np.generic]

FLOAT: dict[str, float] = {}
INT8 = {"scale": 0.5, "zero_point": -7}


def parse(net: Network, outputs: Sequence[int] | None = None) -> Graph:
    return parse_tflite(net.build(outputs), "net", "net.tflite")


def assert_as_tflite_micro(model: bytes, runs: int = 4) -> Graph:
    """Run ``model`` several times in order, by the graph and by TensorFlow Lite Micro; return the graph."""
    graph = parse_tflite(model, "net", "net.tflite")
    random = np.random.default_rng(7)
    tensors = [graph.tensor(name) for name in graph.inputs]
    values = [[random.integers(-50, 50, t.shape).astype(t.dtype.numpy) for t in tensors] for _ in range(runs)]
    named = [dict(zip(graph.inputs, case, strict=True)) for case in values]
    for got, expected in zip(evaluate_in_turn(graph, named), tflite_micro_cases(model, values), strict=True):
        for name, right in zip(graph.outputs, expected, strict=True):
            np.testing.assert_array_equal(got[name], right.reshape(got[name].shape))
    return graph


def accumulator(affine: dict[str, float]) -> tuple[Network, int, int]:
    """Return a network that adds its input to a variable, with the variable's handle and the sum."""
    net = Network()
    handle = net.variable("total")
    total = net.add(net.read(handle, (2, 3), **affine), net.input((2, 3), **affine), **affine)
    net.assign(handle, total)
    return net, handle, total


def initialisation(data: Array, affine: dict[str, float], name: str = "total") -> Network:
    """Return a subgraph that assigns ``data`` to a variable."""
    net = Network()
    net.assign(net.variable(name), net.constant(data, **affine))
    return net


@pytest.mark.parametrize("affine", [FLOAT, INT8], ids=["float32", "int8"])
def test_a_variable_begins_at_zero(affine: dict[str, float]) -> None:
    net, _, total = accumulator(affine)
    graph = assert_as_tflite_micro(net.build([total]))
    (state,) = graph.states
    assert (state.before, state.after) == ("total", "total_after")
    assert set(state.initial.ravel().tolist()) == {affine.get("zero_point", 0)}


@pytest.mark.parametrize(("affine", "dtype"), [(FLOAT, np.float32), (INT8, np.int8)], ids=["float32", "int8"])
def test_call_once_gives_the_first_value(affine: dict[str, float], dtype: type[np.generic]) -> None:
    net, _, total = accumulator(affine)
    net.call_once(1)
    net.operators.insert(0, net.operators.pop())
    first = np.arange(6).reshape(2, 3).astype(dtype)
    net.others.append(initialisation(first, affine))
    (state,) = assert_as_tflite_micro(net.build([total])).states
    np.testing.assert_array_equal(state.initial, first)


def test_initial_values_may_be_computed() -> None:
    net, _, total = accumulator(FLOAT)
    net.call_once(1)
    net.operators.insert(0, net.operators.pop())
    start = Network()
    twice = start.add(start.constant(np.full((2, 3), 4, np.float32)), start.constant(np.full((2, 3), 3, np.float32)))
    start.assign(start.variable("total"), twice)
    net.others.append(start)
    (state,) = assert_as_tflite_micro(net.build([total])).states
    assert set(state.initial.ravel().tolist()) == {7}


def test_last_of_several_assignments_counts() -> None:
    net, handle, total = accumulator(FLOAT)
    again = net.read(handle, (2, 3))
    net.assign(handle, net.add(again, again))
    assert len(assert_as_tflite_micro(net.build([total, again])).states) == 1


def test_values_may_be_inputs_and_swapped() -> None:
    """A variable keeps the input of the previous run, another one the value of the first: a delay of two runs."""
    net = Network()
    x = net.input((3,))
    first, second = net.variable("first"), net.variable("second", container="other")
    late, later = net.read(first, (3,)), net.read(second, (3,))
    net.assign(first, x)
    net.assign(second, late)
    graph = assert_as_tflite_micro(net.build([later]))
    assert [state.before for state in graph.states] == ["first", "second"]


def test_a_value_may_be_kept_twice_and_returned() -> None:
    net, _, total = accumulator(INT8)
    other = net.variable("copy")
    late = net.read(other, (2, 3), **INT8)
    net.assign(other, total)
    assert len(assert_as_tflite_micro(net.build([total, late])).states) == 2


def test_a_constant_may_be_kept() -> None:
    net = Network()
    handle = net.variable("first_run")
    flag = net.read(handle, (1,))
    net.assign(handle, net.constant(np.ones(1, np.float32)))
    graph = assert_as_tflite_micro(net.build([net.add(net.input((4,)), flag)]))
    assert graph.tensor(graph.states[0].after).data is None


def test_a_variable_that_is_only_written_is_not_a_state() -> None:
    net = Network()
    x = net.input((4,))
    y = net.add(x, x)
    net.assign(net.variable("last"), y)
    assert assert_as_tflite_micro(net.build([y])).states == ()


def test_a_variable_that_is_only_read_is_a_constant() -> None:
    """Files may store weights in variables; as constants, they can be weights of a graph."""
    net = Network()
    x = net.input((1, 3))
    net.call_once(1)
    matrix = net.read(net.variable("matrix"), (2, 3))
    y = net.operator("FULLY_CONNECTED", [x, matrix, -1], net.activation((1, 2)), "FullyConnectedOptions")
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    net.others.append(initialisation(weights, FLOAT, "matrix"))
    graph = parse(net, [y])
    assert graph.states == ()
    assert [node.operator.name for node in graph.nodes] == ["FULLY_CONNECTED"]
    (constant,) = graph.constants
    assert constant.data is not None
    np.testing.assert_array_equal(constant.data, weights)
    assert_as_tflite_micro(net.build([y]))


def test_names_are_unique() -> None:
    net, _, total = accumulator(FLOAT)
    net.tensors[net.inputs[0]].name = "total"
    net.tensors[total].name = "total_after"
    (state,) = parse(net, [total]).states
    assert (state.before, state.after) == ("total_", "total_after_")


def other_shape(net: Network) -> None:
    handle = net.variable("v")
    net.read(handle, (3,))
    net.assign(handle, net.input((4,)))


def other_scale(net: Network) -> None:
    handle = net.variable("v")
    net.read(handle, (3,), scale=0.5)
    net.assign(handle, net.input((3,), 0.25))


def calls(index: int, *others: Network) -> Edit:
    def build(net: Network) -> None:
        net.call_once(index)
        handle = net.variable("v")
        x = net.read(handle, (3,))
        net.assign(handle, net.add(x, x))
        net.others.extend(others)
        net.outputs = [x]

    return build


def starting(build: Callable[[Network], object] = lambda _: None) -> Network:
    """Return a subgraph that assigns to ``v``, whose handle is tensor 0, after ``build`` changed it."""
    net = initialisation(np.ones(3, np.float32), FLOAT, "v")
    build(net)
    net.outputs = []
    return net


def late_call(net: Network) -> None:
    handle = net.variable("v")
    x = net.read(handle, (3,))
    net.assign(handle, x)
    net.call_once(1)
    net.others.append(initialisation(np.ones(3, np.float32), FLOAT, "v"))


def too_many_operands(net: Network) -> None:
    net.read(net.variable("v"), (3,))
    net.operators[-1].inputs *= 2


def in_sum(net: Network) -> None:
    handle = net.variable("v")
    net.add(handle, handle)


def read_first(net: Network) -> None:
    net.assign(0, net.read(0, (3,)))
    net.operators.append(net.operators.pop(1))


PLACE = "operator 1 (READ_VARIABLE) writing 't1'"
CALL = "operator 0 (CALL_ONCE)"

MISTAKES: dict[str, tuple[Edit, Refusal]] = {
    "a handle that nothing declares": (
        lambda net: net.read(net.tensor((), "resource"), (3,)),
        malformed("operator 0 (READ_VARIABLE) writing 't1'", "VAR_HANDLE"),
    ),
    "a variable that nothing assigns": (
        lambda net: net.read(net.variable("v"), (3,)), malformed(PLACE, "'v'"),
    ),
    "another shape": (other_shape, invalid("operator 2 (ASSIGN_VARIABLE)", "'v'", "'t1' float32[3]")),
    "another scale": (other_scale, invalid("operator 2 (ASSIGN_VARIABLE)", "'v'", "'t1' int8[3]")),
    "another type in the initialisation": (
        calls(1, initialisation(np.ones(3, np.int32), FLOAT, "v")),
        invalid("operator 2 (READ_VARIABLE) writing 't1'", "'v'", "'t1' int32[3]"),
    ),
    "a subgraph that is not there": (calls(2, starting()), invalid(CALL, "2", "1")),
    "a negative subgraph": (calls(-1), invalid(CALL, "-1")),
    "recursion": (calls(0), invalid(CALL)),
    "recursion of the initialisation": (
        calls(1, starting(lambda net: net.call_once(1))),
        ("operator-variant-unsupported", "subgraph 1, operator 2 (CALL_ONCE)"),
    ),
    "an initialisation with inputs": (calls(1, starting(lambda net: net.input((3,)))), invalid(CALL)),
    "an initialisation that reads": (calls(1, starting(read_first)), ("operator-variant-unsupported", CALL)),
    "an initialisation with what is not supported": (
        calls(1, starting(lambda net: net.operator("MULTINOMIAL", [1], net.activation((3,))))),
        ("operator-unsupported", "subgraph 1, operator 2 (MULTINOMIAL) writing 't2'"),
    ),
    "an initialisation whose tensor is not there": (
        calls(1, starting(lambda net: net.assign(0, 9))), malformed("subgraph 1, operator 2 (ASSIGN_VARIABLE)", "9"),
    ),
    "an initialisation of what was used": (
        late_call, ("operator-variant-unsupported", "operator 3 (CALL_ONCE)", "'v'"),
    ),
    "no name": (
        lambda net: net.read(net.variable(""), (3,)), invalid("operator 0 (VAR_HANDLE) writing 't0'"),
    ),
    "a long name": (
        lambda net: net.read(net.variable("x" * 1025), (3,)), invalid("operator 0 (VAR_HANDLE) writing 't0'", "1024"),
    ),
    "two handles": (too_many_operands, malformed(PLACE, "2")),
    "a handle as a value": (in_sum, ("type-unsupported", "operator 1 (ADD) writing 't1': tensor 0 't0'", "RESOURCE")),
}  # fmt: skip


@pytest.mark.parametrize(("build", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake(build: Edit, expected: Refusal) -> None:
    net = Network()
    build(net)
    with refused(*expected):
        parse(net)
