"""HardSwish and HardSigmoid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    multiply,
    of_one_tensor,
)
from mlfbuild.native.frontends.onnx.operators.batch_normalization import scaled
from mlfbuild.native.frontends.onnx.operators.relu import clamped, clamped_integers
from mlfbuild.native.frontends.onnx.operators.unary import with_integers
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, ops


def _hard_sigmoid(site: OnnxSite) -> tuple[Value, ...]:
    """Y = max(0, min(1, alpha * x + beta))."""
    alpha, beta = site.real_attribute("alpha", 0.2), site.real_attribute("beta", 0.5)
    held = site.held(0)
    if held.quantization is not None and held.tensor.dtype is DType.INT16:  # int8 becomes a table
        made = scaled(site, np.float64(alpha), np.float64(beta), held.order)
        if made is not None:
            return (clamped_integers(site, made, 0.0, 1.0),)
    return of_one_tensor(lambda site, x: clamped(site, add(site, multiply(site, x, alpha), beta), 0.0, 1.0))(site)


OPERATORS: Mapping[str, Converter] = {
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": with_integers(ops.HardSwish()),
}
