"""Large weights are views of the file, which changes neither results nor errors."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import given, strategies as st
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.native.frontends.onnx.reader import read_model
from mlfbuild.native.frontends.onnx.weights import without_large_weights
from support.refusals import Refusal, assert_onnx_refused

_LARGE = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


def _model(weights: list[np.ndarray]) -> onnx.ModelProto:
    names = [f"w{index}" for index in range(len(weights))]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w0"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64])],
        [numpy_helper.from_array(values, name) for name, values in zip(names, weights, strict=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.sampled_from(["f4", "i1", "u1", "i2", "i4", "i8", "?", "f2", "f8"])),
        max_size=6,
    )
)
def test_initializers_are_read_like_onnx(tensors: list[tuple[int, str]]) -> None:
    rng = np.random.default_rng(len(tensors))
    weights = [_LARGE, *(rng.integers(0, 2, size).astype(kind) for size, kind in tensors)]
    model = _model(weights)
    read = read_model(model.SerializeToString())
    for tensor in model.graph.initializer:
        expected = numpy_helper.to_array(tensor)
        if expected.dtype == np.float16:
            expected = expected.astype(np.float32)  # which computes networks of float16
        assert read.constants[tensor.name].dtype == expected.dtype
        np.testing.assert_array_equal(read.constants[tensor.name], expected)


def test_large_weights_are_not_copied() -> None:
    data = _model([_LARGE]).SerializeToString()
    small, (cut,) = without_large_weights(data)
    assert len(small) < 300
    assert cut is not None and cut.raw.obj is data
    assert np.shares_memory(read_model(data).constants["w0"], np.frombuffer(data, np.uint8))


def test_weights_that_do_not_start_at_a_multiple_of_their_size_are_read() -> None:
    for length in range(1, 9):  # the name shifts the data after it
        model = _model([_LARGE])
        model.producer_name = "p" * length
        model.graph.initializer[0].name = "w" * length
        model.graph.node[0].input[1] = "w" * length
        read = read_model(model.SerializeToString())
        np.testing.assert_array_equal(read.constants["w" * length] + 1.0, _LARGE + 1.0)


_DAMAGES: dict[str, tuple[Callable[[TensorProto], object], Refusal]] = {
    "too short": (lambda tensor: setattr(tensor, "raw_data", tensor.raw_data[:-4]),
     ("onnx-malformed", "weights 'w0'", "4095")),
    "too long": (lambda tensor: setattr(tensor, "raw_data", tensor.raw_data + bytes(4)),
     ("onnx-malformed", "weights 'w0'", "4097")),
    "uneven": (lambda tensor: setattr(tensor, "raw_data", tensor.raw_data + bytes(1)),
     ("onnx-malformed", "weights 'w0'", "buffer size")),
    "negative": (lambda tensor: tensor.dims.__setitem__(0, -1), ("onnx-malformed", "weights 'w0'", "[-1, 64]")),
    "twice": (lambda tensor: tensor.float_data.append(1.0),
     ("onnx-malformed", "the model", "one and only one value field")),
    "elsewhere": (lambda tensor: setattr(tensor, "data_location", TensorProto.EXTERNAL),
     ("onnx-malformed", "weights 'w0'", "another file")),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "refusal"), _DAMAGES.values(), ids=_DAMAGES)
def test_damaged_large_weights_are_refused(damage: Callable[[TensorProto], object], refusal: Refusal) -> None:
    model = _model([_LARGE])
    damage(model.graph.initializer[0])
    assert_onnx_refused(model.SerializeToString(), *refusal)


def test_graph_in_two_pieces_is_read_like_onnx() -> None:
    whole = _model([_LARGE])
    first, second = onnx.ModelProto(), onnx.ModelProto()
    first.CopyFrom(whole)
    del first.graph.initializer[:]
    second.graph.initializer.extend(whole.graph.initializer)
    data = first.SerializeToString() + second.SerializeToString()
    assert without_large_weights(data) == (data, [])
    np.testing.assert_array_equal(read_model(data).constants["w0"], _LARGE)


@given(st.binary(max_size=200))
def test_small_files_keep_their_meaning(data: bytes) -> None:
    small, weights = without_large_weights(data)
    assert not any(weights)
    assert small == data or _parsed(small) == _parsed(data)


def _parsed(data: bytes) -> onnx.ModelProto | None:
    try:
        return onnx.ModelProto.FromString(data)
    except Exception:  # noqa: BLE001 - whatever ONNX's reader says of both
        return None
