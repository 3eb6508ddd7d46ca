"""ONNX files with one mistake each: the error is one line with the place."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.core.errors import InputFileError
from mlfbuild.native.frontends.onnx import parse_onnx
from support.onnx_checks import changed
from support.onnx_models import model
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]
HUGE = 1 << 40


def attribute(name: str, value: object) -> Callable[[onnx.ModelProto], object]:
    """Return a change of an attribute of the first node, a Conv."""
    return lambda made: made.graph.node[0].attribute[0].CopyFrom(helper.make_attribute(name, value))


def sizes_of_weights(made: onnx.ModelProto, *sizes: int) -> None:
    del made.graph.initializer[0].dims[:]
    made.graph.initializer[0].dims.extend(sizes)


def cycle(made: onnx.ModelProto) -> None:
    made.graph.node[0].input[0] = made.graph.node[-1].output[0]


def sparse(made: onnx.ModelProto) -> None:
    weights = made.graph.sparse_initializer.add()
    weights.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "s"))
    weights.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64)))
    weights.dims.append(4)


WHOLE: dict[str, tuple[Callable[[onnx.ModelProto], object], Refusal]] = {
    "weights that lie about their size": (
        lambda made: sizes_of_weights(made, 1 << 31, 1 << 31), ("onnx-malformed", "the model", "a shape too large"),
    ),
    "weights of a negative size": (
        lambda made: sizes_of_weights(made, -1, 4), ("onnx-malformed", "the model", "(tensor name: w1)"),
    ),
    "weights twice": (
        lambda made: made.graph.initializer.append(made.graph.initializer[0]), ("onnx-malformed", "the model", "1"),
    ),
    "a name written twice": (
        lambda made: made.graph.node[1].output.__setitem__(0, "c1"),
        ("onnx-malformed", "the model", "single static assignment"),
    ),
    "an input that is written": (
        lambda made: made.graph.node[0].output.__setitem__(0, "x"),
        ("onnx-malformed", "the model", "single static assignment"),
    ),
    "an input twice": (
        lambda made: made.graph.input.append(made.graph.input[0]),
        ("onnx-malformed", "the model", "graph input names multiple times"),
    ),
    "an output of nothing": (
        lambda made: setattr(made.graph.output[0], "name", "nothing"), ("onnx-malformed", "the model", "'nothing'"),
    ),
    "no outputs": (lambda made: made.graph.ClearField("output"), ("onnx-malformed", "the model", "has no outputs")),
    "no name": (
        lambda made: setattr(made.graph.input[0], "name", ""),
        ("onnx-malformed", "the model", "'name'", "'value_info'"),
    ),
    "a cycle": (cycle, ("onnx-malformed", "the model", "must be topologically sorted")),
    "no versions": (
        lambda made: made.ClearField("opset_import"), ("onnx-malformed", "the model", "must specify opset_import"),
    ),
    "two versions": (
        lambda made: made.opset_import.add(domain="", version=9), ("onnx-malformed", "the file", "9", "21"),
    ),
    "a later format": (
        lambda made: setattr(made, "ir_version", HUGE), ("onnx-malformed", "the model", "Your model ir_version"),
    ),
    "text for numbers": (attribute("kernel_shape", "abc"), ("onnx-malformed", "the model", "'INTS'", "'STRING'")),
    "floats for integers": (
        attribute("kernel_shape", [1.5, 2.5]), ("onnx-malformed", "the model", "'INTS'", "'FLOATS'"),
    ),
    "an unknown attribute": (
        attribute("hello", 3), ("onnx-malformed", "the model", "hello for operator Conv"),
    ),
    "another filter than declared": (
        attribute("kernel_shape", [5, 5]), ("onnx-malformed", "node 0 (Conv) writing 'c1'", "[5, 5]", "[4, 3, 3, 3]"),
    ),
    "sparse weights": (sparse, ("weights-sparse", "")),
    "no shape": (
        lambda made: made.graph.input[0].type.tensor_type.ClearField("shape"),
        ("onnx-malformed", "the model", "'shape'"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_invalid_files_are_refused(kind: str) -> None:
    change, expected = WHOLE[kind]
    assert_onnx_refused(changed(change), *expected)


@pytest.mark.parametrize("version", range(1, 6))
def test_old_versions_are_refused(version: int) -> None:
    data = changed(lambda made: setattr(made.opset_import[0], "version", version))
    assert_onnx_refused(data, "onnx-malformed", "the model", "'consumed_inputs'")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1 << 20, 1 << 20), ("model-too-large", "tensor 'x'")),
        ((HUGE, HUGE), ("model-too-large", "tensor 'x'")),
        ((0, HUGE, HUGE), ("model-too-large", "tensor 'x'")),
        ((0, -3, 3), ("onnx-malformed", "tensor 'x'", "-3")),
        ((1, -3, 3), ("onnx-malformed", "tensor 'x'", "[1, -3, 3]")),
        ((1, None, 3), ("shape-dynamic", "input 'x'", "[1, ?, 3]")),
        ((1, "rows", "columns"), ("shape-dynamic", "input 'x'", "[1, rows, columns]")),
    ],
)
def test_invalid_input_sizes(shape: Sequence[int | str | None], expected: Refusal) -> None:
    assert_onnx_refused(model([helper.make_node("Relu", ["x"], ["y"])], [("x", shape)], [("y", [None])]), *expected)


@pytest.mark.parametrize("name", ["DOUBLE", "BFLOAT16", "UINT4", "STRING", "COMPLEX64", "FLOAT8E4M3FN"])
def test_unsupported_input_types(name: str) -> None:
    element = TensorProto.DataType.Value(name)
    data = model([helper.make_node("Identity", ["x"], ["y"])], [("x", (2,))], [("y", (2,))], element=element)
    assert_onnx_refused(data, "type-unsupported", "input 'x'", name)


@pytest.mark.parametrize(
    ("declared", "text"),
    [((2, 3), "[2, 3]"), ((1,), "[1]"), ((), "[]"), ((None, 4), "[?, 4]"), ((1, 3, 1), "[1, 3, 1]")],
)
def test_outputs_whose_declared_shape_is_another(declared: Sequence[int | None], text: str) -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"])], [("x", ("batch", 3))], [("y", declared)])
    assert_onnx_refused(data, "onnx-malformed", "output 'y'", f"declared {text}", "is [1, 3]")


@pytest.mark.parametrize("declared", [(1, 3), (None, 3), ("batch", "units"), (0, 3), (-1, 3)])
def test_outputs_whose_declared_shape_fits(declared: Sequence[int | str | None]) -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"])], [("x", ("batch", 3))], [("y", declared)])
    graph = parse_onnx(data, "net", "net.onnx")
    assert graph.tensor(graph.outputs[0]).shape == (1, 3)


def test_attribute_in_another_file_is_refused() -> None:
    tensor = numpy_helper.from_array(np.ones(2, np.float32))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    nodes = [helper.make_node("Constant", [], ["c"], value=tensor), helper.make_node("Add", ["x", "c"], ["y"])]
    assert_onnx_refused(model(nodes, [("x", (2,))], [("y", (2,))]), "onnx-malformed", "weights ''", "another file")


def test_endless_loop_is_refused() -> None:
    scalar, row = [helper.make_tensor_value_info("c", TensorProto.BOOL, [])], ("s", TensorProto.FLOAT, [1])
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Identity", ["s"], ["s2"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), *scalar, helper.make_tensor_value_info(*row)],
        [helper.make_tensor_value_info("c2", TensorProto.BOOL, []), helper.make_tensor_value_info("s2", *row[1:])],
    )  # fmt: skip
    data = model([helper.make_node("Loop", ["n", "t", "x"], ["y"], body=body)], [("x", (1,))], [("y", (1,))],
                 {"n": np.array(1 << 60), "t": np.array(True)})  # fmt: skip
    assert_onnx_refused(data, "expansion-too-large", "node 0 (Loop) writing 'y'", "16384")


def test_names_with_control_characters_in_words_of_onnx() -> None:
    """ONNX's own checker quotes them."""
    data = model([helper.make_node("Ad\x1b[2J\u202e", ["x"], ["y"])], [("x", (1,))], [("y", (1,))])
    with pytest.raises(InputFileError) as caught:
        parse_onnx(data, "net", "net.onnx")
    assert (caught.value.code, caught.value.reason.isprintable()) == ("onnx-malformed", True)
    assert r"Ad\x1b[2J\u202e" in caught.value.reason
