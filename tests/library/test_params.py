"""``.params`` files: TVM's bytes exactly, and one clear line for bytes that are not."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mlfbuild.errors import InputFileError
from mlfbuild.library.params import load_params, save_params

# {"p0": float32[1,2] = [2, 4]} as TVM 0.14 saved it.
TVM_BYTES = bytes.fromhex(
    "b79c04054f8de5f70000000000000000 01000000000000000200000000000000"
    "7030010000000000 00003fa1b496f0405edd00000000000000000100000000000000"
    "0200000002200100 0100000000000000 0200000000000000 0800000000000000 0000004000008040"
)
EMPTY_BYTES = bytes.fromhex("b79c04054f8de5f7") + bytes(24)


def test_saves_the_bytes_that_tvm_saves() -> None:
    assert len(TVM_BYTES) == 106
    assert save_params({"p0": np.array([[2.0, 4.0]], dtype=np.float32)}) == TVM_BYTES


def test_loads_the_bytes_that_tvm_saves() -> None:
    params = load_params(TVM_BYTES)
    assert list(params) == ["p0"]
    assert params["p0"].dtype == np.float32 and params["p0"].shape == (1, 2)
    assert params["p0"].tolist() == [[2.0, 4.0]]
    assert not params["p0"].flags.writeable


def test_no_parameters_take_32_bytes() -> None:
    assert save_params({}) == EMPTY_BYTES
    assert load_params(EMPTY_BYTES) == {}


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "float16", "float64"]
)
def test_each_type_survives(dtype: str) -> None:
    value = np.array([[0, 1], [1, 1]], dtype=dtype)
    loaded = load_params(save_params({"p": value}))["p"]
    assert loaded.dtype == value.dtype and loaded.tolist() == value.tolist()


def test_big_endian_strided_and_scalar_arrays_are_saved_by_value() -> None:
    params = {
        "swapped": np.array([1, 2], dtype=">i4"),
        "transposed": np.arange(6, dtype=np.int8).reshape(2, 3).T,
        "scalar": np.array(7, dtype=np.int16),
        "nothing": np.zeros((0, 3), dtype=np.float32),
    }
    loaded = load_params(save_params(params))
    for name, value in params.items():
        assert loaded[name].shape == value.shape and loaded[name].tolist() == value.tolist()


@given(
    st.dictionaries(
        st.text(max_size=8),
        hnp.arrays(
            dtype=st.sampled_from([np.int8, np.int32, np.float32, np.bool_]),
            shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=4,
    )
)
def test_what_is_saved_is_loaded_in_the_same_order(params: dict[str, np.ndarray]) -> None:
    data = save_params(params)
    loaded = load_params(data)
    assert list(loaded) == list(params)
    assert all(loaded[name].tobytes() == value.tobytes() for name, value in params.items())
    assert save_params(loaded) == data


def test_a_type_that_the_format_lacks_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match=r"'p': the \.params format has no dtype complex64"):
        save_params({"p": np.zeros(1, dtype=np.complex64)})


def edited(offset: int, data: bytes) -> bytes:
    return TVM_BYTES[:offset] + data + TVM_BYTES[offset + len(data) :]


BROKEN = {
    "empty": (b"", "it ends early"),
    "cut in the data": (TVM_BYTES[:-1], r"it ends early \(1 bytes missing\)"),
    "trailing byte": (TVM_BYTES + b"\0", "1 bytes are left over"),
    "other list magic": (edited(0, b"\0"), "a parameter list does not begin with its magic number"),
    "other array magic": (edited(42, b"\0"), "the array 'p0' does not begin with its magic number"),
    "2^63 names": (edited(16, struct.pack("<Q", 1 << 63)), "it claims 9223372036854775808 names"),
    "2^63 letters": (edited(24, struct.pack("<Q", 1 << 63)), "it ends early"),
    "more arrays than names": (edited(34, struct.pack("<Q", 2)), "the numbers of names and of arrays differ"),
    "name of bad UTF-8": (edited(32, b"\xff\xff"), "a name is not UTF-8"),
    "on a GPU": (edited(58, struct.pack("<i", 2)), "lies on device 2"),
    "-1 dimensions": (edited(66, struct.pack("<i", -1)), "has -1 dimensions"),
    "a billion dimensions": (edited(66, struct.pack("<i", 10**9)), "has 1000000000 dimensions"),
    "bfloat16": (edited(70, bytes([4, 16])), "unsupported type bfloat16"),
    "int4": (edited(70, bytes([0, 4])), "unsupported type int4"),
    "vectors": (edited(72, struct.pack("<H", 4)), "unsupported type float32x4"),
    "negative shape": (edited(74, struct.pack("<qq", -1, -2)), "declares 8 bytes for"),
    "overflowing shape": (edited(74, struct.pack("<qq", 1 << 62, 1 << 62)), "declares 8 bytes for"),
    "lying size": (edited(90, struct.pack("<q", -1)), "declares -1 bytes for"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_bytes_give_one_clear_line(name: str) -> None:
    data, reason = BROKEN[name]
    with pytest.raises(InputFileError, match=reason) as caught:
        load_params(data, "kws.tar: parameters/kws.params")
    message = str(caught.value)
    assert message.startswith("kws.tar: parameters/kws.params: not a sound parameter file: ")
    assert "\n" not in message


def test_a_name_that_stands_twice() -> None:
    one = save_params({"a": np.zeros(1, np.int8), "b": np.zeros(1, np.int8)})
    with pytest.raises(InputFileError, match="a name stands twice"):
        load_params(one.replace(b"b", b"a", 1))


@given(st.data())
def test_mutated_bytes_never_crash(data: st.DataObject) -> None:
    sound = save_params({"weights": np.arange(8, dtype=np.int16), "bias": np.ones((2, 2), np.float32)})
    mutated = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputFileError):
        load_params(bytes(mutated[: data.draw(st.integers(0, len(mutated)))]))
