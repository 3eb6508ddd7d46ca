"""``MLFBUILD_FROZEN``: CMake, and the build behind it, take what mlfbuild.lock has and stop at any drift from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cmake_repo import CMakeRepo, error_lines

ACCEPT = "put back what changed, or accept it with `mlfbuild lock`"


def locked(folder: Path, tool: Callable[[str], str]) -> CMakeRepo:
    """A repo with a lock file; nothing is configured."""
    for name in ("cmake", "ninja", "gcc"):
        tool(name)
    repo = CMakeRepo(folder)
    repo.mlfbuild("lock", "-q", "-j", "1", "--target", "pc")
    shutil.rmtree(repo.build_dir)
    return repo


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> CMakeRepo:
    """A repo that was built frozen; a test that changes it puts it right again."""
    repo = locked(tmp_path_factory.mktemp("frozen"), tool)
    configured = repo.configure("-DMLFBUILD_FROZEN=ON")
    assert configured.status == 0, configured.output
    repo.build()
    return repo


def test_a_model_that_changes_stops_the_build(repo: CMakeRepo) -> None:
    assert repo.build().written == set(), "nothing changed"
    right = (repo.root / "models/alpha.tflite").read_bytes()
    repo.write_model("alpha", 7)
    stopped = repo.run_build()
    assert stopped.status != 0
    assert "mlfbuild.lock: model alpha: file: locked " in stopped.output
    assert ACCEPT in stopped.output
    assert not stopped.archives
    assert not stopped.trees
    repo.write("models/alpha.tflite", right)
    assert not repo.build().linked
    repo.write_model("alpha", 7)
    repo.mlfbuild("lock", "-q", "-j", "1", "--target", "pc")
    assert repo.build().trees == {"alpha"}
    repo.write("models/alpha.tflite", right)
    repo.mlfbuild("lock", "-q", "-j", "1", "--target", "pc")
    assert repo.build().trees == {"alpha"}


def test_options_that_change_stop_the_build(repo: CMakeRepo) -> None:
    text = (repo.root / "mlfbuild.yml").read_text()
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, options: {trace: true}}")
    stopped = repo.run_build()
    assert stopped.status != 0
    assert "archive of alpha for pc: locked " in stopped.output
    assert ACCEPT in stopped.output
    assert not any(path.startswith("mlf/pc/alpha/codegen") for path in stopped.written)
    assert not stopped.linked
    repo.write("mlfbuild.yml", text)
    repo.build()


def test_a_lock_that_changes_stops_cmake(repo: CMakeRepo) -> None:
    text = (repo.root / "mlfbuild.lock").read_text()
    repo.write("mlfbuild.lock", text.replace("native 0.1.0", "native 0.0.9"))
    stopped = repo.run_build()
    assert stopped.status != 0
    assert "mlfbuild.lock: was edited by hand, or merged" in "\n".join(error_lines(stopped.output))
    assert not stopped.linked
    repo.write("mlfbuild.lock", text)
    assert not repo.build().linked


def test_the_compiler_of_the_build_is_judged(tmp_path: Path, tool: Callable[[str], str]) -> None:
    repo = locked(tmp_path, tool)
    compiler = repo.write("my-cc", f'#!/bin/sh\n[ "$1" = --version ] && echo "cc 99" || exec {tool("gcc")} "$@"\n')
    compiler.chmod(0o755)
    stopped = repo.configure("-DMLFBUILD_FROZEN=ON", f"-DCMAKE_C_COMPILER={compiler}")
    assert stopped.status != 0
    (line,) = error_lines(stopped.output)
    assert "mlfbuild.lock: toolchain of pc: cc: locked " in line
    assert line.endswith(f", here cc 99; {ACCEPT}")
    assert repo.configure(f"-DCMAKE_C_COMPILER={compiler}", "-DMLFBUILD_FROZEN=OFF").status == 0
