"""Errors about ONNX models that are invalid or not supported."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import TensorProto, helper

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.native.frontends.onnx import parse_onnx
from support.examples import examples
from support.onnx_checks import changed, floats, small_network
from support.onnx_models import model
from support.refusals import Refusal, assert_onnx_refused


def external(made: onnx.ModelProto) -> None:
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def control_flow() -> bytes:
    """Return a branch that depends on data, with another shape of the result in each branch."""
    one, two = (
        helper.make_graph([helper.make_node("Concat", ["x"] * count, ["z"], axis=0)], "body", [],
                          [helper.make_tensor_value_info("z", TensorProto.FLOAT, (count,))])
        for count in (1, 2)
    )  # fmt: skip
    made = helper.make_node("If", ["c"], ["y"], then_branch=one, else_branch=two)
    known = helper.make_node("Greater", ["x", "zero"], ["c"])
    return model([known, made], [("x", (1,))], [("y", (1,))], {"zero": np.zeros(1, np.float32)})


def free_size(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"


def microsofts(made: onnx.ModelProto) -> None:
    made.opset_import.add(domain="com.microsoft", version=1)
    made.graph.node[0].domain, made.graph.node[0].op_type = "com.microsoft", "FusedConv"


CASES: dict[str, tuple[bytes, Refusal]] = {
    "cut": (small_network()[:-9], ("onnx-malformed", "the file")),
    "text": (b"hello", ("onnx-malformed", "the file")),
    "empty": (b"", ("onnx-malformed", "the file")),
    "old": (
        changed(lambda made: setattr(made.opset_import[0], "version", 5)),
        ("onnx-malformed", "the model", "'consumed_inputs'"),
    ),
    "new": (changed(lambda made: setattr(made.opset_import[0], "version", 999)), ("opset-too-new", "", "999", "ONNX")),
    "external": (changed(external), ("onnx-malformed", "weights 'w1'")),
    "free": (changed(free_size), ("shape-dynamic", "input 'x'", "[1, 3, height, 6]")),
    "integers": (
        model([helper.make_node("Exp", ["x"], ["y"])], [("x", (1,))], [("y", (1,))], element=TensorProto.INT64),
        ("operator-variant-unsupported", "node 0 (Exp) writing 'y'", "'x' int64[1]", "8"),
    ),
    "no type": (
        changed(lambda made: setattr(made.graph.input[0].type.tensor_type, "elem_type", 90)),
        ("type-unsupported", "input 'x'", "90"),
    ),
    "control flow": (control_flow(), ("control-flow-dynamic", "node 1 (If) writing 'y'", "[1] and [2]")),
    "custom": (
        changed(lambda made: setattr(made.graph.node[0], "domain", "com.acme")),
        ("onnx-malformed", "the model", "'com.acme'"),
    ),
    "unknown": (changed(microsofts), ("operator-unsupported", "node 0 (com.microsoft.FusedConv) writing 'c1'")),
    "cycle": (changed(lambda made: made.graph.node[0].input.__setitem__(0, "p1")), ("onnx-malformed", "the model")),
    "groups": (
        model(
            [helper.make_node("Conv", ["x", "w"], ["y"], group=3)],
            [("x", (1, 4, 3, 3))], [("y", [None] * 4)], {"w": floats(4, 1, 1, 1)},
        ),
        ("onnx-malformed", "node 0 (Conv) writing 'y'", "3", "1"),
    ),
    "weights": (
        model(
            [helper.make_node("Conv", ["x", "w"], ["y"])],
            [("x", (1, 4, 3, 3, 3)), ("w", (2, 4, 1, 1, 1))], [("y", [None] * 5)],
        ),
        ("input-not-constant", "node 0 (Conv) writing 'y'", "'w'"),
    ),
    "bomb": (
        model(
            [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])],
            [("x", (1,))], [("y", [None] * 2)], {"s": np.array([1 << 20, 1 << 20])},
        ),
        ("constants-too-large", "node 0 (ConstantOfShape) writing 'c'"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_unsupported_operators_are_refused(name: str) -> None:
    data, expected = CASES[name]
    assert_onnx_refused(data, *expected)


SMALL = small_network()


@settings(max_examples=examples(600), deadline=None, derandomize=True)
@given(st.integers(0, len(SMALL) - 1), st.integers(0, 255))
def test_a_damaged_byte_never_makes_a_traceback(position: int, value: int) -> None:
    data = bytearray(SMALL)
    data[position] = value
    try:
        parse_onnx(bytes(data), "net", "net.onnx")
    except (InputFileError, UnsupportedModelError) as error:
        lines = str(error).splitlines()
    else:
        lines = []
    assert all(line.isprintable() for line in lines)


def several() -> bytes:
    """A model with an unknown operator, one that is refused, and others with unsupported inputs."""
    nodes = [
        helper.make_node("FusedConv", ["x", "w"], ["a"], domain="com.microsoft"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Multinomial", ["b"], ["c"]),
        helper.make_node("NonZero", ["x"], ["d"]),
        helper.make_node("Exp", ["i"], ["e"]),
        helper.make_node("Log", ["e"], ["f"]),
        helper.make_node("Exp", ["i"], ["g"]),
        helper.make_node("Conv", ["x", "s"], ["h"], kernel_shape=[1, 1]),
        helper.make_node("Abs", ["x"], ["y"]),
    ]
    made = onnx.load_from_string(
        model(nodes, [("x", (1, 2, 3, 3)), ("s", (2, 2, 1, None))], [("y", (1, 2, 3, 3))], {"w": floats(2, 2, 1, 1)})
    )
    made.graph.input.append(helper.make_tensor_value_info("i", TensorProto.INT64, (1,)))
    made.opset_import.add(domain="com.microsoft", version=1)
    return bytes(made.SerializeToString())


def test_every_reason_is_reported_at_once() -> None:
    """Nodes that read the results of refused ones are left out; places with one reason share a line."""
    with pytest.raises(UnsupportedModelError) as caught:
        parse_onnx(several(), "net", "net.onnx")
    found = [(problem.code, problem.place.removeprefix("net.onnx: ")) for problem in caught.value.problems]
    assert found == [
        ("operator-unsupported", "node 0 (com.microsoft.FusedConv) writing 'a'"),
        ("operator-refused", "node 2 (Multinomial) writing 'c'"),
        ("shape-dynamic", "input 's'"),
        ("input-not-constant", "node 3 (NonZero) writing 'd'"),
        ("operator-variant-unsupported", "node 4 (Exp) writing 'e'"),
        ("operator-variant-unsupported", "node 6 (Exp) writing 'g'"),
    ]
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert lines[-1].startswith("net.onnx: node 4 (Exp) writing 'e' and 1 more place: ")
