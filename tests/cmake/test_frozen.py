"""``MLFBUILD_FROZEN``: CMake and the build use the inputs in mlfbuild.lock, and stop at differences."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild import __version__
from support.cmake_repo import CMakeRepo, error_lines
from support.errors import assert_printed
from support.snapshot import keep


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """A folder of a repository with a lock file; nothing is configured."""
    tool("cmake", "ninja", "gcc")
    repo = CMakeRepo(tmp_path_factory.mktemp("locked"))
    repo.mlfbuild("lock", "-q", "-j", "1", "--target", "pc")
    shutil.rmtree(repo.build_dir)
    return repo.folder


@pytest.fixture(scope="module")
def shared_repo(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> CMakeRepo:
    """A repository that was built frozen."""
    folder = tmp_path_factory.mktemp("frozen")
    shutil.copytree(locked, folder, dirs_exist_ok=True)
    repo = CMakeRepo(folder)
    repo.configure("-DMLFBUILD_FROZEN=ON", status=0)
    repo.build()
    assert repo.build().written == set(), "nothing changed"
    keep(repo.folder)
    return repo


@pytest.mark.sweep
def test_changed_model_stops_the_build(repo: CMakeRepo) -> None:
    right = (repo.root / "models/alpha.tflite").read_bytes()
    repo.write_model("alpha", 7)
    stopped = repo.run_build()
    assert stopped.status != 0
    assert_printed(stopped.output, "lock-drift", "mlfbuild.lock", "model alpha: file: locked ")
    assert not stopped.archives
    assert not stopped.trees
    repo.write("models/alpha.tflite", right)
    assert not repo.build().linked
    repo.write_model("alpha", 7)
    repo.mlfbuild("lock", "-q", "-j", "1", "--target", "pc")
    assert repo.build().trees == {"alpha"}


@pytest.mark.sweep
def test_changed_options_stop_the_build(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, options: {trace: true}}")
    stopped = repo.run_build()
    assert stopped.status != 0
    assert_printed(stopped.output, "archive-not-as-locked", "", "alpha")
    assert not any(path.startswith("mlf/pc/alpha/codegen") for path in stopped.written)
    assert not stopped.linked


def test_changed_lock_stops_cmake(repo: CMakeRepo) -> None:
    text = (repo.root / "mlfbuild.lock").read_text()
    repo.write("mlfbuild.lock", text.replace(f"native {__version__}", "native 0.0.9"))
    stopped = repo.run_build()
    assert stopped.status != 0
    assert "mlfbuild.lock: the file was edited by hand or merged" in "\n".join(error_lines(stopped.output))
    assert not stopped.linked
    repo.write("mlfbuild.lock", text)
    assert not repo.build().linked


def test_compiler_of_the_build_is_compared(locked: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    shutil.copytree(locked, tmp_path, dirs_exist_ok=True)
    repo = CMakeRepo(tmp_path)
    compiler = repo.write("my-cc", f'#!/bin/sh\n[ "$1" = --version ] && echo "cc 99" || exec {tool("gcc")} "$@"\n')
    compiler.chmod(0o755)
    stopped = repo.configure("-DMLFBUILD_FROZEN=ON", f"-DCMAKE_C_COMPILER={compiler}")
    assert stopped.status != 0
    (line,) = error_lines(stopped.output)
    assert_printed(line, "lock-drift", "mlfbuild.lock", "toolchain of pc: cc: locked ", ", here cc 99")
    assert repo.configure(f"-DCMAKE_C_COMPILER={compiler}", "-DMLFBUILD_FROZEN=OFF").status == 0
