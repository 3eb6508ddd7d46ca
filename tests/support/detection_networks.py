"""Networks that find boxes: TFLite_Detection_PostProcess and NON_MAX_SUPPRESSION."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from support.drawing import Array, Drawing


def _detections(d: Drawing) -> None:
    """Add a detector whose anchors lie close together, so that many boxes overlap, and many scores are equal."""
    count, classes = d.size(1, 24), d.size(1, 4)
    numbers, background = d.choice(4, 4, 7), d.size(0, 1)
    boxes = d.input((1, count, numbers))
    scores = d.input((1, count, classes + background))
    if not d.quantized:
        d.values[-1] = (d.random.integers(0, 9, d.values[-1].shape) / 8).astype(np.float32)
    anchors = np.concatenate([d.random.uniform(0, 2, (count, 2)), d.random.uniform(0.5, 1.5, (count, 2))], axis=1)
    constant = d.network.constant(anchors.astype(np.float32))
    if d.quantized:
        constant = d.network.constant(d.random.integers(1, 127, (count, 4)).astype(np.int8), 0.02, -100)
    options = {
        "max_detections": d.size(1, 12), "max_classes_per_detection": 1, "num_classes": classes,
        "nms_score_threshold": d.choice(0.0, 0.25, 0.3), "nms_iou_threshold": d.choice(0.1, 0.5, 0.6, 1.0),
        "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 4.0,
    }  # fmt: skip
    if d.choice(True, False):
        options |= {"use_regular_nms": True, "detections_per_class": d.size(1, 5)}
    rows = options["max_detections"]
    outputs = [d.network.activation(shape) for shape in ((1, rows, 4), (1, rows), (1, rows), (1,))]
    d.network.custom("TFLite_Detection_PostProcess", [boxes, scores, constant], outputs, **options)


def defined(outputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of a detector with 0 in the rows after its detections, which runtimes do not write."""
    *rows, count = outputs
    return [np.where(np.arange(row.shape[1]).reshape(1, -1, *[1] * (row.ndim - 2)) < count, row, np.zeros_like(row))
            for row in rows] + [count]  # fmt: skip


def _selection(version: int) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        """Draw boxes with area and different scores: LiteRT does not define the order of others."""
        count, most = d.size(1, 20), d.size(1, 12)
        sources = [d.input((count, 4)), d.input((count,))]
        d.values[0] = _boxes(d.random, count)
        d.values[1] = ((d.random.permutation(count) + 1) / (count + 1)).astype(np.float32)
        numbers = [d.choice(0.1, 0.5, 0.8), d.choice(0.0, 0.3), *([0.0] if version == 5 else [])]
        constants = [d.network.constant(np.array(most, np.int32))]
        constants += [d.network.constant(np.array(number, np.float32)) for number in numbers]
        outputs = [d.network.activation((most,), dtype="int32"), d.network.activation((), dtype="int32")]
        if version == 5:
            outputs.insert(1, d.network.activation((most,)))
        kind = f"NonMaxSuppressionV{version}Options"
        d.network.many(f"NON_MAX_SUPPRESSION_V{version}", [*sources, *constants], outputs, kind)

    return draw


def _boxes(random: np.random.Generator, count: int) -> Array:
    """Return boxes of which any two opposite corners are first."""
    low, size = random.uniform(0, 2, (count, 2)), random.uniform(0.5, 1.5, (count, 2))
    corners = np.stack([low, low + size], axis=1)
    turned = random.integers(0, 2, (count, 1, 2))
    return np.take_along_axis(corners, np.concatenate([turned, 1 - turned], axis=1), 1).reshape(count, 4).astype("f4")


OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    "NON_MAX_SUPPRESSION_V4": _selection(4),
    "NON_MAX_SUPPRESSION_V5": _selection(5),
    "TFLite_Detection_PostProcess": _detections,
}

TYPES: Mapping[str, Sequence[str]] = {"TFLite_Detection_PostProcess": ("float32",)}
"""The element types of each operator that TensorFlow Lite Micro supports."""

LITERT: Mapping[str, Sequence[str]] = dict.fromkeys(("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"), ("float32",))
"""The element types of each operator that only LiteRT supports."""
