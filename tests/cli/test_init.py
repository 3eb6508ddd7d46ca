"""`mlfbuild init` writes a project that works as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from support.command import Folder
from support.firmware_repo import tiny_network
from support.libraries import native_library

FILES = ["mlfbuild.yml", "SConstruct", "site_scons/site_tools/mlf.py", "CMakeLists.txt", "src/main.c"]


@pytest.fixture
def empty(folder: Folder) -> Folder:
    """A folder with a model and nothing else."""
    for name in ("mlfbuild.yml", "main.c", "alpha.npz", "models/alpha.tflite", "models/beta.tflite"):
        (folder.root / name).unlink()
    folder.write("models/Kws Net-2.tflite", tiny_network(5))
    return folder


def test_the_starter_is_what_it_was(empty: Folder, golden) -> None:
    ended = empty.run("init", "--model", "models/Kws Net-2.tflite")
    assert ended.status == 0
    assert ended.out.splitlines()[:-1] == [f"wrote {name}" for name in FILES]
    for name in FILES:
        golden((empty.root / name).read_text(), Path(name).name)
    assert empty.run("check").out == "mlfbuild.yml: no mistakes (1 target, 1 model, 1 firmware)\n"


def test_the_starter_builds_and_runs(empty: Folder, tool: Callable[[str], str]) -> None:
    for name in ("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm"):
        tool(name)
    ended = empty.run("init", "--model", "models/Kws Net-2.tflite", "--board", "mps3-an547", "--format", "json")
    assert ended.json == {"written": FILES}
    assert "m55: {cpu: cortex-m55, board: mps3-an547}" in (empty.root / "mlfbuild.yml").read_text()
    built = empty.run("build")
    assert built.status == 0, built.err
    assert built.out.splitlines()[-1] == "app for m55: build/m55/app/app.elf"


def test_quiet(empty: Folder) -> None:
    assert empty.run("init", "-q").out == ""


@pytest.mark.parametrize("there", FILES)
def test_nothing_is_overwritten(empty: Folder, there: str) -> None:
    empty.write(there, "mine\n")
    before = empty.files()
    ended = empty.run("init")
    assert (ended.status, ended.out) == (6, "")
    assert ended.err == f"mlfbuild: {there}: already there; init writes into an empty folder (-C DIR)\n"
    assert empty.files() == before
    assert (empty.root / there).read_text() == "mine\n"


def test_without_a_model_check_says_where_to_put_it(empty: Folder) -> None:
    last = empty.run("init").out.splitlines()[-1]
    assert last == "next: put a model at models/network.tflite, then `mlfbuild check`, then `scons` or `mlfbuild build`"
    ended = empty.run("check")
    assert ended.status == 2
    assert ended.err == "mlfbuild.yml:10:13: models.network.source: models/network.tflite: no such file\n"


def test_an_archive_is_a_model_too(empty: Folder) -> None:
    empty.write("models/tiny.tar", pack_archive(native_library("tiny")))
    assert empty.run("init", "--model", "models/tiny.tar").status == 0
    assert "tvmgen_tiny_run()" in (empty.root / "src/main.c").read_text()
    assert empty.run("check").status == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--model", "missing.tflite"], 5, "missing.tflite: no such model; check the path"),
        (["--model", "models"], 5, "models: is a folder, not a model; name the file itself"),
        (["--board", "mps2-an368"], 2, 'mps2-an368: unknown board (did you mean "mps2-an386"?)'),
    ],
)
def test_what_cannot_work_writes_nothing(empty: Folder, arguments: list[str], status: int, message: str) -> None:
    before = empty.files()
    ended = empty.run("init", *arguments)
    assert (ended.status, ended.err) == (status, f"mlfbuild: {message}\n")
    assert empty.files() == before
