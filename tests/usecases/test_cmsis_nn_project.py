"""A project whose network calls CMSIS-NN: from its file to outputs on a board that are right to the bit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.archive import open_archive
from mlfbuild.cli.run import run as mlfbuild

PROJECT = """\
mlfbuild: 1
targets: {m55: {cpu: cortex-m55, board: mps3-an547}}
models:
  kws: {source: kws_int8.tflite, options: {kernels: cmsis-nn}, vectors: kws_int8.npz}
"""
PROVIDED = PROJECT + "dependencies: {cmsis-nn: {path: cmsis-nn, version: v7.0.0}}\n"


@pytest.fixture
def folder(tmp_path: Path, shared: Path, stub_cmsis_nn_7: Path) -> Path:
    """A project's folder with the network and its vectors, and the library beside it."""
    shutil.copyfile(shared / "models/kws_int8.tflite", tmp_path / "kws_int8.tflite")
    shutil.copyfile(shared / "golden/kws_int8.npz", tmp_path / "kws_int8.npz")
    shutil.copytree(stub_cmsis_nn_7, tmp_path / "cmsis-nn")
    return tmp_path


def run(folder: Path, project: str, verb: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    (folder / "mlfbuild.yml").write_text(project)
    status = mlfbuild(["-C", str(folder), verb])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_from_project_file_to_board(
    folder: Path, capsys: pytest.CaptureFixture[str], tool: Callable[[str], str]
) -> None:
    for name in ("cmake", "arm-none-eabi-gcc", "qemu-system-arm"):
        tool(name)
    assert run(folder, PROVIDED, "build", capsys)[0] == 0
    assert open_archive(folder / "build/mlf/m55/kws.tar").modules[0].external_dependencies[0].version_spec == "v7.0.0"
    status, printed = run(folder, PROVIDED, "verify", capsys)
    assert status == 0, printed
    assert "cases right on mps3-an547" in printed


@pytest.mark.parametrize(
    ("project", "said"),
    [
        (PROJECT, "CMSIS-NN v7.0.0"),
        (PROVIDED.replace("v7.0.0", "v6.0.0"), "v6.0.0"),
    ],
)
def test_without_the_library_or_with_another_version(
    folder: Path, capsys: pytest.CaptureFixture[str], project: str, said: str
) -> None:
    status, printed = run(folder, project, "build", capsys)
    assert status == 2, printed
    lines = [line for line in printed.splitlines() if said in line]
    assert lines and "v7.0.0" in lines[0] and "kws" in lines[0], printed
