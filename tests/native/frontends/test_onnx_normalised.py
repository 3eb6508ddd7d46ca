"""ONNX files that are rewritten before they are imported: order, versions, functions, branches and loops."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.core.errors import MlfError, UnsupportedModelError
from mlfbuild.native.frontends.node_budget import MOST_NODES, NodeBudget
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.frontends.onnx.normalise import rewritten
from mlfbuild.native.graph.nodes import evaluate
from support.onnx_checks import assert_equal, floats, restart
from support.onnx_models import model, reference
from support.refusals import assert_onnx_refused

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@pytest.fixture(autouse=True)
def _random() -> None:
    restart()


def port(name: str, *shape: int, element: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def graph(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
) -> onnx.GraphProto:
    return helper.make_graph(nodes, "inner", inputs, outputs)


# Order, versions and functions ---------------------------------------------------------------------------------------


def test_nodes_out_of_order_are_sorted() -> None:
    nodes = [
        helper.make_node("Add", ["b", "a"], ["y"]),
        helper.make_node("Exp", ["a"], ["b"]),
        helper.make_node("Tanh", ["x"], ["a"]),
    ]
    made = onnx.load_from_string(model(nodes, [("x", (3,))], [("y", (3,))]))
    found = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    del made.graph.node[:]
    made.graph.node.extend(nodes[::-1])
    assert_equal(made.SerializeToString(), floats(3), compiled=False)
    assert [node.operator.name for node in found.nodes] == ["TANH", "EXP", "ADD"]


@pytest.mark.parametrize("opset", [9, 13])
def test_operators_that_the_version_does_not_have_yet_are_those_of_a_later_one(opset: int) -> None:
    """onnxruntime runs them, because it had LayerNormalization before ONNX did, and Gelu in its own domain."""
    weights = {"scale": floats(8), "bias": floats(8)}
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["a"]),
        helper.make_node("Gelu", ["a"], ["y"], domain="com.microsoft"),
    ]
    made = helper.make_graph(
        nodes, "net", [port("x", -1, 8)], [port("y", -1, 8)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(made, opset_imports=imports, ir_version=8).SerializeToString()
    nodes[1].domain = ""
    modern = helper.make_graph(nodes, "net", [port("x", 1, 8)], [port("y", 1, 8)], made.initializer)
    newer = helper.make_model(modern, opset_imports=[helper.make_opsetid("", 20)], ir_version=8).SerializeToString()
    x = floats(1, 8)
    got = evaluate(parse_onnx(data, "net", "net.onnx"), {"x": x})
    np.testing.assert_allclose(got["y"], reference(newer, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_slopes_of_old_versions_belong_to_channels() -> None:
    """As many channels as columns, so that slopes in the wrong dimension would go unnoticed."""
    slopes = np.array([0.1, 0.5, 2.0], np.float32)
    old = [helper.make_node("PRelu", ["x", "s"], ["y"])]
    data = model(old, [("x", (1, 3, 2, 3))], [("y", (1, 3, 2, 3))], {"s": slopes}, opset=6)
    made = onnx.load_from_string(data)
    made.graph.input.append(port("s", 3))  # versions before 4 of the format require it
    x = floats(1, 3, 2, 3)
    found = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    wanted = np.where(x < 0, x * slopes.reshape(1, 3, 1, 1), x)
    np.testing.assert_allclose(evaluate(found, {"x": x})["y"], wanted, rtol=1e-6)


def test_shapes_that_contradict_an_old_model_are_refused() -> None:
    """ONNX's inference of shapes, which PRelu needs, raises an exception of its own."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("PRelu", ["r", "s"], ["y"])]
    made = onnx.load_from_string(model(nodes, [("x", (1, 3, 2)), ("s", (3,))], [("y", (1, 3, 2))], opset=6))
    assert parse_onnx(made.SerializeToString(), "net", "net.onnx").inputs == ("x", "s")
    made.graph.value_info.append(port("r", 1, 4, 2))
    inner = made.SerializeToString()
    del made.graph.value_info[:]
    made.graph.output[0].CopyFrom(port("y", 1, 4, 2))
    for data in (inner, made.SerializeToString()):
        with pytest.raises(MlfError) as raised:
            parse_onnx(data, "net", "net.onnx")
        assert raised.value.code == "onnx-malformed"


def test_version_that_onnx_cannot_convert_is_refused() -> None:
    nodes = [helper.make_node("Reshape", ["w", "dims"], ["s"]), helper.make_node("PRelu", ["x", "s"], ["y"])]
    made = onnx.load_from_string(model(nodes, [("x", (1, 3, 2)), ("w", (3,))], [("y", (1, 3, 2))], opset=6))
    made.graph.input.append(helper.make_tensor_value_info("dims", INT64, [None]))
    assert_onnx_refused(made.SerializeToString(), "opset-too-old", "node PRelu writing 'y'", "unknown")


def test_functions_of_the_file_become_their_nodes() -> None:
    body = [helper.make_node("Mul", ["a", "a"], ["square"]), helper.make_node("Sqrt", ["square"], ["b"])]
    inner = helper.make_function("mine", "Inner", ["a"], ["b"], body, [helper.make_opsetid("", 21)])
    calls = [helper.make_node("Inner", ["a"], ["t"], domain="mine"), helper.make_node("Neg", ["t"], ["b"])]
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    outer = helper.make_function("mine", "Outer", ["a"], ["b"], calls, imports)
    nodes = [
        helper.make_node("Outer", ["x"], ["u"], domain="mine"),
        helper.make_node("Outer", ["u"], ["y"], domain="mine"),
    ]
    made = onnx.load_from_string(model(nodes, [("x", (4,))], [("y", (4,))]))
    made.functions.extend([inner, outer])
    made.opset_import.add(domain="mine", version=1)
    assert_equal(made.SerializeToString(), floats(4), compiled=False)


def nested_functions(levels: int, *others: onnx.NodeProto) -> onnx.ModelProto:
    """Return a network that calls a function, which calls another one twice, and so on, after ``others``."""
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    calls = [[helper.make_node("Neg", ["a"], ["t"]), helper.make_node("Neg", ["t"], ["b"])]]
    for level in range(1, levels):
        names = [("a", "t"), ("t", "b")]
        calls.append([helper.make_node(f"F{level - 1}", [old], [new], domain="mine") for old, new in names])
    nodes = [*others, helper.make_node(f"F{levels - 1}", ["x"], ["y"], domain="mine")]
    made = onnx.load_from_string(model(nodes, [("x", (4,))], [("y", (4,))]))
    made.functions.extend(
        helper.make_function("mine", f"F{level}", ["a"], ["b"], body, imports) for level, body in enumerate(calls)
    )
    made.opset_import.add(domain="mine", version=1)
    return made


def test_functions_that_become_too_many_nodes_are_refused_before_they_do() -> None:
    """Thirty functions of two nodes become a billion."""
    assert_equal(nested_functions(4).SerializeToString(), floats(4), compiled=False)
    assert_onnx_refused(
        nested_functions(30).SerializeToString(), "expansion-too-large", "node 0 (F29)", str(MOST_NODES)
    )


def test_functions_and_loops_share_one_budget() -> None:
    body = helper.make_graph(
        [helper.make_node("Abs", ["r"], ["row"])], "body",
        [helper.make_tensor_value_info("r", FLOAT, [])], [helper.make_tensor_value_info("row", FLOAT, [])],
    )  # fmt: skip
    scan = helper.make_node("Scan", ["many"], ["rows"], body=body, num_scan_inputs=1)
    made = nested_functions(12, scan)  # 8,190 nodes
    made.graph.input.append(helper.make_tensor_value_info("many", FLOAT, [9_000]))
    made.graph.output.append(helper.make_tensor_value_info("rows", FLOAT, [9_000]))
    assert_onnx_refused(
        made.SerializeToString(), "expansion-too-large", "node 0 (Scan) writing 'rows'", str(MOST_NODES)
    )


def test_function_that_calls_itself_is_refused() -> None:
    """Versions of ONNX's checker that accept it would let the inliner run for ever."""
    made = nested_functions(2)
    made.functions[0].node[0].CopyFrom(helper.make_node("F1", ["a"], ["t"], domain="mine"))
    with pytest.raises(UnsupportedModelError) as raised:
        rewritten(made, (), NodeBudget())
    assert (raised.value.code, "F0" in raised.value.reason) == ("function-unsupported", True)


def contradictory() -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "w"], ["t"]), helper.make_node("Mul", ["x", "t"], ["y"])]
    made = onnx.load_from_string(model(nodes, [("x", (2, 2))], [("y", (2, 2))], {"w": np.ones((2, 2), np.float32)}))
    made.graph.value_info.append(helper.make_tensor_value_info("t", FLOAT, [2, 3]))
    return made


def test_shapes_that_contradict_each_other_in_an_old_version() -> None:
    """The shape inference of onnx's converter raises an error of its own."""
    made = contradictory()
    made.opset_import[0].version = 6
    made.graph.input.append(helper.make_tensor_value_info("w", FLOAT, [2, 1 << 40]))
    del made.graph.value_info[:]
    assert_onnx_refused(made.SerializeToString(), "opset-too-old", "", "(2) vs (1099511627776)")


def test_declared_shape_of_an_inner_tensor_that_it_does_not_have() -> None:
    assert_onnx_refused(
        contradictory().SerializeToString(), "onnx-malformed", "node 0 (Add) writing 't'", "[2, 2]", "[2, 3]"
    )


def test_operators_with_a_definition_become_its_nodes() -> None:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])  # its axes have a default
    assert_equal(model([node], [("x", (2, 3, 4, 5))], [("y", (2, 3, 4, 5))]), floats(2, 3, 4, 5))


def test_attention_is_computed() -> None:
    """An input that is left out between others, of which onnx's own inliner does not know the type."""
    node = helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"])
    shape = (1, 2, 4, 8)
    ports = [(name, shape) for name in "qkv"]
    data = model([node], ports, [("y", shape)], {"mask": floats(4, 4)}, opset=23)
    assert_equal(data, *(floats(*shape) for _ in ports), compiled=False)
    node = helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "nk", "nv"])
    past = (1, 2, 3, 8)
    longer = (1, 2, 7, 8)
    data = model([node], [*ports, ("pk", past), ("pv", past)], [("y", shape), ("nk", longer), ("nv", longer)], opset=23)
    assert_equal(data, *(floats(*shape) for _ in ports), floats(*past), floats(*past), compiled=False)


# Branches and loops --------------------------------------------------------------------------------------------------


def branches(condition: list[onnx.NodeProto], constants: dict[str, np.ndarray]) -> bytes:
    """Return a network with x + w in one branch and x - 1 in the other; both write the same name."""
    then = graph([helper.make_node("Add", ["x", "w"], ["t"])], [], [port("t", 2, 3)])
    other = graph(
        [helper.make_node("Constant", [], ["k"], value_float=1.0), helper.make_node("Sub", ["x", "k"], ["t"])],
        [], [port("t", 2, 3)],
    )  # fmt: skip
    node = helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=other)
    nodes = [*condition, node, helper.make_node("Neg", ["z"], ["y"])]
    return model(nodes, [("x", (2, 3))], [("y", (2, 3))], {"w": np.full(3, 2, np.float32), **constants})


@pytest.mark.parametrize("taken", [True, False])
def test_branch_of_a_constant_condition_is_taken(taken: bool) -> None:
    assert_equal(branches([], {"c": np.array(taken)}), floats(2, 3), compiled=False)


@pytest.mark.parametrize("size", [6, 7])
def test_condition_may_depend_on_shapes(size: int) -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Size", ["e"], ["n"]),
        helper.make_node("Equal", ["n", "size"], ["c"]),
    ]
    assert_equal(branches(nodes, {"size": np.array(size)}), floats(2, 3), compiled=False)


def test_condition_that_depends_on_data_selects_the_result_of_a_branch() -> None:
    nodes = [helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0), helper.make_node("Greater", ["m", "zero"], ["c"])]
    data = branches(nodes, {"zero": np.array(0, np.float32)})
    for sign in (1, -1):
        assert_equal(data, np.float32(sign) * np.abs(floats(2, 3)), compiled=sign > 0)
    notes = parse_onnx(data, "net", "net.onnx").notes
    assert ["both branches are computed" in note for note in notes] == [True]


def test_unsupported_node_in_a_branch_is_the_only_reason() -> None:
    made = onnx.load_from_string(branches([], {}))
    made.graph.input.append(helper.make_tensor_value_info("c", BOOL, []))
    branch = next(each.g for each in made.graph.node[0].attribute if each.name == "then_branch")
    branch.node[0].CopyFrom(helper.make_node("Unique", ["x"], ["t"]))
    assert_onnx_refused(
        made.SerializeToString(),
        "operator-refused",
        "node 0 (Unique) writing 'z/then_branch/t'",
        "size depends on data",
    )


def loop(body: list[onnx.NodeProto], inputs: Sequence[str] = ("n", "go0"), **constants: object) -> bytes:
    """Return a network with a loop over a row of 3, which also stacks the row of each iteration.

    Its number of iterations is ``n``, and its first condition ``go0``, which is true.
    """
    inner = graph(
        body,
        [port("i", element=INT64), port("go", element=BOOL), port("s", 3)],
        [port("on", element=BOOL), port("s2", 3), port("piece", 3)],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Loop", [*inputs, "r"], ["last", "all"], body=inner),
        helper.make_node("Neg", ["last"], ["y"]),
    ]
    arrays = {name: np.asarray(value) for name, value in {"go0": True, **constants}.items()}
    return model(nodes, [("x", (3,))], [("y", (3,)), ("all", (None, 3))], arrays)


DOUBLED = [
    helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
    helper.make_node("Mul", ["s", "x"], ["m"]),  # x is a tensor of the network
    helper.make_node("Add", ["m", "f"], ["s2"]),
    helper.make_node("Exp", ["s"], ["piece"]),
]
WHILE = helper.make_node("Identity", ["go"], ["on"])


def test_loop_with_a_constant_trip_count_is_unrolled() -> None:
    assert_equal(loop([*DOUBLED, WHILE], n=3), floats(3))


def test_tensor_of_a_loop_may_be_called_iteration() -> None:
    """Its name is not that of the constant that is added to each iteration."""
    nodes = [
        helper.make_node("Neg", ["s"], ["iteration"]),
        helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
        helper.make_node("Add", ["iteration", "f"], ["s2"]),
        helper.make_node("Exp", ["s2"], ["piece"]),
    ]
    assert_equal(loop([*nodes, WHILE], n=3), floats(3))


@pytest.mark.parametrize(
    ("count", "code", "fact"),
    [(np.array(0), "tensor-empty", "'all'"), (np.array(np.inf, np.float32), "onnx-malformed", "float32")],
)
def test_other_trip_counts_are_refused(count: np.ndarray, code: str, fact: str) -> None:
    """No iteration makes no rows, and only integers are counts."""
    assert_onnx_refused(loop([*DOUBLED, WHILE], n=count), code, "node 1 (Loop) writing 'last'", fact)


def test_condition_of_a_loop_may_be_absent() -> None:
    """ONNX's evaluator takes this for a false condition; the body's condition has no effect."""
    ends = helper.make_node("Not", ["go"], ["on"])
    found = parse_onnx(loop([*DOUBLED, ends], ["n", ""], n=2), "net", "net.onnx")
    x = floats(3)
    values = evaluate(found, {"x": x})
    rows = [np.maximum(x, 0), np.maximum(x, 0) * x]
    np.testing.assert_allclose(values["y"], -(rows[1] * x + 1), rtol=1e-5)
    np.testing.assert_allclose(values["all"], np.exp(rows), rtol=1e-5)


def test_loop_ends_when_its_constant_condition_does() -> None:
    less = [helper.make_node("Less", ["i", "most"], ["on"])]
    assert_equal(loop([*DOUBLED, *less], ["", "go0"], most=2), floats(3), compiled=False)


def test_trip_count_may_depend_on_shapes() -> None:
    data = onnx.load_from_string(loop([*DOUBLED, WHILE]))
    data.graph.node.insert(0, helper.make_node("Size", ["x"], ["n"]))
    assert_equal(data.SerializeToString(), floats(3), compiled=False)


POSITIVE = [
    helper.make_node("ReduceMax", ["s"], ["top"], keepdims=0),
    helper.make_node("Greater", ["top", "zero"], ["on"]),
]


def test_loop_whose_end_depends_on_data_is_refused_if_it_collects_an_unknown_number_of_rows() -> None:
    data = loop([*DOUBLED, *POSITIVE], n=3, zero=np.float32(0))
    assert_onnx_refused(data, "control-flow-dynamic", "node 1 (Loop) writing 'last'")


def test_loop_keeps_its_state_after_an_end_that_depends_on_data() -> None:
    less = [
        helper.make_node("ReduceMax", ["s2"], ["top"], keepdims=0),
        helper.make_node("Less", ["top", "zero"], ["on"]),
    ]
    made = onnx.load_from_string(loop([*DOUBLED, *less], n=3, zero=np.float32(1.1)))
    del made.graph.output[1]
    made.graph.node[1].output[1] = ""
    data = bytes(made.SerializeToString())
    wanted = set()
    for scale in (0.1, 0.6, 2.0):
        x = np.full(3, scale, np.float32)
        assert_equal(data, x, compiled=scale == 0.6)
        (found,) = reference(data, {"x": x})
        wanted.add(round(float(found[0]), 4))
    assert wanted == {-2.1001, -1.216, -4.0}  # after three, two and one iterations


def test_trip_count_of_a_loop_that_collects_rows_may_be_computed() -> None:
    """The declared shape determines it; a state after fewer iterations is also correct."""
    made = onnx.load_from_string(loop([*DOUBLED, WHILE]))
    made.graph.input.append(helper.make_tensor_value_info("n", INT64, []))
    x = np.array([0.5, -1, 2], np.float32)
    wanted = reference(made.SerializeToString(), {"x": x, "n": np.array(3)})
    made.graph.output[1].type.tensor_type.shape.dim[0].dim_value = 3
    found = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    values = evaluate(found, {"x": x, "n": np.array(3)})
    np.testing.assert_allclose(values["all"], wanted[1], rtol=1e-5)
    for count in (0, 1, 3, 9, -5):
        made.graph.output[1].type.tensor_type.shape.dim[0].ClearField("dim_value")
        feeds = {"x": x, "n": np.array(min(max(count, 0), 3))}
        state = evaluate(found, {"x": x, "n": np.array(count)})["y"]
        expected = -np.maximum(x, 0) if count <= 0 else reference(made.SerializeToString(), feeds)[0]
        np.testing.assert_allclose(state, expected, rtol=1e-5)


def test_number_of_unrolled_nodes_is_limited() -> None:
    trips = MOST_NODES // len([*DOUBLED, WHILE]) + 1
    data = loop([*DOUBLED, WHILE], ["n", ""], n=trips)
    assert_onnx_refused(data, "expansion-too-large", "node 1 (Loop) writing 'last'", str(MOST_NODES))


def test_branch_in_a_loop_is_taken_by_the_iteration() -> None:
    """The names of inner tensors are the same in each iteration and in both branches."""
    then = graph([helper.make_node("Mul", ["s", "x"], ["t"])], [], [port("t", 3)])
    other = graph([helper.make_node("Sub", ["s", "x"], ["t"])], [], [port("t", 3)])
    body = [
        helper.make_node("Less", ["i", "most"], ["c"]),
        helper.make_node("If", ["c"], ["s2"], then_branch=then, else_branch=other),
        helper.make_node("Identity", ["s"], ["piece"]),
        WHILE,
    ]
    assert_equal(loop(body, n=4, most=2), floats(3))


def test_tensor_that_a_loop_reads_is_not_only_quantised() -> None:
    """The network quantises r, and the loop reads it as it is."""
    body = [helper.make_node("Add", ["s", "r"], ["s2"]), helper.make_node("Identity", ["s"], ["piece"]), WHILE]
    made = onnx.load_from_string(loop(body, n=2, scale=np.float32(0.5), zero=np.int8(3)))
    made.graph.node.append(helper.make_node("QuantizeLinear", ["r", "scale", "zero"], ["q"]))
    made.graph.output.append(port("q", 3, element=TensorProto.INT8))
    assert_equal(made.SerializeToString(), floats(3), compiled=False)


@pytest.mark.parametrize("back", [0, 1])
def test_scan_is_unrolled(back: int) -> None:
    body = graph(
        [helper.make_node("Add", ["s", "e"], ["s2"]), helper.make_node("Mul", ["s2", "s2"], ["o"])],
        [port("s", 2), port("e", 2)],
        [port("s2", 2), port("o", 2)],
    )
    node = helper.make_node(
        "Scan", ["x0", "x"], ["last", "y"], body=body, num_scan_inputs=1, scan_input_axes=[1],
        scan_input_directions=[back], scan_output_axes=[-1], scan_output_directions=[1 - back],
    )  # fmt: skip
    data = model([node], [("x0", (2,)), ("x", (2, 4))], [("last", (2,)), ("y", (2, 4))])
    x0, x = floats(2), floats(2, 4)
    sums = np.cumsum(x[:, ::-1] if back else x, axis=1, dtype=np.float32) + x0[:, None]
    found = parse_onnx(data, "net", "net.onnx")
    values = evaluate(found, {"x0": x0, "x": x})
    np.testing.assert_allclose(values["last"], sums[:, -1], rtol=1e-5)
    np.testing.assert_allclose(values["y"], (sums if back else sums[:, ::-1]) ** 2, rtol=1e-5)


def test_weights_in_a_branch_are_constants() -> None:
    then = graph([helper.make_node("MatMul", ["x", "w"], ["t"])], [], [port("t", 2, 4)])
    then.initializer.append(numpy_helper.from_array(floats(3, 4), "w"))
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=then)
    assert_equal(model([node], [("x", (2, 3))], [("y", (2, 4))], {"c": np.array(True)}), floats(2, 3), compiled=False)
