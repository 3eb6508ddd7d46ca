"""Damaged ONNX networks become a graph or a one-line error, without traceback, huge memory or endless loop."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, numpy_helper

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from support.onnx_networks import EXPORTED, quantized_network

SOUND = (*(make() for make in EXPORTED.values()), quantized_network().bytes())
NUMBERS = (0, -1, 1, 2, 7, 1 << 20, 1 << 31, 1 << 40, -(1 << 62), (1 << 63) - 1)
OPERATORS = (
    "ArgMax", "AveragePool", "CenterCropPad", "Compress", "Concat", "ConvTranspose", "CumSum", "DequantizeLinear",
    "Dropout", "Einsum", "Expand", "EyeLike", "GRU", "Gather", "GatherElements", "GatherND", "GroupNormalization",
    "Hardmax", "LRN", "LayerNormalization", "LpPool", "MatMul", "MatMulInteger", "Max", "MaxPool", "Mod", "OneHot",
    "Pad", "Pow", "QLinearConv", "QuantizeLinear", "ReduceL2", "ReduceMax", "ReduceProd", "Resize", "ReverseSequence",
    "ScatterElements", "ScatterND", "Slice", "Split", "Tile", "Trilu", "Where",
)  # fmt: skip


def attribute(random: Random, made: ModelProto) -> None:
    found = [a for node in made.graph.node for a in node.attribute]
    one = random.choice(found)
    if one.type == AttributeProto.INT:
        one.i = random.choice(NUMBERS)
    elif one.type == AttributeProto.INTS and one.ints:
        one.ints[random.randrange(len(one.ints))] = random.choice(NUMBERS)
    elif one.type == AttributeProto.FLOAT:
        one.f = random.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
    elif one.type == AttributeProto.STRING:
        one.s = random.choice([b"", b"linear", b"cubic", b"wrap"])


def values(random: Random, made: ModelProto) -> None:
    tensor = random.choice(made.graph.initializer)
    array: np.ndarray[Any, np.dtype[Any]] = numpy_helper.to_array(tensor).copy()
    choices = [0, np.nan, np.inf, -1, 1e-38, 1e30] if array.dtype.kind == "f" else NUMBERS
    array.reshape(-1)[random.randrange(array.size)] = np.array(random.choice(choices)).astype(array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def shape_and_type(random: Random, made: ModelProto) -> None:
    tensor = random.choice(made.graph.initializer)
    shape = [random.choice([1, 2, 3, 8]) for _ in range(random.randrange(4))]
    dtype = random.choice(["float32", "int64", "int8", "uint8", "int32", "bool", "float64"])
    tensor.CopyFrom(numpy_helper.from_array(np.ones(shape).astype(dtype), tensor.name))


def connection(random: Random, made: ModelProto) -> None:
    node = random.choice([node for node in made.graph.node if node.input])
    names = [name for other in made.graph.node for name in other.output]
    node.input[random.randrange(len(node.input))] = random.choice(
        [*names, *(t.name for t in made.graph.initializer), ""]
    )


def fewer_inputs(random: Random, made: ModelProto) -> None:
    node = random.choice([node for node in made.graph.node if node.input])
    del node.input[random.randrange(len(node.input)) :]


def operator(random: Random, made: ModelProto) -> None:
    random.choice(made.graph.node).op_type = random.choice(OPERATORS)


def port(random: Random, made: ModelProto) -> None:
    tensor = made.graph.input[0].type.tensor_type
    random.choice(tensor.shape.dim).dim_value = random.choice([0, 1, 2, 9, 1 << 14, 1 << 31, 1 << 40, -3])
    tensor.elem_type = random.choice([1, 2, 3, 6, 7, 9, 11])


DAMAGES: tuple[Callable[[Random, ModelProto], None], ...] = (
    attribute, values, shape_and_type, connection, fewer_inputs, operator, port
)  # fmt: skip


def outcome(data: bytes) -> str:
    try:
        parse_onnx(data, "net", "net.onnx")
    except (InputFileError, UnsupportedModelError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_networks_with_inconsistent_parts(damage: Callable[[Random, ModelProto], None]) -> None:
    """Every message is one line, and memory is not much larger than for a valid network."""
    random, lines = Random(damage.__name__), set()
    tracemalloc.start()
    for _ in range(30):
        made = onnx.load_from_string(random.choice(SOUND))
        damage(random, made)
        lines.add(outcome(made.SerializeToString()).count("\n"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == {0}
    assert peak < 256 << 20


@pytest.mark.parametrize("seed", range(4))
def test_files_with_damaged_bytes(seed: int) -> None:
    random, lines = Random(seed), set()
    for _ in range(40):
        data = bytearray(random.choice(SOUND))
        for _ in range(random.choice([1, 2, 20])):
            data[random.randrange(len(data))] = random.randrange(256)
        lines.add(outcome(bytes(data[: random.choice([len(data), random.randrange(len(data))])])).count("\n"))
    assert lines == {0}
