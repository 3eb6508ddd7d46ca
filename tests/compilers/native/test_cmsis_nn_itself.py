"""The library itself, v7.0.0: right to the bit with it, on this machine and on boards, as with our own kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.board_cases import Job, wrong_networks
from support.cmsis_nn_builds import build_for_cpu, build_for_host
from support.cmsis_nn_networks import compiled, jobs
from support.host_c import Linked, run_many_on_host

NETWORKS = ("kws_int8", "ic_int8", "ad_int8", "vww_int8")
CPUS = ("cortex-m4", "cortex-m55")


@pytest.fixture(scope="module")
def on_boards(
    cmsis_nn_7: Path, tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]
) -> dict[str, Linked]:
    return {cpu: build_for_cpu(cmsis_nn_7, tmp_path_factory.mktemp("cmsis-nn"), cpu, tool) for cpu in CPUS}


@pytest.fixture(scope="module")
def on_host(cmsis_nn_7: Path, tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Linked:
    tool("gcc")
    return build_for_host(cmsis_nn_7, tmp_path_factory.mktemp("cmsis-nn"))


def networks(shared: Path, cpu: str, memory: str, vectors: int) -> list[Job]:
    models = [(shared / "models" / f"{name}.tflite").read_bytes() for name in NETWORKS]
    found = []
    for library, name in zip(compiled(models, cpu, memory), NETWORKS, strict=True):
        golden = np.load(shared / "golden" / f"{name}.npz")
        found += [(library, [golden["in0"][at]], [golden["out0"][at]]) for at in range(vectors)]
    return found


def check_on_host(found: list[Job], linked: Linked) -> None:
    outputs = run_many_on_host([(library, library.modules[0], inputs) for library, inputs, _ in found], linked=linked)
    for (library, _, wanted), got in zip(found, outputs, strict=True):
        for array, right in zip(got, wanted, strict=True):
            name, judge = library.modules[0].name, np.asarray(right).ravel()
            if judge.dtype == np.float32:  # layers without integers are ours, and right within 1e-5 of the largest
                np.testing.assert_allclose(array.ravel(), judge, rtol=0, atol=1e-5 * np.abs(judge).max(), err_msg=name)
            else:
                np.testing.assert_array_equal(array.ravel(), judge, name)


@pytest.mark.parametrize("cpu", CPUS)
def test_networks_of_mlperf_tiny_on_boards(
    shared: Path, on_boards: dict[str, Linked], cpu: str, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    found = networks(shared, cpu, "balanced", 2)
    assert wrong_networks(found, cpu, tmp_path, tool, linked=on_boards[cpu]) == []


@pytest.mark.parametrize("memory", ["smallest", "balanced", "fastest"])
def test_networks_of_mlperf_tiny_on_this_machine(shared: Path, on_host: Linked, memory: str) -> None:
    check_on_host(networks(shared, "cortex-m4", memory, 2), on_host)


@pytest.mark.sweep
def test_all_operators_on_this_machine(on_host: Linked) -> None:
    check_on_host(jobs("cortex-m4", operators=60, layers=40, mixed=30), on_host)


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", CPUS)
def test_all_operators_on_boards(
    on_boards: dict[str, Linked], cpu: str, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    found = jobs(cpu, operators=40, layers=25, mixed=20)
    for at in range(0, len(found), 100):
        assert wrong_networks(found[at : at + 100], cpu, tmp_path / str(at), tool, linked=on_boards[cpu]) == []
