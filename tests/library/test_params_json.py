"""Parameters as JSON and BSON: every bit survives, and what does not fit is refused in one line."""

from __future__ import annotations

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


def assert_same(left: Params, right: Params) -> None:
    assert list(left) == list(right)
    for name, value in right.items():
        assert (left[name].dtype, left[name].shape) == (value.dtype, value.shape)
        assert left[name].tobytes() == value.tobytes()


def test_the_text() -> None:
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
def test_what_is_saved_is_loaded(params: dict[str, np.ndarray]) -> None:
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


def test_a_type_that_the_format_lacks() -> None:
    with pytest.raises(UsageError, match="parameter 'p': has no dtype complex64; convert it to one of"):
        save_params_json({"p": np.zeros(1, np.complex64)})


def entry(dtype: object = "int8", shape: object = (1,), data: object = (1,)) -> bytes:
    return json.dumps({"p": {"dtype": dtype, "shape": shape, "data": data}}).encode()


BROKEN = {
    "no JSON": (b"{", "not sound JSON"),
    "list": (b"[]", "must be an object of parameters by name"),
    "number": (b'{"p": 1}', "parameter 'p': must be an object with dtype, shape and data"),
    "no data": (b'{"p": {"dtype": "int8", "shape": []}}', "must be an object with dtype, shape and data"),
    "more": (b'{"p": {"dtype": "int8", "shape": [], "data": [1], "x": 1}}', "and nothing else"),
    "unknown type": (entry("int3"), "has the unsupported type 'int3'"),
    "handle": (entry("handle"), "has the unsupported type 'handle'"),
    "lanes": (entry("float32x4"), "has the unsupported type 'float32x4'"),
    "type of no text": (entry(1), "has the unsupported type int"),
    "shape of no list": (entry(shape=1), "shape must be a list of at most 32 numbers"),
    "33 dimensions": (entry(shape=[1] * 33), "shape must be a list of at most 32 numbers"),
    "negative shape": (entry(shape=[-1]), "shape must have whole numbers of at least 0"),
    "shape of bools": (entry(shape=[True]), "shape must have whole numbers of at least 0"),
    "huge shape": (entry(shape=[2**62, 2**62, 0], data=[]), "shape is larger than any array"),
    "lying shape": (entry(shape=[2**60 - 1]), r"data has 1 elements for the shape \[1152921504606846975\]"),
    "data of no list": (entry(data=1), "data must be a list"),
    "nested otherwise": (entry(shape=[2, 2], data=[[1], [2, 3, 4]]), r"data does not have the shape \[2, 2\]"),
    "nested too deeply": (entry(data=[[1]]), "data must have whole numbers from -128 to 127"),
    "128": (entry(data=[128]), "data must have whole numbers from -128 to 127"),
    "fraction": (entry(data=[1.0]), "data must have whole numbers"),
    "bool for a number": (entry(data=[True]), "data must have whole numbers"),
    "negative": (entry("uint64", data=[-1]), "data must have whole numbers from 0 to 18446744073709551615"),
    "number for a bool": (entry("bool", data=[1]), "data must have true and false"),
    "bool for a float": (entry("float32", data=[True]), "data must have numbers that float32 holds"),
    "1e39": (entry("float32", data=[1e39]), "data must have numbers that float32 holds"),
    "1e999": (entry("float64").replace(b"[1]}", b"[1e999]}"), "data must have numbers that float64 holds"),
    "whole 1e400": (entry("float64", data=[10**400]), "data must have numbers that float64 holds"),
    "word": (entry("float32", data=["one"]), "data must have numbers that float32 holds"),
    "too many bits": (entry("float16", data=["0x10000"]), "data must have numbers that float16 holds"),
    "what e8m0 lacks": (entry("float8_e8m0fnu", data=[-1.0]), "data has values that float8_e8m0fnu cannot hold"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_give_one_clear_line(name: str) -> None:
    data, reason = BROKEN[name]
    with pytest.raises(InputFileError, match=reason) as caught:
        load_params_json(data, "kws.tar: parameters/kws.json")
    assert str(caught.value).startswith("kws.tar: parameters/kws.json: ") and str(caught.value).isprintable()


def test_a_large_file_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(params_json, "MAX_JSON", 1 << 20)
    with pytest.raises(InputFileError, match=r"p\.json: is larger than 1 MiB, refused; export the parameters as"):
        load_params_json(b" " * ((1 << 20) + 1), "p.json")


VALUES = st.sampled_from([None, True, -1, 10**30, 1.5, "", "0xff", "NaN", [], [None], [[1]], {}, "int8", "float32"])


@given(st.fixed_dictionaries({"dtype": VALUES, "shape": VALUES, "data": VALUES | st.lists(VALUES, max_size=3)}))
def test_no_entry_crashes(value: dict[str, object]) -> None:
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
    ("document", "reason"),
    [
        ({"p": {"dtype": "float32", "shape": [2], "data": b"1234"}}, r"data has 4 bytes for float32\[2\]"),
        ({"p": 1}, "parameter 'p': must be an object"),
    ],
)
def test_bson_that_lies(encode, document: dict[str, object], reason: str) -> None:
    with pytest.raises(InputFileError, match=reason):
        load_params_bson(encode(document), "p.bson")


def test_damaged_bson(encode) -> None:
    sound = encode({"p": {"dtype": "int8", "shape": [1], "data": b"1"}})
    for data in (b"", sound[:-1], sound + b"x", b"\xff" * 40):
        with pytest.raises(InputFileError, match=r"^p\.bson: not sound BSON: .*; export it again$"):
            load_params_bson(data, "p.bson")


@given(st.data())
def test_mutated_bson_never_crashes(data: st.DataObject) -> None:
    encode = pytest.importorskip("bson").encode
    mutated = bytearray(encode({"p": {"dtype": "int8", "shape": [2], "data": b"12"}, "q": {"x": [1, "y", None]}}))
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputFileError):
        load_params_bson(bytes(mutated), "p.bson")


def test_without_the_package_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bson", None)
    with pytest.raises(ToolNotFoundError, match=r"p\.bson: reading BSON .*; pip install mlfbuild\[bson\]"):
        load_params_bson(b"", "p.bson")
