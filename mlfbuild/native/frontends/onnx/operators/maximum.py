"""Max and Min."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.elementwise import extreme
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Operator, ops


def _extreme(operator: Operator) -> Converter:
    """Return a converter; in integers, all tensors get the scale of the first input."""

    def convert(site: OnnxSite) -> tuple[Value, ...]:
        values = [site.held(index) for index in range(len(site.node.inputs))]
        first = values[0]
        if first.quantization is None or any(value.quantization != first.quantization for value in values):
            values = [site.builder.plain(value) for value in values]
        result = values[0]
        for value in values[1:]:
            result = extreme(site, operator, result, value)
        return (result,)

    return convert


OPERATORS: Mapping[str, Converter] = {
    "Max": _extreme(ops.Maximum()),
    "Min": _extreme(ops.Minimum()),
}
