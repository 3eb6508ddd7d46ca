"""Random networks of many operators: branches that join, long lifetimes, outputs of every kind.

A network grows step by step; each step applies an operator to any tensor known so far, which may be an input, a
constant or an output. Quantised values use most of the range of int8, so that clamping does not hide errors; scales
and zero points are sometimes extreme. The same seed gives the same network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from tflite.TensorType import TensorType

from mlfbuild.native.graph.bases.window import output_size
from support.drawing import ACTIVATIONS, Case
from support.random_movements import rearrange
from support.random_operators import LARGEST, LARGEST_SPREAD, binary, broadcast, move, unary
from support.tflite_builder import Network

if TYPE_CHECKING:
    from support.random_graphs import RandomGraph


def transpose_conv(g: RandomGraph, source: int) -> None:
    """Draw an output size from which a convolution with the same window computes that of ``source``."""
    batch, rows, columns, depth = g.shape_of(source)
    channels, size, stride, padding = g.number(1, 5), g.pair(1, 3), g.pair(1, 2), g.choice(("SAME", "VALID"))
    wanted = [
        (count - 1) * step + (g.number(1, step) if padding == "SAME" else length)
        for count, step, length in zip((rows, columns), stride, size, strict=True)
    ]
    if batch * wanted[0] * wanted[1] * channels <= LARGEST:
        layer = g.layer(source, (channels, *size, depth), 0, size[0] * size[1] * depth)
        output = g.network.transpose_conv(source, wanted, **layer, stride=stride, padding=padding)
        g.learn(output, 2 + g.spread[source], exact=False)


def batch_matmul(g: RandomGraph, source: int) -> None:
    """Multiply by one constant matrix, or by one for each index of the batch."""
    shape = g.shape_of(source)
    if not 2 <= len(shape) <= 4:
        return
    columns, transposed = g.number(1, 6), g.often(0.5)
    matrix = (columns, shape[-1]) if transposed else (shape[-1], columns)
    other = g.network.constant(
        g.data((*(1 for _ in shape[:-2]), *matrix), quantized=g.quantized(source)),
        **(g.affine(0.01) if g.quantized(source) else {}),
    )
    affine = g.rescaled(source, 0.5 * np.sqrt(shape[-1]))
    output = g.network.activation((*shape[:-1], columns), **affine)
    g.network.operator("BATCH_MATMUL", [source, other], output, "BatchMatMulOptions", AdjY=transposed)
    g.learn(output, 2 * shape[-1] + g.spread[source], exact=False)


def reduce(g: RandomGraph, source: int) -> None:
    """Add a sum, or a maximum or minimum with the scale of ``source``, along some dimensions."""
    shape, name = g.shape_of(source), g.choice(("SUM", "REDUCE_MAX", "REDUCE_MIN"))
    if not 1 <= len(shape) <= 4:
        return
    axes = g.random.permutation(len(shape))[: g.number(1, len(shape))].tolist()
    count = int(np.prod([shape[axis] for axis in axes]))
    if name == "SUM" and g.spread[source] * count > LARGEST_SPREAD and not g.quantized(source):
        return
    same = g.same_affine(source)
    affine = g.rescaled(source, np.sqrt(count)) if name == "SUM" else same
    output = g.network.reduce(name, source, axes, keep_dims=g.often(0.5), **affine)
    spread = g.spread[source] * (count if name == "SUM" else 1)
    g.learn(output, spread, exact=name != "SUM" and source in g.exact)


def select(g: RandomGraph, source: int) -> None:
    """Select elements of ``source`` or of a constant by an exact comparison of stored numbers."""
    shape = g.shape_of(source)
    comparable = g.scale_of(source) < 1 if g.quantized(source) else source in g.exact
    if not comparable or not 1 <= len(shape) <= 4:
        return
    same = g.same_affine(source)
    other = g.network.constant(g.data([g.choice((size, 1)) for size in shape], quantized=g.quantized(source)), **same)
    name = g.choice(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"))
    condition = g.network.operator(name, [source, other], g.network.activation(shape, dtype="bool"))
    if g.often(0.4):
        condition = g.network.operator("LOGICAL_NOT", [condition], g.network.activation(shape, dtype="bool"))
    operands = [source, other] if g.often(0.5) else [other, source]
    output = g.network.operator("SELECT_V2", [condition, *operands], g.network.like(source, shape), "SelectV2Options")
    g.learn(output, 4 + g.spread[source], exact=source in g.exact)


def arg(g: RandomGraph, source: int) -> None:
    """Add the position of the maximum or minimum, as float32."""
    shape = g.shape_of(source)
    if 1 <= len(shape) <= 4 and (g.quantized(source) or source in g.exact):
        axis, name = g.number(0, len(shape) - 1), g.choice(("ARG_MAX", "ARG_MIN"))
        kept = (*shape[:axis], *shape[axis + 1 :])
        inputs = [source, g.network.integers([axis])]
        kind = "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions"
        places = g.network.operator(name, inputs, g.network.activation(kept, dtype="int32"), kind, OutputType=2)
        output = g.network.operator("CAST", [places], g.network.activation(kept), "CastOptions")
        g.learn(output, float(shape[axis]), exact=True)


def prelu(g: RandomGraph, source: int) -> None:
    """Add a PRELU with a slope for each channel."""
    shape = g.shape_of(source)
    if 1 <= len(shape) <= 4:
        quantized = g.quantized(source)
        slopes = g.network.constant(g.data((shape[-1],), quantized=quantized), **(g.affine(0.01) if quantized else {}))
        output = g.network.operator("PRELU", [source, slopes], g.network.activation(shape, **g.rescaled(source, 1)))
        g.learn(output, 5 * g.spread[source], exact=False)


Array = npt.NDArray[Any]


def random_case(seed: int, steps: int) -> Case:
    """Return a network of ``steps`` operators, some of which are unused, and a value for each input."""
    graph = RandomGraph(seed)
    for _ in range(graph.number(1, 3)):
        graph.add_source()
    for _ in range(steps):
        graph.grow()
    return graph.case()


class RandomGraph:
    """A network under construction; tensors are indices into it."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.network = Network()
        self.values: list[Array] = []
        self.known: list[int] = []
        self.spread: dict[int, float] = {}
        """The approximate greatest magnitude of each float tensor."""
        self.exact: set[int] = set()
        """Float tensors with bit-exact values; only these may be rounded to int8."""

    # Choices

    def number(self, least: int, greatest: int) -> int:
        return int(self.random.integers(least, greatest + 1))

    def pair(self, least: int, greatest: int) -> tuple[int, int]:
        return self.number(least, greatest), self.number(least, greatest)

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.number(0, len(options) - 1)]

    def often(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def shape(self) -> tuple[int, ...]:
        if self.often(0.75):
            return (self.choice((1, 1, 2)), *self.pair(1, 9), self.choice((1, 2, 3, 4, 5, 8)))
        return tuple(self.number(1, 7) for _ in range(self.number(1, 4)))

    def affine(self, scale: float) -> dict[str, Any]:
        """Draw a scale near ``scale``, or far from it, with a zero point that is often extreme."""
        factor = self.random.uniform(0.6, 1.8) * (self.choice((0.01, 30.0)) if self.often(0.08) else 1.0)
        return {
            "scale": float(np.float32(scale * factor)),
            "zero_point": self.choice((-128, 127, 0, -1, self.number(-128, 127), self.number(-30, 30))),
        }

    def data(self, shape: Sequence[int], *, quantized: bool) -> Array:
        if not quantized:
            return self.random.normal(0, 1, shape).astype(np.float32)
        values = self.random.integers(-128, 128, shape, dtype=np.int8)
        return self.random.choice(np.array([-128, 127], np.int8), shape) if self.often(0.1) else values

    # Facts about tensors

    def quantized(self, tensor: int) -> bool:
        return bool(self.network.tensors[tensor].type == TensorType.INT8)

    def shape_of(self, tensor: int) -> tuple[int, ...]:
        return tuple(self.network.tensors[tensor].shape)

    def scale_of(self, tensor: int) -> float:
        return self.network.tensors[tensor].scales[0] if self.quantized(tensor) else 1.0

    def rescaled(self, tensor: int, factor: float) -> dict[str, Any]:
        """Return keyword arguments of an output with values ``factor`` times as large; none for float32."""
        return self.affine(self.scale_of(tensor) * factor) if self.quantized(tensor) else {}

    def same_affine(self, tensor: int) -> dict[str, Any]:
        """Return keyword arguments of a tensor with the scale and zero point of ``tensor``; none for float32."""
        spec = self.network.tensors[tensor]
        return {"scale": spec.scales[0], "zero_point": spec.zero_points[0]} if self.quantized(tensor) else {}

    def learn(self, tensor: int, spread: float, *, exact: bool) -> None:
        self.known.append(tensor)
        self.spread[tensor] = spread
        if exact:
            self.exact.add(tensor)

    # Growth

    def add_source(self) -> None:
        """Add an input, or a constant from which the compiler may compute others."""
        quantized, shape = self.often(0.7), self.shape()
        value = self.data(shape, quantized=quantized)
        affine = self.affine(0.03) if quantized else {}
        if self.values and self.often(0.2):
            self.learn(self.network.constant(value, **affine), 4.0, exact=True)
        else:
            self.values.append(value)
            self.learn(self.network.input(shape, **affine), 4.0, exact=True)

    def grow(self) -> None:
        """Apply one operator to a tensor; unread tensors are preferred."""
        before = len(self.known)
        while len(self.known) == before:
            source = self.choice(self.ends() if self.often(0.6) else self.known)
            operators = _IMAGE_OPERATORS if self.image(source) and self.often(0.5) else _OPERATORS
            self.choice(operators)(self, source)

    def ends(self) -> list[int]:
        """Return the tensors that no operator reads."""
        read = {tensor for operator in self.network.operators for tensor in operator.inputs}
        return [tensor for tensor in self.known if tensor not in read]

    def image(self, source: int) -> bool:
        return len(self.shape_of(source)) == 4

    def window(self, source: int) -> dict[str, Any] | None:
        """Return options of a filter with at least one position in the image ``source``, with ``size``, or ``None``."""
        options = {
            "stride": self.choice(((1, 1), (1, 1), (2, 2), (2, 1), (1, 3), (5, 4))),
            "dilation": self.choice(((1, 1), (1, 1), (1, 1), (2, 1), (2, 3))),
            "padding": self.choice(("SAME", "VALID")),
            "activation": self.choice(ACTIVATIONS),
            "size": self.choice(((1, 1), (3, 3), (2, 2), (1, 3), (5, 2))),
        }
        same = options["padding"] == "SAME"
        fits = all(
            output_size(size, options["size"][axis], 1, options["dilation"][axis], same=same)
            for axis, size in enumerate(self.shape_of(source)[1:3])
        )
        return options if fits and self.image(source) else None

    def layer(self, source: int, shape: Sequence[int], axis: int, taps: int) -> dict[str, Any]:
        """Return weights, bias, scales and the output's quantisation of a layer that adds ``taps`` products."""
        channels = shape[axis]
        if not self.quantized(source):
            weights = (self.random.normal(0, 1, shape) / np.sqrt(taps)).astype(np.float32)
            bias = self.random.normal(0, 1, channels).astype(np.float32)
            return {"weights": weights, "bias": bias if self.often(0.7) else None}
        weights = self.random.integers(-127, 128, shape, dtype=np.int8)
        if self.often(0.15):
            np.moveaxis(weights, axis, 0)[0] = 0
        bias = self.random.integers(-(2**12), 2**12, channels, dtype=np.int32)
        if self.often(0.1):
            bias[self.number(0, channels - 1)] = self.choice((2**31 - 1, -(2**31), 2**24))
        scales = self.random.uniform(0.003, 0.01, self.choice((1, channels))).astype(np.float32).tolist()
        return {
            "weights": weights,
            "bias": bias if self.often(0.7) else None,
            "weight_scales": scales,
            **self.rescaled(source, 0.5 * np.sqrt(taps)),
        }

    def case(self) -> Case:
        """Select the outputs: all unread tensors, and some that are read, constant, inputs or repeated."""
        outputs = [*self.ends()[-3:], *(self.choice(self.known) for _ in range(self.number(0, 2)))]
        self.random.shuffle(outputs)
        return Case(self.network.build(outputs), tuple(self.values))


def _conv2d(g: RandomGraph, source: int) -> None:
    options = g.window(source)
    if options is not None:
        depth, size, channels = g.shape_of(source)[3], options.pop("size"), g.choice((1, 2, 3, 4, 7, 8))
        layer = g.layer(source, (channels, *size, depth), 0, size[0] * size[1] * depth)
        g.learn(g.network.conv2d(source, **layer, **options), 2 + g.spread[source], exact=False)


def _depthwise_conv2d(g: RandomGraph, source: int) -> None:
    options = g.window(source)
    if options is not None:
        channels, size = g.shape_of(source)[3] * g.choice((1, 1, 1, 2, 3)), options.pop("size")
        layer = g.layer(source, (1, *size, channels), 3, size[0] * size[1])
        g.learn(g.network.depthwise_conv2d(source, **layer, **options), 2 + g.spread[source], exact=False)


def _pool(g: RandomGraph, source: int) -> None:
    options = g.window(source)
    if options is not None and options.pop("dilation") == (1, 1):
        kind = g.choice(("AVERAGE", "MAX"))
        exact = kind == "MAX" and source in g.exact
        g.learn(g.network.pool2d(kind, source, options.pop("size"), **options), g.spread[source], exact=exact)


def _fully_connected(g: RandomGraph, source: int) -> None:
    shape = g.shape_of(source)
    if shape:
        layer = g.layer(source, (g.number(1, 9), shape[-1]), 0, shape[-1])
        options = {"activation": g.choice(ACTIVATIONS), "keep_num_dims": g.often(0.5)}
        g.learn(g.network.fully_connected(source, **layer, **options), 2 + g.spread[source], exact=False)


def _add(g: RandomGraph, source: int) -> None:
    """Add two tensors that broadcast, perhaps one tensor twice, or one and a constant."""
    shape, quantized = g.shape_of(source), g.quantized(source)
    partners = [t for t in g.known if g.quantized(t) == quantized and broadcast(g.shape_of(t), shape) <= LARGEST]
    repeated = [t for t in partners if g.shape_of(t) != shape]
    other = g.choice(repeated if repeated and g.often(0.6) else [source, *partners])
    if g.often(0.2):
        value = g.data([g.choice((size, size, 1)) for size in shape], quantized=quantized)
        other = g.network.constant(value, **g.rescaled(source, 1))
        g.learn(other, 4.0, exact=True)
    operands = (source, other) if g.often(0.5) else (other, source)
    larger = max(operands, key=g.scale_of)
    output = g.network.add(*operands, activation=g.choice(ACTIVATIONS), **g.rescaled(larger, 1.3))
    g.learn(output, g.spread[source] + g.spread[other], exact={source, other} <= g.exact)


def _mean(g: RandomGraph, source: int) -> None:
    rank = len(g.shape_of(source))
    if rank:
        axes = (1, 2) if rank == 4 and g.often(0.5) else g.random.permutation(rank)[: g.number(1, rank)].tolist()
        output = g.network.mean(source, axes, keep_dims=g.often(0.6), **g.rescaled(source, 0.5))
        g.learn(output, g.spread[source], exact=False)


def _softmax(g: RandomGraph, source: int) -> None:
    """Use less than 512 elements, because TensorFlow Lite Micro aborts if exponentials add up to more."""
    shape = g.shape_of(source)
    if shape and shape[-1] < 512:
        beta = float(np.float32(g.choice((1.0, 0.5, 2.0)) / (1.0 if g.quantized(source) else g.spread[source])))
        g.learn(g.network.softmax(source, beta), 1.0, exact=False)


def _reshape(g: RandomGraph, source: int) -> None:
    """Draw up to four dimensions from the factors of the number of elements."""
    rest, shape = int(np.prod(g.shape_of(source))), []
    for _ in range(g.number(0, 3)):
        shape.append(g.choice([size for size in range(1, rest + 1) if rest % size == 0]))
        rest //= shape[-1]
    output = g.network.reshape(source, [*shape, rest], with_shape_tensor=g.often(0.7))
    g.learn(output, g.spread[source], exact=source in g.exact)


def _pad(g: RandomGraph, source: int) -> None:
    shape = g.shape_of(source)
    if shape and np.prod(shape) <= LARGEST / 4:
        space = g.image(source) and g.often(0.7)
        paddings = [g.pair(0, 2) if not space or axis in {1, 2} else (0, 0) for axis in range(len(shape))]
        g.learn(g.network.pad(source, paddings), g.spread[source], exact=source in g.exact)


def _quantize(g: RandomGraph, source: int) -> None:
    spec = g.network.tensors[source]
    if g.quantized(source) and g.often(0.3):
        g.learn(g.network.quantize(source, spec.scales[0], spec.zero_points[0]), 4.0, exact=True)
    elif g.quantized(source) or source in g.exact:
        scale = g.scale_of(source) if g.quantized(source) else g.spread[source] / 128
        g.learn(g.network.quantize(source, **g.affine(scale)), 4.0, exact=True)


def _dequantize(g: RandomGraph, source: int) -> None:
    if g.quantized(source):
        g.learn(g.network.dequantize(source), 256 * g.scale_of(source), exact=True)


_OF_ANY_SHAPE: tuple[Callable[[RandomGraph, int], None], ...] = (_conv2d, _depthwise_conv2d, _pool, _pad, _add)
_IMAGE_OPERATORS = (*_OF_ANY_SHAPE, transpose_conv)
_OPERATORS = (
    *_OF_ANY_SHAPE, _add, _fully_connected, _mean, _softmax, _reshape, _reshape, _quantize, _dequantize,
    unary, unary, binary, binary, move, move, rearrange, rearrange,
    arg, batch_matmul, prelu, reduce, select,
)  # fmt: skip
