"""CDist of the domain com.microsoft, which skl2onnx writes for nearest neighbours with ``optim="cdist"``."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, unary
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import ops


def _distances(site: OnnxSite) -> tuple[Value, ...]:
    rows, points, metric = site.tensor(0), site.tensor(1), site.text("metric", "sqeuclidean")
    if metric not in {"euclidean", "sqeuclidean"}:
        raise site.unsupported(f"the metric {metric} is not supported", "use euclidean or sqeuclidean")
    made = site.emit(ops.SquaredDistances(), [rows, points], (*rows.shape[:1], *points.shape[:1]))
    return (site.made(unary(site, ops.Sqrt(), made) if metric == "euclidean" else made),)


OPERATORS: Mapping[str, Converter] = {
    "CDist": _distances,
}
