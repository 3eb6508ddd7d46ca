"""Make the nodes of operators that have a row, and decide the shapes that the file leaves open.

Tensors that operators may need as a shape or as weights become constants while the file is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.conversion import SubgraphConversion
from mlfbuild.native.frontends.tflite.operators import SHAPES, TfliteRow, TfliteSite
from mlfbuild.native.frontends.tflite.operators.site import ordered
from mlfbuild.native.frontends.tflite.reader import RawOperator
from mlfbuild.native.frontends.tflite.tensors import dequantized
from mlfbuild.native.frontends.tflite.unsigned import requantized
from mlfbuild.native.graph import DType, GraphError, Node, Operands, OperatorError, Quantization, State, Tensor, ops
from mlfbuild.native.graph.bases import WHOLE, WrongShape, alternatives

# Shapes have at most 8 sizes, and paddings two for each.
_MOST_NUMBERS = 64
"""Elements up to which a tensor is computed at compile time, because it may be part of a shape."""


def settle_shape(conversion: SubgraphConversion, operator: RawOperator) -> None:
    """Make the output of an operator in ``SHAPES`` a constant."""
    kind, place = SHAPES[operator.code], conversion.place(operator)
    found = len(operator.inputs), len(operator.outputs)
    if found != (kind.values, 1):
        raise GraphError(place, f"has {found[0]} inputs and {found[1]} outputs, takes {kind.values} and writes 1")
    site = conversion.site(operator, conversion.inputs(operator), operator.outputs)
    output = site.output()
    if output.dtype not in kind.types:
        raise site.type_unsupported(output, alternatives(kind.types))
    # Before the value is made: a RANGE may be longer than memory.
    conversion.budget.take(place, output.size)
    value = kind.read(site)
    if value.shape != output.shape:
        reason = WrongShape.of(output, value.shape)
        if not conversion.tensors.reshape(operator.outputs[0], reason):
            raise site.wrong(reason)
    conversion.settle(site, operator.outputs[0], value)


def is_computed(conversion: SubgraphConversion, operator: RawOperator, row: TfliteRow, node: Node) -> bool:
    """Compute a node that makes few integers from constants; return whether it is one."""
    place, tensors = conversion.place(operator), conversion.tensors
    indices = ordered(operator.inputs, row.order)[: row.values]
    read = [None if index == -1 else tensors.at(place, index) for index in indices if not row.states]
    inputs = Operands(read, place)
    outputs = [tensors.at(place, index) for index in operator.outputs]
    if not read or not all(tensor.constant for tensor in inputs.present):
        return False
    # Larger tensors are not shapes, and would become constants of the code.
    if any(tensor.dtype not in (*WHOLE, DType.BOOL) or tensor.elements > _MOST_NUMBERS for tensor in outputs):
        return False
    reason = node.operator.check(inputs, outputs)
    if reason is not None:
        raise OperatorError(place, reason)
    values = inputs.map(lambda tensor: tensor.known)
    site = conversion.site(operator, read, operator.outputs)
    for index, value in zip(operator.outputs, node.operator.reference(inputs, values, outputs), strict=True):
        conversion.settle(site, index, value)
    return True


def is_dequantized(conversion: SubgraphConversion, operator: RawOperator) -> bool:
    """Compute float32 weights that the file stores as float16, or as integers with a scale for each channel.

    Return whether the output of ``operator``, a DEQUANTIZE, is such a constant.
    """
    if (len(operator.inputs), len(operator.outputs)) != (1, 1):
        return False
    place = conversion.place(operator)
    value = conversion.tensors.half(place, operator.inputs[0])
    # float16 and int8 weights are stored as such to save space in the file.
    if value is None:
        source = conversion.tensors.at(place, operator.inputs[0])
        value = dequantized(source) if source.dtype in ops.Dequantize.types else None
    if value is None:
        return False
    site = conversion.site(operator, (), operator.outputs)
    output = site.output()
    if (output.dtype, output.shape) != (DType.FLOAT32, value.shape):
        raise site.wrong(f"{output} should be float32{list(value.shape)}")
    conversion.budget.take(place, value.nbytes)
    conversion.settle(site, operator.outputs[0], value)
    return True


if TYPE_CHECKING:
    from mlfbuild.native.frontends.tflite.hybrid import HybridLayers

_OFFSET_WEIGHTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Layers whose weights may have a zero point."""
_STEPS = 3
"""Reasons from which the shape of an open output follows: first its rank, then the window, then the channels."""


class OperatorNodes:
    """Makes the nodes of the operators of one subgraph, and the states that they keep."""

    def __init__(self, conversion: SubgraphConversion) -> None:
        self._conversion = conversion
        self._tensors = conversion.tensors
        self.states: list[State] = []
        self.hybrid: HybridLayers | None = None
        """Made for the first hybrid layer."""

    def nodes(self, operator: RawOperator, row: TfliteRow) -> list[Node]:
        """Return the nodes of ``operator``, none if its outputs are constants."""
        node, site = self._node(operator, row)
        if all(tensor.elements == 0 for tensor in site.outputs) and site.outputs:
            return []  # constants, because they have only one value
        if _is_hybrid(operator, row, site):
            blocks = self._tensors.raw(site.place, operator.inputs[1]).blocks
            return self._hybrid_layers().nodes(node, site, blocks)
        scales = _scales(site)
        if isinstance(node.operator, ops.BatchMatmul) and scales is not None:
            from mlfbuild.native.frontends.tflite.hybrid import dense_product

            # The transposed matrix is another copy of the weights, which counts against the budget.
            self._conversion.budget.take(site.place, site.input(1).elements)
            return [dense_product(self._tensors, site, node.operator, scales)]
        if is_computed(self._conversion, operator, row, node):
            return []
        node = _with_elements(site, node)
        joined = operator.unsigned and operator.code == BuiltinOperator.CONCATENATION
        return requantized(self._tensors, node) if joined else [node]

    def _node(self, operator: RawOperator, row: TfliteRow) -> tuple[Node, TfliteSite]:
        """Return the node of ``operator``; outputs whose shape the file leaves open get that of their operator.

        Runtimes compute all shapes, and do not use those of the file.
        """
        # Operators with states cannot be tried twice, because a variable becomes a state once.
        if not row.states and self._tensors.are_open(operator.outputs):
            # Each attempt may settle the shape of one more output, or one more property of a shape.
            for _ in range(_STEPS * len(operator.outputs)):
                reason = self._reason(operator, row)
                if not any(self._tensors.reshape(index, reason) for index in operator.outputs):
                    break
        node, site = self._built(operator, row)
        # States that no tensor of the file represents, such as those of the signal library.
        made = [self._tensors.made(site.output(), shape) for shape in row.made_states(site, node.operator)]
        self.states += made  # only now: several attempts may have been made
        inputs, outputs = (state.before for state in made), (state.after for state in made)
        return replace(node, inputs=(*node.inputs, *inputs), outputs=(*node.outputs, *outputs)), site

    def _reason(self, operator: RawOperator, row: TfliteRow) -> str | None:
        """Return why the node of ``operator`` is not valid with the shapes that are known so far."""
        try:
            node, site = self._built(operator, row)
            values = Operands(site.inputs[: row.values], site.place)
            if _is_hybrid(operator, row, site):
                values = values.map(_like_float)  # integer weights do not change the shape
            return node.operator.check(values, site.outputs)
        except OperatorError as error:
            return error.reason

    def _built(self, operator: RawOperator, row: TfliteRow) -> tuple[Node, TfliteSite]:
        """Return the node of ``operator`` with the shapes that are known so far, after checks of its inputs."""
        place = self._conversion.place(operator)
        most = row.values + row.attributes
        if len(operator.inputs) > most:
            raise GraphError(place, f"has {len(operator.inputs)} inputs, takes {most}")
        indices = ordered(operator.inputs, row.order)
        kept = {at: self._kept(place, indices, at) for at in row.states}
        inputs = [
            kept[at][0] if at in kept else None if index == -1 else self._value(operator, at, index)
            for at, index in enumerate(indices)
        ]
        site = self._conversion.site(operator, inputs, operator.outputs)
        if row.values:
            site.input(0)
        if _is_hybrid(operator, row, site):
            self._hybrid_layers().check(site, operator, self._tensors.raw(site.place, indices[1]))
        if row.layer:
            self._check_parameters(site, indices[1 : row.values])
        result = row.read(site)
        if result.name in _OFFSET_WEIGHTS:
            _check_offset(site)
        _check_types(site, result.types, result.results or result.types)
        names = tuple(None if tensor is None else tensor.name for tensor in site.inputs[: row.values])
        states = [state for _, state in kept.values()]
        self.states += states
        outputs = (*(tensor.name for tensor in site.outputs), *(state.after for state in states))
        return Node(outputs[0] if site.outputs else "", result, names, outputs), site

    def _value(self, operator: RawOperator, at: int, index: int) -> Tensor:
        """Return input ``at`` of ``operator``, tensor ``index``; only FULLY_CONNECTED reads weights in blocks."""
        place = self._conversion.place(operator)
        if operator.code == BuiltinOperator.FULLY_CONNECTED and at == 1 and self._tensors.raw(place, index).blocks:
            return self._tensors.in_blocks(place, index)
        return self._tensors.at(place, index)

    def _kept(self, place: str, indices: Sequence[int], at: int) -> tuple[Tensor, State]:
        """Return the variable at position ``at`` of an operator's values, and the state that it becomes."""
        if at >= len(indices) or indices[at] == -1:
            raise GraphError(place, "the variable that keeps its state is absent")
        return self._tensors.kept(place, indices[at])

    def _hybrid_layers(self) -> HybridLayers:
        from mlfbuild.native.frontends.tflite.hybrid import HybridLayers

        if self.hybrid is None:
            self.hybrid = HybridLayers(self._tensors)
        return self.hybrid

    def _check_parameters(self, site: TfliteSite, indices: Sequence[int]) -> None:
        """Refuse weights and biases that are computed at run time (the graph itself refuses absent ones)."""
        for index, tensor in zip(indices, site.inputs[1:], strict=False):
            # A tensor without data that nothing writes is absent, not computed: the graph reports that with its own
            # words.
            computed = index in self._conversion.written or index in self._conversion.raw.inputs
            if tensor is not None and not tensor.constant and computed:
                raise site.unsupported(f"weights and bias must be constant, {tensor} is not", code="input-not-constant")


def _is_hybrid(operator: RawOperator, row: TfliteRow, site: TfliteSite) -> bool:
    """Return whether ``operator`` is a layer that has integer weights over float32."""
    types = [None if tensor is None else tensor.dtype for tensor in site.inputs[:2]]
    may_be = row.layer or operator.code == BuiltinOperator.BATCH_MATMUL
    # Integer weights with float32 activations: the types of the first two inputs show it.
    return may_be and types[0] is DType.FLOAT32 and types[-1] not in {None, DType.FLOAT32}


def _scales(site: TfliteSite) -> Quantization | None:
    """Return the scales of the second input if it is int8 with several ones, and the first one is int16."""
    first, second = site.optional_input(0), site.optional_input(1)
    if first is None or second is None or (first.dtype, second.dtype) != (DType.INT16, DType.INT8):
        return None
    return second.quantization if second.quantization is not None and second.quantization.per_channel else None


def _like_float(tensor: Tensor) -> Tensor:
    """Return a float32 tensor of the same shape; a constant of zeros if ``tensor`` is constant."""
    if tensor.dtype is DType.FLOAT32:
        return tensor
    data = np.broadcast_to(np.float32(0), tensor.shape) if tensor.constant else None
    return Tensor(tensor.name, tensor.shape, DType.FLOAT32, data=data)


def _with_elements(site: TfliteSite, node: Node) -> Node:
    """Return ``node`` without inputs that have no elements, which only CONCATENATION can leave out."""
    empty = {tensor.name: tensor for tensor in (*site.inputs, *site.outputs) if tensor and tensor.elements == 0}
    used = [empty[name] for name in (*node.inputs, *node.outputs) if name in empty]
    if used and node.operator.name != "CONCATENATION":
        raise site.unsupported(f"{used[0]} has no elements, which is not supported", code="tensor-empty")
    return replace(node, inputs=tuple(name for name in node.inputs if name not in empty)) if used else node


def _check_offset(site: TfliteSite) -> None:
    """Refuse int8 weights with a zero point, which runtimes ignore or not; those of uint8 always count."""
    weights = site.optional_input(1)
    quantization = None if weights is None else weights.quantization
    offset = quantization is not None and not quantization.per_channel and any(quantization.zero_points)
    # TFLite's specification of int8 says 0, and kernels differ in whether they read anything else.
    if offset and not site.unsigned:
        raise site.wrong(f"the weights {weights} have a zero point that is not 0")


def _check_types(site: TfliteSite, read: Sequence[DType], written: Sequence[DType]) -> None:
    """Refuse types of the first input and the outputs that are valid in TFLite but not supported by the operator."""
    checks = [(tensor, read) for tensor in site.inputs[:1] if tensor is not None]
    checks += [(tensor, written) for tensor in site.outputs]
    for tensor, types in checks:
        if tensor.dtype is DType.UINT8 and tensor.dtype not in types:
            raise site.unsupported(
                f"type uint8 of {tensor.name!r} (legacy quantisation) is not supported",
                "convert the model again with full integer quantisation, which uses int8",
                code="quantization-unsupported",
            )
        if tensor.dtype not in types:
            raise site.type_unsupported(tensor, alternatives(types))
