"""``mlfbuild parameters``, and the key ``parameters`` of a model."""

import os
import shutil
from collections.abc import Callable

import numpy as np
import pytest

from mlfbuild.library import read_blob
from support.classical_networks import forest_regressor, linear_pipeline
from support.command import Folder
from support.firmware_repo import tiny_network, two_layers


@pytest.fixture
def desk(folder: Folder, tool: Callable[..., str]) -> Folder:
    """A project whose model alpha has replaceable parameters, and new.tflite with other weights."""
    tool("gcc")
    project = folder.root / "mlfbuild.yml"
    text = project.read_text()
    assert "alpha: {" in text
    project.write_text(text.replace("alpha: {", "alpha: {parameters: replaceable, ", 1))
    (folder.root / "new.tflite").write_bytes(tiny_network(3))
    return folder


def test_a_blob_for_a_model_and_for_its_archive(desk: Folder) -> None:
    words = ("parameters", "new.tflite", "-o", "new.bin", "--number", "7")
    ended = desk.run(*words, "--for", "alpha", "--self-test", "2", "--format", "json", status=0)
    data = (desk.root / "new.bin").read_bytes()
    blob = read_blob(data, "new.bin", vector=2 * 16)
    assert (blob.version, len(blob.vectors), ended.json["size"]) == (7, 2, len(data))
    assert (ended.json["structure"], ended.json["different"] > 0) == (blob.structure, True)
    with np.load(desk.root / "alpha.npz") as arrays:
        assert blob.vectors[0][:8] == arrays["in0"][0].astype(np.int8).tobytes()
    options = ("-O", "parameters=replaceable", "-q")
    for name, source in (("old", "models/alpha.tflite"), ("other", "new.tflite")):
        desk.run("compile", source, "--cpu", "host", "-o", f"{name}.tar", "--name", "alpha", *options)
    for source in ("new.tflite", "other.tar"):
        desk.run("parameters", source, "--for", "old.tar", "-o", f"{source}.bin", "--number", "7", status=0)
        assert read_blob((desk.root / f"{source}.bin").read_bytes(), "x").content == blob.content


def test_firmware_from_an_archive_with_names_of_its_own(desk: Folder) -> None:
    project = desk.root / "mlfbuild.yml"
    text = project.read_text()
    project.write_text(text.replace("alpha: {", "alpha: {interface: {inputs: [mfcc]}, ", 1))
    desk.run("generate", "--target", "pc", "--model", "alpha", "-q", status=0)
    shutil.copy(desk.root / "build/mlf/pc/alpha.tar", desk.root / "release.tar")
    with np.load(desk.root / "alpha.npz") as arrays:
        np.savez(desk.root / "named.npz", in_mfcc=arrays["in0"])
    project.write_text(text.replace("{source: models/beta.tflite}", "{source: release.tar, vectors: named.npz}"))
    made = []
    for words in (("alpha",), ("release.tar", "--vectors", "named.npz"), ("beta",)):
        desk.run("parameters", "new.tflite", "-o", "new.bin", "--self-test", "2", "--for", *words, status=0)
        made.append((desk.root / "new.bin").read_bytes())
    assert made[0] == made[1] == made[2]


def test_a_smaller_forest_fits_the_memory_of_the_firmware(desk: Folder) -> None:
    for name, options in (("old", {"trees": 12, "depth": 5}), ("new", {"trees": 1, "depth": 2})):
        (desk.root / f"{name}.onnx").write_bytes(forest_regressor(3, **options))
    options = ("-O", "parameters=replaceable", "-q")
    desk.run("compile", "old.onnx", "--cpu", "host", "-o", "old.tar", *options, status=0)
    desk.run("parameters", "new.onnx", "--for", "old.tar", "-o", "new.bin", status=0)
    desk.run("parameters", "old.onnx", "--for", "old.tar", "-o", "old.bin", status=0)
    assert (desk.root / "new.bin").stat().st_size == (desk.root / "old.bin").stat().st_size


def test_another_structure_is_refused(desk: Folder) -> None:
    (desk.root / "new.tflite").write_bytes(two_layers(4))
    words = ("parameters", "new.tflite", "--for", "alpha", "-o", "new.bin")
    assert desk.refused(*words) == (1, "other-structure", "new.tflite: operator 1")
    assert not (desk.root / "new.bin").exists()


def test_another_structure_says_more_than_an_option_or_a_name_that_follows_from_it(desk: Folder) -> None:
    (desk.root / "forest.onnx").write_bytes(forest_regressor())
    (desk.root / "pipeline.onnx").write_bytes(linear_pipeline())
    project = desk.root / "mlfbuild.yml"
    keys = "{source: forest.onnx, parameters: replaceable, options: {tree-room: 4 KiB}, interface: {outputs: [y]}}"
    project.write_text(project.read_text().replace("models:\n", f"models:\n  forest: {keys}\n", 1))
    for source in ("new.tflite", "pipeline.onnx"):
        words = ("parameters", source, "--for", "forest", "-o", "new.bin")
        assert desk.refused(*words) == (1, "other-structure", f"{source}: operator 0")
    # The option does not fit the old network, and both have the same operators.
    desk.run(
        "compile", "pipeline.onnx", "--cpu", "host", "-o", "old.tar", "-O", "parameters=replaceable", "-q", status=0
    )
    words = ("parameters", "pipeline.onnx", "--for", "old.tar", "-o", "b", "-O", "tree-room=4KiB")
    assert desk.refused(*words) == (2, "trees-without-trees", "pipeline: options.tree-room")


def test_bad_requests(desk: Folder) -> None:
    (desk.root / "mine.txt").write_text("mine")
    alpha = ("parameters", "new.tflite", "--for", "alpha")
    assert desk.run(*alpha, "-o", "mine.txt").status == 6
    assert desk.refused(*alpha, "-o", "b", "-O", "memory=fastest") == (2, "options-of-project-model", "-O")
    assert desk.refused(*alpha, "-o", "b", "--self-test", "1000") == (2, "too-few-cases", "--self-test")
    (desk.root / "main.c").write_text("int main(void) { return 0; }\n" * 40)
    words = ("parameters", "main.c", "--for", "alpha", "-o", "b")
    assert desk.refused(*words) == (5, "unsupported-model-file", "main.c")
    os.mkfifo(desk.root / "pipe")
    assert desk.refused("parameters", "pipe", "--for", "alpha", "-o", "b") == (5, "input-is-pipe", "pipe")
    for option, value in (("--target", "host"), ("--file", "mlfbuild.yml")):
        words = ("parameters", "new.tflite", "--for", "old.tar", "-o", "b", option, value)
        assert desk.refused(*words) == (2, "option-not-applicable", option)
    status, code, place = desk.refused("parameters", "new.tflite", "--for", "beta", "-o", "b")
    assert (status, code, place.endswith("mlfbuild.yml: models.beta")) == (2, "parameters-linked", True)
    desk.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", "plain.tar", "-q", status=0)
    words = ("parameters", "new.tflite", "--for", "plain.tar", "-o", "b")
    assert desk.refused(*words) == (2, "archive-without-blob", "plain.tar")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("compiler: command, command: [a]", "determines where constants are"),
        ("executor: graph", "in a file of its own"),
        ("options: {parameters: linked}", "is also in options"),
    ],
)
def test_keys_that_exclude_it(desk: Folder, keys: str, reason: str) -> None:
    project = desk.root / "mlfbuild.yml"
    project.write_text(project.read_text().replace("parameters: replaceable, ", f"parameters: replaceable, {keys}, "))
    ended = desk.run("check", status=2)
    assert "models.alpha.parameters" in ended.err and reason in ended.err
