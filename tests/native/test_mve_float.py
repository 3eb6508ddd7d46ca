"""The float32 kernels for Helium: C on this machine and assembly on QEMU are within 1e-5 of the largest value."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mlfbuild.library import Library
from support.board_cases import wrong_networks
from support.checks import board_jobs, check_on_host
from support.drawing import Case
from support.mve_float_networks import KINDS
from support.native import compile_bytes, generated

NETWORKS = 3
SWEEP_NETWORKS = 150


CALLS = {
    "CONV_2D": "mlf_conv2d_float_mve",
    "DEPTHWISE_CONV_2D": "mlf_depthwise_conv2d_float_mve",
    "FULLY_CONNECTED": "mlf_(fully_connected|conv2d)_float_mve",
}


def compiled(cases: Sequence[Case], kind: str) -> list[Library]:
    """Return the libraries of ``cases``, which must all use the tested kernels."""
    libraries = [compile_bytes(case.model, f"net{index}", "cortex-m55") for index, case in enumerate(cases)]
    assert all(re.search(CALLS[kind], generated(library)) for library in libraries)
    return libraries


@pytest.mark.parametrize("kind", KINDS)
def test_c_equals_tensorflow_lite_micro(kind: str) -> None:
    cases = [KINDS[kind](seed) for seed in range(NETWORKS)]
    check_on_host(compiled(cases, kind), cases, range(NETWORKS))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_c_equals_tensorflow_lite_micro_for_many_cases(kind: str) -> None:
    seeds = range(NETWORKS, NETWORKS + SWEEP_NETWORKS)
    cases = [KINDS[kind](seed) for seed in seeds]
    check_on_host(compiled(cases, kind), cases, seeds, optimise="-O1")


@pytest.mark.parametrize("kind", KINDS)
def test_assembly_equals_tensorflow_lite_micro(kind: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    cases = [KINDS[kind](seed) for seed in range(100, 100 + NETWORKS)]
    jobs = board_jobs(compiled(cases, kind), cases)
    assert wrong_networks(jobs, "cortex-m55", tmp_path, tool, optimise="-O2") == []
