"""Parameters as JSON and BSON: all bits are preserved, and invalid files are refused."""

import contextlib
import json
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from mlfbuild.core.errors import InputFileError, ToolNotFoundError, UsageError
from mlfbuild.library import params_json
from mlfbuild.library.numpy_types import dtype_called
from mlfbuild.library.params import Params
from mlfbuild.library.params_json import load_params_bson, load_params_json, save_params_json
from support.errors import raises


def assert_same(left: Params, right: Params) -> None:
    assert list(left) == list(right)
    for name, value in right.items():
        assert (left[name].dtype, left[name].shape) == (value.dtype, value.shape)
        assert left[name].tobytes() == value.tobytes()


def test_text_of_parameters() -> None:
    params = {"p0": np.array([[2.0, 0.1]], np.float32), "é": np.array(True), "none": np.zeros((0, 3), np.int8)}
    assert save_params_json(params).decode() == (
        '{\n"p0": {"dtype": "float32", "shape": [1, 2], "data": [2.0, 0.10000000149011612]},\n'
        '"\\u00e9": {"dtype": "bool", "shape": [], "data": [true]},\n'
        '"none": {"dtype": "int8", "shape": [0, 3], "data": []}\n}\n'
    )
    assert_same(load_params_json(save_params_json(params), "p.json"), params)


def test_no_parameters() -> None:
    assert save_params_json({}) == b"{}\n"
    assert load_params_json(b"{}", "p.json") == {}


def test_special_floats_keep_their_bits() -> None:
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800000, 0xFF800000, 0x80000000, 1], np.uint32)
    text = save_params_json({"p": bits.view(np.float32)})
    assert json.loads(text)["p"]["data"] == [
        "NaN", "0xffc00000", "0x7fc00001", "Infinity", "-Infinity", -0.0, 1.401298464324817e-45,
    ]  # fmt: skip
    assert load_params_json(text, "p.json")["p"].view(np.uint32).tolist() == bits.tolist()


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_large_integers_are_exact(dtype: str) -> None:
    limits = np.iinfo(dtype)
    value = np.array([limits.min, limits.max, limits.max - 1], dtype)
    assert str(limits.max - 1) in save_params_json({"p": value}).decode()
    assert_same(load_params_json(save_params_json({"p": value}), "p.json"), {"p": value})


@pytest.mark.parametrize(
    "name",
    ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
     "float8_e4m3b11fnuz", "float8_e4m3", "int8", "uint8"],
)  # fmt: skip
def test_every_value_of_a_small_type(name: str) -> None:
    dtype = dtype_called(name)
    value = np.arange(1 << 8 * dtype.itemsize, dtype=f"<u{dtype.itemsize}").view(dtype)
    assert_same(load_params_json(save_params_json({"p": value}), "p.json"), {"p": value})


@pytest.mark.parametrize(("name", "bits"), [("int4", 4), ("uint4", 4), ("int2", 2), ("uint2", 2), ("float4_e2m1fn", 4)])
def test_every_value_of_less_than_a_byte(name: str, bits: int) -> None:
    value = np.arange(1 << bits, dtype=np.uint8).view(getattr(ml_dtypes, name))
    assert_same(load_params_json(save_params_json({"p": value}), "p.json"), {"p": value})


@given(
    st.dictionaries(
        st.text(max_size=8),
        hnp.arrays(
            dtype=st.sampled_from([np.int8, np.uint64, np.float16, np.float32, np.float64, np.bool_]),
            shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=4,
    )
)
def test_saved_parameters_are_loaded(params: dict[str, np.ndarray]) -> None:
    assert_same(load_params_json(save_params_json(params), "p.json"), params)


def test_big_endian_and_strided_arrays_are_saved_by_value() -> None:
    swapped, strided = np.array([1.5, np.nan], ">f4"), np.arange(6, dtype=np.int16).reshape(2, 3).T
    loaded = load_params_json(save_params_json({"a": swapped, "b": strided}), "p.json")
    assert loaded["a"].tobytes() == swapped.astype("<f4").tobytes()
    assert loaded["b"].tolist() == strided.tolist()


def test_nested_data_is_read() -> None:
    text = b'{"p": {"shape": [2, 1, 2], "dtype": "int8", "data": [[[1, 2]], [[3, 4]]]}}'
    value = load_params_json(text, "p.json")["p"]
    assert value.tolist() == [[[1, 2]], [[3, 4]]] and value.dtype == np.int8
    assert not value.flags.writeable


def test_an_unsupported_type_is_refused() -> None:
    with raises(UsageError, "parameter-dtype-unsupported", at="parameter 'p'"):
        save_params_json({"p": np.zeros(1, np.complex64)})


def entry(dtype: object = "int8", shape: object = (1,), data: object = (1,)) -> bytes:
    return json.dumps({"p": {"dtype": dtype, "shape": shape, "data": data}}).encode()


BROKEN = {
    "no JSON": (b"{", "json-invalid", ""),
    "list": (b"[]", "json-type-wrong", ""),
    "number": (b'{"p": 1}', "parameter-members-wrong", ": parameter 'p'"),
    "no data": (b'{"p": {"dtype": "int8", "shape": []}}', "parameter-members-wrong", ": parameter 'p'"),
    "more": (b'{"p": {"dtype": "int8", "shape": [], "data": [1], "x": 1}}', "parameter-members-wrong",
     ": parameter 'p'"),
    "unknown type": (entry("int3"), "parameter-type-unsupported", ": parameter 'p'"),
    "handle": (entry("handle"), "parameter-type-unsupported", ": parameter 'p'"),
    "lanes": (entry("float32x4"), "parameter-type-unsupported", ": parameter 'p'"),
    "type of no text": (entry(1), "parameter-type-unsupported", ": parameter 'p'"),
    "shape of no list": (entry(shape=1), "parameter-shape-invalid", ": parameter 'p'"),
    "33 dimensions": (entry(shape=[1] * 33), "parameter-shape-invalid", ": parameter 'p'"),
    "negative shape": (entry(shape=[-1]), "parameter-shape-invalid", ": parameter 'p'"),
    "shape of bools": (entry(shape=[True]), "parameter-shape-invalid", ": parameter 'p'"),
    "huge shape": (entry(shape=[2**62, 2**62, 0], data=[]), "parameter-shape-invalid", ": parameter 'p'"),
    "lying shape": (entry(shape=[2**60 - 1]), "parameter-data-invalid", ": parameter 'p'"),
    "data of no list": (entry(data=1), "parameter-data-invalid", ": parameter 'p'"),
    "nested otherwise": (entry(shape=[2, 2], data=[[1], [2, 3, 4]]), "parameter-data-invalid", ": parameter 'p'"),
    "nested too deeply": (entry(data=[[1]]), "parameter-data-invalid", ": parameter 'p'"),
    "128": (entry(data=[128]), "parameter-data-invalid", ": parameter 'p'"),
    "fraction": (entry(data=[1.0]), "parameter-data-invalid", ": parameter 'p'"),
    "bool for a number": (entry(data=[True]), "parameter-data-invalid", ": parameter 'p'"),
    "negative": (entry("uint64", data=[-1]), "parameter-data-invalid", ": parameter 'p'"),
    "number for a bool": (entry("bool", data=[1]), "parameter-data-invalid", ": parameter 'p'"),
    "bool for a float": (entry("float32", data=[True]), "parameter-data-invalid", ": parameter 'p'"),
    "1e39": (entry("float32", data=[1e39]), "parameter-data-invalid", ": parameter 'p'"),
    "1e999": (entry("float64").replace(b"[1]}", b"[1e999]}"), "parameter-data-invalid", ": parameter 'p'"),
    "whole 1e400": (entry("float64", data=[10**400]), "parameter-data-invalid", ": parameter 'p'"),
    "word": (entry("float32", data=["one"]), "parameter-data-invalid", ": parameter 'p'"),
    "too many bits": (entry("float16", data=["0x10000"]), "parameter-data-invalid", ": parameter 'p'"),
    "what e8m0 lacks": (entry("float8_e8m0fnu", data=[-1.0]), "parameter-data-invalid", ": parameter 'p'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_files_are_refused(name: str) -> None:
    data, code, parameter = BROKEN[name]
    with raises(InputFileError, code, at=f"kws.tar: parameters/kws.json{parameter}") as caught:
        load_params_json(data, "kws.tar: parameters/kws.json")
    assert str(caught.value).isprintable()


def test_large_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(params_json, "MAX_JSON", 1 << 20)
    with raises(InputFileError, "params-text-too-large", at="p.json"):
        load_params_json(b" " * ((1 << 20) + 1), "p.json")


VALUES = st.sampled_from([None, True, -1, 10**30, 1.5, "", "0xff", "NaN", [], [None], [[1]], {}, "int8", "float32"])


@given(st.fixed_dictionaries({"dtype": VALUES, "shape": VALUES, "data": VALUES | st.lists(VALUES, max_size=3)}))
def test_any_entry_is_read_or_refused(value: dict[str, object]) -> None:
    with contextlib.suppress(InputFileError):
        load_params_json(json.dumps({"p": value}).encode(), "p.json")


# BSON


@pytest.fixture
def encode():
    return pytest.importorskip("bson").encode


def test_bson_with_lists_and_with_bytes(encode) -> None:
    value = np.array([[1.5, -2.0]], np.float32)
    document = {
        "w": {"dtype": "float32", "shape": [1, 2], "data": value.tobytes()},
        "b": {"dtype": "int64", "shape": [2], "data": [2**62, -1]},
        "f": {"dtype": "float32", "shape": [2], "data": [0.5, float("nan")]},
    }
    loaded = load_params_bson(encode(document), "p.bson")
    assert_same(loaded, {"w": value, "b": np.array([2**62, -1]), "f": np.array([0.5, np.nan], np.float32)})
    assert not loaded["w"].flags.writeable


@pytest.mark.parametrize(
    ("document", "code", "place"),
    [
        ({"p": {"dtype": "float32", "shape": [2], "data": b"1234"}}, "parameter-data-invalid", "p.bson: parameter 'p'"),
        ({"p": 1}, "parameter-members-wrong", "p.bson: parameter 'p'"),
    ],
)
def test_contradictory_bson_is_refused(encode, document: dict[str, object], code: str, place: str) -> None:
    with raises(InputFileError, code, at=place):
        load_params_bson(encode(document), "p.bson")


def test_damaged_bson(encode) -> None:
    sound = encode({"p": {"dtype": "int8", "shape": [1], "data": b"1"}})
    for data in (b"", sound[:-1], sound + b"x", b"\xff" * 40):
        with raises(InputFileError, "bson-invalid", at="p.bson"):
            load_params_bson(data, "p.bson")


@given(st.data())
def test_mutated_bson_never_crashes(data: st.DataObject) -> None:
    encode = pytest.importorskip("bson").encode
    mutated = bytearray(encode({"p": {"dtype": "int8", "shape": [2], "data": b"12"}, "q": {"x": [1, "y", None]}}))
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputFileError):
        load_params_bson(bytes(mutated), "p.bson")


def test_the_hint_installs_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bson", None)
    with raises(ToolNotFoundError, "extra-not-installed", at="p.bson") as caught:
        load_params_bson(b"", "p.bson")
    assert caught.value.hint == "pip install 'pymongo>=4.6'"
