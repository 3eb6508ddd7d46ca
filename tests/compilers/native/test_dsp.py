"""The int8 kernels for the DSP extension: their C on this machine, their assembly on QEMU, both bit for bit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mlfbuild.library import Library
from support.board_c import wrong_on_board
from support.drawing import Case
from support.dsp_networks import KINDS
from support.host_c import run_many_on_host
from support.native import compile_bytes, generated
from support.oracle import assert_equal, tflite_micro_run

NETWORKS = 12
SWEEP_NETWORKS = 120

HEADERS = {
    "CONV_2D": ("conv2d_dsp.h", "matmul_dsp.h"),
    "CONV_2D below the peak": ("conv2d_dsp.h", "matmul_dsp.h"),
    "CONV_2D 1x1": ("matmul_dsp.h",),
    "FULLY_CONNECTED": ("matmul_dsp.h",),
    "DEPTHWISE_CONV_2D": ("depthwise_conv2d_dsp.h",),
    "DEPTHWISE_CONV_2D in place": ("depthwise_conv2d_dsp.h",),
    "DEPTHWISE_CONV_2D by rows": ("depthwise_conv2d_dsp.h",),
}


def compiled(cases: Sequence[Case], kind: str) -> list[Library]:
    """The libraries of ``cases``; all of them must use the kernels that are tested here."""
    libraries = [compile_bytes(case.model, f"net{index}") for index, case in enumerate(cases)]
    for library in libraries:
        included = [header for header in HEADERS[kind] if f"/{header}" in generated(library)]
        assert included, library.modules[0].source_text.decode()
    return libraries


def drawn(kind: str, seeds: Sequence[int]) -> list[Case]:
    return [KINDS[kind](seed, extreme=seed % 4 == 0) for seed in seeds]


def check_on_host(kind: str, seeds: Sequence[int]) -> None:
    cases = drawn(kind, seeds)
    libraries = compiled(cases, kind)
    jobs = [(library, library.modules[0], case.inputs) for library, case in zip(libraries, cases, strict=True)]
    for case, got, seed in zip(cases, run_many_on_host(jobs), seeds, strict=True):
        assert_equal(got[0], tflite_micro_run(case.model, case.inputs)[0], f"{kind} {seed}")


@pytest.mark.parametrize("kind", HEADERS)
def test_c_equals_tensorflow_lite_micro(kind: str) -> None:
    check_on_host(kind, range(NETWORKS))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", HEADERS)
def test_c_equals_tensorflow_lite_micro_often(kind: str) -> None:
    check_on_host(kind, range(NETWORKS, NETWORKS + SWEEP_NETWORKS))


def test_blocks_grow_where_that_costs_no_memory() -> None:
    for kind, pixels in (("CONV_2D", {"2"}), ("CONV_2D below the peak", {"3"})):
        texts = [generated(library) for library in compiled(drawn(kind, range(NETWORKS)), kind)]
        direct = [text for text in texts if "mlf_conv2d_int8_dsp(" in text]
        assert direct
        assert {re.findall(r"\.pixels = (\d)", text)[0] for text in direct} == pixels


def test_depthwise_convolutions_shrink_in_place() -> None:
    for library in compiled(drawn("DEPTHWISE_CONV_2D by rows", range(NETWORKS)), "DEPTHWISE_CONV_2D by rows"):
        assert "mlf_depthwise_conv2d_rows_int8_dsp(" in generated(library)


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m33"])
@pytest.mark.parametrize("kind", HEADERS)
def test_assembly_equals_tensorflow_lite_micro(kind: str, cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    cases = drawn(kind, range(100, 100 + NETWORKS))
    libraries = compiled(cases, kind)
    jobs = [
        (library, case.inputs[0], tflite_micro_run(case.model, case.inputs)[0])
        for library, case in zip(libraries, cases, strict=True)
    ]
    assert wrong_on_board(jobs, cpu, tmp_path, tool, "-O2") == [0] * len(jobs)
