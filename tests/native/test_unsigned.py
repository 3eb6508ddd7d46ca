"""Networks of uint8 equal LiteRT's reference kernels bit for bit, in numpy and in C."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.frontends.tflite.unsigned import _COMPUTED
from mlfbuild.native.graph.nodes import evaluate
from support.board_cases import wrong_networks
from support.detection_networks import defined
from support.drawing import Case
from support.examples import first_on_push
from support.host_c import run_many_on_host
from support.native import compile_bytes, generated
from support.networks import TYPES, drawn
from support.oracle import assert_equal, litert_run
from support.tflite_builder import Network
from support.unsigned_networks import OWN, WEIGHTED, dsp_convolutions, own, unsigned

DRAWN = sorted(name for name in TYPES if "int8" in TYPES[name] and getattr(BuiltinOperator, name) in _COMPUTED)
UNJUDGED = ("BROADCAST_TO",)
"""Operators that LiteRT's reference resolver does not have in this version; int8 equals TensorFlow Lite Micro."""
REFUSED = ("SOFTMAX", "RESIZE_BILINEAR", "RESHAPE")
"""Operators of which some drawn networks are refused, by LiteRT or here (int16 results, inexact sizes)."""


def networks(operator: str, count: int) -> list[Case]:
    random = np.random.default_rng(20)
    return [unsigned(case, random) for case in drawn(operator, "int8", count)]


def equal_in_numpy(cases: Sequence[Case], what: str) -> int:
    """Compare the cases that LiteRT and this compiler take; return their number."""
    compared = 0
    for case in cases:
        try:
            expected = litert_run(case.model, case.inputs)
            graph = parse_tflite(case.model, "net", "net")
        except (RuntimeError, UnsupportedModelError):
            assert what in REFUSED
            continue
        values = evaluate(graph, dict(zip(graph.inputs, case.inputs, strict=True)))
        for name, right in zip(graph.outputs, expected, strict=True):
            assert_equal(values[name], right, what)
        compared += 1
    return compared


def equal_in_c(cases: Sequence[Case], cpu: str = "cortex-m4") -> None:
    libraries = [compile_bytes(case.model, f"net{index}", cpu=cpu) for index, case in enumerate(cases)]
    jobs = [(library, library.modules[0], case.inputs) for library, case in zip(libraries, cases, strict=True)]
    for case, outputs in zip(cases, run_many_on_host(jobs), strict=True):
        for got, right in zip(outputs, litert_run(case.model, case.inputs), strict=True):
            assert_equal(got, right, "net")


@pytest.mark.parametrize("operator", [name for name in DRAWN if name not in UNJUDGED])
def test_every_operator_in_numpy(operator: str) -> None:
    assert equal_in_numpy(networks(operator, 3), operator) >= 1


@pytest.mark.sweep
@pytest.mark.parametrize("operator", [name for name in DRAWN if name not in UNJUDGED])
def test_every_operator_in_c(operator: str) -> None:
    taken = [case for case in networks(operator, 60) if equal_in_numpy([case], operator)]
    assert len(taken) >= 20
    equal_in_c(taken)


def test_detections() -> None:
    cases = networks("TFLite_Detection_PostProcess", 4)
    jobs = []
    for index, case in enumerate(cases):
        library = compile_bytes(case.model, f"net{index}")
        jobs.append((library, library.modules[0], case.inputs))
    for case, outputs in zip(cases, run_many_on_host(jobs), strict=True):
        graph = parse_tflite(case.model, "net", "net")
        values = evaluate(graph, dict(zip(graph.inputs, case.inputs, strict=True)))
        expected = defined(litert_run(case.model, case.inputs))
        for name, got, right in zip(graph.outputs, outputs, expected, strict=True):
            assert_equal(values[name], right, "numpy")
            assert_equal(got, right, "C")


@pytest.mark.parametrize("kind", OWN)
def test_own_networks_in_numpy(kind: str) -> None:
    assert equal_in_numpy(list(own(kind, 2)), kind) == 2


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m4", "cortex-m0plus", "cortex-m55"]))
def test_own_networks_in_c(cpu: str) -> None:
    """All kernels that only uint8 has, also those of weights with a zero point and of averages."""
    offset = [case for operator in WEIGHTED for case in networks(operator, 2)]
    rounded = [case for operator in ("AVERAGE_POOL_2D", "DIV", "L2_NORMALIZATION") for case in networks(operator, 1)]
    equal_in_c([*(case for kind in OWN for case in own(kind, 1)), *offset, *rounded], cpu)


def test_averages_for_dsp_in_c() -> None:
    """All means of two and of four stored values, and channels that are not computed four at a time."""
    cases = []
    for size in (2, 4):
        net = Network()
        image = net.input((1, 1, 256 * size, 6), 0.1, 3, dtype="uint8")
        output = net.activation((1, 1, 256, 6), 0.1, 3, dtype="uint8")
        options = {"FilterHeight": 1, "FilterWidth": size, "StrideH": 1, "StrideW": size, "Padding": 1}
        net.operator("AVERAGE_POOL_2D", [image], output, "Pool2DOptions", **options)
        value = np.repeat(np.arange(256), size * 6).reshape(1, 1, 256 * size, 6)
        value += np.random.default_rng(size).integers(0, 3, value.shape)
        cases.append(Case(net.build(), (np.clip(value, 0, 255).astype(np.uint8),)))
        assert "half_up_int8_dsp(" in generated(compile_bytes(cases[-1].model))
    equal_in_c(cases)


def test_convolutions_for_dsp_in_c() -> None:
    cases = dsp_convolutions()
    for case in cases:
        assert "offset_int8_dsp(" in generated(compile_bytes(case.model))
    for case in cases:
        assert len(np.unique(litert_run(case.model, case.inputs)[0])) > 3
    equal_in_c(cases)


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_own_networks_on_boards(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """The assembly of the kernels, which the host replaces by C."""
    cases = [*dsp_convolutions(), *(case for kind in OWN for case in own(kind, 1)), *networks("AVERAGE_POOL_2D", 4)]
    jobs = [
        (compile_bytes(case.model, f"net{index}", cpu), case.inputs, litert_run(case.model, case.inputs))
        for index, case in enumerate(cases)
    ]
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []
