"""Weights and biases of weighted sums: float32, or integers if the whole sum is computed in integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import Array, DType, Quantization, Tensor

_GREATEST_BIAS = 1 << 30
"""Half of the range of int32, so that the sum of products has the other half."""


@dataclass(frozen=True, eq=False)
class LayerParameters:
    """Weights of any rank and a bias for each output channel."""

    weights: Array
    bias: Array | None
    scales: Array | None = None
    """The scales of int8 weights (one, or one per output channel); the bias is then int32."""

    def channels(self, part: slice) -> LayerParameters:
        """Return the parameters of some output channels, which are dimension 0 of the weights."""
        bias = None if self.bias is None else self.bias[part]
        scales = self.scales if self.scales is None or self.scales.size == 1 else self.scales[part]
        return replace(self, weights=self.weights[part], bias=bias, scales=scales)

    def tensors(self, site: OnnxSite, weights: Array, axis: int) -> tuple[Tensor, Tensor | None]:
        """Add these parameters to the graph, with ``weights`` whose output channels are dimension ``axis``."""
        quantization = None
        if self.scales is not None:
            zero_points = (0,) * self.scales.size
            quantization = Quantization(
                tuple(map(float, self.scales)), zero_points, axis if self.scales.size > 1 else 0
            )
        bias = None if self.bias is None else site.weights("bias", self.bias)
        return site.weights("weights", weights, quantization), bias


def real_parameters(site: OnnxSite) -> LayerParameters:
    """Return inputs 1 and 2 as float32."""
    return LayerParameters(site.constant(1, "filter"), site.constant(2, "bias").reshape(-1) if site.has(2) else None)


def integer_parameters(site: OnnxSite, source: Quantization, axis: int) -> LayerParameters | None:
    """Return inputs 1 and 2 as integers, for an input quantised as ``source``.

    Return ``None`` if the weights are not int8 with zero point 0 (or uint8 with 128), with one scale or one per index
    of ``axis``, or if the bias does not fit into 32 bits.
    """
    weights = site.quantized(1)
    found = None if weights is None else weights.symmetric(axis)
    if found is None:
        return None
    stored, scales = found
    if not site.has(2):
        return LayerParameters(stored, None, scales)
    shape, channels = site.constant_shape(2), stored.shape[axis] if axis < stored.ndim else 0
    if shape is None or math.prod(shape) not in {1, channels}:
        return None
    bias = _integer_bias(site, np.float64(source.scale) * scales.astype(np.float64))
    return None if bias is None else LayerParameters(stored, bias, scales)


def _integer_bias(site: OnnxSite, scales: Array) -> Array | None:
    """Return input 2 as int32 with ``scales``, those of the products; unchanged if it has them already."""
    known = site.quantized(2)
    if (
        known is not None
        and known.stored.dtype == np.int32
        and not known.affine.zero_points.any()
        and known.affine.scales.size in {1, scales.size}
        and np.allclose(known.affine.scales.astype(np.float64).reshape(-1), scales, rtol=1e-5, atol=0)
    ):
        stored = known.stored.reshape(-1).astype(np.float64)
    else:
        stored = np.rint(site.constant(2, "bias").reshape(-1).astype(np.float64) / scales)
    if not (np.abs(stored) < _GREATEST_BIAS).all():
        return None
    return stored.astype(DType.INT32.numpy)
