import pytest

from mlfbuild.library.data_type import DataType, element_size, parse_dtype, tensor_size


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("int8", DataType("int", 8)), ("uint16", DataType("uint", 16)), ("float32", DataType("float", 32)),
        ("float", DataType("float", 32)), ("bfloat16", DataType("bfloat", 16)), ("bool", DataType("uint", 1)),
        ("int4", DataType("int", 4)), ("float32x4", DataType("float", 32, 4)), ("handle", DataType("handle", 64)),
        ("custom[posites2]16", DataType("custom[posites2]", 16)), ("float8_e4m3fn", DataType("float8_e4m3fn", 8)),
        ("void", DataType("void", 0, 0)),
    ],
)  # fmt: skip
def test_types_of_tvm(name: str, expected: DataType) -> None:
    assert parse_dtype(name) == expected


@pytest.mark.parametrize("name", ["int8 ", "Int8", "int8x", "complex64", "int256", "int8x65536", "string", "int٨"])
def test_names_that_are_not_types_of_tvm(name: str) -> None:
    assert parse_dtype(name) is None
    assert element_size(name) is None
    assert tensor_size(name, (2, 3)) is None


@pytest.mark.parametrize(
    ("name", "shape", "size"),
    [
        ("int8", (2, 3), 6), ("float32", (), 4), ("bool", (3,), 3), ("int4", (3,), 3), ("int4x2", (3,), 3),
        ("int8", (0, 9), 0),
    ],
)  # fmt: skip
def test_bytes_of_a_tensor(name: str, shape: tuple[int, ...], size: int) -> None:
    assert tensor_size(name, shape) == size
