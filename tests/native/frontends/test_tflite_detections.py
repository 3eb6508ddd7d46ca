"""Detectors: the options of files, the rules that they can break, and results that only LiteRT defines."""

import numpy as np
import pytest
from flatbuffers import flexbuffers

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from support.detection_networks import defined
from support.errors import raises
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import assert_equal, litert_run
from support.tflite_builder import Network

OPTIONS = {
    "max_detections": 3, "max_classes_per_detection": 1, "num_classes": 3, "nms_score_threshold": 0.2,
    "nms_iou_threshold": 0.5, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
}  # fmt: skip
ANCHORS = np.array([[0.5, x, 1, 1] for x in (0.5, 0.6, 3, 3.1, 9)], np.float32)


def detector(rows: int = 3, anchors: np.ndarray = ANCHORS, scores: int = 4, **options: float) -> Network:
    net = Network()
    inputs = [net.input((1, 5, 4)), net.input((1, 5, scores)), net.constant(anchors)]
    outputs = [net.activation(shape) for shape in ((1, rows, 4), (1, rows), (1, rows), (1,))]
    net.custom("TFLite_Detection_PostProcess", inputs, outputs, **{**OPTIONS, **options})
    return net


def inputs() -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.normal(0, 1, (1, 5, 4)).astype(np.float32), random.random((1, 5, 4)).astype(np.float32)]


@pytest.mark.parametrize("classes", [2, 5])
def test_several_classes_of_an_anchor_equal_litert(classes: int) -> None:
    """TensorFlow Lite Micro writes them with gaps between them, out of bounds; 5 are more than there are."""
    model, values = detector(3 * classes, max_classes_per_detection=classes).build(), inputs()
    got = run_on_host(compile_bytes(model), values)
    graph = parse_tflite(model, "net", "net")
    known = evaluate(graph, dict(zip(graph.inputs, values, strict=True)))
    count = int(got[3][0])
    assert count == 3
    used = np.arange(3 * classes) % classes < 3  # LiteRT does not write the other rows
    for name, value, right in zip(graph.outputs, got, litert_run(model, values), strict=True):
        rows = np.s_[:] if value.shape == (1,) else np.s_[:, used]
        assert_equal(value[rows], right[rows], name)
        assert_equal(known[name][rows], right[rows], name)


def test_shapes_of_outputs_follow_from_the_options() -> None:
    """TensorFlow's converter writes outputs without dimensions."""
    net = detector()
    for tensor in net.tensors[-4:]:
        tensor.shape = []
    graph = parse_tflite(net.build(), "net", "net")
    assert [graph.tensor(name).shape for name in graph.outputs] == [(1, 3, 4), (1, 3), (1, 3), (1,)]
    values = inputs()
    for got, right in zip(run_on_host(compile_bytes(net.build()), values),
                          defined(litert_run(net.build(), values)), strict=True):  # fmt: skip
        assert_equal(got, right, "net")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_classes": 2}, "[1, 5, 3]"),
        ({"num_classes": 9}, "num_classes 9"),
        ({"nms_iou_threshold": 0.0}, "nms_iou_threshold 0.0"),
        ({"x_scale": 0.0}, "scale"),
        ({"max_detections": 0}, "max_detections 0"),
        ({"use_regular_nms": True, "detections_per_class": 0}, "detections_per_class 0"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, float], words: str) -> None:
    with raises(UnsupportedModelError, "operator-invalid") as caught:
        parse_tflite(detector(**options).build(), "net", "net.tflite")
    assert words in caught.value.reason


@pytest.mark.parametrize("options", [b"\x05\xff\x27\x01", bytes(flexbuffers.Dumps([3]))])
def test_options_that_cannot_be_read(options: bytes) -> None:
    net = detector()
    net.operators[0].custom_options = options
    with raises(InputFileError, "tflite-malformed"):
        parse_tflite(net.build(), "net", "net.tflite")


@pytest.mark.parametrize(
    "options", [{}, {"use_regular_nms": True, "detections_per_class": 2}], ids=["anchors", "classes"]
)
def test_scores_that_are_not_numbers_are_ignored(options: dict[str, float]) -> None:
    values = inputs()
    values[1][0, :, 1:][[0, 1, 2], [0, 1, 2]] = np.nan
    values[1][0, 3] = np.nan
    model = detector(**options).build()
    graph = parse_tflite(model, "net", "net")
    known = evaluate(graph, dict(zip(graph.inputs, values, strict=True)))
    for name, got in zip(graph.outputs, run_on_host(compile_bytes(model), values), strict=True):
        assert_equal(got, known[name], name)
        assert not np.isnan(got).any()


def selection(sigma: float, limit: float = 0.5, *, computed: bool = False) -> Network:
    net = Network()
    sources = [net.input((4, 4)), net.input((4,))]
    numbers = [net.constant(np.array(value, np.float32)) for value in (limit, 0.0, sigma)]
    if computed:
        numbers[0] = net.input(())
    outputs = [net.activation((3,), dtype="int32"), net.activation((3,)), net.activation((), dtype="int32")]
    net.many("NON_MAX_SUPPRESSION_V5", [*sources, net.constant(np.array(3, np.int32)), *numbers], outputs)
    return net


def test_boxes_without_area_are_selected_again_as_litert_does() -> None:
    boxes = np.array([[0, 0, 1, 1], [2, 2, 2, 3], [5, 5, 6, 6], [0, 0, 1, 0.9]], np.float32)
    values = [boxes, np.array([0.9, 0.8, 0.7, 0.6], np.float32)]
    model = selection(0.0).build()
    expected = litert_run(model, values)
    assert expected[0].tolist() == [0, 1, 1]
    for got, right in zip(run_on_host(compile_bytes(model), values), expected, strict=True):
        assert_equal(got, right, "net")


@pytest.mark.parametrize(
    ("net", "code"),
    [
        (selection(0.5), "operator-variant-unsupported"),
        (selection(0.0, computed=True), "input-not-constant"),
        (selection(0.0, -1.0), "operator-invalid"),
    ],
)
def test_selections_that_are_refused(net: Network, code: str) -> None:
    with raises(UnsupportedModelError, code):
        parse_tflite(net.build(), "net", "net.tflite")
