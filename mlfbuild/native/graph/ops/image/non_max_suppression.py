"""Detections: the boxes with the best scores that do not overlap a better one.

``suppressed`` is the arithmetic that all operators of the family share, in float32 as their runtimes compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

CORNERS = 4
"""Numbers of a box: two opposite corners."""


def overlaps(box: Array, boxes: Array) -> Array:
    """Return the intersection of ``box`` with each of ``boxes``, divided by the union; 0 if one has no area.

    ``box`` has four numbers, two opposite corners, ``boxes`` [count, 4]. The result is float32 [count].
    """
    # Corners may be stored in any order: ONNX and TFLite both permit that.
    low, high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    lows, highs = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    with np.errstate(all="ignore"):
        area, areas = np.prod(high - low), np.prod(highs - lows, axis=1)
        # A negative side means that the boxes do not meet, and two of them would give a positive product.
        sides = np.minimum(high, highs) - np.maximum(low, lows)
        shared = np.prod(np.maximum(sides, np.float32(0)), axis=1)
        shares = shared / (area + areas - shared)
    return np.asarray(np.where((area > 0) & (areas > 0), shares, np.float32(0)))


def suppressed(
    boxes: Array, scores: Array, candidates: Array, most: int, limit: float, *, inclusive: bool = False
) -> list[int]:
    """Return at most ``most`` of ``candidates``, which are positions in ascending order, with the best score first.

    Of equal scores the first one is better. A box that overlaps a better one by more than ``limit`` is left out; if
    ``inclusive``, also one that overlaps it by ``limit``, as does a box itself.

    ``boxes`` are float32 [boxes, 4] and ``scores`` float32 [boxes]. The result has at most as many positions as there
    are candidates, except with ``inclusive`` and boxes without area, which do not suppress themselves.
    """
    chosen: list[int] = []
    bound = np.float32(limit)
    while len(candidates) and len(chosen) < most:
        # Callers select the candidates before: this function knows neither classes nor thresholds.
        best = int(candidates[np.argmax(scores[candidates])])
        # Among the rest, the first of equal scores, as argmax returns it.
        chosen.append(best)
        shares = overlaps(boxes[best], boxes[candidates])
        # A NaN share is not above the limit, so that such a box stays.
        candidates = candidates[~(shares >= bound) if inclusive else ~(shares > bound) & (candidates != best)]
    return chosen


class DetectionPostProcess(Operator):
    """The detections of a network of anchors: TFLite_Detection_PostProcess of TensorFlow's object detection API.

    Inputs are the encoded boxes [1, anchors, 4 or more], the scores of classes [1, anchors, classes], with or without
    one of the background before them, and the anchors [anchors, 4]. Outputs are the boxes, classes and scores of the
    detections in descending order, 0 after them, and their number.
    """

    scales: tuple[float, float, float, float]
    """Of y, x, height and width."""
    classes: int
    score: float
    """The least score."""
    overlap: float
    """The greatest overlap of two detections."""
    detections: int
    per_anchor: int
    """Classes of an anchor that are reported; only one if classes are suppressed on their own."""
    per_class: int | None
    """Detections of a class, if classes are suppressed on their own, otherwise ``None``."""

    name = "TFLite_Detection_PostProcess"
    results = (DType.FLOAT32,)

    @property
    def rows(self) -> int:
        """The number of rows of the outputs."""
        return self.detections * self.per_anchor

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the outputs."""
        return (1, self.rows, CORNERS), (1, self.rows), (1, self.rows), (1,)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs.present) != 3 or len(outputs) != 4:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 3 and writes 4"
        boxes, scores, anchors = inputs.present
        return (
            rules.first(rules.rank(tensor, 3) for tensor in (boxes, scores))
            or (None if boxes.shape[2] >= CORNERS else f"{boxes} must have {CORNERS} numbers or more of each box")
            or rules.shape(boxes, (1, *boxes.shape[1:]))
            or rules.shape(anchors, (boxes.shape[1], CORNERS))
            or rules.within("num_classes", self.classes, 1, scores.shape[2])
            # One more column than classes is that of the background, in front of the others.
            or rules.shape(scores, (1, boxes.shape[1], max(self.classes, min(scores.shape[2], self.classes + 1))))
            or rules.arithmetic(boxes, anchors)
            or rules.arithmetic(scores)
            or rules.first(rules.typed(output, DType.FLOAT32) for output in outputs)
            or rules.within("max_detections", self.detections, 1, 1 << 15)
            or rules.within("max_classes_per_detection", self.per_anchor, 1, 1 << 15)
            or rules.within("detections_per_class", 1 if self.per_class is None else self.per_class, 1, (1 << 31) - 1)
            or (None if all(self.scales) else "a scale of the boxes is 0")
            or (None if 0 < self.overlap <= 1 else f"nms_iou_threshold {self.overlap} is not above 0 and at most 1")
            or rules.first(rules.shape(*pair) for pair in zip(outputs, self.shapes(), strict=True))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        encoded, scores, anchors = (_real(tensor, value) for tensor, value in zip(inputs, values, strict=True))
        # From the end, so that the background in front is left out.
        boxes, scores = self._decoded(encoded[0], anchors), scores[0, :, -self.classes :]
        choose = self._best_of_anchors if self.per_class is None else partial(self._best_of_classes, self.per_class)
        places, classes, count = choose(boxes, scores)
        found = [np.zeros(output.shape, np.float32) for output in outputs]
        # Positions of -1 are rows without a detection, which stay 0.
        found[0][0, places >= 0] = boxes[places[places >= 0]]
        found[1][0] = classes
        found[2][0, places >= 0] = scores[places[places >= 0], classes[places >= 0]]
        found[3][0] = count
        return tuple(found)

    def _decoded(self, encoded: Array, anchors: Array) -> Array:
        """Return the corners of the boxes, computed in double and rounded as the runtimes do."""
        # The encoding of the SSD box coder: offsets in units of the anchor's size, and logarithms of sizes.
        y, x, height, width = (encoded[:, at].astype(np.float64) / self.scales[at] for at in range(CORNERS))
        high, wide = (anchors[:, at].astype(np.float64) for at in (2, 3))
        with np.errstate(all="ignore"):
            centre = np.stack([y * high + anchors[:, 0], x * wide + anchors[:, 1]], axis=1).astype(np.float32)
            half = np.stack([0.5 * np.exp(height) * high, 0.5 * np.exp(width) * wide], axis=1).astype(np.float32)
            return np.concatenate([centre - half, centre + half], axis=1)

    def _best_of_anchors(self, boxes: Array, scores: Array) -> tuple[Array, Array, int]:
        """Return the anchors (-1 for none) and classes of all rows, and the number of detections."""
        best = np.fmax.reduce(scores, axis=1)  # ignores NaN
        # Scores of an anchor's best class decide, as in the fast mode of TFLite's operator.
        chosen = suppressed(boxes, best, np.flatnonzero(best >= np.float32(self.score)), self.detections, self.overlap)
        places, classes = np.full((2, self.rows), -1)
        for at, box in enumerate(chosen):
            numbers = np.count_nonzero(~np.isnan(scores[box]))
            # NaN is sorted last, and is not among the first ``numbers``. Equal scores keep the order of the classes.
            order = np.argsort(-scores[box], kind="stable")[: min(self.per_anchor, numbers)]
            first = at * self.per_anchor
            places[first : first + len(order)], classes[first : first + len(order)] = box, order
        return places, np.where(places < 0, 0, classes), len(chosen)

    def _best_of_classes(self, most: int, boxes: Array, scores: Array) -> tuple[Array, Array, int]:
        """Return the same as ``_best_of_anchors``, with at most ``most`` boxes of each class."""
        kept: list[tuple[float, int, int]] = []
        for label in range(self.classes):
            column = scores[:, label]
            candidates = np.flatnonzero(column >= np.float32(self.score))
            chosen = suppressed(boxes, column, candidates, most, self.overlap)
            # Negated, so that an ascending and stable sort puts the best first and keeps the order of classes.
            kept += [(-float(column[box]), box, label) for box in chosen]
            # Cut after each class, like the operator, so that equal scores at the end are the same.
            kept = sorted(kept, key=lambda row: row[0])[: self.detections]
        places, classes = np.full(self.rows, -1), np.zeros(self.rows, np.int64)
        places[: len(kept)], classes[: len(kept)] = [row[1] for row in kept], [row[2] for row in kept]
        return places, classes, len(kept)


def _real(tensor: Tensor, value: Array) -> Array:
    """Return the float32 numbers that a tensor represents."""
    if tensor.quantization is None:
        return value
    difference = value.astype(np.int32) - tensor.quantization.zero_point
    return np.asarray(difference.astype(np.float32) * np.float32(tensor.quantization.scale))


class NonMaxSuppressionV4(Operator):
    """The positions of at most ``most`` boxes, 0 after them, and their number.

    As in LiteRT, boxes that overlap a better one by ``overlap`` are also left out, and a box without area does not
    overlap itself: it is selected until ``most`` is reached, or the number of boxes with a score above ``score``.
    """

    most: int
    overlap: float
    score: float

    name = "NON_MAX_SUPPRESSION_V4"
    types = (DType.FLOAT32,)
    results: ClassVar[tuple[DType, ...]] = (DType.INT32,)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        wanted = self.shapes()
        if len(inputs.present) != 2 or len(outputs) != len(wanted):
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 2 and writes {len(wanted)}"
        boxes, scores = inputs.present
        return (
            rules.arithmetic(boxes, scores, types=self.types)
            or rules.rank(boxes, 2)
            or rules.shape(boxes, (boxes.shape[0], CORNERS))
            or rules.shape(scores, boxes.shape[:1])
            or rules.within("max_output_size", self.most, 1, 1 << 15)
            or (None if self.overlap >= 0 else f"iou_threshold {self.overlap} is below 0")
            or rules.first(rules.shape(*pair) for pair in zip(outputs, wanted, strict=True))
            or rules.first(rules.typed(output, self._type(at)) for at, output in enumerate(outputs))
        )

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the outputs."""
        return (self.most,), ()

    def _type(self, output: int) -> DType:
        return DType.FLOAT32 if output == len(self.shapes()) - 2 and output > 0 else DType.INT32

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        boxes, scores = values
        # Above and not at the limit, as LiteRT compares it.
        candidates = np.flatnonzero(scores > np.float32(self.score))
        most = min(self.most, len(candidates))
        chosen = suppressed(boxes, scores, candidates, most, self.overlap, inclusive=True)
        positions, best = np.zeros(self.most, np.int32), np.zeros(self.most, np.float32)
        positions[: len(chosen)], best[: len(chosen)] = chosen, scores[chosen]
        return positions, *([best] if len(outputs) > 2 else []), np.array(len(chosen), np.int32)


class NonMaxSuppressionV5(NonMaxSuppressionV4):
    """``NonMaxSuppressionV4`` with the scores of the selected boxes as its second output."""

    name = "NON_MAX_SUPPRESSION_V5"
    results = (DType.INT32, DType.FLOAT32)

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.most,), (self.most,), ()


class NonMaxSuppression(Operator):
    """ONNX's form: rows of batch, class and position of the boxes, -1 after them, and the number of rows.

    Inputs are boxes [batches, boxes, 4], scores [batches, classes, boxes], the greatest number of boxes per class
    (int64), the greatest overlap and the least score, each of one element. Classes do not suppress each other. A score
    must be above the least one, unless that is -infinity. Rows that do not fit the output are left out.
    """

    name = "NON_MAX_SUPPRESSION"
    types = (DType.FLOAT32,)
    results = (DType.INT64,)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs.present) != 5 or len(outputs) != 2:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 5 and writes 2"
        boxes, scores, *limits = inputs.present
        rows, found = outputs
        return (
            rules.arithmetic(boxes, scores, types=self.types)
            or rules.first(rules.rank(tensor, 3) for tensor in (boxes, scores))
            or rules.shape(boxes, (*boxes.shape[:2], CORNERS))
            or rules.shape(scores, (boxes.shape[0], scores.shape[1], boxes.shape[1]))
            or rules.typed(limits[0], DType.INT64)
            or rules.first(rules.typed(tensor, DType.FLOAT32) for tensor in limits[1:])
            or rules.first(rules.shape(tensor, ()) for tensor in limits)
            or rules.first(rules.typed(output, DType.INT64) for output in outputs)
            or rules.rank(rows, 2)
            or rules.shape(rows, (rows.shape[0], 3))
            or rules.shape(found, ())
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        boxes, scores, most, overlap, least = (np.asarray(value) for value in values)
        rows = np.full(outputs[0].shape, -1, np.int64)
        count = 0
        for batch, label in np.ndindex(scores.shape[:2]):
            own = scores[batch, label]
            above = ~np.isnan(own) if np.isneginf(least) else own > least
            for box in suppressed(boxes[batch], own, np.flatnonzero(above), int(most), float(overlap)):
                # More rows than the file declares cannot be stored, but do not invalidate the first ones.
                if count < len(rows):
                    rows[count] = batch, label, box
                    count += 1
        return rows, np.array(count, np.int64)
