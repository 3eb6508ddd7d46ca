"""Links of firmware on a farm: the bytes, maps and records of a link here, and left to this machine if in doubt."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.dask_cluster import DaskCluster, dask_cluster, run
from support.firmware_repo import tiny_network
from support.fleet_repo import git

pytest.importorskip("distributed")
NOWHERE = {"DASK_SCHEDULER_ADDRESS": "tcp://127.0.0.1:1"}
PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models: {net: {source: models/net.tflite}}
firmware:
  own: {cmake: fw, models: [net]}
"""
LISTED = "  listed: {sources: [src/main.c], include-dirs: [include], models: [net], budget: {flash: 100 KiB}}\n"
MAIN = '#include "app.h"\n#include "tvmgen_net.h"\nint main(void) { return STATUS + tvmgen_net_run(0, 0); }\n'
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(own LANGUAGES C ASM)
include(${MLF_TREE}/mlf.cmake)
add_executable(own ../src/main.c)
target_include_directories(own PRIVATE ../include)
target_link_libraries(own PRIVATE mlf::net mlf::board)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Iterator[DaskCluster]:
    """A scheduler with one worker."""
    tool("arm-none-eabi-gcc", "cmake", "ninja")
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.scheduler()
        cluster.worker("one")
        yield cluster


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, cluster: DaskCluster) -> Path:
    """A project that this machine linked; its archives are in the cache beside it."""
    project = tmp_path_factory.mktemp("built") / "project"
    files = {"mlfbuild.yml": PROJECT, "src/main.c": MAIN, "include/app.h": "#define STATUS 0\n"}
    for name, text in {**files, "fw/CMakeLists.txt": CMAKELISTS}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / "models").mkdir()
    (project / "models/net.tflite").write_bytes(tiny_network(1))
    assert cluster.address
    build(project)
    return project


@pytest.fixture
def project(built: Path, tmp_path: Path) -> Path:
    """A checkout of the project, with another image, in which nothing was built."""
    copy = checkout(built, tmp_path / "elsewhere")
    (copy / "mlfbuild.yml").write_text(f"{PROJECT}{LISTED}")
    return copy


def checkout(project: Path, place: Path) -> Path:
    shutil.copytree(project, place, ignore=shutil.ignore_patterns("build"))
    return place


def build(project: Path, *words: str, status: int = 0, **environment: str) -> dict[str, str]:
    """Build, and return what became of each image, by its name."""
    cache = {"MLFBUILD_CACHE": str(project.parent / "cache"), **environment}
    _, events = run(project, "build", *words, status=status, **cache)
    found = [json.loads(line) for line in events.splitlines()]
    titles = {one["job"]: one["firmware"] for one in found if one["event"] == "job-started" and "firmware" in one}
    ended = (one for one in found if one["event"] == "job-finished" and one.get("job") in titles)
    results: dict[str, str] = {}
    for one in ended:
        name = titles[one["job"]]
        results[name] = f"{results[name]}, {one['result']}" if name in results else one["result"]
    return results


def made(project: Path, name: str) -> tuple[bytes, str, dict[str, str]]:
    """Return an image, its map and its recorded inputs, without the project's folder."""
    folder = project / "build/m4" / name
    record = json.loads((folder / ".mlfbuild-made.json").read_text())
    return (
        (folder / f"{name}.elf").read_bytes(),
        (folder / f"{name}.elf.map").read_text().replace(str(project), ""),
        record["inputs"],
    )


def test_a_worker_links_the_same_image(cluster: DaskCluster, built: Path, tmp_path: Path) -> None:
    project = checkout(built, tmp_path / "elsewhere")
    there = build(project, "--on", "dask", DASK_SCHEDULER_ADDRESS=cluster.address)
    assert there == {"own": f"linked on {cluster.address_of('one')}"}
    assert made(project, "own") == made(built, "own")
    assert build(project, "--on", "dask", **NOWHERE) == {"own": "up to date"}


@pytest.mark.sweep
def test_edits_caches_and_builds_here(cluster: DaskCluster, project: Path, tmp_path: Path) -> None:
    farm = {"DASK_SCHEDULER_ADDRESS": cluster.address}
    there = f"linked on {cluster.address_of('one')}"
    (project / "fw/CMakeLists.txt").write_text(f"{CMAKELISTS}file(GLOB more ../src/more_*.c)\n")
    git(project, "init", "-q")
    (project / ".gitignore").write_text("build/\ninclude/\n")  # a header that is ignored travels
    build(project, "--on", "dask", **farm)
    (project / "src/more_1.c").write_text("int more = 1;\n")
    assert build(project, "--on", "dask", **farm) == {"listed": "up to date", "own": there}
    (project / "src/main.c").write_text(f"{MAIN}int edited = 1;\n")
    assert build(project, "--on", "dask", "--recheck", "2", **farm) == {"listed": there, "own": there}
    images = [made(project, name) for name in ("listed", "own")]
    copy = checkout(project, tmp_path / "copy")
    build(copy)
    assert build(copy, "--on", "dask", **NOWHERE) == {"listed": "up to date", "own": "up to date"}
    shutil.rmtree(copy / "build")
    assert set(build(copy, "--on", "dask", **NOWHERE).values()) == {"from the cache"}
    assert images == [made(copy, name) for name in ("listed", "own")]
    assert build(copy) == {"listed": "built", "own": "built"}  # Ninja has not seen them
    assert images == [made(copy, name) for name in ("listed", "own")]
    assert build(copy) == {"listed": "up to date", "own": "up to date"}


OTHER = "add_executable(other ../src/main.c)\ntarget_link_libraries(other mlf::net mlf::board)\n"
MADE = "target_compile_definitions(own PRIVATE MADE)\ntarget_include_directories(own PRIVATE {})"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("execute_process(COMMAND git describe)", "execute_process"),
        ("add_custom_command(TARGET own POST_BUILD COMMAND true)", "add_custom_command"),
        (f"{OTHER}target_include_directories(other PRIVATE ../include)", "2 images"),
        ('target_compile_definitions(own PRIVATE "WHERE=\\"${CMAKE_SOURCE_DIR}\\"")', "definition"),
        (MADE.format("../build/made"), "made.h"),
        (MADE.format("../../outside"), "made.h"),
    ],
)
def test_a_link_in_doubt_is_made_here(cluster: DaskCluster, project: Path, lines: str, reason: str) -> None:
    (project / "fw/CMakeLists.txt").write_text(f"{CMAKELISTS}{lines}\n")
    main = MAIN.replace("STATUS", "where[0]")
    doubtful = '#ifndef WHERE\n#define WHERE ""\n#endif\n#ifdef MADE\n#include "made.h"\n#endif\n'
    (project / "src/main.c").write_text(f"{doubtful}const char *volatile where = WHERE;\n{main}")
    for folder in (project / "build/made", project.parent / "outside"):
        folder.mkdir(parents=True)
        (folder / "made.h").write_text("\n")
    found = build(project, "--on", "dask", DASK_SCHEDULER_ADDRESS=cluster.address)
    assert found["own"].startswith("left to this machine: ") and reason in found["own"]
    assert found["own"].endswith(", built")


@pytest.mark.sweep
def test_a_worker_with_other_flags_links_nothing(cluster: DaskCluster, project: Path) -> None:
    cluster.kill("one")
    cluster.worker("flags", CFLAGS="-O0")
    found = build(project, "--on", "dask", DASK_SCHEDULER_ADDRESS=cluster.address)
    reason = "left to this machine: CFLAGS differs in the environment of the worker, built"
    assert found == {"listed": reason, "own": reason}
    (project / "src/main.c").write_text("# error here\n")
    build(project, "--on", "dask", status=7, DASK_SCHEDULER_ADDRESS=cluster.address)
