"""Read a ``.tflite`` file as plain values, without trusting its offsets and lengths.

The generated accessors of the ``tflite`` package do not check whether an offset is inside the file. Every access
therefore happens inside ``reading``, which turns their exceptions into a ``GraphError`` that names the place. The total
size of vectors and strings is bounded, so that overlapping vectors in a small file cannot use up all memory.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from flatbuffers.number_types import Int32Flags
from tflite.BuiltinOperator import BuiltinOperator
from tflite.Model import Model
from tflite.QuantizationDetails import QuantizationDetails

from mlfbuild.native.frontends.errors import DamagedFileError
from mlfbuild.native.graph import Array, GraphError

SEE = "see docs/operators.md, or use another compiler (tvm or command)"
"""The hint of errors that have no better one."""

SCHEMA_VERSION = 3
IDENTIFIER = b"TFL3"

BLOCKWISE = 2
"""BlockwiseQuantization among the kinds of QuantizationDetails."""
MAXIMUM_RANK = 8
MAXIMUM_COUNT = 1 << 16
"""The greatest number of tensors, and of operators."""

MAXIMUM_NAME = 500
"""Characters of a name that are kept; longer names would make messages unreadable."""

_LAST_OLD_CODE = 127
"""The value of deprecated_builtin_code, a signed byte, for all operators that do not fit into it."""

_BUILTIN_CODE = 10
"""Place of the field builtin_code in the vtable of an OperatorCode (schema.fbs)."""

MAXIMUM_METADATA = 1 << 26
"""Bytes of vectors and strings without weights; the largest models for microcontrollers have less than 2**20."""


@dataclass(frozen=True)
class RawTensor:
    """A tensor as in the file; ``data`` is a view of the file's bytes, ``None`` without content.

    ``signature`` is the shape, with -1 for free sizes, and empty if the file has none. ``quantization_details`` is the
    kind of a quantisation other than scales and zero points, such as a scale for each of the ``blocks`` of weights.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    type: int
    data: Array | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    is_variable: bool
    is_sparse: bool
    quantization_details: int
    blocks: WeightBlocks | None


@dataclass(frozen=True)
class RawOperator:
    """An operator as in the file: tensor indices (-1: absent) and its options, for a custom operator their bytes.

    ``options`` is a table of the generated schema; ``options_type`` tells which, a member of ``BuiltinOptions``.
    """

    index: int
    code: int
    custom_code: str
    """The name of a custom operator, empty for others."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options_type: int
    options: Any
    unsigned: bool = False
    """Whether it computes with uint8, although its tensors are held as int8 (``unsigned``)."""


@dataclass(frozen=True)
class RawSubgraph:
    """One subgraph of a file. The first one runs; its operators call the others.

    Indices of tensors count within the subgraph.
    """

    place: str
    """The prefix of places in messages: empty for the first subgraph, ``subgraph 1, `` for the second."""
    tensors: tuple[RawTensor, ...]
    operators: tuple[RawOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class WeightBlocks(NamedTuple):
    """The tensors with scales and zero points (-1 or 0: none) of blocks, and the number of weights in a block."""

    scales: int
    zero_points: int
    size: int


@contextlib.contextmanager
def reading(place: str) -> Iterator[None]:
    """Convert the exceptions of generated accessors for wrong offsets and lengths to a ``GraphError`` at ``place``.

    The accessors of flatbuffers check nothing, so that damaged files lead to any of these exceptions, at any place.
    """
    try:
        yield
    except GraphError:
        raise
    except (struct.error, ValueError, IndexError, OverflowError, TypeError):  # TypeError: negative offsets
        raise DamagedFileError(place, "an offset or a length leads out of the file") from None


class Reader:
    """Reads the bytes of one file; raises ``GraphError`` if they are not a TFLite model."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        # Twice the file, because strings and vectors may be shared by a few tables in valid files.
        self._budget = min(2 * len(data), MAXIMUM_METADATA)
        if not data:
            raise DamagedFileError("header", "the file is empty")
        # The identifier follows the offset of the root table (flatbuffers, "File identification").
        if len(data) < 8 or data[4:8] != IDENTIFIER:
            raise DamagedFileError(
                "header", f"not a TFLite model, as the file identifier {IDENTIFIER.decode()} is missing"
            )
        with reading("header"):
            self._model = Model.GetRootAs(data)
            version = self._model.Version()
        if version != SCHEMA_VERSION:
            raise GraphError("header", f"schema version {version}, not {SCHEMA_VERSION}")

    def read(self) -> tuple[RawSubgraph, ...]:
        """Return the subgraphs, at least one, as plain values."""
        with reading("subgraphs"):
            count = self._count("subgraphs", self._model.SubgraphsLength())
        if count == 0:
            raise GraphError("subgraphs", "there are none")
        with reading("operators"):
            codes = self._codes()
        return tuple(self._subgraph(index, codes) for index in range(count))

    def signatures(self) -> dict[str, int]:
        """Return the index of the subgraph of each signature, which ``read`` has."""
        with reading("signatures"):
            count = self._count("signatures", self._model.SignatureDefsLength())
            found: dict[str, int] = {}
            for definition in map(self._model.SignatureDefs, range(count)):
                name, index = definition.SignatureKey() or b"", definition.SubgraphIndex()
                self._charge(len(name))
                if index >= self._model.SubgraphsLength():
                    raise GraphError("signatures", f"{_text(name)!r} names subgraph {index}")
                # A signature without a name, or one that occurs twice, is not worth a refusal: the first one counts.
                found.setdefault(_text(name), int(index))
        return found

    def metadata(self, name: str) -> bytes | None:
        """Return the content of the metadata called ``name``, ``None`` if there is none."""
        with reading("metadata"):
            count = self._count("metadata", self._model.MetadataLength())
            for entry in map(self._model.Metadata, range(count)):
                found = entry.Name() or b""
                self._charge(len(found))
                if _text(found) == name:
                    content = self._content(entry.Buffer())
                    return None if content is None else self._vector(content).tobytes()
        return None

    def _subgraph(self, index: int, codes: Sequence[tuple[int, str]]) -> RawSubgraph:
        place = f"subgraph {index}, " if index else ""
        with reading("subgraphs"):
            subgraph = self._model.Subgraphs(index)
            inputs = self._indices(subgraph.InputsAsNumpy())
            outputs = self._indices(subgraph.OutputsAsNumpy())
        tensors, operators = self._tensors(subgraph, place), self._operators(subgraph, codes, place)
        return RawSubgraph(place, tensors, operators, inputs, outputs)

    def _tensors(self, subgraph: Any, subgraph_place: str) -> tuple[RawTensor, ...]:
        with reading(f"{subgraph_place}tensors"):
            count = self._count("tensors", subgraph.TensorsLength())
        return tuple(self._tensor(subgraph, index, f"{subgraph_place}tensor {index}") for index in range(count))

    def _tensor(self, subgraph: Any, index: int, place: str) -> RawTensor:
        with reading(place):
            tensor = subgraph.Tensors(index)
            name = tensor.Name() or b""
            self._charge(len(name))
            shape = self._indices(tensor.ShapeAsNumpy())
            signature = self._indices(tensor.ShapeSignatureAsNumpy())
            if len(shape) > MAXIMUM_RANK:
                raise GraphError(place, f"{len(shape)} dimensions, more than {MAXIMUM_RANK}")
            quantization = tensor.Quantization()
            # Quantisation may be absent, as in float32 models.
            scales, zero_points, axis, details = self._quantization(quantization)
            blocks = _blocks(quantization) if details == BLOCKWISE else None
            return RawTensor(
                index, _text(name), shape, signature, tensor.Type(), self._content(tensor.Buffer()),
                scales, zero_points, axis, bool(tensor.IsVariable()), tensor.Sparsity() is not None, details, blocks,
            )  # fmt: skip

    def _quantization(self, quantization: Any) -> tuple[tuple[float, ...], tuple[int, ...], int, int]:
        if quantization is None:
            return (), (), 0, QuantizationDetails.NONE
        scales = self._vector(quantization.ScaleAsNumpy())
        zero_points = self._vector(quantization.ZeroPointAsNumpy())
        axis, details = quantization.QuantizedDimension(), quantization.DetailsType()
        return tuple(scales.tolist()), tuple(zero_points.tolist()), axis, details

    def _content(self, index: int) -> Array | None:
        """Return the bytes of buffer ``index``; in large models they are after the flatbuffer, at ``Offset``."""
        count = self._model.BuffersLength()
        if not 0 <= index < count:
            raise DamagedFileError(f"buffer {index}", f"there are only {count}")
        with reading(f"buffer {index}"):
            buffer = self._model.Buffers(index)
            content: Any = buffer.DataAsNumpy()  # 0 if there is none
            # Files above 2 GB have buffers after the flatbuffer; 0 and 1 mean that there is none.
            if buffer.Offset() > 1:
                content = np.frombuffer(self._data, np.uint8, count=buffer.Size(), offset=buffer.Offset())
        return content if isinstance(content, np.ndarray) and content.size else None

    def _operators(
        self, subgraph: Any, codes: Sequence[tuple[int, str]], subgraph_place: str
    ) -> tuple[RawOperator, ...]:
        with reading(f"{subgraph_place}operators"):
            count = self._count("operators", subgraph.OperatorsLength())
        return tuple(
            self._operator(subgraph, index, codes, f"{subgraph_place}operator {index}") for index in range(count)
        )

    def _codes(self) -> tuple[tuple[int, str], ...]:
        """Return (code, custom code) of each kind of operator in the file."""
        count = self._count("operator codes", self._model.OperatorCodesLength())
        return tuple(self._code(self._model.OperatorCodes(index), index) for index in range(count))

    def _code(self, code: Any, index: int) -> tuple[int, str]:
        """Return the operator that runtimes take for ``code``: the greater of its two fields.

        Files older than the 128th operator have only the one-byte field, and some writers fill only the new one. Others
        write the same number into both, cut to 127 in the old one. A file with any other pair is refused, because
        programs that read only one of the fields would run another network.
        """
        custom = code.CustomCode() or b""
        self._charge(len(custom))
        old, new = code.DeprecatedBuiltinCode(), _builtin_code(code)
        if min(old, new) < 0 or (new != 0 and old not in {0, min(new, _LAST_OLD_CODE)}):
            raise GraphError(f"operator code {index}", f"builtin_code {new} contradicts deprecated_builtin_code {old}")
        return max(old, new), _text(custom)

    def _operator(self, subgraph: Any, index: int, codes: Sequence[tuple[int, str]], place: str) -> RawOperator:
        with reading(place):
            operator = subgraph.Operators(index)
            code = operator.OpcodeIndex()
            if not 0 <= code < len(codes):
                raise GraphError(place, f"operator code {code} of {len(codes)}")
            builtin, custom = codes[code]
            inputs, outputs = self._indices(operator.InputsAsNumpy()), self._indices(operator.OutputsAsNumpy())
            options = operator.BuiltinOptions()
            if builtin == BuiltinOperator.CUSTOM:
                options = self._vector(operator.CustomOptionsAsNumpy()).tobytes()
            kind = operator.BuiltinOptionsType()
            # Composites have their options in the second union of the schema.
            if builtin == BuiltinOperator.STABLEHLO_COMPOSITE:
                kind, options = operator.BuiltinOptions2Type(), operator.BuiltinOptions2()
            return RawOperator(index, builtin, custom, inputs, outputs, kind, options)

    def _indices(self, vector: Any) -> tuple[int, ...]:
        return tuple(self._vector(vector).tolist())

    def _vector(self, vector: Any) -> Array:
        """Return a numeric vector; the accessors return 0 for an absent one."""
        if not isinstance(vector, np.ndarray):
            return np.empty(0, np.int32)
        self._charge(vector.nbytes)
        return vector

    def _count(self, place: str, count: int) -> int:
        """Return the length of a vector of tables; raises ``GraphError`` if the file is too small for it."""
        if count > MAXIMUM_COUNT:
            raise GraphError(place, f"{count} of them, more than {MAXIMUM_COUNT}")
        self._charge(4 * count)
        return count

    def _charge(self, size: int) -> None:
        """Subtract ``size`` bytes of vectors or strings from the limit for the file."""
        self._budget -= size
        if self._budget < 0:
            raise DamagedFileError("vectors", "hold more than the file")


def _blocks(quantization: Any) -> WeightBlocks:
    """Return the fields of a BlockwiseQuantization, a table that the package ``tflite`` does not have yet."""
    table = quantization.Details()
    if table is None:
        raise ValueError
    # The vtable begins with two sizes of two bytes each.
    offsets = [table.Offset(4 + 2 * field) for field in range(len(WeightBlocks._fields))]
    return WeightBlocks(*(int(table.Get(Int32Flags, table.Pos + offset)) if offset else 0 for offset in offsets))


def _builtin_code(code: Any) -> int:
    """Return the field builtin_code as the file has it: the accessor returns the old field instead of values < 127."""
    table = code._tab  # noqa: SLF001 - nothing else leads to the field
    offset = table.Offset(_BUILTIN_CODE)
    return int(table.Get(Int32Flags, table.Pos + offset)) if offset else 0


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")[:MAXIMUM_NAME]
