"""Workers and schedulers that fail at a chosen moment: builds end right, or say what is missing."""

import os
import platform
import resource
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlfbuild
from support.dask_cluster import IMPATIENT, SITE, WITHOUT_MLFBUILD, DaskCluster, FarmProject, dask_cluster, ended
from support.processes import is_running, session, wait_for

pytest.importorskip("distributed")
pytestmark = pytest.mark.sweep


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The SHA-256 of each file of a build on this machine."""
    project = FarmProject(tmp_path_factory.mktemp("here") / "p")
    project.build().check()
    return project.digests()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler without workers."""
    with dask_cluster(tmp_path / "cluster") as cluster:
        cluster.scheduler()
        yield cluster


@pytest.fixture
def project(tmp_path: Path, cluster: DaskCluster) -> FarmProject:
    """A project that is built on the cluster."""
    return FarmProject(tmp_path / "p", jobs=f'jobs: {{engine: dask, scheduler: "{cluster.address}"}}\n')


@pytest.mark.parametrize("phase", ["fetch", "compile", "result"])
def test_a_worker_that_dies(cluster: DaskCluster, project: FarmProject, expected: dict[str, str], phase: str) -> None:
    for name in ("a", "b"):
        cluster.worker(name, fault=phase)
    project.build().check()
    assert cluster.marked(phase) == 1
    assert project.digests() == expected
    assert project.build().check().workers == {}


@pytest.mark.parametrize("phase", ["compile", "result"])
def test_the_only_worker_dies_and_its_nanny_starts_it_again(
    cluster: DaskCluster, project: FarmProject, expected: dict[str, str], phase: str
) -> None:
    cluster.worker("a", "--nanny", fault=phase)
    project.build().check()
    assert (cluster.marked(phase), project.digests()) == (1, expected)


def test_every_worker_dies(cluster: DaskCluster, project: FarmProject, expected: dict[str, str]) -> None:
    for name in ("a", "b"):
        cluster.worker(name, fault="compile-always")
    assert f"{cluster.address}: the scheduler had no worker for 5 s" in project.build(**IMPATIENT).check(7).err
    cluster.worker("c", fault="none")
    assert len(project.build().check().workers) == project.count
    assert project.digests() == expected


def test_a_task_that_kills_workers(cluster: DaskCluster, project: FarmProject) -> None:
    cluster.worker("a", "--nanny", fault="compile-always")
    err = project.build().check(7).err
    assert "compile m0 for cortex-m4: has no result: workers died while it ran, the last at tcp://" in err


@pytest.mark.parametrize("fault", ["hold", "hold-result"])
def test_a_stopped_worker(cluster: DaskCluster, project: FarmProject, expected: dict[str, str], fault: str) -> None:
    cluster.worker("a", fault=fault)
    build = project.start()
    cluster.wait_marked("hold" if fault == "hold" else "asked")
    cluster.kill("a", signal.SIGSTOP)
    cluster.worker("b", fault="none")
    assert {*ended(build).check().workers.values()} == {cluster.address_of("b")}
    assert project.digests() == expected


def test_a_worker_that_is_stopped_before_the_build(
    cluster: DaskCluster, project: FarmProject, expected: dict[str, str]
) -> None:
    cluster.worker("a")
    cluster.worker("b")
    cluster.kill("a", signal.SIGSTOP)
    assert {*project.build(**IMPATIENT).check().workers.values()} == {cluster.address_of("b")}
    assert project.digests() == expected


def test_a_slow_worker(cluster: DaskCluster, project: FarmProject, expected: dict[str, str]) -> None:
    cluster.worker("slow", fault="hold")
    cluster.worker("fast", fault="none")
    build = project.start()
    wait_for(lambda: len(project.archives()) == project.count - 1)  # the other worker takes over what waits here
    (cluster.root / "go").touch()
    workers = [*ended(build).check().workers.values()]
    assert workers.count(cluster.address_of("slow")) == 1
    assert project.digests() == expected


def test_a_scheduler_that_is_restarted(cluster: DaskCluster, project: FarmProject, expected: dict[str, str]) -> None:
    cluster.worker("a", fault="hold")
    build = project.start()
    cluster.wait_marked("hold")
    cluster.kill("scheduler")
    cluster.scheduler(int(cluster.address.rpartition(":")[2]))
    cluster.worker("b", fault="none")
    assert {*ended(build).check().workers.values()} == {cluster.address_of("b")}
    assert project.digests() == expected
    cluster.wait_end("a")  # Dask's workers end with their scheduler


def test_a_scheduler_that_ends(cluster: DaskCluster, project: FarmProject, expected: dict[str, str]) -> None:
    cluster.worker("a", fault="none")
    cluster.worker("b", fault="hold")
    build = project.start(**IMPATIENT)
    wait_for(lambda: len(project.archives()) == project.count - 1)
    cluster.kill("scheduler")
    assert f"{cluster.address}: no scheduler of Dask answers: " in ended(build).check(7).err
    cluster.scheduler(int(cluster.address.rpartition(":")[2]))
    cluster.worker("c", fault="none")
    assert len(project.build().check().workers) == 1
    assert project.digests() == expected


def test_a_scheduler_that_is_stopped(cluster: DaskCluster, project: FarmProject) -> None:
    cluster.worker("a", fault="hold")
    build = project.start(**IMPATIENT)
    cluster.wait_marked("hold")
    cluster.kill("scheduler", signal.SIGSTOP)
    assert f"{cluster.address}: no scheduler of Dask answers: " in ended(build).check(7).err


def test_a_full_disk(cluster: DaskCluster, project: FarmProject, expected: dict[str, str]) -> None:
    cluster.worker("full")
    pid = cluster.processes["full"].pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, 4096))
    err = project.build().check(8).err
    assert f"mlfbuild: worker {cluster.address_of('full')}: {cluster.root}/full/tmp/mlfbuild-task-" in err
    assert "cannot write: File too large; check free space and permissions" in err
    cluster.worker("b")
    assert {*project.build().check().workers.values()} == {cluster.address_of("b")}
    assert project.digests() == expected
    assert [*(cluster.root / "full/tmp").iterdir()] == []


@pytest.mark.parametrize("fault", ["damage", "damage-input"])
def test_damaged_content(cluster: DaskCluster, project: FarmProject, expected: dict[str, str], fault: str) -> None:
    cluster.worker("bad", fault=fault)
    err = project.build().check(7).err
    if fault == "damage":
        assert f"archive.tar from {cluster.address_of('bad')} does not match its SHA-256" in err
    else:
        assert f"worker {cluster.address_of('bad')}: project/m0.tflite: arrived with another SHA-256 than " in err
    assert project.archives() == set()
    cluster.worker("good")
    assert {*project.build().check().workers.values()} == {cluster.address_of("good")}
    assert project.digests() == expected


def test_recheck(cluster: DaskCluster, project: FarmProject, expected: dict[str, str]) -> None:
    cluster.worker("liar", fault="lie")
    built = project.build("--recheck", "2").check(1)
    assert (
        built.err.count(f"archive.tar of worker {cluster.address_of('liar')} differs from what this machine makes") == 2
    )
    assert len(project.archives()) == project.count - 2
    cluster.kill("liar")
    cluster.worker("good")
    for archive in (project.root / "build/mlf").rglob("*.tar"):
        archive.unlink()
    project.build("--recheck", "100").check()
    assert project.digests() == expected


def test_workers_and_schedulers_without_mlfbuild(cluster: DaskCluster, project: FarmProject, tmp_path: Path) -> None:
    cluster.worker("bare", python=WITHOUT_MLFBUILD, PYTHONPATH=SITE)
    place = f"mlfbuild: worker {cluster.address_of('bare')}: cannot import this mlfbuild: "
    assert place in project.build().check(7).err
    with dask_cluster(tmp_path / "other") as other:
        other.scheduler(python=WITHOUT_MLFBUILD, PYTHONPATH=SITE)
        other.worker("a")
        err = FarmProject(tmp_path / "q").build("--on", "dask", DASK_SCHEDULER_ADDRESS=other.address).check(7).err
        assert "mlfbuild: scheduler: cannot import this mlfbuild: No module named 'mlfbuild" in err


def test_a_worker_with_another_python(cluster: DaskCluster, project: FarmProject, expected: dict[str, str]) -> None:
    system = "/usr/bin/python3"
    code = "import sys; print(*sys.version_info[:3], sep='.')"
    version = subprocess.run([system, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    if version == platform.python_version() or version.split(".")[:2] != platform.python_version().split(".")[:2]:
        pytest.skip(f"Python {version} of this system is the one of the tests, or cannot use its packages")
    path = os.pathsep.join([SITE, str(Path(mlfbuild.__file__).parents[1])])
    cluster.worker("other", python=[system, "-S"], PYTHONPATH=path)
    # Dask lets it join and warns, on the driver as well; the bytes do not depend on Python.
    assert {*project.build().check().workers.values()} == {cluster.address_of("other")}
    assert project.digests() == expected


def test_archives_in_the_cache_need_no_farm(
    cluster: DaskCluster, project: FarmProject, expected: dict[str, str], tmp_path: Path
) -> None:
    cached = {"MLFBUILD_CACHE_DISABLE": "", "MLFBUILD_CACHE": str(tmp_path / "cache"), **IMPATIENT}
    cluster.worker("a", fault="none")
    assert len(project.build(**cached).check().workers) == project.count
    shutil.rmtree(project.root / "build")
    cluster.kill("scheduler")
    assert project.build(**cached).check().workers == {}
    assert project.digests() == expected


def test_servers_that_are_no_schedulers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socketserver.TCPServer(("127.0.0.1", 0), _Http) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        for server in (silent, http.socket):
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
            project = FarmProject(tmp_path / address[-5:], 1, jobs=f'jobs: {{engine: dask, scheduler: "{address}"}}\n')
            err = project.build(DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="1s").check(7).err
            assert f"{address}: no scheduler of Dask answers: " in err
        http.shutdown()


class _Http(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.0 400 Bad request syntax\r\nContent-Length: 0\r\n\r\n")


def test_a_worker_without_mlfbuild_that_comes_later(
    cluster: DaskCluster, project: FarmProject, expected: dict[str, str]
) -> None:
    cluster.worker("a", fault="hold")
    build = project.start()
    cluster.wait_marked("hold")
    cluster.worker("bare", python=WITHOUT_MLFBUILD, PYTHONPATH=SITE)
    cluster.kill("a")
    cluster.wait_end("bare")  # Dask's worker cannot read the task and ends
    cluster.worker("b", fault="none")
    assert {*ended(build).check().workers.values()} == {cluster.address_of("b")}
    assert project.digests() == expected


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_build_that_is_interrupted(
    cluster: DaskCluster, project: FarmProject, number: signal.Signals, local: bool
) -> None:
    if local:
        build = FarmProject(project.root.parent / "local", 20).start("--on", "dask", "-j", "2")
        wait_for(lambda: len(session(build.pid)) > 3)
    else:
        cluster.worker("a", fault="hold")
        build = project.start()
        cluster.wait_marked("hold")
    os.killpg(build.pid, number)
    built = ended(build).check(130)
    assert built.err.splitlines()[-1] == "mlfbuild: interrupted; run the command again to continue"
    wait_for(lambda: not session(build.pid))  # multiprocessing's own child notices the end a moment later


def test_a_build_that_is_killed_leaves_no_worker(tmp_path: Path) -> None:
    project = FarmProject(tmp_path, 20)
    build = project.start("--on", "dask", "-j", "2")
    wait_for(project.archives)
    build.kill()
    assert ended(build).status == -signal.SIGKILL
    wait_for(lambda: not session(build.pid))


def test_a_local_worker_that_is_killed(tmp_path: Path, expected: dict[str, str]) -> None:
    project = FarmProject(tmp_path)
    build = project.start("--on", "dask", "-j", "1")
    wait_for(project.archives)
    os.kill(wait_for(lambda: _spawned(build)), signal.SIGKILL)
    ended(build).check()
    assert project.digests() == expected


def _spawned(build: subprocess.Popen[str]) -> int:
    """Return a worker process of a local cluster."""
    for pid in session(build.pid):
        words = Path(f"/proc/{pid}/cmdline").read_text() if is_running(pid) else ""
        if "spawn_main" in words:
            return pid
    return 0
