"""Rewrite operators that compute with integers as float operators between DequantizeLinear and QuantizeLinear.

QLinearConv and similar operators take scales and zero points as inputs. Other exporters write the float form directly,
so only that form has converters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from mlfbuild.frontends.onnx.constants import Constants
from mlfbuild.frontends.onnx.reader import Attribute, RawNode
from mlfbuild.graph import GraphError


def written_out(node: RawNode, constants: Constants, taken: Collection[str]) -> tuple[RawNode, ...]:
    """Return the nodes that replace ``node`` (usually itself); names of new tensors are not in ``taken``."""
    expand = _EXPANSIONS.get(node.operator)
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

    def quantized(self, word: str, scale: int) -> RawNode:
        """Return the QuantizeLinear of tensor ``word``; its scale and zero point are the inputs from ``scale`` on."""
        parameters = self.node.inputs[scale], self.node.inputs[scale + 1] if scale + 1 < len(self.node.inputs) else ""
        return self.make("QuantizeLinear", [self.name(word), *parameters], self.node.outputs[0], {"axis": 0})


def _convolution(parts: _Parts) -> Iterator[RawNode]:
    """QLinearConv: x, w, y and a bias whose scale is the product of the scales of x and w."""
    node = parts.node
    inputs = [parts.name("x"), parts.name("w")]
    yield parts.real(0, "x")
    yield parts.real(3, "w")
    if len(node.inputs) > 8 and node.inputs[8]:
        image, weights = parts.constants.get(node.inputs[1]), parts.constants.get(node.inputs[4])
        if image is None or weights is None:
            raise GraphError(node.place, "has scales that are not constant")
        parts.constants.add(parts.name("bias scale"), image.reshape(-1)[:1] * weights.reshape(-1))
        yield parts.make("DequantizeLinear", [node.inputs[8], parts.name("bias scale")], parts.name("b"), {"axis": 0})
        inputs.append(parts.name("b"))
    yield parts.make("Conv", inputs, parts.name("real"), node.attributes)
    yield parts.quantized("real", 6)


def _product(parts: _Parts) -> Iterator[RawNode]:
    """QLinearMatMul: a, b and y; the scales of a go along its rows, those of b along its columns."""
    yield parts.real(0, "a", axis=-2)
    yield parts.real(3, "b", axis=-1)
    yield parts.make("MatMul", [parts.name("a"), parts.name("b")], parts.name("real"))
    yield parts.quantized("real", 6)


def _binary(operator: str) -> Callable[[_Parts], Iterator[RawNode]]:
    def expand(parts: _Parts) -> Iterator[RawNode]:
        yield parts.real(0, "a")
        yield parts.real(3, "b")
        yield parts.make(operator, [parts.name("a"), parts.name("b")], parts.name("real"))
        yield parts.quantized("real", 6)

    return expand


def _unary(operator: str) -> Callable[[_Parts], Iterator[RawNode]]:
    def expand(parts: _Parts) -> Iterator[RawNode]:
        if parts.node.attributes.get("channels_last", 0):
            raise GraphError(parts.node.place, "has channels last, which ONNX's own operators do not")
        yield parts.real(0, "x")
        yield parts.make(operator, [parts.name("x")], parts.name("real"), parts.node.attributes)
        yield parts.quantized("real", 3)

    return expand


def _concatenation(parts: _Parts) -> Iterator[RawNode]:
    """QLinearConcat: the output's scale and zero point come first."""
    pieces = []
    for index in range(2, len(parts.node.inputs), 3):
        pieces.append(parts.name(f"x{index // 3}"))
        yield parts.real(index, f"x{index // 3}")
    yield parts.make("Concat", pieces, parts.name("real"), parts.node.attributes)
    yield parts.quantized("real", 0)


def _distances(parts: _Parts) -> Iterator[RawNode]:
    """CDist, which has no form in ONNX's own domain, but a converter."""
    yield parts.make("CDist", parts.node.inputs, parts.node.outputs[0], parts.node.attributes)


_EXPANSIONS: Mapping[str, Callable[[_Parts], Iterator[RawNode]]] = {
    "CDist": _distances,
    "QLinearAdd": _binary("Add"),
    "QLinearAveragePool": _unary("AveragePool"),
    "QLinearConcat": _concatenation,
    "QLinearConv": _convolution,
    "QLinearGlobalAveragePool": _unary("GlobalAveragePool"),
    "QLinearLeakyRelu": _unary("LeakyRelu"),
    "QLinearMatMul": _product,
    "QLinearMul": _binary("Mul"),
    "QLinearSigmoid": _unary("Sigmoid"),
}
"""ONNX's own QLinearConv and QLinearMatMul; the others are of the domain com.microsoft."""
EXPANDED = frozenset(_EXPANSIONS)
