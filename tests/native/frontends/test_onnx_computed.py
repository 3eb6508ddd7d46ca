"""Operators whose sizes, axes or conditions are inputs of the network, with a fixed shape of the result in the file."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import integers, reference
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]
Inputs = Sequence[Array | None]
Case = tuple[str, dict[str, Any], Inputs]
"""An operator, its attributes, and its inputs, all of which are inputs of the network."""

X = np.random.default_rng(9).standard_normal((4, 5, 6)).astype(np.float32)
LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def network(case: Case, shape: Sequence[int] | None, result: Any = np.float32) -> bytes:
    """Return a network of one operator, whose output declares ``shape``; ``None`` for a free one."""
    operator, attributes, inputs = case
    names = ["" if value is None else f"x{index}" for index, value in enumerate(inputs)]
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in zip(names, inputs, strict=True)
        if value is not None
    ]
    made = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(result)), shape)
    graph = helper.make_graph([helper.make_node(operator, names, ["y"], **attributes)], "graph", ports, [made])
    opset = 26 if operator == "CumProd" else 23
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(model.SerializeToString())


def expected(case: Case) -> Array:
    feeds = {f"x{index}": value for index, value in enumerate(case[2]) if value is not None}
    return reference(network(case, None), feeds)[0]


def check(cases: Sequence[tuple[Case, Array]], rtol: float = 0.0, compiled: int = 99) -> None:
    """Numpy computes the expected results of all ``cases``, and C under sanitizers those of the first ``compiled``."""
    jobs = []
    for number, (case, wanted) in enumerate(cases):
        graph = parse_onnx(network(case, wanted.shape, wanted.dtype), f"m{number}", "net.onnx")
        feeds = [value for value in case[2] if value is not None]
        made = evaluate(graph, dict(zip(graph.inputs, feeds, strict=True)))["y"]
        assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(made, wanted, rtol=rtol, atol=rtol, err_msg=str(case))
        if number < compiled:
            library = compile_network(graph)
            jobs.append((library, library.modules[0], tuple(feeds)))
    for (output,), (case, wanted) in zip(run_many_on_host(jobs), cases, strict=False):
        np.testing.assert_allclose(output.reshape(wanted.shape), wanted, rtol=rtol, atol=rtol, err_msg=str(case))


def as_reference(cases: Sequence[Case]) -> list[tuple[Case, Array]]:
    return [(case, expected(case)) for case in cases]


def test_slices() -> None:
    """Also of integers, in the wrong order of axes, and with numbers that ONNX brings into range."""
    y = X.astype(np.int8)
    check(
        as_reference([
            ("Slice", {}, (X, integers(1, 2), integers(3, 4))),
            ("Slice", {}, (y, integers(-3), integers(GREATEST), integers(-1))),
            ("Slice", {}, (X, integers(LEAST, 1), integers(2, 1000), integers(2, 0), integers(1, 2))),
            ("Slice", {}, (X, integers(-1, GREATEST), integers(LEAST, 1), integers(1, 2), integers(-1, -2))),
            ("Slice", {}, (X, np.array([4], np.int32), np.array([9], np.int32), np.array([2], np.int32))),
            ("Slice", {}, (X, integers(3), integers(4), integers(1), integers(GREATEST))),
        ])
    )  # fmt: skip


def padded(case: Case) -> Array:
    """Return the expected result of a Pad; ONNX's evaluator takes no negative paddings."""
    mode = case[1]["mode"]
    x, pads, value, axes = (*case[2], None, None)[:4]
    assert x is not None and pads is not None
    pairs = dict.fromkeys(range(x.ndim), (0, 0))
    before, after = pads.reshape(2, -1).tolist()
    pairs |= dict(
        zip(pairs if axes is None else (axes % x.ndim).tolist(), zip(before, after, strict=True), strict=True)
    )
    ends = [size + min(0, pair[1]) for size, pair in zip(x.shape, pairs.values(), strict=True)]
    cut = x[tuple(slice(max(0, -pair[0]), end) for pair, end in zip(pairs.values(), ends, strict=True))]
    wider = [(max(0, before), max(0, after)) for before, after in pairs.values()]
    filling: dict[str, Any] = {"constant_values": 0 if value is None else value} if mode == "constant" else {}
    return np.asarray(np.pad(cut, wider, mode=mode, **filling))


def test_paddings() -> None:
    """Also negative ones, which cut, and mirrored ones that are longer than the dimension."""
    seven = np.array(7, np.float32)
    cases: list[Case] = [
        ("Pad", {"mode": mode}, (X, pads))
        for mode in ("constant", "edge", "reflect", "wrap")
        for pads in (integers(1, 0, 2, 3, 1, 0), integers(-2, 5, -1, 9, -3, 0))
    ]
    cases += [
        ("Pad", {"mode": "constant"}, (X, integers(1, -2, 0, -1, 4, 0), seven)),
        ("Pad", {"mode": "constant"}, (X.astype(np.int64), integers(2, 3), np.array(-9, np.int64), integers(-1))),
        ("Pad", {"mode": "edge"}, (X, integers(-2, 3), None, integers(1))),
        ("Pad", {"mode": "reflect"}, (X, integers(9, 13), None, integers(0))),
        ("Pad", {"mode": "wrap"}, (X, integers(9, 13), None, integers(0))),
        ("Pad", {"mode": "reflect"}, (X[:1], integers(2, 2), None, integers(0))),
    ]
    check([(case, padded(case)) for case in reversed(cases)], compiled=5)


def test_parameters_that_contradict_the_declared_shape_stay_within_the_tensor() -> None:
    """The nearest elements take the places of those that do not exist, whatever the parameters are."""
    row = np.arange(5, dtype=np.float32)
    wild = [LEAST, LEAST + 1, -6, -1, 0, 4, 5, 1 << 31, 1 << 62, GREATEST]
    jobs = []
    wanted = []
    for step in (LEAST, -2, -1, 0, 1, 3, GREATEST):
        data = network(("Slice", {}, (row, integers(0), integers(0), integers(0), integers(1))), (4,))
        library = compile_network(parse_onnx(data, f"m{len(jobs)}", "net.onnx"))
        for start in wild:
            inputs = row, integers(start), integers(0), integers(start % 3 - 1), integers(step)
            jobs.append((library, library.modules[0], inputs))
            wanted.append(set(row))
    for number, mode in enumerate(("constant", "edge", "reflect", "wrap")):
        data = network(("Pad", {"mode": mode}, (row, integers(0, 0))), (9,))
        library = compile_network(parse_onnx(data, f"p{number}", "net.onnx"))
        for before in wild:
            jobs.append((library, library.modules[0], (row, integers(before, -before % 7))))
            wanted.append(set(row))
    for (output,), elements in zip(run_many_on_host(jobs), wanted, strict=True):
        assert set(output.reshape(-1)) <= elements


def test_computed_ends_cost_nothing() -> None:
    """The shape of the result determines them, so one STRIDED_SLICE remains."""
    data = onnx.load_from_string(network(("Slice", {}, (X, integers(1), integers(3), integers(2))), (4, 5, 2)))
    for name, value in (("x1", 1), ("x3", 2)):
        data.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [1], [value]))
    graph = parse_onnx(data.SerializeToString(), "net", "net.onnx")
    assert [node.operator.name for node in graph.nodes] == ["STRIDED_SLICE"]
    assert ["'x2' is not read" in note for note in graph.notes] == [True]
    feeds = {"x0": X, "x2": integers(3)}
    np.testing.assert_array_equal(evaluate(graph, feeds)["y"], X[:, :, 1:3])


def test_one_of_several_axes() -> None:
    """All possible results are computed, and one is selected."""
    cube = X[:, :4, :4]
    cases: list[Case] = [
        ("ReduceSum", {"keepdims": 0}, (cube, integers(-1))),
        ("ReduceMean", {"keepdims": 0}, (cube, integers(2, 0))),
        ("ReduceMax", {"keepdims": 0}, (cube.astype(np.int8)[None], integers(0, 2))),
        ("ReduceL2", {"keepdims": 0}, (cube, integers(0))),
        ("ReduceProd", {"keepdims": 0}, (cube, integers(-2))),
        ("CumSum", {"reverse": 1}, (X, np.array(-2, np.int64))),
        ("CumSum", {"exclusive": 1}, (X, np.array(0, np.int32))),
        ("CumProd", {}, (X[0, 0], np.array(0, np.int64))),
    ]
    check(as_reference(cases), rtol=1e-5, compiled=2)
    notes = parse_onnx(network(cases[0], (4, 4)), "net", "net.onnx").notes
    assert ["3 results are computed" in note for note in notes] == [True]


def test_elements_that_a_computed_condition_selects() -> None:
    flags = np.array([0, 1, 0, 1, 1], bool)
    indices = np.array([[[3, 0], [-1, -1]], [[0, 1], [2, 5]]])[:, :, None]
    cases: list[Case] = [
        ("Compress", {"axis": 1}, (X, flags)),
        ("Compress", {"axis": -1}, (X.astype(np.int16), flags)),
        ("Compress", {}, (X, flags)),
        ("NonZero", {}, (np.where(X > 0, X, 0).astype(np.float32),)),
        ("NonZero", {}, (flags,)),
        ("NonZero", {}, (X.astype(np.int8),)),
        ("GatherND", {"batch_dims": 1}, (X[:2], indices)),
        ("GatherND", {"batch_dims": 2}, (X[:2, :2], integers(3, 0, -1, 5).reshape(2, 2, 1))),
    ]
    check(as_reference(cases))


def test_numbers_that_an_operator_writes() -> None:
    eye = np.array([[1, 0], [-1, 7]])
    cases: list[Case] = [
        ("OneHot", {"axis": 0}, (eye, np.array(3), np.array([2.5, -1], np.float32))),
        ("OneHot", {}, (eye, np.array(3, np.int32), np.array([0, 9], np.int32))),
        ("Range", {}, (np.array(1.5, np.float32), np.array(3, np.float32), np.array(0.25, np.float32))),
        ("Range", {}, (np.array(9, np.int16), np.array(-8, np.int16), np.array(-3, np.int16))),
        ("Range", {}, (np.array(-4), np.array(1), np.array(2))),
        *((f"{name}Window", {"periodic": 0}, (np.array(12),)) for name in ("Hann", "Hamming", "Blackman")),
    ]
    check(as_reference(cases), rtol=1e-6)


RESIZED: list[tuple[dict[str, Any], Inputs]] = [
    ({"mode": "nearest"}, (None, np.array([1, 1.7, 0.6], np.float32))),
    ({"mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"},
     (None, np.array([1, 3, 0.5], np.float32))),
    ({"mode": "linear"}, (None, np.array([1.3, 0.7, 2.5], np.float32))),
    ({"mode": "linear", "antialias": 1}, (None, np.array([0.6, 0.5, 1.5], np.float32))),
    ({"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
     (None, np.array([0.25, 2, 1], np.float32))),
    ({"mode": "cubic", "coordinate_transformation_mode": "align_corners"}, (None, np.array([1, 1.5, 2], np.float32))),
    ({"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}, (None, np.array([1, 0.8, 0.8], np.float32))),
    ({"mode": "cubic", "antialias": 1, "coordinate_transformation_mode": "half_pixel_symmetric"},
     (None, np.array([1, 0.6, 1], np.float32))),
    ({"mode": "nearest", "keep_aspect_ratio_policy": "not_larger", "axes": [2, 1]}, (None, None, integers(9, 8))),
    ({"mode": "linear", "keep_aspect_ratio_policy": "not_smaller", "axes": [1, 2]}, (None, None, integers(9, 8))),
    ({"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0},
     (np.array([0, 0.2, -0.3, 1, 0.9, 1.2], np.float32), None, integers(4, 3, 8))),
]  # fmt: skip


def test_sizes_of_images() -> None:
    """The coordinates are those of ONNX, computed in float32."""
    cases: list[Case] = [("Resize", attributes, (X, *inputs)) for attributes, inputs in RESIZED]
    check(as_reference(cases), rtol=2e-5, compiled=2)


def test_other_values_than_the_declared_shape_allows_touch_no_other_memory() -> None:
    """Scales, conditions, trip counts and axes may be anything; the sanitizers see every access."""
    jobs = []
    wild = np.array([np.nan, np.inf, -np.inf, 0, -1, 1e-30, 1e30, 0.3], np.float32)
    for number, attributes in enumerate(({"mode": "nearest"}, {"mode": "linear", "antialias": 1}, {"mode": "cubic"})):
        data = network(("Resize", attributes, (X[0, 0], None, wild[:1])), (9,))
        library = compile_network(parse_onnx(data, f"r{number}", "net.onnx"))
        jobs += [(library, library.modules[0], (X[0, 0], scale.reshape(1))) for scale in wild]
    data = network(("Compress", {}, (X[0, 0], np.ones(6, bool))), (3,))
    library = compile_network(parse_onnx(data, "c", "net.onnx"))
    count = len(jobs)
    jobs += [(library, library.modules[0], (X[0, 0], np.arange(6) < kept)) for kept in (0, 2, 3, 6)]
    made = [output for (output,) in run_many_on_host(jobs)]
    for output in made[:8]:
        assert set(output.reshape(-1)) <= set(X[0, 0])
    for output, kept in zip(made[count:], ([0, 0, 0], [0, 1, 0], [0, 1, 2], [0, 1, 2]), strict=True):
        np.testing.assert_array_equal(output.reshape(-1), X[0, 0][kept])


def test_shape_may_be_declared_behind_an_operator_that_keeps_it() -> None:
    made = onnx.load_from_string(network(("Slice", {}, (X, integers(1), integers(3))), (2, 5, 6)))
    made.graph.node[0].output[0] = "part"
    made.graph.node.extend([helper.make_node("Relu", ["part"], ["r"]), helper.make_node("Neg", ["r"], ["y"])])
    graph = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    feeds = {"x0": X, "x1": integers(1), "x2": integers(3)}
    np.testing.assert_array_equal(evaluate(graph, feeds)["y"], -np.maximum(X[1:3], 0))


REFUSED: dict[str, tuple[Case, Sequence[int] | None, Refusal]] = {
    "no shape": (
        ("Slice", {}, (X, integers(0), integers(3))), (None, 5, 6),
        ("input-not-constant", "node 0 (Slice) writing 'y'", "starts", "'x1'", "'y'"),
    ),
    "rank": (
        ("Slice", {}, (X, integers(0), integers(3))), (5, 6),
        ("onnx-malformed", "node 0 (Slice) writing 'y'", "[5, 6]", "3"),
    ),
    "longer than the tensor": (
        ("Slice", {}, (X, integers(0), integers(3))), (7, 5, 6),
        ("onnx-malformed", "node 0 (Slice) writing 'y'", "7", "4"),
    ),
    "numbers": (
        ("Slice", {}, (X, X[0, 0], X[0, 0])), (4, 5, 6), ("onnx-malformed", "node 0 (Slice) writing 'y'", "'x1'"),
    ),
    "pads without a shape": (
        ("Pad", {}, (X, integers(0, 0, 0, 0, 0, 0))), (None, 5, 6),
        ("input-not-constant", "node 0 (Pad) writing 'y'", "pads", "'x1'", "'y'"),
    ),
    "scales without a shape": (
        ("Resize", {}, (X, None, X[0, 0, :3])), (4, None, 6),
        ("input-not-constant", "node 0 (Resize) writing 'y'", "scales", "'x2'", "'y'"),
    ),
    "scales": (
        ("Resize", {}, (X, None, X[0, 0, :2])), (4, 5, 6),
        ("onnx-malformed", "node 0 (Resize) writing 'y'", "'x2'", "3"),
    ),
    "condition without a shape": (
        ("Compress", {"axis": 0}, (X, X[:, 0, 0] > 0)), (None, 5, 6),
        ("input-not-constant", "node 0 (Compress) writing 'y'", "condition", "'x1'", "'y'"),
    ),
    "condition": (
        ("Compress", {"axis": 0}, (X, np.ones(5, bool))), (4, 5, 6),
        ("onnx-malformed", "node 0 (Compress) writing 'y'", "'x1'", "bool[5]"),
    ),
    "rows of positions": (
        ("NonZero", {}, (X,)), (2, 7), ("onnx-malformed", "node 0 (NonZero) writing 'y'", "[2, 7]"),
    ),
    "types of a range": (
        ("Range", {}, (np.array(1), np.array(1), np.array(1, np.int32))), (4,),
        ("type-unsupported", "node 0 (Range) writing 'y'", "int64", "'x0'"),
    ),
    "several starts of a range": (
        ("Range", {}, (integers(1, 2), np.array(1), np.array(1))), (4,),
        ("onnx-malformed", "node 0 (Range) writing 'y'", "'x0'", "int64[2]"),
    ),
    "values of one hot": (
        ("OneHot", {}, (integers(1), np.array(3), np.ones(3, np.float32))), (1, 3),
        ("onnx-malformed", "node 0 (OneHot) writing 'y'", "3 values"),
    ),
    "training": (
        ("Dropout", {}, (X, np.array(0, np.float32), np.array(True))), (4, 5, 6),
        ("operator-variant-unsupported", "node 0 (Dropout) writing 'y'", "training_mode"),
    ),
    "mode": (
        ("Pad", {"mode": "around"}, (X, integers(0, 0, 0, 0, 0, 0))), (4, 5, 6),
        ("onnx-malformed", "node 0 (Pad) writing 'y'", "'around'"),
    ),
    "an odd number of pads": (
        ("Pad", {}, (X, integers(0, 0, 0, 0, 0, 0, 0))), (4, 5, 6),
        ("onnx-malformed", "node 0 (Pad) writing 'y'", "'x1'", "int64[7]"),
    ),
    "several paddings": (
        ("Pad", {}, (X, integers(0, 0, 0, 0, 0, 0), np.ones(2, np.float32))), (4, 5, 6),
        ("onnx-malformed", "node 0 (Pad) writing 'y'", "'x2'", "float32"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    case, shape, words = REFUSED[name]
    assert_onnx_refused(network(case, shape), *words)


def with_constants(data: bytes, values: dict[str, Array]) -> bytes:
    """Return the network ``data`` with ``values`` instead of inputs."""
    made = onnx.load_from_string(data)
    ports = [port for port in made.graph.input if port.name not in values]
    del made.graph.input[:]
    made.graph.input.extend(ports)
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items())
    return bytes(made.SerializeToString())


def test_constants_beside_computed_parameters_are_checked() -> None:
    data = network(("Range", {}, (integers(1, 2), np.array(1), np.array(1))), (4,))
    assert_onnx_refused(
        with_constants(data, {"x0": integers(1, 2), "x2": np.array(1)}),
        "onnx-malformed",
        "node 0 (Range) writing 'y'",
        "'x0'",
        "int64[2]",
    )
    data = network(("Slice", {}, (X, integers(0), integers(3), integers(0), integers(0))), (3, 5, 6))
    assert_onnx_refused(with_constants(data, {"x4": integers(0)}), "onnx-malformed", "node 0 (Slice) writing 'y'", "0")
