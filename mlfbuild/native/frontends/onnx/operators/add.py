"""Add, Sub, Sum and Mean."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.elementwise import arithmetic, of_any_number, with_integer_form
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import ops


def _mean(site: OnnxSite) -> tuple[Value, ...]:
    """Take the mean of all inputs."""
    result = site.value(0)
    for index in range(1, len(site.node.inputs)):
        result = arithmetic(site, ops.Add(), result, site.value(index))
    share = site.number("share", 1 / len(site.node.inputs))
    return (Value(site.emit(ops.Mul(), [result.tensor, share], result.tensor.shape), result.order),)


OPERATORS: Mapping[str, Converter] = {
    "Add": with_integer_form(ops.Add()),
    "Mean": _mean,
    "Sub": with_integer_form(ops.Sub()),
    "Sum": of_any_number(ops.Add()),
}
