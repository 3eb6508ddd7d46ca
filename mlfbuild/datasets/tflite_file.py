"""Network -> bytes of a .tflite file, with the `tflite` package's flatbuffers builders.

The front ends of audio are written with it, and the networks of the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite
from flatbuffers import flexbuffers

_TYPES = {
    "bool": tflite.TensorType.BOOL,
    "float32": tflite.TensorType.FLOAT32,
    "int8": tflite.TensorType.INT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "uint32": tflite.TensorType.UINT32,
    "uint64": tflite.TensorType.UINT64,
}


@dataclass(frozen=True)
class FileTensor:
    """``data`` is None for an activation; ``scale`` has one entry, one per slice of ``axis``, or none.

    A ``variable`` keeps its value until the next run.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: npt.NDArray[np.generic] | None = None
    scale: tuple[float, ...] = ()
    zero_point: int = 0
    axis: int = 0
    variable: bool = False


@dataclass(frozen=True)
class FileOperator:
    """``name`` is TFLite's (``CONV_2D``); tensors by name; ``options`` are fields of the options table.

    An operator without ``options_table`` is a custom one.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options_table: str = ""
    options: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkFile:
    """A network with one input and one output; operators are in execution order."""

    description: str
    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    input: str
    output: str


def _table(builder: flatbuffers.Builder, name: str, fields: Mapping[str, int | float]) -> int:
    """Write a table of the schema; offsets in ``fields`` must exist already."""
    getattr(tflite, f"{name}Start")(builder)
    for key, value in fields.items():
        getattr(tflite, f"{name}Add{key}")(builder, value)
    return int(getattr(tflite, f"{name}End")(builder))


def _offsets(builder: flatbuffers.Builder, start: Callable[[flatbuffers.Builder, int], int], offsets: list[int]) -> int:
    """Write a vector of tables."""
    start(builder, len(offsets))
    # Files are written from the end to the beginning.
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _vector(builder: flatbuffers.Builder, dtype: str, values: Sequence[float]) -> int:
    return int(builder.CreateNumpyVector(np.asarray(values, dtype)))


def _data_buffer(builder: flatbuffers.Builder, data: npt.NDArray[np.generic]) -> int:
    """Write a buffer whose bytes start at a multiple of 16 in the file, as TFLite's own converter does."""
    raw = data.tobytes()
    builder.StartVector(1, len(raw), 16)
    for byte in reversed(raw):
        builder.PrependByte(byte)
    return _table(builder, "Buffer", {"Data": builder.EndVector()})


def _tensor(builder: flatbuffers.Builder, tensor: FileTensor, buffer: int) -> int:
    fields = {
        "Shape": _vector(builder, "int32", tensor.shape),
        "Type": _TYPES[tensor.dtype],
        "Buffer": buffer,
        "Name": builder.CreateString(tensor.name),
    }
    if tensor.scale:
        quantization = {
            "Scale": _vector(builder, "float32", tensor.scale),
            "ZeroPoint": _vector(builder, "int64", [tensor.zero_point] * len(tensor.scale)),
            "QuantizedDimension": tensor.axis,
        }
        fields["Quantization"] = _table(builder, "QuantizationParameters", quantization)
    if tensor.variable:
        fields["IsVariable"] = True
    return _table(builder, "Tensor", fields)


def _operator(builder: flatbuffers.Builder, operator: FileOperator, code: int, index: Mapping[str, int]) -> int:
    fields = {
        "OpcodeIndex": code,
        "Inputs": _vector(builder, "int32", [index[name] for name in operator.inputs]),
        "Outputs": _vector(builder, "int32", [index[name] for name in operator.outputs]),
    }
    if operator.options_table:
        fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, operator.options_table)
        fields["BuiltinOptions"] = _table(builder, operator.options_table, operator.options)
    else:
        fields["CustomOptions"] = builder.CreateByteVector(bytes(flexbuffers.Dumps(dict(operator.options))))
    return _table(builder, "Operator", fields)


def _operator_code(builder: flatbuffers.Builder, name: str) -> int:
    number = getattr(tflite.BuiltinOperator, name, tflite.BuiltinOperator.CUSTOM)
    fields = {"DeprecatedBuiltinCode": number, "BuiltinCode": number, "Version": 1}
    if number == tflite.BuiltinOperator.CUSTOM:
        fields["CustomCode"] = builder.CreateString(name)
    return _table(builder, "OperatorCode", fields)


def _subgraph(builder: flatbuffers.Builder, model: NetworkFile, codes: list[str], buffers: Mapping[str, int]) -> int:
    index = {tensor.name: position for position, tensor in enumerate(model.tensors)}
    tensors = [_tensor(builder, tensor, buffers.get(tensor.name, 0)) for tensor in model.tensors]
    operators = [_operator(builder, one, codes.index(one.name), index) for one in model.operators]
    fields = {
        "Tensors": _offsets(builder, tflite.SubGraphStartTensorsVector, tensors),
        "Inputs": _vector(builder, "int32", [index[model.input]]),
        "Outputs": _vector(builder, "int32", [index[model.output]]),
        "Operators": _offsets(builder, tflite.SubGraphStartOperatorsVector, operators),
        "Name": builder.CreateString("main"),
    }
    return _table(builder, "SubGraph", fields)


def write_tflite(model: NetworkFile) -> bytes:
    """Return the file's bytes, a function of ``model`` alone."""
    builder = flatbuffers.Builder(1 << 16)
    constants = [tensor for tensor in model.tensors if tensor.data is not None]
    buffers = [_table(builder, "Buffer", {})]  # buffer 0 is empty by convention: activations name it
    buffers += [_data_buffer(builder, tensor.data) for tensor in constants if tensor.data is not None]
    numbers = {tensor.name: number for number, tensor in enumerate(constants, start=1)}
    codes = sorted({operator.name for operator in model.operators})
    subgraph = _subgraph(builder, model, codes, numbers)
    code_tables = [_operator_code(builder, name) for name in codes]
    fields = {
        "Version": 3,
        "OperatorCodes": _offsets(builder, tflite.ModelStartOperatorCodesVector, code_tables),
        "Subgraphs": _offsets(builder, tflite.ModelStartSubgraphsVector, [subgraph]),
        "Description": builder.CreateString(model.description),
        "Buffers": _offsets(builder, tflite.ModelStartBuffersVector, buffers),
    }
    builder.Finish(_table(builder, "Model", fields), b"TFL3")
    return bytes(builder.Output())
