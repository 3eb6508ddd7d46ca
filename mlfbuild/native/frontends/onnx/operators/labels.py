"""LabelEncoder and ZipMap.

Firmware has no texts: a tensor of texts is a tensor of positions in a list of labels, which the generated header
contains. LabelEncoder maps positions to numbers or to positions in another list; ZipMap changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, cast
from mlfbuild.native.frontends.onnx.conversion.classification import (
    class_labels,
    matches,
    numbers,
    texts,
    weighted_sums,
)
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

_EXACT = 1 << 24
"""The most keys whose positions float32 represents exactly."""


def _label_encoder(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    keys, values, default = _mapping(op, bool(value.labels))
    if len(keys) != len(values) or not len(keys):
        raise GraphError(op.node.place, f"maps {len(keys)} keys to {len(values)} values")
    position = _labels_found(op, value, keys) if value.labels else _numbers_found(op, value.tensor, keys)
    table = [default, *values]
    if isinstance(default, str):
        labels = tuple(dict.fromkeys(map(str, table)))
        places = np.array([labels.index(str(text)) for text in table], np.int64)
        return (Value(_looked_up(op, places, position), value.order, labels=labels),)
    return (Value(_looked_up(op, np.array(table, _dtype(values)), position), value.order),)


def _dtype(values: Sequence[int | float | str] | Array) -> np.dtype[np.generic]:
    return values.dtype if isinstance(values, np.ndarray) else np.dtype(np.int64)


def _looked_up(op: OpContext, table: Array, positions: Tensor) -> Tensor:
    return op.emit(ops.Gather(0), [op.weights("values", table), positions], positions.shape)


def _labels_found(op: OpContext, value: Value, keys: Sequence[int | float | str] | Array) -> Tensor:
    """Return 1 + the position in ``keys`` of the text that each element stands for, 0 if it is none of them."""
    known = {str(key): at + 1 for at, key in enumerate(keys)}
    return _looked_up(op, np.array([known.get(label, 0) for label in value.labels], np.int32), value.tensor)


def _numbers_found(op: OpContext, source: Tensor, keys: Sequence[int | float | str] | Array) -> Tensor:
    """Return 1 + the position of each element in ``keys``, 0 if it is none of them; the last of equal keys counts."""
    last = {key: at + 1 for at, key in enumerate(np.asarray(keys).tolist())}
    if len(keys) >= _EXACT or any(key != key for key in last):
        raise op.unsupported("NaN as a key, or more than 16,777,215 keys, are not supported")
    found = cast(op, matches(op, source, np.array(list(last))), DType.FLOAT32)
    rows = op.builder.reshaped(found, (source.elements, len(last)))
    positions = weighted_sums(op, rows, np.array([list(last.values())], np.float32), np.zeros(0, np.float32))
    return op.builder.reshaped(cast(op, positions, DType.INT32), source.shape)


_KINDS = {"int64s": "int64", "floats": "float", "strings": "string"}
_DEFAULTS = {"int64": -1, "float": -0.0, "string": "_Unused"}


def _mapping(
    op: OpContext, of_texts: bool
) -> tuple[Sequence[int | float | str] | Array, Sequence[int | float | str] | Array, int | float | str]:
    """Return the keys, their values, and the value of everything else."""
    classes = texts(op, "classes_strings")
    if classes:  # version 1, from texts to positions or from positions to texts
        if of_texts:
            return classes, np.arange(len(classes)), op.integer("default_int64", -1)
        return np.arange(len(classes)), classes, op.text("default_string", "_Unused")
    keys, _ = _list(op, "keys")
    values, kind = _list(op, "values")
    tensor = op.node.attributes.get("default_tensor")
    if isinstance(tensor, np.ndarray) and tensor.size == 1:
        return keys, values, tensor.reshape(-1).tolist()[0]
    if kind == "string":
        return keys, values, op.text("default_string", "_Unused")
    return (
        keys,
        values,
        (op.integer("default_int64", -1) if kind == "int64" else op.real_attribute("default_float", -0.0)),
    )


def _list(op: OpContext, side: str) -> tuple[Sequence[int | float | str] | Array, str]:
    tensor = op.node.attributes.get(f"{side}_tensor")
    if isinstance(tensor, np.ndarray):
        if tensor.dtype.kind in "OSU":
            return [text.decode() if isinstance(text, bytes) else str(text) for text in tensor.reshape(-1)], "string"
        if tensor.dtype.kind in "iu":
            return tensor.reshape(-1), "int64"
        if tensor.dtype == np.float32:
            return tensor.reshape(-1), "float"
        raise op.unsupported(f"{side} of {tensor.dtype.name} are not supported", "use float32", "type-unsupported")
    found = texts(op, f"{side}_strings")
    if found:
        return found, "string"
    integers = op.integers(f"{side}_int64s")
    if integers is not None:
        return np.array(integers, np.int64), "int64"
    return numbers(op, f"{side}_floats"), "float"


def _zip_map(op: OpContext) -> tuple[Value, ...]:
    """Return the input: the columns are in the order of the classes, whose labels the header contains."""
    value = op.value(0)
    labels = tuple(map(str, class_labels(op)))
    if value.rank not in {1, 2} or len(labels) != value.shape[-1]:
        raise GraphError(op.node.place, f"names {len(labels)} columns of {value.tensor}")
    return (Value(op.tensor(0), as_onnx(value.rank), labels=labels),)


OPERATORS: Mapping[str, Converter] = {
    "LabelEncoder": _label_encoder,
    "ZipMap": _zip_map,
}
