"""Damaged ONNX models: parts of a sound one that contradict each other, in its protocol buffers, or damaged bytes."""

import contextlib
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, numpy_helper

NUMBERS = (0, -1, 1, 2, 7, 1 << 20, 1 << 31, 1 << 40, -(1 << 62), (1 << 63) - 1)
OPERATORS = (
    "ArgMax", "AveragePool", "BatchNormalization", "BitCast", "CenterCropPad", "Col2Im", "Compress", "Concat",
    "ConvInteger", "ConvTranspose", "CumSum", "DFT", "DeformConv", "DequantizeLinear", "Det", "Dropout",
    "DynamicQuantizeLinear", "Einsum", "Expand", "EyeLike", "GRU", "Gather", "GatherElements", "GatherND",
    "GridSample", "GroupNormalization", "Hardmax", "LRN", "LSTM", "LayerNormalization", "LpPool", "MatMul",
    "MatMulInteger", "Max", "MaxPool", "MaxUnpool", "Mod", "NonMaxSuppression", "OneHot", "Pad", "Pow", "QLinearConv",
    "QuantizeLinear", "RNN", "ReduceL2", "ReduceMax", "ReduceProd", "Resize", "ReverseSequence", "RoiAlign",
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
    elif one.type == AttributeProto.FLOATS and one.floats:
        one.floats[random.randrange(len(one.floats))] = random.choice([0.0, -1e30, float("nan"), float("inf")])
    elif one.type == AttributeProto.STRINGS and one.strings:
        one.strings[random.randrange(len(one.strings))] = random.choice([b"LEAF", b"BRANCH_GT", b"BRANCH_EQ", b"x"])


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


def result(random: Random, made: ModelProto) -> None:
    """What an output is declared as."""
    tensor = random.choice(made.graph.output).type.tensor_type
    if tensor.shape.dim and random.random() < 0.8:
        random.choice(tensor.shape.dim).dim_value = random.choice(NUMBERS)
    else:
        tensor.shape.dim.add().dim_value = 1


def name(random: Random, made: ModelProto) -> None:
    """Another name of a tensor everywhere, perhaps one that another tensor has in another case."""
    names = [each.name for each in (*made.graph.input, *made.graph.output)]
    old = random.choice(names)
    new = random.choice(["", "\x1b[2J", "\u202e", "a" * 3000, old.upper(), random.choice(names), "int", "a.b"])
    for each in (*made.graph.input, *made.graph.output):
        each.name = new if each.name == old else each.name
    for node in made.graph.node:
        node.input[:] = [new if each == old else each for each in node.input]
        node.output[:] = [new if each == old else each for each in node.output]


DAMAGES: tuple[Callable[[Random, ModelProto], None], ...] = (
    attribute, values, shape_and_type, connection, fewer_inputs, operator, port, result, name
)  # fmt: skip


def damaged_bytes(random: Random, sound: bytes) -> bytes:
    data = bytearray(sound)
    for _ in range(random.choice([1, 2, 20])):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data[: random.choice([len(data), random.randrange(len(data))])])


def damaged_model(random: Random, sound: bytes) -> bytes:
    """Return ``sound``, the bytes of a model, with one thing wrong, or some; one that has no such thing stays."""
    if random.random() < 0.2:
        return damaged_bytes(random, sound)
    made = onnx.load_from_string(sound)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        with contextlib.suppress(IndexError, ValueError):  # nothing to choose from, or an empty array
            random.choice(DAMAGES)(random, made)
    return bytes(made.SerializeToString())
