"""TFLite_Detection_PostProcess, NON_MAX_SUPPRESSION, V4 and V5."""

from __future__ import annotations

from mlfbuild.library.cgen import floating
from mlfbuild.native.graph import C_TYPES, Graph, Node, Tensor
from mlfbuild.native.graph.ops import DetectionPostProcess, NonMaxSuppression, NonMaxSuppressionV4
from mlfbuild.native.lowering.call import KernelCall, Parameter, ScratchBuffer, struct_lines
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.parameters import reads, writes
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings

_HEADER = "non_max_suppression.h"


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_non_max_suppression_float``, or of ``mlf_detect_anchors_<type>`` and others."""
    operator, outputs = node.operator, graph.outputs_of(node)
    inputs = list(graph.inputs_of(node).present)
    if isinstance(operator, DetectionPostProcess):
        return _detections(operator, inputs, outputs)
    if isinstance(operator, NonMaxSuppression):
        return _selected(inputs, outputs)
    assert isinstance(operator, NonMaxSuppressionV4)
    boxes, scores = inputs
    best = [writes("best_scores", outputs[1])] if len(outputs) > 2 else []
    numbers = f"{boxes.shape[0]}, {operator.most}, {trained(operator.overlap)}, {trained(operator.score)}"
    arguments = f"boxes, scores, candidates, positions, {'best_scores' if best else '0'}, found"
    return KernelCall("non_max_suppression", _HEADER, (
        reads("boxes", boxes),
        reads("scores", scores),
        Parameter("int32_t *", "candidates", ScratchBuffer(4 * boxes.shape[0])),
        writes("positions", outputs[0]),
        # The candidates are a list of boxes that are not suppressed yet, four bytes each.
        *best,
        writes("found", outputs[-1]),
    ), (f"mlf_non_max_suppression_float({numbers}, {arguments});",))  # fmt: skip


def _selected(inputs: list[Tensor], outputs: tuple[Tensor, ...]) -> KernelCall:
    boxes, scores, most, overlap, least = inputs
    rows, found = outputs
    sizes = f"{boxes.shape[0]}, {scores.shape[1]}, {boxes.shape[1]}, {rows.shape[0]}"
    # The limits are tensors of one element, read at run time.
    arguments = "boxes, scores, *most, *overlap, *least, candidates, rows, found"
    return KernelCall("select_boxes", _HEADER, (
        reads("boxes", boxes),
        reads("scores", scores),
        reads("most", most),
        reads("overlap", overlap),
        reads("least", least),
        Parameter("int32_t *", "candidates", ScratchBuffer(4 * boxes.shape[1])),
        writes("rows", rows),
        writes("found", found),
    ), (f"mlf_select_boxes_float({sizes}, {arguments});",))  # fmt: skip


def _detections(operator: DetectionPostProcess, inputs: list[Tensor], outputs: tuple[Tensor, ...]) -> KernelCall:
    encoded, input_scores, anchors = inputs
    count, classes = input_scores.shape[1:]
    detector = struct_lines("mlf_detector", "detector", {
        "boxes": str(count),
        "numbers": str(encoded.shape[2]),
        "classes": str(classes),
        "labels": str(operator.classes),
        "detections": str(operator.detections),
        "per_anchor": str(operator.per_anchor),
        "per_class": str(operator.per_class or 0),
        "score": floating(operator.score),
        "overlap": floating(operator.overlap),
        "scales": f"{{{', '.join(map(floating, operator.scales))}}}",
    })  # fmt: skip
    affines = [
        f"const struct mlf_affine {name}_affine = {{{_affine(tensor)}}};"
        for name, tensor in (("encoded", encoded), ("input", input_scores), ("anchors", anchors))
    ]
    kind = "anchors" if operator.per_class is None else "classes"
    decode = f"mlf_decode_boxes_{suffix(encoded.dtype)}"
    # The decoder and the selection have types of their own, as boxes and scores may differ in type.
    detect = f"mlf_detect_{kind}_{suffix(input_scores.dtype)}"
    return KernelCall("detection_post_process", _HEADER, (
        *(
            Parameter(f"const {C_TYPES[tensor.dtype]} *", name, tensor.name)
            for name, tensor in (("encoded", encoded), ("input", input_scores), ("anchors", anchors))
        ),
        # Four corners in float32, and one score and one position for each box.
        Parameter("float *", "decoded", ScratchBuffer(16 * count)),
        Parameter("float *", "best", ScratchBuffer(4 * count)),
        Parameter("int32_t *", "candidates", ScratchBuffer(4 * count)),
        *(
            Parameter("float *", name, output.name)
            for name, output in zip(("boxes", "classes", "scores", "found"), outputs, strict=True)
        ),
    ), (
        *detector,
        *affines,
        f"{decode}(&detector, encoded, encoded_affine, anchors, anchors_affine, decoded);",
        f"{detect}(&detector, decoded, input, input_affine, best, candidates, boxes, classes, scores, found);",
    ))  # fmt: skip


def _affine(tensor: Tensor) -> str:
    """Return the initialiser of the ``struct mlf_affine`` of a tensor, which kernels of float32 ignore."""
    quantization = tensor.quantization
    return "1.0f, 0" if quantization is None else f"{trained(quantization.scale)}, {trained(quantization.zero_point)}"
