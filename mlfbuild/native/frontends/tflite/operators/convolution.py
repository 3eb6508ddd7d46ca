"""Options that CONV_2D and DEPTHWISE_CONV_2D share."""

from __future__ import annotations

from typing import Any

from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph.bases import Padding, Pair


def window(site: TfliteSite, options: Any) -> tuple[Pair, Pair, Padding]:
    """Return (stride, dilation, padding) of a convolution."""
    weights = site.input(1)
    if len(weights.shape) != 4:
        raise site.wrong(f"the weights {weights} must have 4 dimensions")
    stride = (options.StrideH(), options.StrideW())
    dilation = (options.DilationHFactor(), options.DilationWFactor())
    filter_size = (weights.shape[1], weights.shape[2])
    return stride, dilation, site.padding(options.Padding(), filter_size, stride, dilation)
