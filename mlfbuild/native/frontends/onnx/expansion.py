"""Rewrite operators that compute with integers as float operators between DequantizeLinear and QuantizeLinear.

QLinearConv and similar operators take scales and zero points as inputs. Other exporters write the float form directly,
so only that form has converters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.onnx.affine import Constants
from mlfbuild.native.frontends.onnx.normalise import DOMAINS
from mlfbuild.native.frontends.onnx.raw_graph import Attribute, RawNode
from mlfbuild.native.graph import GraphError


def written_out(node: RawNode, constants: Constants, taken: Collection[str]) -> tuple[RawNode, ...]:
    """Return the nodes that replace ``node`` (usually itself); names of new tensors are not in ``taken``.

    ``constants`` may get scales of biases that are computed here. Raises ``GraphError`` if inputs are missing, and
    ``UnsupportedModelError`` for layouts of one machine.
    """
    # Names of com.microsoft operators that ONNX also has are expanded only in that other domain.
    expand = _EXPANSIONS.get(node.operator) or (_RENAMED.get(node.operator) if node.domain not in DOMAINS else None)
    if expand is None:
        return (node,)
    try:
        return tuple(expand(_Parts(node, constants, taken)))
    except IndexError:
        raise GraphError(node.place, f"has {len(node.inputs)} inputs, which are too few") from None


class _Parts:
    """Makes the nodes that replace ``node``."""

    def __init__(self, node: RawNode, constants: Constants, taken: Collection[str]) -> None:
        self.node = node
        self.constants = constants
        self._taken = taken

    def name(self, word: str) -> str:
        """Return a new, unique name for a tensor of this node."""
        name = f"{self.node.outputs[0]}/{word}"
        while name in self._taken:
            name += "_"
        return name

    def make(
        self, operator: str, inputs: Sequence[str], output: str, attributes: Mapping[str, Attribute] | None = None
    ) -> RawNode:
        """Return a node with an operator of ONNX's own domain."""
        return replace(
            self.node, operator=operator, domain="", inputs=tuple(inputs), outputs=(output,),
            attributes=attributes or {}, written=self.node,
        )  # fmt: skip

    def real(self, index: int, word: str, axis: int = 0) -> RawNode:
        """Return the DequantizeLinear of the three inputs from ``index`` on: numbers, scale and zero point."""
        return self.make("DequantizeLinear", self.node.inputs[index : index + 3], self.name(word), {"axis": axis})

    def bias(self, index: int, word: str) -> Iterator[RawNode]:
        """Yield the DequantizeLinear of a bias, whose scale is the product of those of inputs 1 and 4."""
        node = self.node
        source, weights = self.constants.get(node.inputs[1]), self.constants.get(node.inputs[4])
        scale = self.name(f"{word} scale")
        if source is None or weights is None:
            yield self.make("Mul", [node.inputs[1], node.inputs[4]], scale)
        else:
            # Computed here, so that the bias is constant for the converter of the layer.
            self.constants.add(scale, source.reshape(-1)[:1] * weights.reshape(-1))
        yield self.make("DequantizeLinear", [node.inputs[index], scale], self.name(word), {"axis": 0})

    def quantized(self, word: str, scale: int) -> RawNode:
        """Return the QuantizeLinear of tensor ``word``; its scale and zero point are the inputs from ``scale`` on."""
        # The zero point may be absent at the end of the inputs, and is 0 then.
        parameters = self.node.inputs[scale], self.node.inputs[scale + 1] if scale + 1 < len(self.node.inputs) else ""
        return self.make("QuantizeLinear", [self.name(word), *parameters], self.node.outputs[0], {"axis": 0})


def _check_order(node: RawNode) -> None:
    if node.attributes.get("channels_last", 0):
        raise UnsupportedModelError(
            "operator-variant-unsupported",
            place=node.place,
            reason="channels_last is not supported",
            hint="compile the network as quantize_static wrote it, before onnxruntime optimises it for one machine",
        )


def _convolution(parts: _Parts) -> Iterator[RawNode]:
    """QLinearConv: x, w, y and a bias whose scale is the product of the scales of x and w."""
    node = parts.node
    _check_order(node)
    inputs = [parts.name("x"), parts.name("w")]
    yield parts.real(0, "x")
    yield parts.real(3, "w")
    if len(node.inputs) > 8 and node.inputs[8]:
        yield from parts.bias(8, "b")
        inputs.append(parts.name("b"))
    # DequantizeLinear, Conv, QuantizeLinear is the form that the importer computes in integers, so nothing becomes
    # float32.
    yield parts.make("Conv", inputs, parts.name("real"), node.attributes)
    yield parts.quantized("real", 6)


def _gemm(parts: _Parts) -> Iterator[RawNode]:
    """QGemm: alpha * A * B, with a bias C in steps of that product; without an output scale, the result is float32."""
    node = parts.node
    inputs = [parts.name("a"), parts.name("b")]
    yield parts.real(0, "a")
    # B is [inputs, outputs] unless transposed, so that its scales lie along the other axis.
    yield parts.real(3, "b", axis=0 if node.attributes.get("transB", 0) else 1)
    if len(node.inputs) > 6 and node.inputs[6]:
        yield from parts.bias(6, "c")
        inputs.append(parts.name("c"))
    floats = len(node.inputs) < 8 or not node.inputs[7]
    # The bias counts in steps of the product before alpha, so alpha applies to both.
    beta = node.attributes.get("alpha", 1.0)
    yield parts.make(
        "Gemm", inputs, node.outputs[0] if floats else parts.name("real"), {**node.attributes, "beta": beta}
    )
    if not floats:
        yield parts.quantized("real", 7)


def _where(parts: _Parts) -> Iterator[RawNode]:
    """QLinearWhere: the condition, x, y and the scale of the output."""
    yield parts.real(1, "x")
    yield parts.real(4, "y")
    yield parts.make("Where", [parts.node.inputs[0], parts.name("x"), parts.name("y")], parts.name("real"))
    yield parts.quantized("real", 7)


def _same(operator: str) -> Callable[[_Parts], Iterator[RawNode]]:
    """Return the expansion of an operator that only has another name or domain."""

    def expand(parts: _Parts) -> Iterator[RawNode]:
        yield parts.make(operator, parts.node.inputs, parts.node.outputs[0], parts.node.attributes)

    return expand


def _binary(operator: str, first: int = 0, second: int = 0) -> Callable[[_Parts], Iterator[RawNode]]:
    """Return the expansion of an operator of a, b and y; the scales of a and b go along these axes."""

    def expand(parts: _Parts) -> Iterator[RawNode]:
        yield parts.real(0, "a", first)
        yield parts.real(3, "b", second)
        yield parts.make(operator, [parts.name("a"), parts.name("b")], parts.name("real"))
        yield parts.quantized("real", 6)

    return expand


def _unary(operator: str) -> Callable[[_Parts], Iterator[RawNode]]:
    def expand(parts: _Parts) -> Iterator[RawNode]:
        _check_order(parts.node)
        yield parts.real(0, "x")
        yield parts.make(operator, [parts.name("x")], parts.name("real"), parts.node.attributes)
        yield parts.quantized("real", 3)

    return expand


def _concatenation(parts: _Parts) -> Iterator[RawNode]:
    """QLinearConcat: the output's scale and zero point come first."""
    pieces = []
    for index in range(2, len(parts.node.inputs), 3):
        # Inputs after the first two come in threes: tensor, scale and zero point.
        pieces.append(parts.name(f"x{index // 3}"))
        yield parts.real(index, f"x{index // 3}")
    yield parts.make("Concat", pieces, parts.name("real"), parts.node.attributes)
    yield parts.quantized("real", 0)


_EXPANSIONS: Mapping[str, Callable[[_Parts], Iterator[RawNode]]] = {
    "CDist": _same("CDist"),  # which has no form in ONNX's own domain, but a converter
    "QGemm": _gemm,
    "QLinearAdd": _binary("Add"),
    "QLinearAveragePool": _unary("AveragePool"),
    "QLinearConcat": _concatenation,
    "QLinearConv": _convolution,
    "QLinearGlobalAveragePool": _unary("GlobalAveragePool"),
    "QLinearLeakyRelu": _unary("LeakyRelu"),
    "QLinearMatMul": _binary("MatMul", -2, -1),  # scales of a go along its rows, those of b along its columns
    "QLinearMul": _binary("Mul"),
    "QLinearReduceMean": _unary("ReduceMean"),
    "QLinearSigmoid": _unary("Sigmoid"),
    "QLinearSoftmax": _unary("Softmax"),
    "QLinearWhere": _where,
}
"""ONNX's own QLinearConv and QLinearMatMul; the others are of the domain com.microsoft."""
_RENAMED: Mapping[str, Callable[[_Parts], Iterator[RawNode]]] = {
    "DequantizeLinear": _same("DequantizeLinear"),
    "Gelu": _same("Gelu"),  # ONNX has it since opset 20; the default is the same, without approximation
    "QuantizeLinear": _same("QuantizeLinear"),
}
"""Operators of the domain com.microsoft that ONNX's own domain also has, with fewer types or only in late opsets."""

EXPANDED = frozenset({*_EXPANSIONS, *_RENAMED})
