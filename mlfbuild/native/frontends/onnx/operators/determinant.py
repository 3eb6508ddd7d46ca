"""Det."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import ops


def _det(site: OnnxSite) -> tuple[Value, ...]:
    source = site.tensor(0)
    return (site.made(site.emit(ops.Determinant(), [source], source.shape[:-2])),)


OPERATORS: Mapping[str, Converter] = {
    "Det": _det,
}
