"""Verifications and profiles on a farm: the same results as here, boards as resources, and nothing run twice."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core import running
from support.dask_cluster import DaskCluster, dask_cluster, run
from support.firmware_repo import tiny_network
from support.labgrid_farm import farm, free_port
from support.oracle import tflite_micro_run

pytest.importorskip("distributed")
PROJECT = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
  desk: {cpu: cortex-m4, runner: {qemu: mps2-an386}}
models:
  net: {source: models/net.tflite, vectors: vectors/net.npz}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Iterator[DaskCluster]:
    """A scheduler with one worker that has no board."""
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm", "gdb-multiarch")
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.scheduler()
        cluster.worker("plain")
        yield cluster


@pytest.fixture
def project(tmp_path: Path) -> Path:
    model = tiny_network(1)
    inputs = np.random.default_rng(0).integers(-128, 128, (3, 1, 8), np.int8)
    for name in ("models", "vectors"):
        (tmp_path / name).mkdir()
    (tmp_path / "models/net.tflite").write_bytes(model)
    outputs = np.stack([tflite_micro_run(model, [case])[0] for case in inputs])
    np.savez(tmp_path / "vectors/net.npz", in0=inputs, out0=outputs)
    (tmp_path / "mlfbuild.yml").write_text(PROJECT)
    return tmp_path


@pytest.mark.sweep
def test_a_board_is_a_resource_and_emulated_results_are_kept(cluster: DaskCluster, project: Path) -> None:
    farm = {"DASK_SCHEDULER_ADDRESS": cluster.address}
    here, _ = run(project, "verify", "--target", "m4")
    there, events = run(project, "verify", "--target", "m4", "--on", "dask", **farm)
    assert there == here
    assert f"passed on {cluster.address_of('plain')}" in events
    again, events = run(project, "verify", "--target", "m4", "--on", "dask", DASK_SCHEDULER_ADDRESS="tcp://127.0.0.1:1")
    assert again == here and "passed (from the cache)" in events

    _, events = run(project, "verify", "--target", "desk", "--on", "dask", status=7, **farm)
    assert json.loads(events.splitlines()[-1])["code"] == "farm-without-resource"
    cluster.worker("beside", "--no-nanny", "--resources", "board:desk=1")
    for _ in range(2):  # the result of a device is not kept
        (report,), events = run(project, "verify", "--target", "desk", "--on", "dask", **farm)
        assert report["passed"] and f"passed on {cluster.address_of('beside')}" in events
    cluster.kill("beside")


@pytest.mark.sweep
def test_wrong_outputs_and_counts_come_back(cluster: DaskCluster, project: Path) -> None:
    farm = {"DASK_SCHEDULER_ADDRESS": cluster.address}
    here, _ = run(project, "profile", "--target", "m4")
    there, _ = run(project, "profile", "--target", "m4", "--on", "dask", **farm)
    assert there == here
    with np.load(project / "vectors/net.npz") as vectors:
        arrays = dict(vectors)
    arrays["out0"][1] ^= 1
    np.savez(project / "vectors/net.npz", **arrays)
    wrong, _ = run(project, "verify", "--target", "m4", "--on", "dask", status=1, **farm)
    assert [report["passed"] for report in wrong] == [False]
    (here,), (there,) = run(project, "verify", "--target", "m4", status=1)[0], wrong
    assert {name: value for name, value in here.items() if there[name] != value} == {}


@pytest.mark.sweep
def test_tasks_wait_for_a_place_of_labgrid(cluster: DaskCluster, project: Path, tmp_path: Path) -> None:
    pytest.importorskip("labgrid")
    port = free_port()
    models = "".join(f"  {name}: {{source: models/net.tflite, vectors: vectors/net.npz}}\n" for name in ("one", "two"))
    memory = "{flash: {origin: 0, size: 4 MiB}, ram: {origin: 0x20000000, size: 4 MiB}}"
    targets = f"  nucleo: {{cpu: cortex-m4, runner: {{labgrid: nucleo, memory: {memory}}}}}\n"
    (project / "mlfbuild.yml").write_text(f"mlfbuild: 1\ntargets:\n{targets}models:\n{models}")
    device = ["qemu-system-arm", "-M", "mps2-an386", "-S", "-gdb", f"tcp:127.0.0.1:{port}", "-display", "none"]
    with farm(tmp_path) as boards, running([*device, "-serial", "null"]) as qemu:
        boards.make_place("nucleo", f"gdb=:{port}", "gdb-server=qemu", group="bare")
        places = {"LG_COORDINATOR": boards.address, "LG_USERNAME": "tester"}
        cluster.worker("desk", "--no-nanny", "--nthreads", "2", "--resources", "board:nucleo=1", **places)
        reports, events = run(project, "verify", "--on", "dask", DASK_SCHEDULER_ADDRESS=cluster.address)
        assert [report["passed"] for report in reports] == [True, True]  # both at once: place-acquired, device-in-use
        assert events.count(f"passed on {cluster.address_of('desk')}") == 2
        assert boards.holder("nucleo") is None
        boards.client("-p", "nucleo", "acquire", user="bob")
        _, events = run(project, "verify", "--on", "dask", status=6, DASK_SCHEDULER_ADDRESS=cluster.address)
        assert json.loads(events.splitlines()[-1])["code"] == "place-acquired"
        qemu.kill()
    cluster.kill("desk")
