"""Operators whose sizes, axes or conditions are inputs of the network, with a fixed shape of the result in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from mlfbuild.graph.evaluation import evaluate
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import reference
from support.refusals import assert_refused

Array = npt.NDArray[Any]
Inputs = Sequence[Array | None]
Case = tuple[str, dict[str, Any], Inputs]
"""An operator, its attributes, and its inputs, all of which are inputs of the network."""

X = np.random.default_rng(9).standard_normal((4, 5, 6)).astype(np.float32)
LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def whole(*values: int) -> Array:
    return np.array(values, np.int64)


def network(case: Case, shape: Sequence[int] | None, result: Any = np.float32, opset: int = 23) -> bytes:
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
            ("Slice", {}, (X, whole(1, 2), whole(3, 4))),
            ("Slice", {}, (y, whole(-3), whole(GREATEST), whole(-1))),
            ("Slice", {}, (X, whole(LEAST, 1), whole(2, 1000), whole(2, 0), whole(1, 2))),
            ("Slice", {}, (X, whole(-1, GREATEST), whole(LEAST, 1), whole(1, 2), whole(-1, -2))),
            ("Slice", {}, (X, np.array([4], np.int32), np.array([9], np.int32), np.array([2], np.int32))),
            ("Slice", {}, (X, whole(3), whole(4), whole(1), whole(GREATEST))),
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
        for pads in (whole(1, 0, 2, 3, 1, 0), whole(-2, 5, -1, 9, -3, 0))
    ]
    cases += [
        ("Pad", {"mode": "constant"}, (X, whole(1, -2, 0, -1, 4, 0), seven)),
        ("Pad", {"mode": "constant"}, (X.astype(np.int64), whole(2, 3), np.array(-9, np.int64), whole(-1))),
        ("Pad", {"mode": "edge"}, (X, whole(-2, 3), None, whole(1))),
        ("Pad", {"mode": "reflect"}, (X, whole(9, 13), None, whole(0))),
        ("Pad", {"mode": "wrap"}, (X, whole(9, 13), None, whole(0))),
        ("Pad", {"mode": "reflect"}, (X[:1], whole(2, 2), None, whole(0))),
    ]
    check([(case, padded(case)) for case in reversed(cases)], compiled=5)


def test_parameters_that_contradict_the_declared_shape_stay_within_the_tensor() -> None:
    """The nearest elements take the places of those that do not exist, whatever the parameters are."""
    row = np.arange(5, dtype=np.float32)
    wild = [LEAST, LEAST + 1, -6, -1, 0, 4, 5, 1 << 31, 1 << 62, GREATEST]
    jobs = []
    wanted = []
    for step in (LEAST, -2, -1, 0, 1, 3, GREATEST):
        data = network(("Slice", {}, (row, whole(0), whole(0), whole(0), whole(1))), (4,))
        library = compile_network(parse_onnx(data, f"m{len(jobs)}", "net.onnx"))
        for start in wild:
            inputs = row, whole(start), whole(0), whole(start % 3 - 1), whole(step)
            jobs.append((library, library.modules[0], inputs))
            wanted.append(set(row))
    for number, mode in enumerate(("constant", "edge", "reflect", "wrap")):
        data = network(("Pad", {"mode": mode}, (row, whole(0, 0))), (9,))
        library = compile_network(parse_onnx(data, f"p{number}", "net.onnx"))
        for before in wild:
            jobs.append((library, library.modules[0], (row, whole(before, -before % 7))))
            wanted.append(set(row))
    for (output,), elements in zip(run_many_on_host(jobs), wanted, strict=True):
        assert set(output.reshape(-1)) <= elements


def test_computed_ends_cost_nothing() -> None:
    """The shape of the result tells them, so one STRIDED_SLICE remains."""
    data = onnx.load_from_string(network(("Slice", {}, (X, whole(1), whole(3), whole(2))), (4, 5, 2)))
    for name, value in (("x1", 1), ("x3", 2)):
        data.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [1], [value]))
    graph = parse_onnx(data.SerializeToString(), "net", "net.onnx")
    assert [node.operator.name for node in graph.nodes] == ["STRIDED_SLICE"]
    feeds = {"x0": X, "x2": whole(3)}
    np.testing.assert_array_equal(evaluate(graph, feeds)["y"], X[:, :, 1:3])


REFUSED: dict[str, tuple[Case, Sequence[int] | None, type[MlfError], tuple[str, ...]]] = {
    "no shape": (
        ("Slice", {}, (X, whole(0), whole(3))), (None, 5, 6), UnsupportedModelError,
        ("input-not-constant", "node 0 (Slice) writing 'y'", "starts", "'x1'", "'y'"),
    ),
    "rank": (
        ("Slice", {}, (X, whole(0), whole(3))), (5, 6), InputFileError,
        ("onnx-malformed", "node 0 (Slice) writing 'y'", "[5, 6]", "3"),
    ),
    "longer than the tensor": (
        ("Slice", {}, (X, whole(0), whole(3))), (7, 5, 6), InputFileError,
        ("onnx-malformed", "node 0 (Slice) writing 'y'", "7", "4"),
    ),
    "numbers": (
        ("Slice", {}, (X, X[0, 0], X[0, 0])), (4, 5, 6), InputFileError,
        ("onnx-malformed", "node 0 (Slice) writing 'y'", "'x1'"),
    ),
    "pads without a shape": (
        ("Pad", {}, (X, whole(0, 0, 0, 0, 0, 0))), (None, 5, 6), UnsupportedModelError,
        ("input-not-constant", "node 0 (Pad) writing 'y'", "pads", "'x1'", "'y'"),
    ),
    "mode": (
        ("Pad", {"mode": "around"}, (X, whole(0, 0, 0, 0, 0, 0))), (4, 5, 6), InputFileError,
        ("onnx-malformed", "node 0 (Pad) writing 'y'", "'around'"),
    ),
    "several paddings": (
        ("Pad", {}, (X, whole(0, 0, 0, 0, 0, 0), np.ones(2, np.float32))), (4, 5, 6), InputFileError,
        ("onnx-malformed", "node 0 (Pad) writing 'y'", "'x2'", "float32"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    case, shape, kind, words = REFUSED[name]
    with pytest.raises(kind) as caught:
        parse_onnx(network(case, shape), "net", "net.onnx")
    assert_refused(caught.value, *words)
