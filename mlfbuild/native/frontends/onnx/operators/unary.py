"""Converters of operators that compute element by element on one tensor, regardless of its stored order."""

from __future__ import annotations

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    cast,
    of_one_tensor,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.elementwise import NARROW
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, Operator, Tensor
from mlfbuild.native.graph.bases import Tabulated


def unary_converter(operator: Operator) -> Converter:
    """Return the converter of an operator without an integer form."""
    return of_one_tensor(lambda site, x: unary(site, operator, x))


def with_integers(operator: Operator) -> Converter:
    """Return the converter of an operator whose integer form supports all scales.

    It is used for int16. int8 becomes a table of the float32 function, which has its exact values, and so do functions
    whose integer form is a table already: for int16, its interpolation may be too coarse.
    """

    def convert(site: OnnxSite) -> tuple[Value, ...]:
        held, target = site.held(0), site.held_target
        int16 = held.quantization is not None and held.tensor.dtype is DType.INT16
        if int16 and target is not None and not isinstance(operator, Tabulated):
            made = site.attempt(operator, [held.tensor], held.tensor.shape, target)
            if made is not None:
                return (site.real(made, held.order),)
        return of_integers_too(operator)(site)

    return convert


def of_integers_too(operator: Operator) -> Converter:
    """Return the converter of an operator that also has a form for int32; narrow integers wrap around."""

    def compute(site: OnnxSite, x: Tensor) -> Tensor:
        if x.dtype not in NARROW:
            return unary(site, operator, x)
        return cast(site, unary(site, operator, cast(site, x, DType.INT32)), x.dtype)

    return of_one_tensor(compute)
