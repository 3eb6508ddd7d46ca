"""Layers of int8 weights over float32 equal LiteRT's reference kernels bit for bit, in numpy and in C."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import DType, Operands, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate
from support.board_cases import wrong_networks
from support.drawing import Array, Case
from support.host_c import run_many_on_host
from support.hybrid_networks import BLOCKWISE, KINDS, hybrid
from support.native import compile_bytes, generated
from support.oracle import litert_run


def expected(kind: str, case: Case) -> list[Array]:
    return litert_run(case.model, case.inputs, reference=kind != BLOCKWISE)


def equal_in_numpy(kind: str, cases: Sequence[Case]) -> None:
    for case in cases:
        graph = parse_tflite(case.model, "net", "net")
        values = evaluate(graph, dict(zip(graph.inputs, case.inputs, strict=True)))
        for name, right in zip(graph.outputs, expected(kind, case), strict=True):
            np.testing.assert_array_equal(values[name], right)


def equal_in_c(cases: Sequence[tuple[str, Case]]) -> None:
    libraries = [compile_bytes(case.model, f"net{index}") for index, (_, case) in enumerate(cases)]
    jobs = [(library, library.modules[0], case.inputs) for library, (_, case) in zip(libraries, cases, strict=True)]
    for (kind, case), outputs in zip(cases, run_many_on_host(jobs), strict=True):
        for got, right in zip(outputs, expected(kind, case), strict=True):
            np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_numpy(kind: str) -> None:
    equal_in_numpy(kind, list(hybrid(kind, 4)))


def test_every_kind_in_c() -> None:
    equal_in_c([(kind, case) for kind in KINDS for case in hybrid(kind, 2)])


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_many_networks(kind: str) -> None:
    cases = list(hybrid(kind, 40))
    equal_in_numpy(kind, cases)
    equal_in_c([(kind, case) for case in cases])


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_every_kind_on_boards(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    cases = [(kind, case) for kind in KINDS for case in hybrid(kind, 2)]
    jobs = [
        (compile_bytes(case.model, f"net{index}", cpu), case.inputs, expected(kind, case))
        for index, (kind, case) in enumerate(cases)
    ]
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []


def test_layers_that_read_one_tensor_share_its_integers() -> None:
    (case,) = hybrid("network", 1)
    graph = parse_tflite(case.model, "net", "net")
    names = [node.operator.name for node in graph.nodes]
    assert names.count("QUANTIZE_ROWS") == 5
    assert sum(name.startswith("HYBRID") for name in names) == 6


def test_weights_stay_int8_in_the_archive() -> None:
    (case,) = hybrid("FULLY_CONNECTED", 1)
    text = generated(compile_bytes(case.model))
    assert re.search(r"const int8_t \w*weights\w*\[", text)
    assert "mlf_fully_connected_hybrid(" in text


@pytest.mark.parametrize("asymmetric", [False, True])
def test_numbers_that_are_not_finite(asymmetric: bool) -> None:
    """LiteRT converts them to integers, which C does not define; here they are 0 or at an end."""
    value = np.array([[np.nan, 1, -2, 0.5], [np.inf, 1, -2, 0.5], [1e-45, 0, -1e-45, 0]], np.float32)
    source, like = Tensor("x", value.shape, DType.FLOAT32), (value.shape[0],)
    outputs = [Tensor("q", value.shape, DType.INT8), Tensor("s", like, DType.FLOAT32), Tensor("z", like, DType.INT32)]
    outputs = outputs if asymmetric else outputs[:2]
    operator = ops.QuantizeRows(asymmetric)
    assert operator.check(Operands([source]), outputs) is None
    stored, scales, *zero_points = operator.reference(Operands([source]), Operands([value]), outputs)
    assert stored[0, 0] == (zero_points[0][0] if asymmetric else 0)
    assert np.isinf(scales[1])
