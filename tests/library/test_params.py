"""``.params`` files: exactly TVM's bytes, and errors for invalid files."""

import contextlib
import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.library import CHUNK, LazyBytes
from mlfbuild.library.params import ParamInfo, load_params, param_infos, save_params
from support.errors import raises
from support.steps import assert_linear

# {"p0": float32[1,2] = [2, 4]}, saved by TVM 0.14.
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


def test_large_files_equal_their_bytes() -> None:
    # Two arrays whose ends are no multiples of the pieces in which files are read.
    content = save_params({name: np.full(CHUNK + 3, 7, np.int8) for name in ("a", "b")})
    assert content == bytes(content)
    assert bytes(content) == content
    assert content != bytes(len(content))


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "float16", "float64"]
)
def test_each_type_is_saved_and_loaded(dtype: str) -> None:
    value = np.array([[0, 1], [1, 1]], dtype=dtype)
    params = load_params(save_params({"p": value}))
    assert params["p"].dtype == value.dtype and params["p"].tolist() == value.tolist()
    assert params.info("p") == ParamInfo(dtype, (2, 2), value.nbytes)


@pytest.mark.parametrize(
    ("name", "code", "bits"),
    [
        ("bfloat16", 4, 16), ("int4", 0, 4), ("uint4", 1, 4), ("int2", 0, 2), ("uint2", 1, 2),
        ("float8_e4m3fn", 6, 8), ("float8_e5m2", 7, 8), ("float8_e4m3", 8, 8), ("float8_e4m3b11fnuz", 9, 8),
        ("float8_e4m3fnuz", 11, 8), ("float8_e5m2fnuz", 13, 8), ("float8_e8m0fnu", 14, 8), ("float4_e2m1fn", 17, 4),
        ("float6_e2m3fn", 15, 6), ("float6_e3m2fn", 16, 6),
    ],
)  # fmt: skip
def test_types_that_numpy_lacks(name: str, code: int, bits: int) -> None:
    value = np.array([[1, 0.5], [1, 1]]).astype(getattr(ml_dtypes, name))
    data = save_params({"p": value})
    assert bytes(data)[41 + 28 : 41 + 32] == struct.pack("<BBH", code, bits, 1)
    assert len(data) == 41 + 32 + 16 + 8 + value.nbytes, "less than a byte takes a byte, as TVM saves it"
    loaded = load_params(data)
    assert loaded["p"].dtype == value.dtype and loaded["p"].tobytes() == value.tobytes()
    assert loaded.info("p") == ParamInfo(name, (2, 2), value.nbytes)


def test_codes_of_float8_agree_with_tvm() -> None:
    value = np.array([1, -448], ml_dtypes.float8_e4m3fn)
    data = bytearray(bytes(save_params({"p": value})))
    data[41 + 28] = 10
    loaded = load_params(bytes(data))
    assert loaded["p"].dtype == value.dtype and loaded["p"].astype(float).tolist() == [1, -448]
    assert save_params(loaded) == bytes(data), "a file read and written again has the same bytes"
    assert bytes(save_params(dict(loaded)))[41 + 28] == 6


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
def test_saved_parameters_are_loaded_in_the_same_order(params: dict[str, np.ndarray]) -> None:
    data = save_params(params)
    loaded = load_params(data)
    assert list(loaded) == list(params)
    assert all(loaded[name].tobytes() == value.tobytes() for name, value in params.items())
    assert save_params(loaded) == data


class Counted(LazyBytes):
    """Bytes that count how many were read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.count = data, 0

    def __len__(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        self.count += len(self.data[offset : offset + size])
        return self.data[offset : offset + size]


def test_arrays_are_read_on_access() -> None:
    arrays = {name: np.arange(100_000, dtype=np.int32) for name in "abc"}
    content = Counted(bytes(save_params(arrays)))
    params = load_params(content)
    assert param_infos(params)["b"] == ParamInfo("int32", (100_000,), 400_000)
    assert content.count < 20_000
    assert params["b"].tolist() == arrays["b"].tolist()
    assert content.count < 420_000
    assert save_params(params) is content


LARGE = {
    "fortran": np.asfortranarray(np.arange(600_000, dtype=np.int32).reshape(3, 200_000)),
    "swapped": np.arange(300_001, dtype=">i8"),
    "plain": np.arange(3_000_000, dtype=np.uint8),
    "half": np.arange(70_000).astype(ml_dtypes.bfloat16).reshape(700, 100).T,
}


def test_large_files_are_produced_in_chunks() -> None:
    data = save_params(LARGE)
    assert isinstance(data, LazyBytes)
    whole = b"".join(data.chunks())
    assert max(len(chunk) for chunk in data.chunks()) <= CHUNK
    assert whole == bytes(data) and len(whole) == len(data)
    for offset, size in ((0, 100), (50, 3_000_000), (2_400_001, 13), (2_399_999, 2_400_300), (len(data) - 3, 10)):
        assert data.read(offset, size) == whole[offset : offset + size]
    loaded = load_params(data)
    assert all(loaded[name].tolist() == value.tolist() for name, value in LARGE.items())


def test_writing_does_not_copy_arrays() -> None:
    value = np.zeros(64 << 20, np.uint8)
    tracemalloc.start()
    size = sum(len(chunk) for chunk in save_params({"p": value}).chunks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > value.nbytes and peak < 8 << 20


@pytest.mark.parametrize(
    ("params", "code", "place"),
    [
        ({"p": np.zeros(1, np.complex64)}, "parameter-dtype-unsupported", "parameter 'p'"),
        ({"p": np.array(["x"])}, "parameter-dtype-unsupported", "parameter 'p'"),
        ({"p": np.zeros(1, object)}, "parameter-dtype-unsupported", "parameter 'p'"),
        ({"p": np.zeros(1, "M8[s]")}, "parameter-dtype-unsupported", "parameter 'p'"),
        ({"\ud800": np.zeros(1, np.int8)}, "parameter-name-invalid", "parameter '\\ud800'"),
    ],
)
def test_parameters_that_the_format_cannot_hold_are_refused(
    params: dict[str, np.ndarray], code: str, place: str
) -> None:
    with raises(UsageError, code, at=place):
        save_params(params)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="numpy 1 has 32 dimensions itself")
def test_too_many_dimensions_are_refused() -> None:
    with raises(UsageError, "parameter-rank-too-high", at="parameter 'p'"):
        save_params({"p": np.zeros((1,) * 33, np.int8)})


def edited(offset: int, data: bytes) -> bytes:
    return TVM_BYTES[:offset] + data + TVM_BYTES[offset + len(data) :]


BROKEN = {
    "empty": (b"", "params-truncated"),
    "cut in the data": (TVM_BYTES[:-1], "params-truncated"),
    "trailing byte": (TVM_BYTES + b"\0", "params-bytes-left"),
    "other list magic": (edited(0, b"\0"), "params-magic-wrong"),
    "other array magic": (edited(42, b"\0"), "params-magic-wrong"),
    "2^63 names": (edited(16, struct.pack("<Q", 1 << 63)), "params-count-wrong"),
    "2^63 letters": (edited(24, struct.pack("<Q", 1 << 63)), "params-truncated"),
    "more arrays than names": (edited(34, struct.pack("<Q", 2)), "params-count-wrong"),
    "name of bad UTF-8": (edited(32, b"\xff\xff"), "params-name-invalid"),
    "on a GPU": (edited(58, struct.pack("<i", 2)), "params-device-unsupported"),
    "-1 dimensions": (edited(66, struct.pack("<i", -1)), "params-rank-invalid"),
    "a billion dimensions": (edited(66, struct.pack("<i", 10**9)), "params-rank-invalid"),
    "handle": (edited(70, bytes([3, 64])), "params-type-unsupported"),
    "int4 of half a byte": (edited(70, bytes([0, 4])), "params-size-wrong"),
    "int3": (edited(70, bytes([0, 3])), "params-type-unsupported"),
    "int128": (edited(70, bytes([0, 128])), "params-type-unsupported"),
    "float80": (edited(70, bytes([2, 80])), "params-type-unsupported"),
    "complex64": (edited(70, bytes([5, 64])), "params-type-unsupported"),
    "custom type": (edited(70, bytes([129, 32])), "params-type-unsupported"),
    "no lanes": (edited(72, struct.pack("<H", 0)), "params-type-unsupported"),
    "vectors": (edited(72, struct.pack("<H", 4)), "params-type-unsupported"),
    "negative shape": (edited(74, struct.pack("<qq", -1, -2)), "params-size-wrong"),
    "overflowing shape": (edited(74, struct.pack("<qq", 1 << 62, 1 << 62)), "params-size-wrong"),
    "empty and larger than any array": (edited(74, struct.pack("<qqq", 1 << 62, 0, 0))[:98], "params-size-wrong"),
    "2^63 - 1 bytes": (edited(74, struct.pack("<qqq", 1, (1 << 61) - 1, (1 << 63) - 4)), "params-truncated"),
    "lying size": (edited(90, struct.pack("<q", -1)), "params-size-wrong"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_files_are_refused(name: str) -> None:
    data, code = BROKEN[name]
    with raises(InputFileError, code, at="kws.tar: parameters/kws.params") as caught:
        load_params(data, "kws.tar: parameters/kws.params")
    assert str(caught.value).isprintable()


def test_name_that_occurs_twice_is_refused() -> None:
    one = bytes(save_params({"a": np.zeros(1, np.int8), "b": np.zeros(1, np.int8)}))
    with raises(InputFileError, "params-name-twice"):
        load_params(one.replace(b"b", b"a", 1))


def test_long_name_is_shortened_in_error() -> None:
    data = bytes(save_params({"x" * 5000: np.zeros(1, np.int8)}))
    with pytest.raises(InputFileError) as caught:
        load_params(data[:-1])
    assert caught.value.code == "params-truncated" and len(str(caught.value)) < 300
    broken = bytearray(data)
    broken[5040] ^= 1
    with pytest.raises(InputFileError) as caught:
        load_params(bytes(broken))
    assert caught.value.code == "params-magic-wrong" and len(str(caught.value)) < 300


def test_a_file_with_many_names_is_checked_in_linear_time() -> None:
    def check(names: int) -> None:
        lengths = struct.pack("<Q", 0) * names
        data = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, names) + lengths + struct.pack("<Q", names)
        with raises(InputFileError, "params-name-twice"):
            load_params(data)

    assert_linear(check, 10_000)


@given(st.data())
def test_mutated_bytes_never_crash(data: st.DataObject) -> None:
    sound = save_params({"weights": np.arange(8, dtype=np.int16), "bias": np.ones((2, 2), np.float32)})
    mutated = bytearray(bytes(sound))
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputFileError):
        dict(load_params(bytes(mutated[: data.draw(st.integers(0, len(mutated)))])))
