"""TFLite_Detection_PostProcess, NON_MAX_SUPPRESSION_V4 and V5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mlfbuild.native.frontends.tflite.operators.site import TfliteRow, TfliteSite
from mlfbuild.native.frontends.tflite.reader import RawSubgraph, reading
from mlfbuild.native.graph import Operator, ops

_PER_CLASS = 100
"""Detections of a class if the options do not limit them, as in TensorFlow Lite Micro and LiteRT."""


def detector(place: str, options: Any) -> ops.DetectionPostProcess:
    """Return the operator that the options of a TFLite_Detection_PostProcess, a map in a FlexBuffer, describe.

    Runtimes find them by name: others are ignored, and a number that is absent is 0.
    """
    with reading(place):
        found = _numbers(options)
        y, x, height, width, score, overlap = (
            float(found.get(name, 0))
            for name in ("y_scale", "x_scale", "h_scale", "w_scale", "nms_score_threshold", "nms_iou_threshold")
        )
        labels, rows, per_anchor, regular, per_class = (
            int(found.get(name, default))
            for name, default in (("num_classes", 0), ("max_detections", 0), ("max_classes_per_detection", 0),
                                  ("use_regular_nms", 0), ("detections_per_class", _PER_CLASS))
        )  # fmt: skip
        return ops.DetectionPostProcess(
            (y, x, height, width), labels, score, overlap, rows, per_anchor, per_class if regular else None
        )


def _numbers(options: bytes) -> dict[str, float]:
    """Return the numbers of a map in a FlexBuffer; raises ``ValueError`` and others if it is damaged."""
    from flatbuffers import flexbuffers

    try:
        found = flexbuffers.GetRoot(bytearray(options)).AsMap
        # Numbers are float32 in the kernels, whatever width the buffer has.
        with np.errstate(over="ignore"):
            return {
                key.AsKey: float(np.float32(value.AsFloat)) if value.IsFloat else int(value.AsInt)
                for key, value in zip(found.Keys, found.Values, strict=True)
                if value.IsInt or value.IsBool or value.IsFloat
            }
    except (KeyError, AssertionError):  # an offset leads out of the bytes
        raise ValueError from None


def resized(raw: RawSubgraph) -> RawSubgraph:
    """Return ``raw`` with the shapes that TFLite_Detection_PostProcess writes; converters write others, or none."""
    found = [operator for operator in raw.operators if operator.custom_code == "TFLite_Detection_PostProcess"]
    tensors = list(raw.tensors)
    for operator in found:
        shapes = detector(f"{raw.place}operator {operator.index}", operator.options).shapes()
        for index, shape in zip(operator.outputs, shapes, strict=False):
            # A shape with a 0 means that the options are wrong, which the check of the operator reports.
            if 0 <= index < len(tensors) and min(shape) > 0:
                tensors[index] = replace(tensors[index], shape=shape)
    return replace(raw, tensors=tuple(tensors)) if found else raw


def _selection(site: TfliteSite, kind: type[ops.NonMaxSuppressionV4]) -> Operator:
    if len(site.inputs) > 5 and site.scalar(5, "soft_nms_sigma") > 0:
        raise site.unsupported("a soft_nms_sigma above 0, which lowers scores instead of leaving out boxes, "
                               "is not supported", "use 0")  # fmt: skip
    (most,) = site.integers(2, "number of boxes", 1)
    return kind(most, site.scalar(3, "iou_threshold"), site.scalar(4, "score_threshold"))


ROWS: Mapping[str, TfliteRow] = {
    "NON_MAX_SUPPRESSION_V4": TfliteRow(lambda site: _selection(site, ops.NonMaxSuppressionV4), 2, 3),
    "NON_MAX_SUPPRESSION_V5": TfliteRow(lambda site: _selection(site, ops.NonMaxSuppressionV5), 2, 4),
    "TFLite_Detection_PostProcess": TfliteRow(lambda site: detector(site.place, site.options), 3),
}
