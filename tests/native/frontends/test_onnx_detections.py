"""NonMaxSuppression of ONNX: rows of -1 after the boxes that are selected, and their number."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import assert_many_on_host
from support.native import compile_network
from support.onnx_models import model
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]

BATCHES, CLASSES, BOXES, MOST = 2, 3, 24, 20
SCORES = (BATCHES, CLASSES, BOXES)
RANDOM = np.random.default_rng(8)


def detector(
    rows: int | None = None, most: tuple[int, ...] | None = (MOST,), scores: tuple[int, ...] = SCORES,
    computed: bool = False, **attributes: Any,
) -> bytes:  # fmt: skip
    """Return a network that selects boxes, and the boxes themselves; thresholds are inputs if ``computed``."""
    limits = {"overlap": np.array([0.4], np.float32), "score": np.array([0.2], np.float32)}
    if most is not None:
        limits["most"] = np.array(most, np.int64)
    names = ["boxes", "scores", "most" if most is not None else "", "overlap", "score"]
    nodes = [
        helper.make_node("NonMaxSuppression", names, ["selected"], **attributes),
        helper.make_node("Split", ["selected"], ["batch", "class", "box"], axis=1, num_outputs=3),
        helper.make_node("Concat", ["batch", "box"], ["places"], axis=1),
        helper.make_node("GatherND", ["boxes", "places"], ["found"]),
    ]
    inputs: list[Any] = [("boxes", (BATCHES, BOXES, 4)), ("scores", scores)]
    inputs += [(name, value.shape) for name, value in limits.items()] if computed else []
    outputs: list[Any] = [("selected", (rows, 3)), ("found", (rows, 4))]
    types = {"selected": TensorProto.INT64, "most": TensorProto.INT64}
    return model(nodes, inputs, outputs, {} if computed else limits, types=types)


def boxes(*, centres: bool = False) -> Array:
    """Return boxes with many overlaps and some equal ones; corners are in any order."""
    corners = RANDOM.integers(0, 6, (BATCHES, BOXES, 4)).astype(np.float32)
    corners[:, 5] = corners[:, 4]
    return np.abs(corners) if centres else corners


def overlap(one: Array, other: Array) -> float:
    a, b = (np.concatenate([np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])]) for box in (one, other))
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    areas = np.prod(a[2:] - a[:2]), np.prod(b[2:] - b[:2])
    return float(np.prod(sides) / (sum(areas) - np.prod(sides))) if min(areas) > 0 else 0.0


def expected(places: Array, scores: Array, most: int, *, centres: bool = False) -> list[tuple[int, int, int]]:
    """Return the rows that ONNX's specification asks for."""
    if centres:
        places = np.concatenate([places[..., :2] - places[..., 2:] / 2, places[..., :2] + places[..., 2:] / 2], axis=2)
    rows: list[tuple[int, int, int]] = []
    for batch, label in np.ndindex(BATCHES, CLASSES):
        kept: list[int] = []
        for box in np.argsort(-scores[batch, label], kind="stable"):
            above = scores[batch, label, box] > np.float32(0.2) and len(kept) < most
            if above and all(overlap(places[batch, box], places[batch, other]) <= np.float32(0.4) for other in kept):
                kept.append(int(box))
        rows += [(batch, label, box) for box in kept]
    return rows


def test_boxes_are_selected() -> None:
    """Test corners and centres, equal scores, and outputs with room for all rows or fewer, in numpy and as C."""
    jobs, wanted = [], []
    for number, (centres, rows, computed) in enumerate([(False, None, False), (True, None, False), (False, 4, True)]):
        data = detector(rows, computed=computed, **({"center_point_box": 1} if centres else {}))
        graph = parse_onnx(data, f"m{number}", "net.onnx")
        feeds = {"boxes": boxes(centres=centres), "scores": RANDOM.integers(0, 8, SCORES) / 8}
        feeds["scores"] = feeds["scores"].astype(np.float32)
        if computed:
            limits = np.array([MOST], np.int64), np.array([0.4], np.float32), np.array([0.2], np.float32)
            feeds |= dict(zip(("most", "overlap", "score"), limits, strict=True))
        right = expected(feeds["boxes"], feeds["scores"], MOST, centres=centres)
        room = rows or BATCHES * CLASSES * MOST
        assert len(right) not in {0, room}
        filled = np.full((room, 3), -1)
        filled[: len(right)] = right[:room]
        values = evaluate(graph, feeds)
        np.testing.assert_array_equal(values["selected"], filled)
        count = min(len(right), room)
        for (batch, _, box), found in zip(right, values["found"][:count], strict=False):
            np.testing.assert_array_equal(found, feeds["boxes"][batch, box])
        assert graph.outputs == (("selected", "found") if rows else ("selected", "found", "selected_count"))
        assert rows or values["selected_count"] == count
        library = compile_network(graph)
        jobs.append((library, library.modules[0], [feeds[name] for name in graph.inputs]))
        wanted.append([values[name] for name in graph.outputs])
    assert_many_on_host(jobs, wanted)


def test_a_note_names_the_number_of_rows() -> None:
    assert any("selected_count" in note for note in parse_onnx(detector(), "net", "net.onnx").notes)
    assert not parse_onnx(detector(4), "net", "net.onnx").notes


@pytest.mark.parametrize("first", [True, False])
def test_a_tensor_may_have_the_name_of_the_number_of_rows(*, first: bool) -> None:
    made = onnx.load_from_string(detector())
    node = helper.make_node("Neg", ["boxes"], ["selected_count"])
    made.graph.node.insert(0 if first else len(made.graph.node), node)
    graph = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    assert graph.outputs == ("selected", "found", "selected_count_2" if first else "selected_count")


NODE = "node 0 (NonMaxSuppression) writing 'selected'"
REFUSED: dict[str, tuple[dict[str, Any], Refusal]] = {
    "no boxes": ({"most": None}, ("tensor-empty", NODE, "max_output_boxes_per_class")),
    "a computed number of rows": (
        {"computed": True}, ("input-not-constant", NODE, "'most'", "declares no fixed shape"),
    ),
    "several numbers": ({"rows": 4, "most": (1, 2)}, ("onnx-malformed", NODE, "input 2")),
    "scores of other boxes": (
        {"rows": 4, "scores": (BATCHES, CLASSES, 7)}, ("operator-variant-unsupported", NODE, "[2, 3, 7]"),
    ),
    "scores of one class": ({"rows": 4, "scores": (BATCHES, BOXES)}, ("onnx-malformed", NODE, "[2, 24]")),
}  # fmt: skip


@pytest.mark.parametrize(("options", "refusal"), REFUSED.values(), ids=REFUSED)
def test_other_forms_are_refused(options: dict[str, Any], refusal: Refusal) -> None:
    assert_onnx_refused(detector(**options), *refusal)
