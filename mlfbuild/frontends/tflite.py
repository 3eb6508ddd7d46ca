"""TensorFlow Lite files as graphs.

Constants stay views of the file's bytes. What makes a file no TFLite model is an ``InputFileError``, what is sound but
beyond the supported operators and types an ``UnsupportedModelError``; both name the place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tflite.TensorType import TensorType

from mlfbuild.errors import InputFileError, UnsupportedModelError
from mlfbuild.frontends.tflite_operators import OPERATORS, Site, operator_name, type_name
from mlfbuild.frontends.tflite_reader import RawModel, RawOperator, RawTensor, Reader
from mlfbuild.graph import Array, DType, Graph, GraphError, Node, Operator, OperatorError, Quantization, Tensor
from mlfbuild.graph.ops.rules import alternatives

TYPES = {
    TensorType.BOOL: DType.BOOL,
    TensorType.FLOAT32: DType.FLOAT32,
    TensorType.INT8: DType.INT8,
    TensorType.INT16: DType.INT16,
    TensorType.INT32: DType.INT32,
    TensorType.INT64: DType.INT64,
    TensorType.UINT8: DType.UINT8,
}

MAXIMUM_TENSOR_SIZE = (1 << 31) - 1
"""Bytes; no microcontroller comes near, and beyond it C's int overflows."""


def parse_tflite(data: bytes, name: str, where: str) -> Graph:
    """Return the TFLite model in ``data`` as a graph called ``name``; ``where`` names the file in messages.

    Raises ``InputFileError`` where it is not a valid model, ``UnsupportedModelError`` where it uses an operator, a type
    or a variant that is not supported, or where an operator's tensors and attributes do not fit each other.
    """
    try:
        return _Importer(Reader(data).read()).graph(name)
    except OperatorError as error:
        raise UnsupportedModelError(f"{where}: {error}") from None
    except GraphError as error:
        raise InputFileError(f"{where}: not a valid TFLite model: {error}") from None
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{where}: {error}") from None


class _Importer:
    """Turns the plain values of one file into a graph."""

    def __init__(self, raw: RawModel) -> None:
        self._raw = raw
        self._names = _unique_names(raw.tensors)
        self._tensors: dict[int, Tensor] = {}
        self._written = {index for operator in raw.operators for index in operator.outputs}

    def graph(self, name: str) -> Graph:
        if self._raw.subgraphs > 1:
            raise UnsupportedModelError(f"has {self._raw.subgraphs} subgraphs (control flow); supported is one")
        self._check_operators()
        nodes = [self._node(operator) for operator in self._raw.operators]
        inputs = [self._input(index).name for index in self._raw.inputs]
        outputs = [self._tensor("the model's outputs", index).name for index in self._raw.outputs]
        if not outputs:
            raise GraphError("the model's outputs", "there are none")
        used = {*inputs, *outputs}.union(*((*node.inputs, *node.outputs) for node in nodes))
        return Graph(name, [t for t in self._tensors.values() if t.name in used], nodes, inputs, outputs)

    def _input(self, index: int) -> Tensor:
        tensor = self._tensor("the model's inputs", index)
        signature = self._raw.tensors[index].signature
        if any(size < 0 for size in signature[1:]):  # a free first dimension is the batch, which stays as in the shape
            raise UnsupportedModelError(
                f"input {tensor.name!r} has the dynamic shape {list(signature)}; convert the model with a fixed one"
            )
        return tensor

    def _check_operators(self) -> None:
        """Refuse what is not supported before looking at anything else, naming the first operator of every kind."""
        missing: dict[tuple[int, str], RawOperator] = {}
        for operator in self._raw.operators:
            if operator.code not in OPERATORS:
                missing.setdefault((operator.code, operator.custom_code), operator)
        if missing:
            found = "; ".join(self._place(operator) for operator in missing.values())
            supported = ", ".join(operator_name(code) for code in OPERATORS)
            raise UnsupportedModelError(f"{found}: not supported; supported are {supported}")

    def _place(self, operator: RawOperator) -> str:
        outputs = [index for index in operator.outputs if 0 <= index < len(self._names)]
        target = f" writing {self._names[outputs[0]]!r}" if outputs else ""
        custom = f" {operator.custom_code!r}" if operator.custom_code else ""
        return f"operator {operator.index} ({operator_name(operator.code)}{custom}){target}"

    def _node(self, operator: RawOperator) -> Node:
        kind, place = OPERATORS[operator.code], self._place(operator)
        most = kind.values + kind.attributes
        if len(operator.inputs) > most:
            raise GraphError(place, f"has {len(operator.inputs)} inputs, takes {most}")
        indices = _ordered(operator.inputs, kind.order)
        inputs = tuple(None if index == -1 else self._tensor(place, index) for index in indices)
        outputs = tuple(self._tensor(place, index) for index in operator.outputs)
        site = Site(place, inputs, outputs, operator.options_type, operator.options)
        if kind.values:
            site.input(0)
        if kind.layer:
            _check_hybrid(site)
            self._check_parameters(site, indices[1 : kind.values])
        result = kind.read(site)
        _check_types(site, inputs[:1], result)
        values = tuple(None if tensor is None else tensor.name for tensor in inputs[: kind.values])
        return Node(outputs[0].name if outputs else "", result, values, tuple(t.name for t in outputs))

    def _check_parameters(self, site: Site, indices: Sequence[int]) -> None:
        """Refuse weights and biases that are computed at run time (absent ones are the graph's own mistake)."""
        for index, tensor in zip(indices, site.inputs[1:], strict=False):
            computed = index in self._written or index in self._raw.inputs
            if tensor is not None and not tensor.constant and computed:
                raise site.unsupported(f"weights and bias must be constant, {tensor} is not")

    def _tensor(self, place: str, index: int) -> Tensor:
        """Return tensor ``index``, made on first use: unused ones need not be of a supported type."""
        if not 0 <= index < len(self._raw.tensors):
            raise GraphError(place, f"tensor index {index} of {len(self._raw.tensors)}")
        if index not in self._tensors:
            self._tensors[index] = _convert(self._raw.tensors[index], self._names[index], place)
        return self._tensors[index]


def _ordered(indices: Sequence[int], order: Sequence[int]) -> Sequence[int]:
    """Return ``indices`` in another ``order``, -1 for those that are not there."""
    return [indices[at] if at < len(indices) else -1 for at in order] if order else indices


def _check_hybrid(site: Site) -> None:
    """Refuse integer weights over float32."""
    types = [None if tensor is None else tensor.dtype for tensor in site.inputs[:2]]
    if types[0] is DType.FLOAT32 and types[-1] not in {None, DType.FLOAT32}:
        raise site.unsupported(
            f"hybrid model ({site.inputs[1]} over float32) is not supported; quantise the activations too"
        )


def _check_types(site: Site, sources: Sequence[Tensor | None], operator: Operator) -> None:
    """Refuse element types that a sound model may have but ``operator`` does not compute in."""
    checks = [(tensor, operator.types) for tensor in sources if tensor is not None]
    checks += [(tensor, operator.results or operator.types) for tensor in site.outputs]
    for tensor, types in checks:
        if tensor.dtype is DType.UINT8 and tensor.dtype not in types:
            raise site.unsupported(
                f"type uint8 of {tensor.name!r}: legacy uint8 quantisation is not supported; convert the model again "
                f"with full integer quantisation, which is int8"
            )
        if tensor.dtype not in types:
            supported = alternatives(types, "and")
            raise site.unsupported(f"type {tensor.dtype.value} of {tensor.name!r}; supported are {supported}")


def _unique_names(tensors: Sequence[RawTensor]) -> list[str]:
    """Return the tensors' names, a number appended where one is empty or taken."""
    taken = {tensor.name for tensor in tensors}
    seen: set[str] = set()
    names = []
    for tensor in tensors:
        name = tensor.name
        if not name or name in seen:
            name = f"{name or 'tensor'}_{tensor.index}"
            while name in taken:
                name += "_"
            taken.add(name)
        seen.add(name)
        names.append(name)
    return names


def _convert(raw: RawTensor, name: str, place: str) -> Tensor:
    """Return the checked tensor of ``raw``, its data a view; ``place`` names the operator that uses it."""
    where = f"{place}: tensor {raw.index} {name!r}"
    dtype = TYPES.get(raw.type)
    if dtype is None:
        known = ", ".join(sorted(known.value for known in TYPES.values()))
        raise UnsupportedModelError(f"{where} has type {type_name(raw.type)}; supported are {known}")
    for present, what in (
        (raw.is_variable, "is a variable"),
        (raw.is_sparse, "is sparse"),
        (raw.has_custom_quantization, "has a custom quantisation"),
    ):
        if present:
            raise UnsupportedModelError(f"{where} {what}, which is not supported")
    if any(size < 0 for size in raw.shape):
        raise OperatorError(where, f"the shape {list(raw.shape)} has a negative dimension")
    if 0 in raw.shape:
        raise UnsupportedModelError(f"{where} has no elements (shape {list(raw.shape)}), which is not supported")
    if math.prod(raw.shape) * dtype.size > MAXIMUM_TENSOR_SIZE:
        raise OperatorError(where, f"the shape {list(raw.shape)} takes more than 2 GiB")
    return Tensor(name, raw.shape, dtype, _quantization(raw, where), _data(raw, dtype, where))


def _quantization(raw: RawTensor, where: str) -> Quantization | None:
    if not raw.scales:
        return None
    zero_points = raw.zero_points * len(raw.scales) if len(raw.zero_points) == 1 else raw.zero_points
    try:
        return Quantization(raw.scales, zero_points, raw.axis)
    except GraphError as error:
        raise OperatorError(where, error.reason) from None


def _data(raw: RawTensor, dtype: DType, where: str) -> Array | None:
    if raw.data is None:
        return None
    size = math.prod(raw.shape) * dtype.size
    if raw.data.size != size:
        raise GraphError(where, f"holds {raw.data.size} bytes, its shape {list(raw.shape)} needs {size}")
    return raw.data.view(dtype.numpy).reshape(raw.shape)
