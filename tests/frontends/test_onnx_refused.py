"""ONNX files with mistakes: each ends as one line that names the place and the reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import TensorProto, helper

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from support.examples import examples
from support.onnx_checks import floats, small_network
from support.onnx_models import model


def broken(change: Callable[[onnx.ModelProto], object]) -> bytes:
    made = onnx.load_from_string(small_network())
    change(made)
    return bytes(made.SerializeToString())


def external(made: onnx.ModelProto) -> None:
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def control_flow() -> bytes:
    body = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "body", [],
                             [helper.make_tensor_value_info("z", TensorProto.FLOAT, (1,))])  # fmt: skip
    made = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    return model([made], [("x", (1,))], [("y", (1,))], {"c": np.array(True)})


def free_size(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"


def microsofts(made: onnx.ModelProto) -> None:
    made.opset_import.add(domain="com.microsoft", version=1)
    made.graph.node[0].domain, made.graph.node[0].op_type = "com.microsoft", "FusedConv"


CASES: dict[str, tuple[bytes, type[MlfError], str]] = {
    "cut": (small_network()[:-9], InputFileError, "not a valid ONNX model: the file: cannot be decoded"),
    "text": (b"hello", InputFileError, "not a valid ONNX model"),
    "empty": (b"", InputFileError, "not a valid ONNX model: the file: holds no graph"),
    "old": (
        broken(lambda made: setattr(made.opset_import[0], "version", 6)),
        UnsupportedModelError,
        "uses version 6 of ONNX's operators; supported are 7 and later",
    ),
    "new": (
        broken(lambda made: setattr(made.opset_import[0], "version", 999)),
        UnsupportedModelError,
        "uses version 999 of ONNX's operators, the installed onnx",
    ),
    "external": (broken(external), UnsupportedModelError, "keeps the weights 'w1' in another file"),
    "free": (broken(free_size), UnsupportedModelError, "input 'x' has the dynamic shape [1, 3, ?, 6]"),
    "integers": (
        model([helper.make_node("Exp", ["x"], ["y"])], [("x", (1,))], [("y", (1,))], element=TensorProto.INT64),
        UnsupportedModelError,
        "node 0 (Exp) writing 'y': 'x' int64[1]: the type must be int8",
    ),
    "no type": (
        broken(lambda made: setattr(made.graph.input[0].type.tensor_type, "elem_type", 90)),
        UnsupportedModelError,
        "input 'x' has type 90; supported are FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL",
    ),
    "control flow": (control_flow(), UnsupportedModelError, "node 0 (If) writing 'y'"),
    "custom": (
        broken(lambda made: setattr(made.graph.node[0], "domain", "com.acme")),
        InputFileError,
        "No opset import for domain 'com.acme'",
    ),
    "unknown": (
        broken(microsofts), UnsupportedModelError,
        "node 0 (com.microsoft.FusedConv) writing 'c1': not supported; supported are Abs, Add, And, ArgMax",
    ),
    "cycle": (
        broken(lambda made: made.graph.node[0].input.__setitem__(0, "p1")), InputFileError, "not a valid ONNX model",
    ),
    "groups": (
        model(
            [helper.make_node("Conv", ["x", "w"], ["y"], group=3)],
            [("x", (1, 4, 3, 3))], [("y", [None] * 4)], {"w": floats(4, 1, 1, 1)},
        ),
        InputFileError,
        "3 groups of 1 channels do not fit",
    ),
    "weights": (
        model(
            [helper.make_node("Conv", ["x", "w"], ["y"])],
            [("x", (1, 4, 3, 3)), ("w", (2, 4, 1, 1))], [("y", [None] * 4)],
        ),
        UnsupportedModelError,
        "node 0 (Conv) writing 'y': the filter 'w' must be constant",
    ),
    "bomb": (
        model(
            [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])],
            [("x", (1,))], [("y", [None] * 2)], {"s": np.array([1 << 20, 1 << 20])},
        ),
        UnsupportedModelError,
        "makes a constant of more than",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mistakes(name: str) -> None:
    data, kind, words = CASES[name]
    with pytest.raises(kind) as caught:
        parse_onnx(data, "net", "net.onnx")
    assert words in str(caught.value)
    assert str(caught.value).startswith("net.onnx: ")
    assert "\n" not in str(caught.value)


SMALL = small_network()


@settings(max_examples=examples(600), deadline=None, derandomize=True)
@given(st.integers(0, len(SMALL) - 1), st.integers(0, 255))
def test_a_damaged_byte_never_makes_a_traceback(position: int, value: int) -> None:
    data = bytearray(SMALL)
    data[position] = value
    try:
        parse_onnx(bytes(data), "net", "net.onnx")
    except (InputFileError, UnsupportedModelError) as error:
        lines = str(error).count("\n")
    else:
        lines = 0
    assert lines == 0
