"""`mlfbuild run`: a network of an archive on this machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.graph import DType, Graph, Node, Tensor, ops
from support.command import Folder
from support.native import compile_network

X = np.arange(8, dtype=np.float32).reshape(2, 1, 4)


@pytest.fixture
def project(folder: Folder, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return a folder with ``net.tar``, which adds ``a/b`` and ``x``, and ``x.npz`` with two cases."""
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.root / "cache"))
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("a/b", "x", "y:0")]
    graph = Graph("net", tensors, [Node("sum", ops.Add(), ("a/b", "x"), ("y:0",))], ["a/b", "x"], ["y:0"])
    folder.write("net.tar", pack_archive(compile_network(graph)))
    np.savez(folder.root / "x.npz", in0=X, in_x=X + 1)
    return folder


def test_all_cases(project: Folder) -> None:
    ended = project.run("run", "net.tar", "--inputs", "x.npz", "-o", "y.npz")
    assert (ended.status, ended.out, ended.err) == (0, "y.npz: 2 cases of net\n", "")
    outputs = np.load(project.root / "y.npz")
    assert list(outputs) == ["y:0"]
    np.testing.assert_array_equal(outputs["y:0"], 2 * X + 1)
    again = project.run("run", "net.tar", "--inputs", "x.npz", "-o", "y.npz", "--format", "json")
    assert again.json == {"model": "net", "cases": 2, "outputs": ["y:0"], "shapes": [[1, 4]], "file": "y.npz"}


def test_inputs_by_their_names(project: Folder) -> None:
    np.savez(project.root / "named.npz", a_b=X, x=X)
    assert project.run("run", "net.tar", "--inputs", "named.npz", "-o", "y.npz").status == 0
    np.testing.assert_array_equal(np.load(project.root / "y.npz")["y:0"], 2 * X)


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["none.npz", "-o", "y.npz"], (5, "no-such-input", "none.npz")),
        (["bad.npz", "-o", "y.npz"], (5, "vectors-array-missing", "bad.npz")),
        (["x.npz", "-o", "."], (2, "output-is-folder", ".")),
        (["x.npz", "-o", "x.npz"], (6, "output-is-input", "x.npz")),
        (["x.npz", "-o", "net.tar"], (6, "output-is-input", "net.tar")),
        (["x.npz", "-o", "own.txt"], (6, "output-of-another-kind", "own.txt")),
        (["x.npz", "-o", "y.npz", "--model", "kws"], (2, "unknown-module", "net.tar")),
        (["x.npz", "-o", "y.npz", "--timeout", "0"], (2, "command-line-invalid", "")),
    ],
)
def test_mistakes(project: Folder, arguments: list[str], refused: tuple[int, str, str]) -> None:
    np.savez(project.root / "bad.npz", in0=X)
    project.write("own.txt", b"mine")
    assert project.refused("run", "net.tar", "--inputs", *arguments) == refused
    assert not (project.root / "y.npz").exists()
    assert (project.root / "own.txt").read_bytes() == b"mine"
