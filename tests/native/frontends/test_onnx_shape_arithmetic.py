"""Arithmetic on shapes in numpy gives the results of ONNX's evaluator."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.frontends.onnx.folding import fold
from mlfbuild.native.frontends.onnx.raw_graph import RawNode
from mlfbuild.native.frontends.onnx.reader import read_model
from mlfbuild.native.frontends.onnx.shape_arithmetic import computed
from mlfbuild.native.graph import ConstantBudget, GraphError
from mlfbuild.native.graph.nodes import evaluate
from support.examples import examples
from support.onnx_models import integers, model, reference

Array = npt.NDArray[Any]


def read(operator: str, inputs: Sequence[Array], **attributes: Any) -> tuple[RawNode, bytes]:
    """Return the node and a model that contains it, with the constants ``inputs``."""
    names = [f"i{number}" for number in range(len(inputs))]
    node = helper.make_node(operator, names, ["y"], **attributes)
    data = model([node], [], [("y", [])], dict(zip(names, inputs, strict=True)), element=onnx.TensorProto.INT64)
    return read_model(data).nodes[0], data


def check(operator: str, *inputs: Array, left: bool = False, **attributes: Any) -> None:
    """Check that the result equals the evaluator's, or that the node is ``left`` to the evaluator."""
    node, data = read(operator, inputs, **attributes)
    wanted = np.asarray(ReferenceEvaluator(onnx.load_from_string(data)).run(None, {})[0])
    made = computed(node, inputs)
    assert (made is None) == left
    if made is not None:
        assert made.dtype == wanted.dtype
        np.testing.assert_array_equal(made, wanted)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(data=st.data())
def test_slices_and_gathers(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * 3))
    values = np.arange(np.prod(shape)).reshape(shape)
    axes = data.draw(st.permutations([0, 1, 2]))[: data.draw(st.integers(1, 3))]
    steps = [data.draw(st.sampled_from([1, 2, -1, -2])) for _ in axes]
    far = data.draw(st.booleans())
    starts = [data.draw(st.integers(-6, 6)) for _ in axes]
    ends = [(-(1 << 62) if step < 0 else 1 << 62) if far else data.draw(st.integers(-6, 6)) for step in steps]
    check("Slice", values, integers(*starts), integers(*ends), integers(*axes), integers(*steps))
    check("Slice", values, integers(*starts), integers(*ends), integers(*axes))
    axis = data.draw(st.integers(-3, 2))
    positions = data.draw(st.lists(st.integers(-shape[axis], shape[axis] - 1), min_size=1, max_size=3))
    check("Gather", values, integers(*positions), axis=axis)
    check("Gather", values, np.array(positions[0]), axis=axis)
    check("Concat", values, values + 1, axis=axis)


@pytest.mark.parametrize("values", [integers(3, 1, 4), integers(5), np.arange(6).reshape(1, 2, 3)])
def test_other_operators(values: Array) -> None:
    check("Add", values, values + 7)
    check("Sub", np.array(4), values)
    check("Mul", values, np.array(-3))
    check("Div", values, np.array(2))
    check("Identity", values)
    check("Size", values)
    check("Shape", values)
    check("Shape", values, start=-1)
    check("Shape", values, start=0, end=-1)
    check("Unsqueeze", values, integers(0, -1))
    check("Squeeze", values[np.newaxis], integers(0))


def test_operators_for_the_evaluator() -> None:
    check("Div", integers(-3, 3), integers(2, 2), left=True)
    check("Add", np.array([0.5], np.float32), np.array([1.5], np.float32), left=True)
    check("Cast", integers(1), left=True, to=onnx.TensorProto.INT32)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "words"),
    [
        ("Gather", (integers(1, 2), np.array(7)), {}, "out of bounds"),
        ("Unsqueeze", (integers(1, 2), integers(5)), {}, "out of bounds"),
        ("Squeeze", (integers(1, 2), integers(0)), {}, "size not equal to one"),
        ("Concat", (integers(1, 2), np.array([[1]])), {"axis": 0}, "same number of dimensions"),
        ("Add", (integers(1, 2), integers(1, 2, 3)), {}, "shape mismatch"),
    ],
)
def test_wrong_inputs_raise(operator: str, inputs: tuple[Array, ...], attributes: dict[str, Any], words: str) -> None:
    node, _ = read(operator, inputs, **attributes)
    with pytest.raises(GraphError) as caught:
        fold(node, inputs, 21, ConstantBudget.of_file(0))
    assert str(caught.value).startswith(f"node 0 ({operator}) writing 'y': cannot be computed: ")
    assert words in str(caught.value)


DOUBLES: dict[str, list[onnx.NodeProto]] = {
    "Cast": [],
    "Clip": [helper.make_node("Clip", ["c", "low", "high"], ["d"])],
    "MatMul": [helper.make_node("MatMul", ["c", "c"], ["d"])],
    "Pow": [helper.make_node("Pow", ["c", "low"], ["d"])],
    "ReduceL2": [helper.make_node("ReduceL2", ["c"], ["d"], keepdims=0)],
    "Tanh": [helper.make_node("Tanh", ["c"], ["d"])],
}


@pytest.mark.parametrize("last", ["Cast", "CastLike"])
@pytest.mark.parametrize("name", DOUBLES)
def test_float64_constants_become_float32_after_their_arithmetic(name: str, last: str) -> None:
    """No tensor of the network has the type; CastLike takes that of the input."""
    end = DOUBLES[name][-1].output[0] if DOUBLES[name] else "c"
    attributes = {"to": onnx.TensorProto.FLOAT} if last == "Cast" else {}
    cast = helper.make_node(last, [end, *(["x"] if last == "CastLike" else [])], ["f"], **attributes)
    nodes = [*DOUBLES[name], cast, helper.make_node("Mul", ["x", "f"], ["y"])]
    constants = {"c": np.array([1.5, -1 / 3, np.pi]), "low": np.array(0.5), "high": np.array(2.5)}
    constants["c"] = np.abs(constants["c"]) if name == "Pow" else constants["c"]
    data, x = model(nodes, [("x", (3,))], [("y", (3,))], constants), np.array([0.1, -2, 3], np.float32)
    graph = parse_onnx(data, "net", "net.onnx")
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], reference(data, {"x": x})[0])
