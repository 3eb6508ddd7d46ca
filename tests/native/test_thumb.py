"""The int8 kernels for cores without SIMD: C on this machine and assembly on QEMU are bit-exact."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.library import Library
from mlfbuild.native.graph.quantize import Rescale
from mlfbuild.native.lowering.common.thumb import pack_channels, thumb_channels
from support.board_cases import Job, wrong_networks
from support.checks import board_jobs, check_kinds_on_host, check_on_host
from support.drawing import Case
from support.dsp_networks import KINDS
from support.native import compile_bytes, generated
from support.thumb_networks import depthwise_limits, packed_limits, requantisation, unpacked

Array = npt.NDArray[Any]

NETWORKS = 8
ON_PUSH = 3
SWEEP_NETWORKS = 120

HEADERS = {
    "CONV_2D": ("conv2d_thumb.h", "matmul_thumb.h"),
    "CONV_2D below the peak": ("conv2d_thumb.h", "matmul_thumb.h"),
    "CONV_2D 1x1": ("matmul_thumb.h",),
    "CONV_2D unpacked": ("fully_connected_thumb.h",),
    "FULLY_CONNECTED": ("fully_connected_thumb.h", "matmul_thumb.h"),
    "DEPTHWISE_CONV_2D": ("depthwise_conv2d_thumb.h",),
    "DEPTHWISE_CONV_2D in place": ("depthwise_conv2d_thumb.h",),
    "DEPTHWISE_CONV_2D by rows": ("depthwise_conv2d_thumb.h",),
}


LONG_SUMS = ("FULLY_CONNECTED", "CONV_2D unpacked")
LIMITS = {
    "products": (packed_limits, "matmul_thumb.h"),
    "depthwise products": (depthwise_limits, "depthwise_conv2d_thumb.h"),
    "requantisation": (requantisation, "matmul_thumb.h"),
}


def compiled(cases: Sequence[Case], kind: str, prefix: str = "net", cpu: str = "cortex-m0plus") -> list[Library]:
    """Return the libraries of ``cases``, which must use the tested kernels unless sums have more than 23 bits."""
    libraries = [compile_bytes(case.model, f"{prefix}{index}", cpu) for index, case in enumerate(cases)]
    used = [any(f"/{header}" in generated(library) for header in HEADERS[kind]) for library in libraries]
    assert all(used) or (kind in LONG_SUMS and any(used))
    return libraries


def drawn(kind: str, seeds: Sequence[int]) -> list[Case]:
    draw = unpacked if kind == "CONV_2D unpacked" else KINDS[kind]
    return [draw(seed, extreme=seed % 4 == 0) for seed in seeds]


def limit_jobs(cpu: str, seeds: Sequence[int]) -> list[Job]:
    jobs: list[Job] = []
    for draw, header in LIMITS.values():
        cases = [draw(seed) for seed in seeds]
        libraries = [compile_bytes(case.model, f"limit{len(jobs)}_{at}", cpu) for at, case in enumerate(cases)]
        assert all(f"/{header}" in generated(library) for library in libraries)
        jobs += board_jobs(libraries, cases)
    return jobs


def test_c_equals_tensorflow_lite_micro() -> None:
    check_kinds_on_host(HEADERS, range(ON_PUSH), drawn, compiled)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", HEADERS)
def test_c_equals_tensorflow_lite_micro_for_many_cases(kind: str) -> None:
    seeds = range(ON_PUSH, NETWORKS + SWEEP_NETWORKS)
    cases = drawn(kind, seeds)
    check_on_host(compiled(cases, kind), cases, seeds, optimise="-O1")


@pytest.mark.parametrize(("cpu", "count"), [("cortex-m0plus", 2), ("cortex-m3", 2)])
def test_assembly_equals_tensorflow_lite_micro(
    cpu: str, count: int, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    jobs = limit_jobs(cpu, range(count))
    for kind in HEADERS:
        cases = drawn(kind, range(100, 100 + count))
        jobs += board_jobs(compiled(cases, kind, f"net{len(jobs)}_", cpu), cases)
    assert wrong_networks(jobs, cpu, tmp_path, tool, optimise="-O2") == []


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["cortex-m0plus", "cortex-m3"])
def test_assembly_equals_tensorflow_lite_micro_for_many_cases(
    cpu: str, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    """More than a million outputs on each core."""
    outputs = 0
    for first in range(1000, 1240, 20):
        jobs = limit_jobs(cpu, range(first, first + 20))
        for kind in HEADERS:
            cases = drawn(kind, range(first, first + 16))
            jobs += board_jobs(compiled(cases, kind, f"net{len(jobs)}_", cpu), cases)
        folder = tmp_path / str(first)
        folder.mkdir()
        assert wrong_networks(jobs, cpu, folder, tool, optimise="-O1") == []
        outputs += sum(array.size for _, _, wanted in jobs for array in wanted)
    assert outputs > 1_000_000


@pytest.mark.parametrize(("magnitude", "flagged"), [(1, 0), (2, 1)])
def test_four_products_are_added_only_if_they_fit_in_16_bits(magnitude: int, flagged: int) -> None:
    weights = np.array([[127, -127, 0, magnitude]], np.int8)
    channels = thumb_channels(weights, np.zeros(1, np.int32), [Rescale(1 << 30, -9)], 0, 0)
    assert channels is not None
    assert pack_channels(channels)[1] >> 31 & 1 == flagged


@pytest.mark.parametrize(
    ("weight", "largest", "shift", "positive"),
    [
        (-128, 200_000, 11, None),
        (127, (1 << 20) - 1, 11, True),
        (127, 1 << 20, 11, False),
        (127, (1 << 23) - 1, 14, False),
        (127, 1 << 23, 14, None),
    ],
)
def test_kernels_are_used_only_within_their_limits(
    weight: int, largest: int, shift: int, positive: bool | None
) -> None:
    weights = np.full((1, 8), weight, np.int8)
    bias = np.array([largest - 8 * 128 * 127], np.int32)
    channels = thumb_channels(weights, bias, [Rescale(1 << 30, -shift)], -128, -128)
    assert (None if channels is None else channels.positive) == positive
