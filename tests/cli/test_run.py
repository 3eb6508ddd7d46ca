"""`mlfbuild run`: a network of an archive on this machine."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.native.graph import DType, Graph, Node, Tensor, ops
from support.command import Folder
from support.foreign_archives import Files, without, written
from support.native import compile_network
from support.packed_archives import packed_archive
from support.tvm_archives import tvm_files

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
    expected = {"model": "net", "cases": 2, "outputs": ["y:0"], "shapes": [[1, 4]], "notes": [], "file": "y.npz"}
    assert again.json == expected


@pytest.fixture
def without_relay(folder: Folder, shared: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Files:
    """Return an AOT archive of TVM 0.8 with two outputs and nothing that records them, beside its vectors."""
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.root / "cache"))
    folder.write("many.npz", (shared / "archives/v5-many-graphlink.npz").read_bytes())
    folder.write("mlfbuild.yml", b"mlfbuild: 1\ntargets: {host: {cpu: host}}\n"
                 b"models: {many: {source: many.tar, vectors: many.npz}}\n")  # fmt: skip
    return without(packed_archive(tvm_files(shared, "v5-many-graphlink"), "many"), "src/relay.txt")


def test_unknown_tensors(folder: Folder, without_relay: Files) -> None:
    written(folder.root, without_relay, "many.tar")
    refused = (4, "module-without-ports", "many")
    arguments = ("many.tar", "--inputs", "many.npz", "-o", "y.npz")
    assert folder.refused("run", *arguments) == refused
    assert folder.refused("run", *arguments, "--board", "mps2-an386") == refused
    assert folder.refused("unpack", "many.tar", "-o", "tree") == refused
    assert folder.refused("verify") == refused


def test_unknown_shapes(folder: Folder, without_relay: Files) -> None:
    tensor = {"dtype": "float32", "size": 32}
    fields = json.loads(without_relay["metadata.json"])
    names = {"inputs": ("x", "y"), "outputs": ("output0", "output1")}
    fields["memory"]["functions"]["main"][0] |= {key: dict.fromkeys(value, tensor) for key, value in names.items()}
    written(folder.root, {**without_relay, "metadata.json": json.dumps(fields).encode()}, "many.tar")
    ended = folder.run("run", "many.tar", "--inputs", "many.npz", "-o", "y.npz")
    assert [line.split(":")[0] for line in ended.out.splitlines()] == ["y.npz", "output0", "output1"]
    assert {name: array.shape for name, array in np.load(folder.root / "y.npz").items()} == {
        "output0": (1, 8),
        "output1": (1, 8),
    }
    again = folder.run("run", "many.tar", "--inputs", "many.npz", "-o", "y.npz", "--format", "json")
    assert again.json["shapes"] == [None, None]
    assert folder.run("inspect", "many.tar").out.count("float32, shape unknown") == 4


def test_inputs_by_their_names(project: Folder) -> None:
    np.savez(project.root / "named.npz", a_b=X, x=X)
    assert project.run("run", "net.tar", "--inputs", "named.npz", "-o", "y.npz").status == 0
    np.testing.assert_array_equal(np.load(project.root / "y.npz")["y:0"], 2 * X)


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["none.npz", "-o", "y.npz"], (5, "no-such-input", "none.npz")),
        (["bad.npz", "-o", "y.npz"], (5, "array-missing", "bad.npz")),
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


@pytest.mark.parametrize(("text", "named"), [("models: {net: net.tar}", True), ("models: {other: net.tar}", False)])
def test_name_of_a_model_leads_to_its_file(project: Folder, text: str, *, named: bool) -> None:
    project.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: [host]\n{text}\n")
    ended = project.run("run", "net", "--format", "json")
    assert (ended.status, ended.error["code"]) == (5, "no-such-input")
    assert ("net.tar" in ended.error["message"]) == named


def test_without_inputs_zeros_run_and_outputs_are_printed(project: Folder) -> None:
    ended = project.run("run", "net.tar")
    lines = ended.out.splitlines()
    assert (ended.status, lines[0], lines[1].split(";")[0]) == (0, "1 case of net", "inputs: zeros")
    assert [line.split()[:2] for line in lines[2:5]] == [["in", "a/b"], ["in", "x"], ["out", "y:0"]]
    assert "float32 [1, 4]" in lines[4] and lines[5].split("]")[0].split("[")[1].split() == ["0."] * 4
    found = project.run("run", "net.tar", "--format", "json").json
    assert (found["inputs"], found["cases"], found["values"]) == ("zeros", 1, {"y:0": [[[0.0] * 4]]})
    written = project.run("run", "net.tar", "-o", "y.npz")
    assert (written.status, written.out.splitlines()[0]) == (0, "y.npz: 1 case of net")
    np.testing.assert_array_equal(np.load(project.root / "y.npz")["y:0"], np.zeros((1, 1, 4)))


def test_random_inputs_depend_only_on_the_seed(project: Folder) -> None:
    def values(*arguments: str) -> object:
        found = project.run("run", "net.tar", "--random", "--format", "json", *arguments).json
        assert found["inputs"] == "random"
        return found["seed"], found["values"]

    assert values() == values("--seed", "0") != values("--seed", "1")
    random = np.random.RandomState(1)
    sums = sum(random.uniform(-1, 1, (1, 4)).astype(np.float32) for _ in range(2))
    np.testing.assert_array_equal(values("--seed", "1")[1]["y:0"][0], sums)  # type: ignore[index]


def test_outputs_of_a_file_are_printed_for_its_first_case(project: Folder) -> None:
    ended = project.run("run", "net.tar", "--inputs", "x.npz")
    assert ended.out.splitlines()[0] == "2 cases of net" and "inputs:" not in ended.out
    assert "[1. 3. 5. 7.], from 1 to 7 (of the first case)" in ended.out


def test_quantised_outputs_are_printed_as_real_numbers(folder: Folder) -> None:
    ended = folder.run("run", "models/alpha.tflite", status=0)
    found = folder.run("run", "models/alpha.tflite", "--format", "json").json
    (stored,) = found["values"].values()
    assert f"stored as {min(stored[0][0])} to {max(stored[0][0])}" in ended.out


def test_infinite_outputs_are_null_in_json(project: Folder) -> None:
    np.savez(project.root / "inf.npz", in0=np.full_like(X, np.inf), in1=X)
    found = project.run("run", "net.tar", "--inputs", "inf.npz", "--format", "json").json
    assert found["values"]["y:0"][1] == [[None] * 4]


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["--seed", "1"], (2, "option-needs-another", "--seed")),
        (["--random", "--inputs", "x.npz"], (2, "options-exclude-each-other", "--random")),
    ],
)
def test_options_of_random_inputs(project: Folder, arguments: list[str], refused: tuple[int, str, str]) -> None:
    assert project.refused("run", "net.tar", *arguments) == refused
