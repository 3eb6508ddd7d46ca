"""Files that are no models for mlfbuild: every verb that reads a model recognises them, in one line."""

import json

import pytest
from onnx import helper

import mlfbuild
from mlfbuild.core import InputFileError
from support.command import Folder
from support.errors import raises
from support.terminal import Terminal
from support.tflite_builder import Network

PAGE = b"<!DOCTYPE html>\n<title>Not Found</title>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 52\n"
READERS = {
    "compile": ("compile", "{}", "--cpu", "host", "-o", "o.tar"),
    "inspect": ("inspect", "{}"),
    "validate": ("validate", "{}"),
    "run": ("run", "{}", "--inputs", "alpha.npz", "-o", "o.npz"),
    "run --sandbox": ("run", "{}", "--inputs", "alpha.npz", "-o", "o.npz", "--sandbox"),
    "compare": ("compare", "models/alpha.tflite", "{}"),
    "compare --inputs": ("compare", "{}", "models/alpha.tflite", "--inputs", "alpha.npz"),
    "convert": ("convert", "{}", "--to", "5", "-o", "o.tar"),
    "merge": ("merge", "{}", "{}", "-o", "o.tar"),
    "unpack": ("unpack", "{}", "-o", "tree"),
    "init": ("init", "fw", "--model", "{}"),
}


@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize(
    "name", ["new.tflite", "new.tar", *(pytest.param(name, marks=pytest.mark.sweep) for name in ("new.onnx", "new"))]
)
def test_verbs_that_read_a_file(folder: Folder, verb: str, name: str) -> None:
    arguments = [word.format(name) for word in READERS[verb]]
    before = {*folder.files(), name}
    folder.write(name, PAGE)
    assert folder.refused(*arguments) == (5, "web-page-not-model", name)
    folder.write(name, POINTER)
    assert folder.refused(*arguments) == (5, "git-lfs-pointer", name)
    folder.write(name, b"\x89HDF\r\n\x1a\n")
    assert folder.refused(*arguments) == (5, "keras-model-not-converted", name)
    assert folder.files() == before


@pytest.mark.parametrize("verb", READERS)
def test_verbs_that_are_given_a_saved_model(folder: Folder, verb: str) -> None:
    folder.write("saved/saved_model.pb", b"\x08\x01")
    arguments = [word.format("saved") for word in READERS[verb]]
    assert folder.refused(*arguments) == (5, "saved-model-not-converted", "saved")


def test_python(folder: Folder) -> None:
    folder.write("new.tflite", PAGE)
    for read in (mlfbuild.load, mlfbuild.open_archive, mlfbuild.compile):
        with raises(InputFileError, "web-page-not-model"):
            read("new.tflite")


def test_models_and_archives_are_not_taken_for_each_other(folder: Folder) -> None:
    folder.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", "alpha.tar")
    folder.write("renamed.onnx", (folder.root / "alpha.tar").read_bytes())
    assert folder.refused("compile", "renamed.onnx", "--cpu", "host", "-o", "o.tar") == (
        5, "archive-not-model", "renamed.onnx",
    )  # fmt: skip
    folder.write("tflite.onnx", (folder.root / "models/alpha.tflite").read_bytes())
    folder.write("onnx.tflite", helper.make_model(helper.make_graph([], "net", [], [])).SerializeToString())
    for name in ("tflite.onnx", "onnx.tflite"):
        assert folder.refused("compile", name, "--cpu", "host", "-o", "o.tar") == (5, "model-of-other-format", name)
    for verb in ("convert", "merge", "unpack"):
        arguments = [word.format("models/alpha.tflite") for word in READERS[verb]]
        assert folder.refused(*arguments) == (5, "model-not-archive", "models/alpha.tflite")


@pytest.mark.parametrize("verb", ["check", "plan", "build", "lock"])
def test_projects(folder: Folder, verb: str) -> None:
    folder.write("models/alpha.tflite", POINTER)
    folder.write("models/beta.tflite", PAGE)
    folder.write("alpha.npz", POINTER)
    assert folder.mistakes(verb) == [
        ("git-lfs-pointer", "mlfbuild.yml:5:19: models.alpha.source"),
        ("git-lfs-pointer", "mlfbuild.yml:5:49: models.alpha.vectors"),
        ("web-page-not-model", "mlfbuild.yml:6:18: models.beta.source"),
    ]


def test_projects_that_name_other_formats(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("alpha.tflite", "alpha.keras").replace("models/beta.tflite", "saved"))
    assert folder.mistakes("check") == [
        ("keras-model-not-converted", "mlfbuild.yml:5:19: models.alpha.source"),
        ("unsupported-model-file", "mlfbuild.yml:6:18: models.beta.source"),
    ]
    folder.write("saved.tflite/saved_model.pb", b"\x08\x01")
    folder.write("mlfbuild.yml", text.replace("models/beta.tflite", "saved.tflite"))
    assert folder.mistakes("check") == [("saved-model-not-converted", "mlfbuild.yml:6:18: models.beta.source")]


def test_external_compilers_read_any_file(folder: Folder) -> None:
    folder.write("net.h5", b"\x89HDF\r\n\x1a\n")
    project = {
        "mlfbuild": 1,
        "targets": {"pc": {"cpu": "host"}},
        "models": {"net": {"source": "net.h5", "compiler": "command", "command": ["true", "{source}", "{output}"]}},
    }
    folder.write("mlfbuild.yml", json.dumps(project))
    assert folder.run("check").status == 0
    folder.write("net.h5", POINTER)
    assert [code for code, _ in folder.mistakes("check")] == ["git-lfs-pointer"]


@pytest.mark.parametrize("custom", ["ethos-u", "edgetpu-custom-op"])
def test_files_that_were_compiled_for_an_accelerator(folder: Folder, custom: str) -> None:
    net = Network()
    x = net.input((1, 4), 0.1, name="x")
    net.operator("CUSTOM", [x], net.activation((1, 4), 0.1))
    net.operators[-1].custom_code = custom
    folder.write("net_vela.tflite", net.build())
    ended = folder.run("compile", "net_vela.tflite", "--cpu", "cortex-m55", "-o", "o.tar", "--format", "json")
    assert (ended.status, ended.error["code"]) == (4, "model-compiled-for-accelerator")
    assert ended.error["place"].startswith(f"net_vela.tflite: operator 0 (CUSTOM '{custom}')")


def test_a_terminal_does_not_break_the_conversion(folder: Folder) -> None:
    folder.write("new.keras", b"?")
    hint = folder.run("inspect", "new.keras", "--format", "json").error["hint"]
    command = hint.partition(": ")[2]
    assert command.startswith("`python -c 'import tensorflow")
    assert command in Terminal((60, 30)).run(folder.root, "inspect", "new.keras").raw
