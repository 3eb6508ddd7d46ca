"""`mlfbuild update`: replace the file of a model after both versions were compared."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.project import load_project
from mlfbuild.usecases import recompute_vectors
from support.command import Folder
from support.firmware_repo import tiny_network
from support.oracle import tflite_micro_run
from support.tflite_builder import Network

OLD, NEW = tiny_network(0), tiny_network(9)


def network(seed: int, inputs: str = "image", outputs: tuple[str, ...] = ("scores",), size: int = 8) -> bytes:
    """Return a network with a layer of 4 outputs for each name; the weights of a name are the same in each version."""
    network = Network()
    source = network.input((1, size), scale=0.05, zero_point=3)
    written = []
    for name in outputs:
        random = np.random.default_rng([seed, *name.encode()])
        weights = random.integers(-127, 128, (4, size), np.int8)
        written.append(network.fully_connected(source, weights, np.zeros(4, np.int32), weight_scales=[0.01], scale=0.1))
        network.tensors[written[-1]].name = name
    network.tensors[source].name = inputs
    return network.build(written)


def vectors(folder: Folder, name: str, model: bytes, cases: int = 3) -> None:
    """Write inputs, and the outputs of ``model`` from TensorFlow Lite Micro."""
    inputs = np.random.default_rng(5).integers(-128, 128, (cases, 1, 8), np.int8)
    outputs = [tflite_micro_run(model, [one])[0] for one in inputs]
    np.savez(folder.root / name, in0=inputs, out0=np.array(outputs))


@pytest.fixture
def project(folder: Folder, tool: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.root / "cache"))
    folder.write("new.tflite", NEW)
    return folder


def source(folder: Folder, name: str = "alpha") -> bytes:
    return (folder.root / f"models/{name}.tflite").read_bytes()


def lock(folder: Folder) -> Path:
    return folder.root / "mlfbuild.lock"


def test_the_file_is_replaced_and_locked(project: Folder) -> None:
    ended = project.run("update", "alpha", "new.tflite", "--format", "json", status=0)
    facts = ended.json
    assert (facts["interface"], facts["same_header"]) == ([], True)
    assert {figure["name"]: (figure["before"], figure["now"]) for figure in facts["figures"]}["MACs"] == (32, 32)
    (output,) = facts["outputs"]
    assert output["different"] > 0 and output["expected"] < output["cases"]
    assert [Path(path).name for path in facts["written"]] == ["alpha.tflite"]
    assert source(project) == NEW
    assert project.run("lock", "--check").status == 0
    locked = lock(project).read_text()
    again = project.run("update", "alpha", "new.tflite", "--format", "json").json
    assert {figure["before"] == figure["now"] for figure in again["figures"]} == {True}
    assert again["outputs"][0]["different"] == 0
    assert lock(project).read_text() == locked


def test_check_writes_nothing(project: Folder) -> None:
    ended = project.run("update", "alpha", "new.tflite", "--check", status=0)
    assert "differs in" in ended.out
    assert source(project) == OLD
    assert not lock(project).exists()


def test_check_advises_new_vectors_only_for_those_of_the_user(project: Folder) -> None:
    assert "--vectors" in project.run("update", "alpha", "new.tflite", "--check").out
    (project.root / "alpha.npz").unlink()
    recompute_vectors(load_project(project.root / "mlfbuild.yml"), "alpha", own=True)
    checked = project.run("update", "alpha", "new.tflite", "--check").out
    assert "differ from the vectors" in checked and "--vectors" not in checked


@pytest.mark.parametrize(
    ("old", "new", "port", "advice"),
    [
        (network(1), network(2, "serving_default_keras_tensor_31:0"), "inputs", "{inputs: [image]}"),
        (network(1), network(2, outputs=("scores", "more")), "outputs", "--accept"),
        (network(1), network(2, size=12), "input image", "--accept"),
        (network(1, outputs=("StatefulPartitionedCall:0", "StatefulPartitionedCall:1")),
         network(2, outputs=("StatefulPartitionedCall:1", "StatefulPartitionedCall:0")), "order of outputs in the file",
         "--accept"),
    ],
    ids=["names", "number", "shape", "order"],
)  # fmt: skip
def test_another_interface_is_refused(project: Folder, old: bytes, new: bytes, port: str, advice: str) -> None:
    project.write("models/beta.tflite", old)
    project.write("new.tflite", new)
    ended = project.run("update", "beta", "new.tflite", "--format", "json")
    assert (ended.status, ended.error["code"], ended.error["place"]) == (1, "interface-changed", f"model beta: {port}")
    assert advice in ended.error["hint"]
    assert source(project, "beta") == old
    assert not lock(project).exists()


def test_the_advised_key_makes_the_update_pass(project: Folder) -> None:
    project.write("models/beta.tflite", network(1))
    project.write("new.tflite", network(2, "serving_default_keras_tensor_31:0"))
    text = (project.root / "mlfbuild.yml").read_text()
    added = text.replace("models/beta.tflite}", "models/beta.tflite, interface: {inputs: [image]}}")
    project.write("mlfbuild.yml", added)
    facts = project.run("update", "beta", "new.tflite", "--format", "json").json
    assert (facts["interface"], facts["same_header"]) == ([], True)
    assert facts["notes"][-1].startswith("outputs were not compared")


def test_another_interface_can_be_accepted(project: Folder) -> None:
    project.write("models/beta.tflite", network(1))
    new = network(2, size=12)
    project.write("new.tflite", new)
    project.run("update", "beta", "new.tflite", "--accept", status=0)
    assert source(project, "beta") == new
    assert lock(project).exists()


def test_a_file_that_was_replaced_already(project: Folder) -> None:
    assert project.run("build").status == 0
    project.write("models/alpha.tflite", NEW)
    facts = project.run("update", "alpha", "models/alpha.tflite", "--format", "json").json
    assert facts["outputs"][0]["different"] > 0
    assert facts["written"] == []
    assert project.run("lock", "--check").status == 0


def test_vectors_of_the_new_version_replace_the_old_ones(project: Folder) -> None:
    old = (project.root / "alpha.npz").read_bytes()
    vectors(project, "wrong.npz", OLD)
    refused = project.refused("update", "alpha", "new.tflite", "--vectors", "wrong.npz")
    assert refused == (1, "update-outputs-wrong", "wrong.npz: case 0")
    assert (source(project), (project.root / "alpha.npz").read_bytes()) == (OLD, old)
    vectors(project, "new.npz", NEW)
    facts = project.run("update", "alpha", "new.tflite", "--vectors", "new.npz", "--format", "json").json
    assert facts["outputs"][0]["expected"] == facts["outputs"][0]["cases"] == 3
    assert (project.root / "alpha.npz").read_bytes() == (project.root / "new.npz").read_bytes()
    assert source(project) == NEW


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["gamma", "new.tflite"], (2, "unknown-model", "model 'gamma'")),
        (["alpha", "new.onnx"], (2, "update-of-another-format", "new.onnx")),
        (["alpha", "models/alpha.tflite"], (2, "update-without-old-version", "models/alpha.tflite")),
        (["beta", "new.tflite", "--vectors", "alpha.npz"], (2, "update-without-vectors", "--vectors alpha.npz")),
        (["alpha", "none.tflite"], (5, "no-such-input", "none.tflite")),
        (["alpha", "bad.tflite"], (5, "web-page-not-model", "bad.tflite")),
    ],
)
def test_mistakes(project: Folder, arguments: list[str], refused: tuple[int, str, str]) -> None:
    project.write("bad.tflite", b"<html>")
    assert project.refused("update", *arguments) == refused
    assert source(project) == OLD
    assert not lock(project).exists()


def on_a_board(folder: Folder, tool: Callable[..., str], budget: str) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    target = "targets: {m4: {cpu: cortex-m4, board: mps2-an386}}"
    model = f"models: {{alpha: {{source: models/alpha.tflite, budget: {{instructions: {budget}}}}}}}"
    folder.write("mlfbuild.yml", f"mlfbuild: 1\n{target}\n{model}\n")


def test_instructions_are_counted_on_the_board(project: Folder, tool: Callable[..., str]) -> None:
    on_a_board(project, tool, "100k")
    facts = project.run("update", "alpha", "new.tflite", "--format", "json").json
    (figure,) = (each for each in facts["figures"] if each["name"] == "instructions")
    assert figure["target"] == "m4" and figure["before"] > 100 and figure["now"] > 100
    assert source(project) == NEW


@pytest.mark.sweep
def test_a_version_with_too_many_instructions_is_refused(project: Folder, tool: Callable[..., str]) -> None:
    on_a_board(project, tool, "40")
    assert project.run("update", "alpha", "new.tflite").status == 1
    assert source(project) == OLD
