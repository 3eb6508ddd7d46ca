"""Make inputs of a model constant, such as the sample rate that selects a branch of ``If``.

Everything that depends only on constants is computed when the model is read, so that branches that are never taken
leave the network, and so do their weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx

from mlfbuild.core import UsageError, listed, suggestion
from mlfbuild.native.frontends.onnx.dimensions import fixed_shape
from mlfbuild.native.frontends.onnx.raw_graph import RawModel, RawPort
from mlfbuild.native.graph import Array


def with_constants(raw: RawModel, constants: Mapping[str, int | float | bool], name: str) -> RawModel:
    """Return ``raw`` with ``constants`` in the place of inputs: each element of the input is the number.

    Raises ``UsageError`` if there is no such input, if it cannot hold the number, or if no input would be left.
    """
    inputs = {port.name: port for port in raw.inputs}
    for key in constants:
        if key not in inputs:
            near = suggestion(key, inputs) or f"; it has {listed([*inputs])}"
            reason = f"the model has no input {key!r}{near}"
            raise UsageError("constant-without-input", place=f"{name}: constants.{key}", reason=reason)
    arrays = {key: _filled(inputs[key], value, f"{name}: constants.{key}") for key, value in constants.items()}
    left = tuple(port for port in raw.inputs if port.name not in constants)
    return replace(raw, inputs=left, constants={**raw.constants, **arrays})


def _filled(port: RawPort, value: float | bool, place: str) -> Array:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(port.type)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            element = np.array(value).astype(dtype)
    except OverflowError:
        element = None
    # A float may be rounded to its type, an integer may not.
    fits = element is not None and (np.isfinite(element) if dtype.kind == "f" else element == value)
    if element is None or not fits or isinstance(value, bool) != (dtype == np.bool_):
        reason = f"the input is {dtype.name}, which cannot be {value}"
        raise UsageError("constant-of-another-type", place=place, reason=reason, hint=f"write a value of {dtype.name}")
    return np.broadcast_to(element, fixed_shape(port))  # takes no memory, regardless of the shape
