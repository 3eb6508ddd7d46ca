"""Networks for the graph executor on the command line: compile, inspect, merge, run here and on boards."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.archive import open_archive
from support.command import Folder
from support.examples import first_on_push
from support.firmware_repo import tiny_network


@pytest.fixture
def project(
    folder: Folder,
    shared: Path,
    tool: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Folder:
    """Return a folder with a model and ``x.npz`` with two cases."""
    tool("gcc", "arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    folder.write("kws.tflite", (shared / "models/kws_int8.tflite").read_bytes())
    with np.load(shared / "golden/kws_int8.npz") as vectors:
        np.savez(folder.root / "x.npz", in0=vectors["in0"][:2], out0=vectors["out0"][:2])
    return folder


def compiled(project: Folder, cpu: str, executor: str, name: str) -> None:
    ended = project.run("compile", "kws.tflite", "--cpu", cpu, "--executor", executor, "-o", name)
    assert ended.status == 0 and ended.err.startswith("compile kws for ") and ended.err.count("\n") == 1


def outputs(project: Folder, *arguments: str) -> npt.NDArray[Any]:
    ended = project.run("run", *arguments, "--inputs", "x.npz", "-o", "y.npz")
    assert (ended.status, ended.err) == (0, "")
    with np.load(project.root / "y.npz") as arrays:
        value: npt.NDArray[Any] = arrays["Identity"]
    return value


@pytest.mark.parametrize(("cpu", "board"), first_on_push([("cortex-m55", "mps3-an547"), ("cortex-m4", "mps2-an386")]))
def test_boards(cpu: str, board: str, project: Folder) -> None:
    compiled(project, cpu, "graph", "kws.tar")
    with np.load(project.root / "x.npz") as vectors:
        expected = vectors["out0"]
    np.testing.assert_array_equal(outputs(project, "kws.tar", "--board", board), expected.reshape(2, 1, 12))


def test_graph_merges_with_aot_module(project: Folder) -> None:
    compiled(project, "host", "graph", "kws.tar")
    alone = outputs(project, "kws.tar")
    project.write("tiny.tflite", tiny_network(0))
    for executor in ("aot", "graph"):
        name = f"tiny_{executor}"
        words = ["--cpu", "host", "--executor", executor, "--name", name, "-o", f"{name}.tar"]
        assert project.run("compile", "tiny.tflite", *words).status == 0
    ended = project.run("merge", "kws.tar", "tiny_aot.tar", "tiny_graph.tar", "-o", "all.tar")
    assert (ended.status, ended.err) == (0, "")
    assert project.run("validate", "all.tar").status == 0
    modules = open_archive(project.root / "all.tar").modules
    assert [module.executor for module in modules] == ["graph", "aot", "graph"]
    np.testing.assert_array_equal(outputs(project, "all.tar", "--model", "kws"), alone)


def test_inspect_and_compare_graphs(project: Folder) -> None:
    compiled(project, "cortex-m4", "graph", "kws.tar")
    compiled(project, "cortex-m4", "graph", "again.tar")
    assert (project.root / "kws.tar").read_bytes() == (project.root / "again.tar").read_bytes()
    compiled(project, "cortex-m4", "aot", "aot.tar")
    text = project.run("inspect", "kws.tar").out
    assert "module kws: graph executor\n" in text
    assert "  parameters   27,024  10 arrays\n" in text
    assert "6 functions, with the workspace of each:" in text
    ended = project.run("compare", "kws.tar", "aot.tar", status=1)
    assert "executor" in ended.out


def test_trace_of_a_graph_is_refused(project: Folder) -> None:
    words = ["kws.tflite", "--cpu", "cortex-m4", "--executor", "graph", "-O", "trace=true", "-o", "kws.tar"]
    assert project.refused("compile", *words) == (2, "trace-of-graph", "kws: options.trace")
    assert not (project.root / "kws.tar").exists()
