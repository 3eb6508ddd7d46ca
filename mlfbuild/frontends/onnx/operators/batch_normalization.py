"""BatchNormalization."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.frontends.onnx.layout import Value, channels_last
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.operators.scaling import scaled
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import Array, GraphError, Tensor, ops


def _batch_normalization(site: OnnxSite) -> tuple[Value, ...]:
    """Scale and shift every channel: y = (x - mean) / sqrt(variance + epsilon) * scale + bias."""
    if site.integer("training_mode", 0) or any(site.node.outputs[1:]):
        raise site.unsupported("training_mode is not supported", "export the network for inference")
    value = site.held(0)
    scale, bias, mean, variance = (
        site.constant(index, what).astype(np.float64)
        for index, what in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    order = channels_last(value.rank)
    if value.rank < 2 or any(array.shape != value.shape[1:2] for array in (scale, bias, mean, variance)):
        raise GraphError(site.node.place, f"has {scale.size} scales for {value.tensor}")
    factor = scale / np.sqrt(variance + site.real_attribute("epsilon", 1e-5))
    offset = bias - mean * factor
    in_integers = scaled(site, factor, offset)
    if in_integers is not None:
        return (in_integers,)
    source = site.builder.stored(site.value(0), order)
    product = site.emit(ops.Mul(), [source, _floats(site, "scale", factor)], source.shape)
    shifted = site.emit(ops.Add(), [product, _floats(site, "offset", offset)], source.shape)
    return (Value(shifted, order),)


def _floats(site: OnnxSite, word: str, values: Array) -> Tensor:
    return site.weights(word, values.astype(np.float32))


OPERATORS: Mapping[str, Converter] = {
    "BatchNormalization": _batch_normalization,
}
