"""Networks of one element-wise operator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from support.drawing import ACTIVATIONS, Drawing

Shape = tuple[int, ...]


def _shapes(d: Drawing, greatest_rank: int = 5) -> tuple[Shape, Shape]:
    """Draw two shapes that broadcast: equal, with dimensions of size 1, or of lower rank."""
    shape = d.shape(1, greatest_rank)
    other = tuple(d.choice(size, 1) for size in shape)
    return d.choice((shape, shape), (shape, other), (other, shape), (shape, other[d.size(0, len(shape) - 1) :]))


def _operands(d: Drawing, affine: dict[str, Any] | None = None) -> tuple[int, int]:
    """Add two inputs whose shapes broadcast; the second may be constant."""
    first, second = _shapes(d)
    left = d.input(first, **(affine or d.affine()))
    options = affine or d.affine()
    if d.choice(True, False):
        value = d.data(second)
        return left, d.network.constant(value, options.get("scale"), options.get("zero_point", 0))
    return left, d.input(second, **options)


def _activated(name: str, least: float, greatest: float) -> Callable[[Drawing], None]:
    """Return a strategy of an arithmetic operator with an activation and an output scale within bounds."""

    def draw(d: Drawing) -> None:
        left, right = _operands(d)
        if d.dtype in {"int32", "int64"} and d.choice(True, False):
            d.values[:] = [d.random.integers(np.iinfo(d.dtype).min, np.iinfo(d.dtype).max, v.shape, d.dtype)
                           for v in d.values]  # fmt: skip
        # TensorFlow Lite Micro computes bounds outside of int16 for RELU6.
        activation = d.choice(*(("NONE", "RELU") if d.dtype == "int16" else ACTIVATIONS))
        d.network.binary(name, left, right, activation=activation, **d.affine(least, greatest))

    return draw


def _div(d: Drawing) -> None:
    """Add a quotient with scales for which the oracles' shifts of at most 31 bits suffice."""
    if d.dtype == "float32":
        _activated("DIV", 0.01, 1)(d)
        return
    shapes, affine = _shapes(d), (d.affine(0.05, 0.5), d.affine(0.05, 0.5))
    left, right = (d.input(shape, **options) for shape, options in zip(shapes, affine, strict=True))
    zero_points = [options.get("zero_point", 0) for options in affine]
    if d.dtype == "int16":
        d.values[0] = np.where(np.abs(d.values[0]) < 256, np.int16(256), d.values[0])
    beside = zero_points[1] + (1 if zero_points[1] < 0 else -1)
    d.values[1] = np.where(d.values[1] == zero_points[1], d.values[1].dtype.type(beside), d.values[1])
    result = d.affine()
    if d.quantized:
        ratio = d.draw(st.floats(64, 1000))
        result["scale"] = float(np.float32(affine[0]["scale"] / affine[1]["scale"] / ratio))
    d.network.binary("DIV", left, right, activation=d.choice(*ACTIVATIONS), **result)


def _floor(name: str) -> Callable[[Drawing], None]:
    """Return a strategy of a division by numbers other than 0, half of it without remainder."""

    def draw(d: Drawing) -> None:
        left, right = (d.input(shape) for shape in _shapes(d, greatest_rank=4))
        d.values[1] = np.where(d.values[1] == 0, d.values[1].dtype.type(3), d.values[1])
        if d.choice(True, False):
            d.values[:] = [value.round() * 3 for value in d.values]
            d.values[1] = np.where(d.values[1] == 0, d.values[1].dtype.type(3), d.values[1])
        d.network.binary(name, left, right, **d.affine())

    return draw


def _power(d: Drawing) -> None:
    """Raise positive numbers to any power, and any numbers to whole ones; LiteRT refuses negative ones for integers."""
    left, right = (d.input(shape) for shape in _shapes(d, greatest_rank=4))
    if d.dtype != "float32":
        d.values[1] = np.abs(d.values[1])
        d.network.binary("POW", left, right, **d.affine())
        return
    if d.choice(True, False):
        d.values[0] = np.abs(d.values[0])
    else:
        d.values[1] = d.values[1].round()
    d.values[0] = np.where(np.abs(d.values[0]) < 0.1, np.float32(0.5), d.values[0])
    d.network.binary("POW", left, right, **d.affine())


def _right_shift(d: Drawing) -> None:
    """Shift by -3 to 40 places."""
    left, right = (d.input(shape) for shape in _shapes(d, greatest_rank=4))
    d.values[1] = (np.abs(d.values[1]) * 5 - 3).astype(d.dtype)
    d.network.binary("RIGHT_SHIFT", left, right, **d.affine())


def _same_scale(name: str) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        affine = d.affine()
        d.network.binary(name, *_operands(d, affine), **affine)

    return draw


def _plain(name: str, least: float, greatest: float) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        d.network.binary(name, *_operands(d), **d.affine(least, greatest))

    return draw


def _unary(name: str, least: float = 0.004, greatest: float = 0.5) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        source = d.input(d.shape(), **d.affine())
        d.network.unary(name, source, **d.affine(least, greatest))

    return draw


def _wave(name: str) -> Callable[[Drawing], None]:
    """Return a strategy of a sine or cosine of angles of any size."""

    def draw(d: Drawing) -> None:
        source = d.input(d.shape())
        d.values[-1] *= np.float32(10.0 ** d.size(-3, 37))
        d.network.unary(name, source)

    return draw


def _gelu(d: Drawing) -> None:
    source = d.input(d.shape(greatest=9), **d.affine(0.004, 0.1))
    d.network.unary("GELU", source, "GeluOptions", {"Approximate": d.choice(True, False)}, **d.affine(0.004, 0.1))


def _exp(d: Drawing) -> None:
    """Use numbers so small that the output can hold most of the results."""
    affine = d.affine(0.004, 0.05)
    d.network.unary("EXP", d.input(d.shape(), **affine), **d.affine(0.02, 2))


def _neg(d: Drawing) -> None:
    """Use one scale without zero point, which LiteRT assumes, and no least value, whose negative does not exist."""
    affine = {**d.affine(), "zero_point": 0} if d.quantized else d.affine()
    source = d.input(d.shape(), **affine)
    if d.quantized:
        d.values[-1] = np.maximum(d.values[-1], np.iinfo(d.dtype).min + 1)
    d.network.unary("NEG", source, **affine)


def _rounding(name: str) -> Callable[[Drawing], None]:
    """Return a strategy of a rounding; half of the numbers are midpoints or very large."""

    def draw(d: Drawing) -> None:
        source = d.input(d.shape(greatest=9))
        d.values[-1] = d.choice(d.values[-1], d.values[-1].round() + np.float32(0.5), d.values[-1] * np.float32(1e9))
        d.network.unary(name, source)

    return draw


def _positive(name: str) -> Callable[[Drawing], None]:
    """Return a strategy of an operator that is defined for positive numbers."""

    def draw(d: Drawing) -> None:
        affine = d.affine()
        source = d.input(d.shape(), **affine)
        if d.quantized:
            d.values[-1] = np.maximum(d.values[-1], affine.get("zero_point", 0))
        else:
            d.values[-1] = np.abs(d.values[-1]) + np.float32(0.01)
        d.network.unary(name, source, **d.affine(0.001, 0.1))

    return draw


def _relu6(d: Drawing) -> None:
    """Use equal scales, which TensorFlow Lite Micro assumes; int16 must be able to hold 6."""
    affine = d.affine(0.05, 0.5)
    d.network.unary("RELU6", d.input(d.shape(), **affine), **affine)


def _leaky_relu(d: Drawing) -> None:
    source = d.input(d.shape(), **d.affine())
    alpha = float(np.float32(d.draw(st.floats(0, 2))))
    d.network.unary("LEAKY_RELU", source, "LeakyReluOptions", {"Alpha": alpha}, **d.affine())


def _prelu(d: Drawing) -> None:
    first, second = _shapes(d, greatest_rank=4)
    shape = np.broadcast_shapes(first, second)
    source = d.input(shape, **d.affine())
    factors = Drawing(d.draw, "int8" if d.quantized else d.dtype)
    affine = factors.affine(0.004, 0.05)
    alpha = d.network.constant(factors.data(second), affine.get("scale"), affine.get("zero_point", 0))
    d.network.binary("PRELU", source, alpha, **d.affine())


def _sigmoid(name: str, scale: float, zero_point: int) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        argument = d.affine(0.004, 0.3)
        if d.dtype == "int16" and d.choice(True, False):
            argument["scale"] = d.choice(2.0**-12, 2.0**-11, 2.0**-13)  # some of these need no multiplier
        source = d.input(d.shape(greatest=9), **argument)
        affine = {} if d.dtype == "float32" else {"scale": scale, "zero_point": zero_point}
        if d.dtype == "int16":
            affine = {"scale": 2.0**-15, "dtype": "int16"}
        d.network.unary(name, source, **affine)

    return draw


def _relation(name: str) -> Callable[[Drawing], None]:
    """Return a strategy of a comparison, half of whose elements are equal."""

    def draw(d: Drawing) -> None:
        one_scale = d.dtype == "int16" and name not in {"EQUAL", "NOT_EQUAL"}
        left, right = _operands(d, d.affine() if one_scale else d.choice(d.affine(), None))
        if len(d.values) == 2 and d.values[0].shape == d.values[1].shape and d.choice(True, False):
            same = d.random.random(d.values[0].shape) < 0.5
            d.values[1] = np.where(same, d.values[0], d.values[1])
        d.network.binary(name, left, right, dtype="bool")

    return draw


def _logical(name: str) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        d.network.binary(name, *_operands(d), dtype="bool")

    return draw


def _select(name: str) -> Callable[[Drawing], None]:
    """Return a strategy of a selection; the shapes of SELECT_V2 broadcast, those of SELECT are equal."""

    def draw(d: Drawing) -> None:
        shape, affine = d.shape(1, 5), d.affine()
        parts = [tuple(d.choice(size, 1) for size in shape) if name == "SELECT_V2" else shape for _ in range(2)]
        condition = Drawing(d.draw, "bool")
        d.values.append(condition.data(shape))
        d.network.inputs.append(d.network.activation(shape, dtype="bool"))
        sources = [d.network.inputs[-1], *(d.input(part, **affine) for part in parts)]
        d.network.operator(
            name, sources, d.network.activation(shape, **affine), f"{name.title().replace('_', '')}Options"
        )

    return draw


def _cast(d: Drawing) -> None:
    """Use only float32 numbers that fit the type, because other conversions are undefined in C."""
    source = d.input(d.shape(), **({} if d.dtype == "float32" else {"dtype": d.dtype}))
    d.network.unary("CAST", source, dtype=d.choice("float32", "int8", "int16", "int32"))


def _quantize(d: Drawing) -> None:
    """Convert to int8, int16 and int32, or between int8 and uint8, like TensorFlow Lite Micro."""
    target = d.choice(*{
        "float32": ("int8", "int16"),
        "int8": ("int8", "int16", "int32", "uint8"),
        "int16": ("int8", "int16", "int32"),
        "int32": ("int8", "int16"),
        "uint8": ("int8",),
    }[d.dtype])  # fmt: skip
    scale = float(np.float32(d.draw(st.floats(0.004, 0.5)))) / {"int16": 256, "int32": 65536}.get(target, 1)
    zero_point = {"int8": d.size(-128, 127), "uint8": d.size(0, 255)}.get(target, 0)
    affine = d.affine()
    if d.dtype == "int16":
        affine["zero_point"] = d.choice(0, d.size(-(2**15), 2**15 - 1))
    if d.dtype == "int32":
        affine["scale"] = scale / float(2 ** d.size(0, 24)) / 2
    source = d.input((d.size(1, 3), d.size(1, 40)), **affine)
    if d.dtype == "int32":
        limits = np.iinfo("int32")
        d.values[0] = d.random.integers(limits.min, limits.max, d.values[0].shape, "int32", endpoint=True)
        d.values[0] >>= d.random.integers(0, 32, d.values[0].shape, "int32")
    d.network.unary("QUANTIZE", source, scale=scale, zero_point=zero_point, dtype=target)


def _dequantize(d: Drawing) -> None:
    d.network.unary("DEQUANTIZE", d.input((d.size(1, 3), d.size(1, 40))))


def _atan2(d: Drawing) -> None:
    """Draw points of all quadrants, some on the axes and at the ends of the range."""
    shape = d.shape(1, 5)
    left, right = d.input(shape), d.input(shape)
    for value in d.values:
        chosen = d.random.choice(np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-30, 3e38], "f4"), value.shape)
        value[...] = np.where(d.random.random(value.shape) < 0.5, chosen, value)
    d.network.binary("ATAN2", left, right)


OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    "ABS": _unary("ABS"),
    "ADD": _activated("ADD", 0.01, 1),
    "ATAN2": _atan2,
    "BITWISE_XOR": _plain("BITWISE_XOR", 0.01, 1),
    "CAST": _cast,
    "CEIL": _rounding("CEIL"),
    "COS": _wave("COS"),
    "DEQUANTIZE": _dequantize,
    "DIV": _div,
    "ELU": _unary("ELU"),
    "EQUAL": _relation("EQUAL"),
    "EXP": _exp,
    "FLOOR": _rounding("FLOOR"),
    "FLOOR_DIV": _floor("FLOOR_DIV"),
    "FLOOR_MOD": _floor("FLOOR_MOD"),
    "GELU": _gelu,
    "GREATER": _relation("GREATER"),
    "GREATER_EQUAL": _relation("GREATER_EQUAL"),
    "HARD_SWISH": _unary("HARD_SWISH", 0.02),
    "LEAKY_RELU": _leaky_relu,
    "LESS": _relation("LESS"),
    "LESS_EQUAL": _relation("LESS_EQUAL"),
    "LOG": _positive("LOG"),
    "LOGISTIC": _sigmoid("LOGISTIC", 1 / 256, -128),
    "LOGICAL_AND": _logical("LOGICAL_AND"),
    "LOGICAL_NOT": lambda d: d.network.unary("LOGICAL_NOT", d.input(d.shape()), dtype="bool"),
    "LOGICAL_OR": _logical("LOGICAL_OR"),
    "MAXIMUM": _same_scale("MAXIMUM"),
    "MINIMUM": _same_scale("MINIMUM"),
    "MUL": _activated("MUL", 0.01, 1),
    "NEG": _neg,
    "NOT_EQUAL": _relation("NOT_EQUAL"),
    "POW": _power,
    "PRELU": _prelu,
    "QUANTIZE": _quantize,
    "RELU": _unary("RELU"),
    "RELU6": _relu6,
    "RELU_0_TO_1": _unary("RELU_0_TO_1"),
    "RELU_N1_TO_1": _unary("RELU_N1_TO_1"),
    "RSQRT": _positive("RSQRT"),
    "RIGHT_SHIFT": _right_shift,
    "ROUND": _rounding("ROUND"),
    "SELECT": _select("SELECT"),
    "SELECT_V2": _select("SELECT_V2"),
    "SIGN": _unary("SIGN"),
    "SIN": _wave("SIN"),
    "SQRT": _positive("SQRT"),
    "SQUARE": _unary("SQUARE"),
    "SQUARED_DIFFERENCE": _plain("SQUARED_DIFFERENCE", 0.05, 5),
    "SUB": _activated("SUB", 0.01, 1),
    "TANH": _sigmoid("TANH", 1 / 128, 0),
}

TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(OPERATORS, ("int8", "int16", "float32")),
    **dict.fromkeys(("EXP", "LOG", "NEG", "SQRT"), ("float32",)),
    **dict.fromkeys(("CEIL", "COS", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "ROUND", "SIN", "SQUARE"), ("float32",)),
    **dict.fromkeys(("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), ("int8", "int32", "int64", "float32")),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL"), ("int8", "int32", "int64", "float32", "bool")),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"), ("bool",)),
    "CAST": ("int8", "int16", "int32", "float32", "bool"),
    "DEQUANTIZE": ("int8", "int16", "uint8"),
    "QUANTIZE": ("int8", "int16", "int32", "uint8", "float32"),
    **dict.fromkeys(("ELU", "HARD_SWISH"), ("int8", "float32")),
    **dict.fromkeys(
        ("ATAN2", "BITWISE_XOR", "GELU", "POW", "RELU_0_TO_1", "RELU_N1_TO_1", "RIGHT_SHIFT", "SELECT", "SIGN"), ()
    ),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), ("int8", "int16", "int32", "int64", "float32")),
    **dict.fromkeys(("MUL", "SQUARED_DIFFERENCE", "SUB"), ("int8", "int16", "int32", "float32")),
    "DIV": ("int8", "int32", "float32"),
}
"""The element types of each operator that TensorFlow Lite Micro supports."""

LITERT: Mapping[str, Sequence[str]] = {
    "CAST": ("int64", "uint8", "uint32"),
    "SELECT": ("int8", "int16", "int32", "int64", "uint8", "float32", "bool"),
    "SELECT_V2": ("int32", "int64", "uint8", "bool"),
    **dict.fromkeys(("EXP", "LOG", "SQRT"), ("int8", "int16")),
    **dict.fromkeys(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"), ("int16",)),
    **dict.fromkeys(("MUL", "SUB"), ("int64",)),
    "ABS": ("int32",),
    "ADD": ("int32", "int64"),
    "ATAN2": ("float32",),
    "BITWISE_XOR": ("int32",),
    "DIV": ("int16",),
    "FLOOR_DIV": ("int32",),
    "FLOOR_MOD": ("int32", "int64"),
    "NEG": ("int8", "int16", "int32", "int64"),
    **dict.fromkeys(("GELU", "RELU_0_TO_1", "RELU_N1_TO_1"), ("int8", "float32")),
    "POW": ("int32", "float32"),
    "RIGHT_SHIFT": ("int32",),
    "SIGN": ("int32", "float32"),
}
"""The element types of each operator that only LiteRT supports."""
