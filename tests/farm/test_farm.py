"""Builds on a cluster of Dask: the same bytes as here, whatever workers do, or a line that says what is missing."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlfbuild
from support.dask_cluster import DaskCluster, FarmProject, dask_cluster

pytest.importorskip("distributed")
IMPATIENT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A scheduler without workers."""
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.scheduler()
        yield cluster


def test_a_scheduler_without_workers(cluster: DaskCluster, tmp_path: Path) -> None:
    built = FarmProject(tmp_path / "p", 1, ["cortex-m4"]).build(
        "--on", "dask", DASK_SCHEDULER_ADDRESS=cluster.address, **IMPATIENT
    )
    assert f"{cluster.address}: the scheduler had no worker for 1 s; start workers with" in built.check(7).err


def test_a_worker_that_dies_while_it_compiles_changes_nothing(cluster: DaskCluster, tmp_path: Path) -> None:
    here, farm = FarmProject(tmp_path / "here"), FarmProject(tmp_path / "farm")
    assert here.build().status == 0
    cluster.worker("mortal", fault="compile")
    cluster.worker("other", fault="none")
    built = farm.build("--on", "dask", DASK_SCHEDULER_ADDRESS=cluster.address).check()
    assert cluster.marked("compile") == 1
    assert len(built.workers) == farm.count == cluster.marked("compiled")
    assert farm.digests() == here.digests()
    # Nothing is repeated: this build would fail if it needed the cluster.
    assert farm.build("--on", "dask", DASK_SCHEDULER_ADDRESS="tcp://127.0.0.1:1", **IMPATIENT).check().workers == {}


@pytest.mark.sweep
def test_a_worker_with_another_version_is_refused(cluster: DaskCluster, tmp_path: Path) -> None:
    package = Path(mlfbuild.__file__).parent
    shutil.copytree(package, tmp_path / "other/mlfbuild", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "other/mlfbuild/__init__.py").write_text((package / "__init__.py").read_text() + "# changed\n")
    cluster.worker("changed", PYTHONPATH=os.fspath(tmp_path / "other"))
    built = FarmProject(tmp_path / "p", 1, ["cortex-m4"]).build("--on", "dask", DASK_SCHEDULER_ADDRESS=cluster.address)
    place = f"mlfbuild: worker {cluster.address_of('changed')}: has mlfbuild {mlfbuild.__version__} ("
    (line,) = [line for line in built.check(7).err.splitlines() if line.startswith(place)]
    assert f", this machine {mlfbuild.__version__} (" in line
    cluster.kill("changed")


@pytest.mark.sweep
def test_no_scheduler(tmp_path: Path) -> None:
    project = FarmProject(tmp_path, 1, ["cortex-m4"], jobs='jobs: {engine: dask, scheduler: "tcp://127.0.0.1:1"}\n')
    assert "tcp://127.0.0.1:1: no scheduler of Dask answers: " in project.build(**IMPATIENT).check(7).err


def test_recheck_needs_a_farm(tmp_path: Path) -> None:
    assert (
        "--recheck: this machine compiles all models" in FarmProject(tmp_path, 1).build("--recheck", "1").check(2).err
    )
