"""One ONNX file for each kind of mistake inside: whatever it asks for ends as one line that names the place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from support.onnx_checks import small_network
from support.onnx_models import model

Array = npt.NDArray[Any]
HUGE = 1 << 40


def changed(change: Callable[[onnx.ModelProto], object]) -> bytes:
    """The small network after ``change``."""
    made = onnx.load_from_string(small_network())
    change(made)
    return bytes(made.SerializeToString())


def attribute(name: str, value: object) -> Callable[[onnx.ModelProto], object]:
    """Put another value at an attribute of the first node, a Conv."""
    return lambda made: made.graph.node[0].attribute[0].CopyFrom(helper.make_attribute(name, value))


def sizes_of_weights(made: onnx.ModelProto, *sizes: int) -> None:
    del made.graph.initializer[0].dims[:]
    made.graph.initializer[0].dims.extend(sizes)


def backwards(made: onnx.ModelProto) -> None:
    nodes = list(made.graph.node)[::-1]
    del made.graph.node[:]
    made.graph.node.extend(nodes)


def function(made: onnx.ModelProto) -> None:
    body = helper.make_node("Relu", ["x"], ["y"])
    made.functions.append(helper.make_function("mine", "Mine", ["x"], ["y"], [body], [helper.make_opsetid("", 21)]))
    made.opset_import.add(domain="mine", version=1)
    made.graph.node[0].CopyFrom(helper.make_node("Mine", ["x"], ["c1"], domain="mine"))


def sparse(made: onnx.ModelProto) -> None:
    weights = made.graph.sparse_initializer.add()
    weights.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "s"))
    weights.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64)))
    weights.dims.append(4)


WHOLE: dict[str, tuple[Callable[[onnx.ModelProto], object], type[MlfError], str]] = {
    "weights that lie about their size": (
        lambda made: sizes_of_weights(made, 1 << 31, 1 << 31), InputFileError, "a shape too large",
    ),
    "weights of a negative size": (
        lambda made: sizes_of_weights(made, -1, 4), InputFileError, "Negative dimension value (tensor name: w1)",
    ),
    "weights twice": (
        lambda made: made.graph.initializer.append(made.graph.initializer[0]),
        InputFileError, "w1 initializer name is not unique",
    ),
    "a name written twice": (
        lambda made: made.graph.node[1].output.__setitem__(0, "c1"), InputFileError, "single static assignment",
    ),
    "an input that is written": (
        lambda made: made.graph.node[0].output.__setitem__(0, "x"), InputFileError, "single static assignment",
    ),
    "an input twice": (
        lambda made: made.graph.input.append(made.graph.input[0]), InputFileError, "graph input names multiple times",
    ),
    "an output of nothing": (
        lambda made: setattr(made.graph.output[0], "name", "nothing"),
        InputFileError, "Graph output 'nothing' is not an output of any node",
    ),
    "no outputs": (lambda made: made.graph.ClearField("output"), InputFileError, "the model: has no outputs"),
    "no name": (
        lambda made: setattr(made.graph.input[0], "name", ""), InputFileError, "'name' of 'value_info' is required",
    ),
    "backwards": (backwards, InputFileError, "must be topologically sorted"),
    "no versions": (lambda made: made.ClearField("opset_import"), UnsupportedModelError, "uses version 1 of ONNX's"),
    "two versions": (
        lambda made: made.opset_import.add(domain="", version=9),
        InputFileError, "the file: uses versions 9 and 21 of ONNX's operators",
    ),
    "a later format": (lambda made: setattr(made, "ir_version", HUGE), InputFileError, "Your model ir_version"),
    "text for numbers": (attribute("kernel_shape", "abc"), InputFileError, "Expected: 'INTS', actual: 'STRING'"),
    "floats for integers": (
        attribute("kernel_shape", [1.5, 2.5]), InputFileError, "Expected: 'INTS', actual: 'FLOATS'",
    ),
    "an attribute that nobody knows": (
        attribute("hello", 3), InputFileError, "Unrecognized attribute: hello for operator Conv",
    ),
    "another filter than declared": (
        attribute("kernel_shape", [5, 5]),
        InputFileError, "node 0 (Conv) writing 'c1': attribute kernel_shape is [5, 5], the filter [4, 3, 3, 3]",
    ),
    "functions": (
        function, UnsupportedModelError, "has functions of its own ('Mine'), which are not supported; write them out",
    ),
    "sparse weights": (sparse, UnsupportedModelError, "has sparse weights, which are not supported; store them dense"),
    "no shape": (
        lambda made: made.graph.input[0].type.tensor_type.ClearField("shape"), InputFileError, "Field 'shape'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_files(kind: str) -> None:
    change, error, words = WHOLE[kind]
    expect(changed(change), error, words)


def expect(data: bytes, kind: type[MlfError], words: str) -> None:
    with pytest.raises(kind) as caught:
        parse_onnx(data, "net", "net.onnx")
    assert words in str(caught.value)
    assert str(caught.value).startswith("net.onnx: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", range(1, 7))
def test_old_versions(version: int) -> None:
    data = changed(lambda made: setattr(made.opset_import[0], "version", version))
    expect(data, UnsupportedModelError, f"uses version {version} of ONNX's operators; supported are 7 and later")


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [
        ((1 << 20, 1 << 20), UnsupportedModelError, "takes more than 2 GiB"),
        ((HUGE, HUGE), UnsupportedModelError, "takes more than 2 GiB"),
        ((1, 0, 3), UnsupportedModelError, "tensor 'x' has no elements (shape [1, 0, 3])"),
        ((1, -3, 3), InputFileError, "the shape [1, -3, 3] has a negative dimension"),
        (
            (1, None, 3),
            UnsupportedModelError,
            "input 'x' has the dynamic shape [1, ?, 3]; export the model with a fixed",
        ),
        ((1, "rows", "columns"), UnsupportedModelError, "input 'x' has the dynamic shape [1, ?, ?]"),
    ],
)
def test_sizes_of_inputs(shape: Sequence[int | str | None], kind: type[MlfError], words: str) -> None:
    expect(model([helper.make_node("Relu", ["x"], ["y"])], [("x", shape)], [("y", [None])]), kind, words)


@pytest.mark.parametrize("name", ["DOUBLE", "FLOAT16", "BFLOAT16", "UINT32", "STRING", "COMPLEX64", "FLOAT8E4M3FN"])
def test_types_of_inputs(name: str) -> None:
    element = TensorProto.DataType.Value(name)
    data = model([helper.make_node("Identity", ["x"], ["y"])], [("x", (2,))], [("y", (2,))], element=element)
    expect(data, UnsupportedModelError, f"input 'x' has type {name}; supported are FLOAT, INT8")


def test_weights_in_another_file_as_an_attribute() -> None:
    tensor = numpy_helper.from_array(np.ones(2, np.float32))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    nodes = [helper.make_node("Constant", [], ["c"], value=tensor), helper.make_node("Add", ["x", "c"], ["y"])]
    expect(model(nodes, [("x", (2,))], [("y", (2,))]), InputFileError, "should be a relative path")


def test_a_loop() -> None:
    scalar, row = [helper.make_tensor_value_info("c", TensorProto.BOOL, [])], ("s", TensorProto.FLOAT, [1])
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Identity", ["s"], ["s2"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), *scalar, helper.make_tensor_value_info(*row)],
        [helper.make_tensor_value_info("c2", TensorProto.BOOL, []), helper.make_tensor_value_info("s2", *row[1:])],
    )  # fmt: skip
    data = model([helper.make_node("Loop", ["n", "t", "x"], ["y"], body=body)], [("x", (1,))], [("y", (1,))],
                 {"n": np.array(1 << 60), "t": np.array(True)})  # fmt: skip
    expect(data, UnsupportedModelError, "node 0 (Loop) writing 'y': not supported: it runs other graphs as data says")
