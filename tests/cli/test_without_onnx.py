"""The package onnx is optional: projects of .tflite models build without it, and .onnx files exit with status 3."""

import os
import sys

import pytest

import mlfbuild
from mlfbuild.core import ToolNotFoundError
from support.command import Folder
from support.errors import raises

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  net: {source: net.onnx}
"""
READERS = {
    "compile": "compile net.onnx --cpu host -o o.tar", "inspect": "inspect net.onnx", "validate": "validate net.onnx",
    "run": "run net.onnx --inputs alpha.npz -o o.npz", "compare": "compare models/alpha.tflite net.onnx",
    "compare --inputs": "compare net.onnx models/alpha.tflite --inputs alpha.npz", "init": "init fw --model net.onnx",
    "build": "build", "lock": "lock", "sbom": "sbom -o a.cdx.json",
}  # fmt: skip


@pytest.fixture
def without_onnx(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return a folder with a project of an .onnx model, in a process that cannot import onnx."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    folder.write("mlfbuild.yml", PROJECT)
    folder.write("net.onnx", b"\x08\x08")
    return folder


@pytest.mark.parametrize("verb", READERS)
def test_files_that_require_onnx(without_onnx: Folder, verb: str) -> None:
    ended = without_onnx.run(*READERS[verb].split(), "--format", "json")
    assert (ended.status, ended.error["code"]) == (3, "extra-not-installed")
    assert ended.error["place"].endswith("net.onnx")
    assert ended.error["hint"] == "pip install 'onnx>=1.16'"
    assert not [path for path in without_onnx.files() if path.endswith((".tar", ".npz", ".json")) and path[0] == "o"]


@pytest.mark.usefixtures("without_onnx")
def test_python() -> None:
    for read in (mlfbuild.load, mlfbuild.compile):
        with raises(ToolNotFoundError, "extra-not-installed"):
            read("net.onnx")


def test_doctor_names_the_missing_package(without_onnx: Folder) -> None:
    ended = without_onnx.run("doctor", "--format", "json")
    assert ended.status == 3
    (target,) = ended.json["targets"]
    assert [reason for reason in target["missing"] if "net.onnx" in reason]
    assert [line for line in ended.json["install"] if line.endswith("pip install 'onnx>=1.16'")]


def test_other_formats_are_recognised_first(without_onnx: Folder) -> None:
    without_onnx.write("net.onnx", b"<!doctype html>")
    assert without_onnx.refused("inspect", "net.onnx") == (5, "web-page-not-model", "net.onnx")


@pytest.mark.usefixtures("host_tools")
def test_projects_of_tflite_models_build_without_onnx(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("none/onnx/__init__.py", "raise ModuleNotFoundError('No module named onnx', name='onnx')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder.root / "none"), os.environ.get("PYTHONPATH", "")]))
    folder.write("net.onnx", b"\x08\x08")
    assert folder.spawn("inspect", "net.onnx").status == 3, "processes cannot import onnx"
    built = folder.spawn("build", "-q")
    assert (built.status, built.err) == (0, "")
    assert (folder.root / "build/pc/app/app").is_file()
