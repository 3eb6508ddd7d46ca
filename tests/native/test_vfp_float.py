"""The float32 kernels for scalar FPUs: C on this machine and assembly on QEMU are within 1e-5 of the largest value."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.library import Library
from support.board_cases import clang_command, wrong_networks
from support.checks import board_jobs, check_on_host
from support.drawing import Case
from support.host_c import WARNINGS, run, write_tree
from support.mve_float_networks import KINDS
from support.native import compile_bytes, generated
from support.tflite_builder import Network

NETWORKS = 3
SWEEP_NETWORKS = 150


def drawn(seeds: Sequence[int]) -> list[Case]:
    return [KINDS["CONV_2D" if seed % 3 else "FULLY_CONNECTED"](seed) for seed in seeds]


def compiled(cases: Sequence[Case], cpu: str = "cortex-m7") -> list[Library]:
    """Return the libraries of ``cases``; at least half of them must use the tested kernel."""
    libraries = [compile_bytes(case.model, f"net{index}", cpu) for index, case in enumerate(cases)]
    assert 2 * sum("mlf_conv2d_float_vfp(" in generated(library) for library in libraries) >= len(cases)
    return libraries


def test_c_equals_tensorflow_lite_micro() -> None:
    cases = drawn(range(NETWORKS))
    check_on_host(compiled(cases), cases, range(NETWORKS))


@pytest.mark.sweep
def test_c_equals_tensorflow_lite_micro_for_many_cases() -> None:
    seeds = range(NETWORKS, NETWORKS + SWEEP_NETWORKS)
    cases = drawn(seeds)
    check_on_host(compiled(cases), cases, seeds, optimise="-O1")


@pytest.mark.parametrize(("cpu", "optimise"), [("cortex-m7", "-O2"), ("cortex-m4", "-Os")])
def test_assembly_equals_tensorflow_lite_micro(
    cpu: str, optimise: str, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    cases = drawn(range(100, 100 + NETWORKS))
    assert wrong_networks(board_jobs(compiled(cases, cpu), cases), cpu, tmp_path, tool, optimise=optimise) == []


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m7", "cortex-m33"])
@pytest.mark.parametrize("optimise", ["-O0", "-Os", "-O3"])
def test_assembly_equals_tensorflow_lite_micro_for_many_cases(
    cpu: str, optimise: str, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    cases = drawn(range(200, 240))
    assert wrong_networks(board_jobs(compiled(cases, cpu), cases), cpu, tmp_path, tool, optimise=optimise) == []


def test_clang_prints_no_warnings(newest_clang: dict[str, str], tmp_path: Path, tool: Callable[[str], str]) -> None:
    library = compile_bytes(KINDS["CONV_2D"](1).model, "net", "cortex-m7")
    write_tree(library, tmp_path)
    command = clang_command(newest_clang["MLFBUILD_CLANG"], "cortex-m7", tool)
    for source in sorted((tmp_path / "host/src").glob("*.c")):
        run([*command, *WARNINGS, "-O1", "-I", tmp_path / "host/include", "-c", source, "-o", tmp_path / "net.o"])


def convolution(channels: int, *, weight: float = 1.0) -> bytes:
    network = Network()
    image = network.input((1, 4, 4, 3))
    weights = np.full((channels, 3, 3, 3), weight, np.float32)
    return network.build(outputs=[network.conv2d(image, weights, bias=np.zeros(channels, np.float32), padding="SAME")])


@pytest.mark.parametrize(("channels", "weight"), [(3, 1.0), (8, np.inf)], ids=["few channels", "infinite weights"])
def test_other_convolutions_use_portable_c(channels: int, weight: float) -> None:
    assert "mlf_conv2d_float(" in generated(compile_bytes(convolution(channels, weight=weight), cpu="cortex-m7"))


def test_cores_without_an_fpu_use_portable_c() -> None:
    assert "mlf_conv2d_float(" in generated(compile_bytes(convolution(8), cpu="cortex-m4+nofp"))
