"""Operators of ai.onnx.ml that prepare features: Scaler, Normalizer, Binarizer, Imputer, OneHotEncoder and others."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.classification import matches, numbers, rows
from mlfbuild.native.frontends.onnx.conversion.selection import check_indices, sliced, taken
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops


def _along(op: OpContext, name: str, source: Tensor, default: float) -> Tensor:
    """Return the attribute ``name``: one number, or one for each feature of ``source``."""
    values = numbers(op, name)
    values = values if values.size else np.full(1, default, np.float32)
    # One number for all features, or one for each of them.
    if values.size not in {1, *source.shape[-1:]}:
        raise GraphError(op.node.place, f"attribute {name} has {values.size} elements, which do not fit {source}")
    return op.weights(name, values)


def _scaler(op: OpContext) -> tuple[Value, ...]:
    source = op.cast(op.tensor(0), DType.FLOAT32)
    moved = op.binary(ops.Sub(), source, _along(op, "offset", source, 0.0))
    return (op.made(op.binary(ops.Mul(), moved, _along(op, "scale", source, 1.0))),)


# Rows of zeros stay zeros instead of becoming NaN.
_LEAST_NORM = 1e-30


def _normalizer(op: OpContext) -> tuple[Value, ...]:
    """Divide each row by the sum, the greatest or the length of its magnitudes."""
    source, norm = rows(op), op.text("norm", "MAX")
    if norm == "L2":
        length = op.unary(ops.Sqrt(), op.reduced(ops.Sum, op.multiply(source, source), (1,)))
    elif norm in {"L1", "MAX"}:
        length = op.reduced(ops.Sum if norm == "L1" else ops.ReduceMax, op.unary(ops.Abs(), source), (1,))
    else:
        raise GraphError(op.node.place, f"has the norm {norm!r}")
    least = op.binary(ops.Maximum(), length, op.number("least", _LEAST_NORM))
    return (op.made(op.divide(source, least)),)


def _binarizer(op: OpContext) -> tuple[Value, ...]:
    """Return 1 for elements above the threshold, else 0."""
    value = op.value(0)
    above = op.relation(ops.Greater(), op.cast(value.tensor, DType.FLOAT32), op.real_attribute("threshold", 0))
    return (Value(op.cast(above, value.dtype), value.order),)


def _imputer(op: OpContext) -> tuple[Value, ...]:
    """Replace one number, usually NaN, by a number for all features or for each."""
    source = op.tensor(0)
    if source.dtype is DType.FLOAT32:
        wanted, replaced = numbers(op, "imputed_value_floats"), op.real_attribute("replaced_value_float", 0.0)
    else:
        wanted = np.array(op.integers("imputed_value_int64s") or (), source.dtype.numpy)
        replaced = op.integer("replaced_value_int64", 0)
    if wanted.size not in {1, *source.shape[-1:]}:
        raise GraphError(op.node.place, f"{wanted.size} imputed values do not fit {source}")
    # NaN is the only number that differs from itself.
    if math.isnan(replaced):
        missing = op.relation(ops.NotEqual(), source, source)
    else:
        number = op.weights("replaced", np.array(replaced, source.dtype.numpy))
        missing = op.relation(ops.Equal(), source, number)
    return (op.made(op.select(missing, op.weights("imputed", wanted), source)),)


def _one_hot_encoder(op: OpContext) -> tuple[Value, ...]:
    """Return 1 at the position of each element among the categories; elements of no category become zeros."""
    categories = np.array(op.integers("cats_int64s") or (), np.int64)
    if not categories.size:
        raise op.unsupported("categories that are texts are not supported", "encode the texts in the firmware")
    # ONNX would fail at run time, which firmware cannot do.
    if not op.integer("zeros", 1):
        raise op.unsupported(
            "zeros = 0, which fails for an element of no category, is not supported",
            'create the encoder with handle_unknown="ignore"',
        )
    return (op.made(op.cast(matches(op, op.tensor(0), categories), DType.FLOAT32)),)


def _feature_vectorizer(op: OpContext) -> tuple[Value, ...]:
    """Join the features of all inputs, each cut or filled with zeros to the declared number."""
    widths = op.integers("inputdimensions") or ()
    if len(widths) != len(op.node.inputs) or min(widths, default=0) < 1:
        raise GraphError(op.node.place, f"declares {len(widths)} widths for {len(op.node.inputs)} inputs")
    parts = []
    for index, wanted in enumerate(widths):
        tensor = op.cast(op.tensor(index), DType.FLOAT32)
        tensor = op.builder.reshaped(tensor, (tensor.elements, 1)) if len(tensor.shape) == 1 else tensor
        if len(tensor.shape) != 2:
            raise GraphError(op.node.place, f"input {index} has {len(tensor.shape)} dimensions")
        part = sliced(op, op.made(tensor), [range(tensor.shape[0]), range(min(wanted, tensor.shape[1]))]).tensor
        missing = wanted - part.shape[1]
        # Fewer features than declared are filled with zeros, more are cut off.
        parts.append(part if not missing else op.moved(ops.Pad(((0, 0), (0, missing))), part, (part.shape[0], wanted)))
    if len({part.shape[0] for part in parts}) > 1:
        raise GraphError(op.node.place, "joins inputs with different numbers of rows")
    shape = (parts[0].shape[0], sum(widths))
    return (op.made(op.emit(ops.Concatenation(1), parts, shape) if len(parts) > 1 else parts[0]),)


def _array_feature_extractor(op: OpContext) -> tuple[Value, ...]:
    """Select columns; a list of constants, the labels of classes, is one row."""
    positions = op.tensor(1)
    check_indices(op, positions.dtype.value)
    flat = op.builder.reshaped(positions, (positions.elements,))
    known = op.known.get(op.node.inputs[0])
    if known is not None and known.ndim == 1 and known.dtype.kind in "OSU":
        texts = tuple(text.decode(errors="replace") if isinstance(text, bytes) else str(text) for text in known)
        row = op.builder.reshaped(op.cast(flat, DType.INT64), (1, flat.elements))
        return (Value(row, (0, 1), labels=texts),)
    value = op.value(0)
    tensor = op.builder.stored(value, tuple(range(value.rank)))
    if not tensor.shape:
        raise GraphError(op.node.place, "selects columns of a number without dimensions")
    table = op.builder.reshaped(tensor, (1, *tensor.shape)) if len(tensor.shape) == 1 else tensor
    axis = len(table.shape) - 1
    if positions.data is not None:
        chosen = positions.data.reshape(-1)
        if chosen.min() < -table.shape[axis] or chosen.max() >= table.shape[axis]:
            raise GraphError(op.node.place, f"selects columns that are not in {table}")
        # Negative positions count from the last column.
        return (taken(op, op.made(table), axis, chosen % table.shape[axis]),)
    return (op.made(op.emit(ops.Gather(axis), [table, flat], (*table.shape[:-1], flat.elements))),)


OPERATORS: Mapping[str, Converter] = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "Binarizer": _binarizer,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot_encoder,
    "Scaler": _scaler,
}
