"""Operators of ai.onnx.ml that prepare features: Scaler, Normalizer, Binarizer, Imputer, OneHotEncoder and others."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    binary,
    cast,
    divide,
    multiply,
    reduced,
    relation,
    select,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.classification import numbers, rows
from mlfbuild.native.frontends.onnx.operators.gather import check_indices, taken
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops


def _along(site: OnnxSite, name: str, source: Tensor, default: float) -> Tensor:
    """Return the attribute ``name``: one number, or one for each feature of ``source``."""
    values = numbers(site, name)
    values = values if values.size else np.full(1, default, np.float32)
    if values.size not in {1, *source.shape[-1:]}:
        raise GraphError(site.node.place, f"attribute {name} has {values.size} elements, which do not fit {source}")
    return site.weights(name, values)


def _scaler(site: OnnxSite) -> tuple[Value, ...]:
    source = cast(site, site.tensor(0), DType.FLOAT32)
    moved = binary(site, ops.Sub(), source, _along(site, "offset", source, 0.0))
    return (site.made(binary(site, ops.Mul(), moved, _along(site, "scale", source, 1.0))),)


_LEAST_NORM = 1e-30


def _normalizer(site: OnnxSite) -> tuple[Value, ...]:
    """Divide each row by the sum, the greatest or the length of its magnitudes."""
    source, norm = rows(site), site.text("norm", "MAX")
    if norm == "L2":
        length = unary(site, ops.Sqrt(), reduced(site, ops.Sum, multiply(site, source, source), (1,)))
    elif norm in {"L1", "MAX"}:
        length = reduced(site, ops.Sum if norm == "L1" else ops.ReduceMax, unary(site, ops.Abs(), source), (1,))
    else:
        raise GraphError(site.node.place, f"has the norm {norm!r}")
    least = binary(site, ops.Maximum(), length, site.number("least", _LEAST_NORM))
    return (site.made(divide(site, source, least)),)


def _binarizer(site: OnnxSite) -> tuple[Value, ...]:
    """Return 1 for elements above the threshold, else 0."""
    value = site.value(0)
    above = relation(site, ops.Greater(), cast(site, value.tensor, DType.FLOAT32), site.real_attribute("threshold", 0))
    return (Value(cast(site, above, value.dtype), value.order),)


def _imputer(site: OnnxSite) -> tuple[Value, ...]:
    """Replace one number, usually NaN, by a number for all features or for each."""
    source = site.tensor(0)
    if source.dtype is DType.FLOAT32:
        wanted, replaced = numbers(site, "imputed_value_floats"), site.real_attribute("replaced_value_float", 0.0)
    else:
        wanted = np.array(site.integers("imputed_value_int64s") or (), source.dtype.numpy)
        replaced = site.integer("replaced_value_int64", 0)
    if wanted.size not in {1, *source.shape[-1:]}:
        raise GraphError(site.node.place, f"{wanted.size} imputed values do not fit {source}")
    if math.isnan(replaced):
        missing = relation(site, ops.NotEqual(), source, source)
    else:
        number = site.weights("replaced", np.array(replaced, source.dtype.numpy))
        missing = relation(site, ops.Equal(), source, number)
    return (site.made(select(site, missing, site.weights("imputed", wanted), source)),)


def _one_hot_encoder(site: OnnxSite) -> tuple[Value, ...]:
    """Return 1 at the position of each element among the categories; elements of no category become zeros."""
    categories = np.array(site.integers("cats_int64s") or (), np.int64)
    if not categories.size:
        raise site.unsupported("categories that are texts are not supported", "encode the texts in the firmware")
    if not site.integer("zeros", 1):
        raise site.unsupported(
            "zeros = 0, which fails for an element of no category, is not supported",
            'create the encoder with handle_unknown="ignore"',
        )
    return (site.made(cast(site, matches(site, site.tensor(0), categories), DType.FLOAT32)),)


def matches(site: OnnxSite, source: Tensor, keys: Array) -> Tensor:
    """Return whether each element equals each of ``keys``, along a new last dimension."""
    source = source if source.dtype is DType.FLOAT32 else cast(site, source, DType.INT64)
    typed = keys.astype(source.dtype.numpy)
    if not np.array_equal(typed, keys):
        raise site.unsupported(f"keys that {source.dtype.value} cannot represent are not supported")
    column = site.builder.reshaped(source, (*source.shape, 1))
    return relation(site, ops.Equal(), column, site.weights("keys", typed))


def _feature_vectorizer(site: OnnxSite) -> tuple[Value, ...]:
    """Join the features of all inputs, each cut or filled with zeros to the declared number."""
    widths = site.integers("inputdimensions") or ()
    if len(widths) != len(site.node.inputs) or min(widths, default=0) < 1:
        raise GraphError(site.node.place, f"declares {len(widths)} widths for {len(site.node.inputs)} inputs")
    parts = []
    for index, wanted in enumerate(widths):
        tensor = cast(site, site.tensor(index), DType.FLOAT32)
        tensor = site.builder.reshaped(tensor, (tensor.elements, 1)) if len(tensor.shape) == 1 else tensor
        if len(tensor.shape) != 2:
            raise GraphError(site.node.place, f"input {index} has {len(tensor.shape)} dimensions")
        part = sliced(site, site.made(tensor), [range(tensor.shape[0]), range(min(wanted, tensor.shape[1]))]).tensor
        missing = wanted - part.shape[1]
        parts.append(
            part if not missing else site.moved(ops.Pad(((0, 0), (0, missing))), part, (part.shape[0], wanted))
        )
    if len({part.shape[0] for part in parts}) > 1:
        raise GraphError(site.node.place, "joins inputs with different numbers of rows")
    shape = (parts[0].shape[0], sum(widths))
    return (site.made(site.emit(ops.Concatenation(1), parts, shape) if len(parts) > 1 else parts[0]),)


def _array_feature_extractor(site: OnnxSite) -> tuple[Value, ...]:
    """Select columns; a list of constants, the labels of classes, is one row."""
    positions = site.tensor(1)
    check_indices(site, positions.dtype.value)
    flat = site.builder.reshaped(positions, (positions.elements,))
    known = site.known.get(site.node.inputs[0])
    if known is not None and known.ndim == 1 and known.dtype.kind in "OSU":
        texts = tuple(text.decode(errors="replace") if isinstance(text, bytes) else str(text) for text in known)
        row = site.builder.reshaped(cast(site, flat, DType.INT64), (1, flat.elements))
        return (Value(row, (0, 1), labels=texts),)
    value = site.value(0)
    tensor = site.builder.stored(value, tuple(range(value.rank)))
    if not tensor.shape:
        raise GraphError(site.node.place, "selects columns of a number without dimensions")
    table = site.builder.reshaped(tensor, (1, *tensor.shape)) if len(tensor.shape) == 1 else tensor
    axis = len(table.shape) - 1
    if positions.data is not None:
        chosen = positions.data.reshape(-1)
        if chosen.min() < -table.shape[axis] or chosen.max() >= table.shape[axis]:
            raise GraphError(site.node.place, f"selects columns that are not in {table}")
        return (taken(site, site.made(table), axis, chosen % table.shape[axis]),)
    return (site.made(site.emit(ops.Gather(axis), [table, flat], (*table.shape[:-1], flat.elements))),)


OPERATORS: Mapping[str, Converter] = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "Binarizer": _binarizer,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot_encoder,
    "Scaler": _scaler,
}
