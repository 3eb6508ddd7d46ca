"""Write the lists of a network as the flatbuffer of a ``.tflite`` file, even if they are invalid."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from flatbuffers import flexbuffers
from tflite.BuiltinOptions import BuiltinOptions
from tflite.BuiltinOptions2 import BuiltinOptions2
from tflite.QuantizationDetails import QuantizationDetails

BLOCKWISE = 2
"""BlockwiseQuantization among the kinds of QuantizationDetails."""
ALIGNMENT = 16
"""Alignment of tensors' content in the file."""


@dataclass
class TensorSpec:
    """A tensor to be written; ``content`` is its bytes, empty if it has none."""

    name: str | bytes
    shape: list[int]
    type: int
    content: bytes = b""
    scales: list[float] = field(default_factory=list)
    zero_points: list[int] = field(default_factory=list)
    axis: int = 0
    is_variable: bool = False
    is_sparse: bool = False
    buffer: int | None = None
    """Index of a buffer to use instead of the tensor's own."""
    signature: list[int] | None = None
    external: tuple[int, int] | None = None
    """(offset, size) of content after the flatbuffer."""
    has_custom_quantization: bool = False
    blocks: tuple[int, int, int] | None = None
    """A BlockwiseQuantization: the tensors of its scales and zero points (-1: none), and the size of a block."""


@dataclass
class OperatorSpec:
    """An operator to be written."""

    code: int
    inputs: list[int]
    outputs: list[int]
    options_kind: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    custom_code: str = ""
    custom_options: bytes = b""
    options_tag: int | None = None
    """Tag of the union to write instead of that of ``options_kind``."""
    decomposition: int | None = None
    """The subgraph that a STABLEHLO_COMPOSITE names."""
    old_code: int | None = None
    """What to write into the field of operators before the 128th, instead of what converters write."""

    @property
    def codes(self) -> tuple[int, int, str]:
        """What its operator code holds: the new field, the old one, and the name of a custom operator."""
        return self.code, min(self.code, 127) if self.old_code is None else self.old_code, self.custom_code


@dataclass
class SubgraphSpec:
    """A subgraph to be written."""

    tensors: Sequence[TensorSpec]
    operators: Sequence[OperatorSpec]
    inputs: Sequence[int]
    outputs: Sequence[int]


@dataclass
class Writer:
    """One file; ``write`` may be called once."""

    subgraphs: Sequence[SubgraphSpec]
    version: int
    signatures: Mapping[str, int] = field(default_factory=dict)
    """Subgraphs by the names of signatures."""
    builder: Any = field(default_factory=lambda: flatbuffers.Builder(1024))
    written: dict[int, int] = field(default_factory=dict)
    """Offsets of tensors by identity; a tensor that occurs several times is written once."""

    def write(self) -> bytes:
        """Return the bytes of the file."""
        every = [operator for subgraph in self.subgraphs for operator in subgraph.operators]
        codes = sorted({operator.codes for operator in every})
        tensors = [tensor for subgraph in self.subgraphs for tensor in subgraph.tensors]
        buffers = [self._table("Buffer"), *(self._buffer(tensor) for tensor in tensors)]
        subgraphs, first = [], 1
        for subgraph in self.subgraphs:
            subgraphs.append(self._subgraph(subgraph, first, codes))
            first += len(subgraph.tensors)
        signatures = [
            self._table("SignatureDef", SignatureKey=self.builder.CreateString(name), SubgraphIndex=index)
            for name, index in self.signatures.items()
        ]
        model = self._table(
            "Model",
            Version=self.version,
            OperatorCodes=self._offsets([self._code(*code) for code in codes]),
            Subgraphs=self._offsets(subgraphs),
            Buffers=self._offsets(buffers),
            **({"SignatureDefs": self._offsets(signatures)} if signatures else {}),
        )
        self.builder.Finish(model, b"TFL3")
        return bytes(self.builder.Output())

    def _subgraph(self, spec: SubgraphSpec, first_buffer: int, codes: Sequence[tuple[int, int, str]]) -> int:
        tensors = [self._tensor(first_buffer + index, tensor) for index, tensor in enumerate(spec.tensors)]
        operators = [self._operator(operator, codes.index(operator.codes)) for operator in spec.operators]
        return self._table(
            "SubGraph",
            Tensors=self._offsets(tensors),
            Inputs=self._numbers(spec.inputs, np.int32),
            Outputs=self._numbers(spec.outputs, np.int32),
            Operators=self._offsets(operators),
        )

    def _code(self, code: int, old: int, custom: str) -> int:
        fields = {"BuiltinCode": code, "DeprecatedBuiltinCode": old, "Version": 1}
        if custom:
            fields["CustomCode"] = self.builder.CreateString(custom)
        return self._table("OperatorCode", **fields)

    def _buffer(self, tensor: TensorSpec) -> int:
        content = tensor.content
        if tensor.external is not None:
            return self._table("Buffer", Offset=tensor.external[0], Size=tensor.external[1])
        if not content:
            return self._table("Buffer")
        self.builder.StartVector(1, len(content), ALIGNMENT)
        self.builder.head -= len(content)
        self.builder.Bytes[self.builder.Head() : self.builder.Head() + len(content)] = content
        return self._table("Buffer", Data=self.builder.EndVector())

    def _tensor(self, buffer: int, spec: TensorSpec) -> int:
        if id(spec) not in self.written:
            self.written[id(spec)] = self._new_tensor(buffer, spec)
        return self.written[id(spec)]

    def _new_tensor(self, buffer: int, spec: TensorSpec) -> int:
        fields = {
            "Shape": self._numbers(spec.shape, np.int32),
            "Type": spec.type,
            "Buffer": buffer if spec.buffer is None else spec.buffer,
            "Name": self.builder.CreateString(spec.name),
            "IsVariable": spec.is_variable,
        }
        if spec.signature is not None:
            fields["ShapeSignature"] = self._numbers(spec.signature, np.int32)
        if spec.is_sparse:
            fields["Sparsity"] = self._table("SparsityParameters")
        if spec.scales or spec.zero_points or spec.has_custom_quantization or spec.blocks:
            quantization = {
                "Scale": self._numbers(spec.scales, np.float32),
                "ZeroPoint": self._numbers(spec.zero_points, np.int64),
                "QuantizedDimension": spec.axis,
            }
            if spec.has_custom_quantization:
                quantization["Details"] = self._table("CustomQuantization")
                quantization["DetailsType"] = QuantizationDetails.CustomQuantization
            if spec.blocks:
                quantization["Details"] = self._blocks(*spec.blocks)
                quantization["DetailsType"] = BLOCKWISE
            fields["Quantization"] = self._table("QuantizationParameters", **quantization)
        return self._table("Tensor", **fields)

    def _blocks(self, *fields: int) -> int:
        """Add a table that the package ``tflite`` does not have yet."""
        self.builder.StartObject(len(fields))
        for slot, value in enumerate(fields):
            self.builder.PrependInt32Slot(slot, value, 0)
        return int(self.builder.EndObject())

    def _operator(self, spec: OperatorSpec, code: int) -> int:
        fields: dict[str, int] = {
            "OpcodeIndex": code,
            "Inputs": self._numbers(spec.inputs, np.int32),
            "Outputs": self._numbers(spec.outputs, np.int32),
        }
        if spec.options_kind is not None:
            tag = getattr(BuiltinOptions, spec.options_kind) if spec.options_tag is None else spec.options_tag
            fields["BuiltinOptionsType"] = tag
            fields["BuiltinOptions"] = self._table(spec.options_kind, **self._texts(spec.options))
        if spec.decomposition is not None:
            fields["BuiltinOptions2Type"] = BuiltinOptions2.StableHLOCompositeOptions
            options = {
                "Name": self.builder.CreateString("odml.test"),
                "CompositeAttributes": self._numbers(list(flexbuffers.Dumps({})), np.uint8),
                "DecompositionSubgraphIndex": spec.decomposition,
            }
            fields["BuiltinOptions2"] = self._table("StableHLOCompositeOptions", **options)
        if spec.custom_options:
            fields["CustomOptions"] = self._numbers(list(spec.custom_options), np.uint8)
        return self._table("Operator", **fields)

    def _texts(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return ``fields`` with texts replaced by offsets; texts must be written before their table."""
        return {
            name: self.builder.CreateString(value) if isinstance(value, str | bytes) else value
            for name, value in fields.items()
        }

    def _table(self, kind: str, **fields: Any) -> int:
        """Write a table of the generated module ``kind``; values of vectors, strings and tables are their offsets."""
        module = importlib.import_module(f"tflite.{kind}")
        module.Start(self.builder)
        for name, value in fields.items():
            add: Callable[[Any, Any], None] = getattr(module, f"Add{name}")
            add(self.builder, value)
        return int(module.End(self.builder))

    def _numbers(self, values: Sequence[float], dtype: type[np.generic]) -> int:
        return int(self.builder.CreateNumpyVector(np.array(values, dtype)))

    def _offsets(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())
