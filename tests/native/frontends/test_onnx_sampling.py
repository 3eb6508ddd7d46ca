"""GridSample, RoiAlign, DeformConv, MaxUnpool, Col2Im, Det, BitCast and ConvTranspose of volumes, in numpy and as C.

The results are compared with ONNX's evaluator, or with those of numpy if the evaluator fails.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.core import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_cases import Array, Case, check, file_of, parsed, written
from support.onnx_checks import RANDOM, floats
from support.onnx_models import reference

pytestmark = pytest.mark.usefixtures("same_numbers")


def grid(*sizes: int, channels: int = 2) -> dict[str, Array]:
    """Return an image and as many positions in each dimension, some of them outside."""
    shape = [*(size + 1 for size in sizes), len(sizes)]
    return {"x": floats(2, channels, *sizes), "g": RANDOM.uniform(-1.6, 1.6, (2, *shape)).astype(np.float32)}


def boxes(count: int, **attributes: Any) -> Case:
    corners = RANDOM.uniform(-1, 8, (count, 2, 2))
    placed = np.sort(corners, axis=1).reshape(count, 4).astype(np.float32)
    inputs = {"x": floats(2, 3, 6, 7), "r": placed, "b": RANDOM.integers(0, 2, count)}
    return "RoiAlign", {"output_height": 2, "output_width": 3, **attributes}, inputs, {}


def deformed(groups: int, offset_groups: int, size: tuple[int, int], *, masked: bool, **attributes: Any) -> Case:
    """Return a convolution of [6, 5] pixels with a result of ``size``."""
    inputs = {"x": floats(2, 4, 6, 5), "w": floats(6, 4 // groups, 2, 3), "o": floats(2, 12 * offset_groups, *size)}
    if masked:
        inputs |= {"b": floats(6), "m": floats(2, 6 * offset_groups, *size)}
    return "DeformConv", {"group": groups, "offset_group": offset_groups, **attributes}, inputs, {}


def columns(size: list[int], block: list[int], count: int, **attributes: Any) -> Case:
    inputs = {"x": floats(2, 2 * int(np.prod(block)), count)}
    return "Col2Im", attributes, inputs, {"size": np.array(size), "block": np.array(block)}


def transposed(groups: int, **attributes: Any) -> Case:
    return (
        "ConvTranspose",
        {"group": groups, **attributes},
        {"x": floats(2, 2, 3, 2, 3)},
        {"w": floats(2, 3, 2, 3, 2), "b": floats(3 * groups)},
    )


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for mode, outside, corners in itertools.product(
        ("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (0, 1)
    ):
        attributes = {"mode": mode, "padding_mode": outside, "align_corners": corners}
        found[f"{mode} {outside} {corners}"] = ("GridSample", attributes, grid(3, 4), {})
    found["line"] = ("GridSample", {}, grid(5), {})
    found["volume"] = ("GridSample", {"padding_mode": "reflection"}, grid(2, 3, 4, channels=1), {})
    found["one pixel"] = ("GridSample", {"padding_mode": "border", "align_corners": 1}, grid(1, 1), {})
    for mode, place in itertools.product(("avg", "max"), ("half_pixel", "output_half_pixel")):
        shared = {"mode": mode, "coordinate_transformation_mode": place}
        found[f"boxes {mode} {place}"] = boxes(4, **shared, sampling_ratio=2, spatial_scale=0.75)
        found[f"boxes {mode} {place} adaptive"] = boxes(3, **shared)
    found["deformed"] = deformed(1, 1, (5, 3), masked=False)
    found["deformed groups"] = deformed(2, 1, (4, 4), masked=True, pads=[1, 0, 2, 1], strides=[2, 1])
    found["deformed offset groups"] = deformed(1, 2, (4, 3), masked=True, dilations=[2, 1])
    found["lines"] = columns([9], [3], 4, strides=[2])
    found["images"] = columns([5, 4], [3, 2], 24, pads=[1, 0, 2, 1])
    found["volumes"] = columns([2, 3, 4], [1, 2, 2], 4, dilations=[1, 2, 2])
    found["matrix"] = ("Det", {}, {"x": floats(5, 5)}, {})
    found["matrices"] = ("Det", {}, {"x": np.concatenate([floats(2, 3, 3), np.ones((1, 3, 3), np.float32)])}, {})
    found["bits"] = ("BitCast", {"to": 6}, {"x": floats(2, 3)}, {})
    found["bits of integers"] = ("BitCast", {"to": 1}, {"x": floats(2, 3).view(np.int32)}, {})
    found["sign"] = ("BitCast", {"to": 2}, {"x": np.array([-128, -1, 127], np.int8)}, {})
    found["volume filter"] = transposed(1)
    found["volume steps"] = transposed(1, strides=[2, 1, 3], pads=[1, 0, 1, 2, 1, 0], dilations=[2, 2, 1])
    found["volume size"] = transposed(1, strides=[2, 2, 2], output_shape=[7, 5, 6])
    return found


def test_sampled_images() -> None:
    check(cases())


def test_groups_of_transposed_volumes() -> None:
    """ONNX's evaluator fails with groups, so each group is compared with a separate run."""
    x, filters = floats(1, 4, 2, 3, 3), floats(4, 3, 2, 2, 2)
    operator, attributes = "ConvTranspose", {"strides": [2, 1, 1]}
    parts = [written((operator, attributes, {"x": x[:, at : at + 2]}, {"w": filters[at : at + 2]}))[1] for at in (0, 2)]
    whole = (operator, {"group": 2, **attributes}, {"x": x, "w": filters}, {})
    result = evaluate(parsed(file_of(whole, [1, 6, *parts[0].shape[2:]])), whole[2])["y"]
    np.testing.assert_allclose(result, np.concatenate(parts, axis=1), rtol=1e-4, atol=1e-5)


def test_elements_at_the_positions_of_a_pool() -> None:
    """Elements that MaxPool found are put back, with zeros elsewhere and in the rows and columns of a larger result."""
    x = floats(1, 2, 4, 4)
    nodes = [helper.make_node("MaxPool", ["x"], ["p", "i"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("MaxUnpool", ["p", "i", "s"], ["y"], kernel_shape=[2, 2], strides=[2, 2])]  # fmt: skip
    stored = [numpy_helper.from_array(np.array([1, 2, 5, 6]), "s")]
    ports = [helper.make_tensor_value_info("x", 1, (1, 2, 4, 4)), helper.make_tensor_value_info("y", 1, (1, 2, 5, 6))]
    made = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], stored),
                             opset_imports=[helper.make_opsetid("", 21)], ir_version=8)  # fmt: skip
    data = made.SerializeToString()
    (wanted,) = reference(data, {"x": x})
    graph = parsed(data)
    library = compile_network(graph)
    (result,) = run_many_on_host([(library, library.modules[0], [x])])
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], wanted)
    np.testing.assert_array_equal(result[0].reshape(wanted.shape), wanted)


STRANGE = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e9], np.float32)


def test_positions_that_are_no_numbers() -> None:
    """Neither the C nor numpy reads outside of an image, and both compute the same.

    Reflections of positions that are very far away depend on rounding.
    """
    odd = np.stack([np.repeat(STRANGE, 6), np.tile(STRANGE, 6)], axis=-1)
    jobs, expected = [], []
    chosen: list[tuple[Case, Mapping[str, Array]]] = []
    for outside, corners in itertools.product(("zeros", "border", "reflection"), (0, 1)):
        sound: Case = ("GridSample", {"padding_mode": outside, "align_corners": corners},
                       {"x": floats(1, 2, 3, 4), "g": np.zeros((1, 6, 6, 2), np.float32)}, {})  # fmt: skip
        chosen.append((sound, {"g": odd.reshape(1, 6, 6, 2)}))
    offsets = np.resize(odd, (2, 12, 5, 3)).astype(np.float32)
    chosen.append((deformed(1, 1, (5, 3), masked=False), {"o": offsets}))
    placed = np.resize(odd, (6, 4)).astype(np.float32)
    chosen.append((boxes(6, sampling_ratio=2), {"r": placed, "b": np.array([-1, 2, 1 << 40, 0, 0, 1])}))
    chosen.append((boxes(6), {"r": placed}))
    for number, (case, changes) in enumerate(chosen):
        graph, feeds = parsed(written(case)[0], f"net{number}"), case[2] | dict(changes)
        with np.errstate(all="ignore"):
            expected.append(evaluate(graph, feeds)["y"])
        library = compile_network(graph)
        jobs.append((library, library.modules[0], [*feeds.values()]))
    for (case, _), made, wanted in zip(chosen, run_many_on_host(jobs), expected, strict=True):
        assert np.isfinite([wanted, made[0].reshape(wanted.shape)]).all()
        if case[1].get("padding_mode") == "reflection":
            continue
        np.testing.assert_allclose(made[0].reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5)


REFUSED: dict[str, tuple[Case, type[MlfError], str]] = {
    "mode": (("GridSample", {"mode": "hello"}, grid(3, 4), {}), InputFileError, "onnx-malformed"),
    "grid": (
        ("GridSample", {}, {"x": floats(1, 1, 2, 2), "g": floats(1, 2, 2, 3)}, {}), UnsupportedModelError,
        "operator-variant-unsupported",
    ),
    "four sizes": (("GridSample", {}, grid(1, 1, 1, 1), {}), UnsupportedModelError, "operator-variant-unsupported"),
    "box": (
        ("RoiAlign", {}, {"x": floats(1, 1, 2, 2), "r": floats(2, 4), "b": np.zeros(3, np.int64)}, {}),
        UnsupportedModelError, "operator-variant-unsupported",
    ),
    "offsets": (
        ("DeformConv", {}, {"x": floats(1, 1, 4, 4), "w": floats(1, 1, 2, 2), "o": floats(1, 8, 4, 4)}, {}),
        UnsupportedModelError, "operator-variant-unsupported",
    ),
    "windows": (columns([5, 5], [3, 3], 7), InputFileError, "onnx-malformed"),
    "not square": (("Det", {}, {"x": floats(2, 3)}, {}), UnsupportedModelError, "operator-variant-unsupported"),
    "bits of another size": (("BitCast", {"to": 7}, {"x": floats(2)}, {}), UnsupportedModelError,
                             "operator-variant-unsupported"),
    "bits of bool": (
        ("BitCast", {"to": 9}, {"x": np.zeros(2, np.uint8)}, {}), UnsupportedModelError, "operator-variant-unsupported",
    ),
    "positions": (
        ("MaxUnpool", {"kernel_shape": [2, 2]}, {"x": floats(1, 1, 2, 2), "i": np.zeros((1, 1, 2, 1), np.int64)}, {}),
        InputFileError, "onnx-malformed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_nodes(name: str) -> None:
    case, error, code = REFUSED[name]
    with pytest.raises(error) as caught:
        parsed(file_of(case, [None] * case[2]["x"].ndim, case[1].get("to", TensorProto.FLOAT)))
    assert (caught.value.code, f"node 0 ({case[0]})" in caught.value.place) == (code, True)
