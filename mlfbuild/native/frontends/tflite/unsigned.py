"""Networks of uint8, TFLite's quantisation before int8: their tensors are held as int8, lower by 128.

``held_as_int8`` subtracts 128 from the elements and zero points of a subgraph's uint8 tensors. Only the network's
inputs and outputs stay uint8, and a QUANTIZE converts each. The operators keep the numbers of LiteRT's uint8 kernels,
some of which round differently from those of int8: ``RawOperator.unsigned`` marks them, and the functions that read
operators set the attributes for it. Networks that only convert uint8 at their ends are left as they are.

An NPU reads and writes uint8. Its tensors stay uint8 unless the core also uses them: then a QUANTIZE converts each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.tflite.operators import operator_name, type_name
from mlfbuild.native.frontends.tflite.reader import RawOperator, RawSubgraph, RawTensor
from mlfbuild.native.frontends.tflite.tensors import Tensors
from mlfbuild.native.graph import DType, Node, Tensor, ops
from mlfbuild.native.graph.ops import operator_class

OFFSET = 128
"""Subtracted from uint8 elements and zero points to hold them as int8."""
HELD, _UNSIGNED = "_int8", "_uint8"
"""Ends of the names of tensors in the form that the file does not have."""

_ELEMENTWISE = (
    "ADD", "DIV", "EQUAL", "GELU", "GREATER", "GREATER_EQUAL", "HARD_SWISH", "LEAKY_RELU", "LESS", "LESS_EQUAL",
    "LOGISTIC", "MAXIMUM", "MINIMUM", "MUL", "NOT_EQUAL", "PRELU", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1",
    "SELECT", "SELECT_V2", "SUB", "TANH",
)  # fmt: skip
_LAYERS = (
    "ARG_MAX", "ARG_MIN", "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "L2_NORMALIZATION",
    "LOG_SOFTMAX", "MAX_POOL_2D", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "RESIZE_BILINEAR", "SOFTMAX", "SUM",
    "TOPK_V2", "TRANSPOSE_CONV",
)  # fmt: skip
_MOVEMENTS = (
    "BATCH_TO_SPACE_ND", "BROADCAST_TO", "CONCATENATION", "DEPTH_TO_SPACE", "EXPAND_DIMS", "FILL", "GATHER",
    "GATHER_ND", "MIRROR_PAD", "PACK", "PAD", "PADV2", "RESHAPE", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_SEQUENCE",
    "REVERSE_V2", "SLICE", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE",
    "TILE", "TRANSPOSE", "UNPACK",
)  # fmt: skip
_CONVERSIONS = frozenset({BuiltinOperator.DEQUANTIZE, BuiltinOperator.QUANTIZE})
_COMPUTED = frozenset(getattr(BuiltinOperator, name) for name in (*_ELEMENTWISE, *_LAYERS, *_MOVEMENTS))
"""The operators that LiteRT's reference kernels compute with uint8, except conversions."""
_CUSTOM = frozenset({"TFLite_Detection_PostProcess"})
"""The custom ones."""
_WITHOUT_VALUES = frozenset({BuiltinOperator.RANK, BuiltinOperator.SHAPE})
_INT8 = "convert the model again with full integer quantisation, which uses int8"


def held_as_int8(raw: RawSubgraph) -> RawSubgraph:
    """Return ``raw`` with uint8 tensors as int8 if one of its operators needs them; those that move elements do not."""
    # Operators that only move uint8 elements need no conversion.
    if all(not _computes(raw, operator) or _takes_uint8(raw, operator) for operator in raw.operators):
        return raw
    return _Holding(raw).subgraph()


def refusal(raw: RawSubgraph, operator: RawOperator, place: str) -> UnsupportedModelError | None:
    """Return why ``operator``, which is at ``place``, is not computed with uint8 held as int8, or ``None``.

    ``raw`` is the subgraph with the types of the file, so that the reason is in its words.
    """
    types = [tensor.type for tensor in _tensors(raw, (*operator.inputs, *operator.outputs))]
    if not _computes(raw, operator):
        return None
    # Mixed types in one operator have no reference that defines the result.
    if operator.code in _COMPUTED or operator.custom_code in _CUSTOM:
        others = {TensorType.INT8, TensorType.INT16} & set(types)
        if not others:
            return None
        reason = f"mixes uint8 and {type_name(min(others)).lower()}, which no reference computes"
    elif operator.code == BuiltinOperator.CAST:
        reason = "reads or writes the stored numbers of a quantised uint8 tensor, which is held as int8"
    elif operator.code in _CONVERSIONS:
        if TensorType.INT32 not in types:
            return None
        reason = "converts uint8 to int32, which no reference computes"
    else:
        reason = f"LiteRT has no uint8 kernel of {operator_name(operator.code)}, so nothing defines its numbers"
    return UnsupportedModelError("quantization-unsupported", place=place, reason=reason, hint=_INT8)


def requantized(tensors: Tensors, node: Node) -> list[Node]:
    """Return ``node`` of an uint8 CONCATENATION after nodes that bring its inputs to the output's scale."""
    known = tensors.by_name()
    output = known[node.outputs[0]]
    nodes, names = [], list(node.inputs)
    for index, name in enumerate(names):
        source = known[str(name)]
        # LiteRT's uint8 CONCATENATION rescales its inputs in float32; that of int8 requires equal scales.
        if source.quantization != output.quantization:
            like = Tensor(source.name, source.shape, source.dtype, output.quantization)
            brought = tensors.add(f"{source.name}_requantized", like)
            nodes.append(Node(brought.name, ops.Quantize(in_float32=True), (source.name,), (brought.name,)))
            names[index] = brought.name
    return [*nodes, replace(node, inputs=tuple(names))]


def _tensors(raw: RawSubgraph, indices: Sequence[int]) -> Iterator[RawTensor]:
    return (raw.tensors[index] for index in indices if 0 <= index < len(raw.tensors))


def _is_unsigned(tensor: RawTensor) -> bool:
    return tensor.type == TensorType.UINT8 and bool(tensor.scales)


def _computes(raw: RawSubgraph, operator: RawOperator) -> bool:
    """Return whether ``operator`` reads or writes uint8 activations, other than to convert them from or to int8."""
    if operator.code in _WITHOUT_VALUES or _is_npu_call(operator):
        return False
    sources, outputs = list(_tensors(raw, operator.inputs)), list(_tensors(raw, operator.outputs))
    if operator.code in _CONVERSIONS:
        types = {tensor.type for tensor in (*sources, *outputs)}
        return operator.code == BuiltinOperator.QUANTIZE and TensorType.UINT8 in types and TensorType.INT8 not in types
    # A hybrid layer has weights of uint8 over float32.
    return any(map(_is_unsigned, outputs)) or (
        any(map(_is_unsigned, sources)) and all(tensor.type != TensorType.FLOAT32 for tensor in sources)
    )


def _takes_uint8(raw: RawSubgraph, operator: RawOperator) -> bool:
    """Return whether the graph's operator takes the uint8 tensors of ``operator`` as they are."""
    kind = operator_class(operator_name(operator.code))
    if operator.code in _CONVERSIONS or kind is None:
        return False
    affines = {(tensor.scales, tensor.zero_points) for tensor in _tensors(raw, (*operator.inputs, *operator.outputs))}
    if operator.code == BuiltinOperator.CONCATENATION and len(affines) > 1:
        return False
    return DType.UINT8 in {*kind.types, *kind.results}


class _Holding:
    """Converts a subgraph."""

    def __init__(self, raw: RawSubgraph) -> None:
        self._raw = raw
        used = {False: set[int](), True: set[int]()}
        for operator in raw.operators:
            used[_is_npu_call(operator)].update((*operator.inputs, *operator.outputs))
        self._kept = used[True] - used[False]
        """Tensors that only the NPU and the caller use."""
        self._tensors = [tensor if tensor.index in self._kept else _held(tensor) for tensor in raw.tensors]
        self._added: list[RawTensor] = []
        self._unsigned: dict[int, int] = {}
        """The uint8 tensors with the values of held ones, for the NPU."""

    def subgraph(self) -> RawSubgraph:
        """Return the subgraph, with a QUANTIZE for each of its inputs and outputs that is uint8."""
        raw = self._raw
        before = [self._interface(index, is_input=True) for index in raw.inputs]
        after = [self._interface(index, is_input=False) for index in raw.outputs]
        operators = [
            # The conversions come first and last, in the order of the inputs and outputs.
            *(operator for _, operator in before if operator is not None),
            *(each for operator in raw.operators for each in self._operators(operator)),
            *(operator for _, operator in after if operator is not None),
        ]
        return replace(
            raw,
            tensors=(*self._tensors, *self._added),
            operators=tuple(operators),
            inputs=tuple(index for index, _ in before),
            outputs=tuple(index for index, _ in after),
        )

    def _operators(self, operator: RawOperator) -> Iterator[RawOperator]:
        """Yield ``operator``, with conversions of its tensors if an NPU computes it."""
        if not _is_npu_call(operator):
            yield replace(operator, unsigned=_computes(self._raw, operator))
            return
        held = [index for index in (*operator.inputs, *operator.outputs) if self._is_held(index)]
        for index in held:
            if index not in self._unsigned:
                self._unsigned[index] = seen = self._add(index, f"{self._raw.tensors[index].name}{_UNSIGNED}")
                if index in operator.inputs:
                    yield _conversion(index, seen)
        yield replace(
            operator,
            inputs=tuple(self._unsigned.get(index, index) for index in operator.inputs),
            outputs=tuple(self._unsigned.get(index, index) for index in operator.outputs),
        )
        yield from (_conversion(self._unsigned[index], index) for index in operator.outputs if index in held)

    def _is_held(self, index: int) -> bool:
        return (
            index not in self._kept and 0 <= index < len(self._raw.tensors) and _is_unsigned(self._raw.tensors[index])
        )

    def _add(self, index: int, name: str) -> int:
        """Return a new tensor like ``index`` in the file, without data."""
        # Added tensors get the next free indices, so that those of the file stay valid.
        seen = len(self._tensors) + len(self._added)
        self._added.append(replace(self._raw.tensors[index], index=seen, name=name, data=None))
        return seen

    def _interface(self, index: int, *, is_input: bool) -> tuple[int, RawOperator | None]:
        """Return the tensor that the caller sees for tensor ``index``, and the operator between the two."""
        if not self._is_held(index):
            return index, None
        name = self._raw.tensors[index].name
        seen = self._add(index, name)
        self._tensors[index] = replace(self._tensors[index], name=f"{name}{HELD}")
        if is_input:
            self._unsigned[index] = seen
        return seen, _conversion(seen, index) if is_input else _conversion(index, seen)


def _is_npu_call(operator: RawOperator) -> bool:
    return isinstance(operator.options, ops.EthosU)


def _conversion(source: int, output: int) -> RawOperator:
    # Numbered as the tensor that was added.
    return RawOperator(max(source, output), BuiltinOperator.QUANTIZE, "", (source,), (output,), 0, None)


def _held(tensor: RawTensor) -> RawTensor:
    """Return a uint8 ``tensor`` that is quantised or constant as int8, any other one as it is."""
    if tensor.type != TensorType.UINT8 or tensor.is_variable or (not tensor.scales and tensor.data is None):
        return tensor
    # Inverting the highest bit subtracts 128 modulo 256, in the bytes of an int8.
    data = None if tensor.data is None else np.asarray(tensor.data.view(np.uint8) ^ np.uint8(OFFSET))
    zero_points = tuple(zero_point - OFFSET for zero_point in tensor.zero_points)
    return replace(tensor, type=TensorType.INT8, data=data, zero_points=zero_points)
