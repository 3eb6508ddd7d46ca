"""BatchNormalization."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.frontends.onnx.layout import Value, channels_last
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import Array, GraphError, Tensor, ops


def _batch_normalization(site: OnnxSite) -> tuple[Value, ...]:
    """Scale and shift every channel: y = (x - mean) / sqrt(variance + epsilon) * scale + bias."""
    if site.integer("training_mode", 0) or any(site.node.outputs[1:]):
        raise site.unsupported("training_mode is not supported", "export the network for inference")
    value = site.value(0)
    scale, bias, mean, variance = (
        site.constant(index, what).astype(np.float64)
        for index, what in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    order = channels_last(value.rank)
    source = site.builder.stored(value, order)
    if value.rank < 2 or any(array.shape != source.shape[-1:] for array in (scale, bias, mean, variance)):
        raise GraphError(site.node.place, f"has {scale.size} scales for {source}")
    factor = scale / np.sqrt(variance + site.real_attribute("epsilon", 1e-5))
    scaled = site.emit(ops.Mul(), [source, _floats(site, "scale", factor)], source.shape)
    shifted = site.emit(ops.Add(), [scaled, _floats(site, "offset", bias - mean * factor)], source.shape)
    return (Value(shifted, order),)


def _floats(site: OnnxSite, word: str, values: Array) -> Tensor:
    return site.weights(word, values.astype(np.float32))


OPERATORS: Mapping[str, Converter] = {
    "BatchNormalization": _batch_normalization,
}
