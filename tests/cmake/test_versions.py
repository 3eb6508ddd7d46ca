"""The package with the oldest supported CMake, the newest one, and one that is too old, each from a wheel."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.cmake_repo import GENERATORS, CMakeRepo, error_lines

pytestmark = pytest.mark.sweep


def installed(requirement: str, folder: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "-q", "install", requirement], check=True)
    return str(folder / "bin/cmake")


@pytest.mark.parametrize("requirement", ["cmake==3.22.*", "cmake==3.27.*", "cmake==3.31.*", "cmake>=4"])
def test_build_and_rebuild(requirement: str, tmp_path: Path) -> None:
    cmake = installed(requirement, tmp_path / "venv")
    for generator in GENERATORS:
        repo = CMakeRepo(tmp_path / generator, generator, cmake)
        first = repo.build()
        assert first.archives == {"alpha", "beta"}
        assert first.linked
        assert "Warning" not in repo.configure().output
        assert repo.build().steps == []
        repo.write_model("alpha", seed=7)
        ran = repo.build()
        assert ran.archives == {"alpha"}
        assert ran.objects <= {"alpha_lib0.c.o", "main.c.o"}
        repo.build()
        assert repo.build().steps == []
        source = repo.build_dir / "mlf/pc/beta/codegen/host/src/beta_lib0.c"
        good = source.read_bytes()
        source.unlink()
        repo.build()
        assert source.read_bytes() == good


def test_older_cmake_is_rejected(tmp_path: Path) -> None:
    repo = CMakeRepo(tmp_path / "repo", cmake=installed("cmake==3.21.*", tmp_path / "venv"))
    repo.replace("CMakeLists.txt", "VERSION 3.22", "VERSION 3.18")
    ran = repo.configure(status=1)
    assert error_lines(ran.output) == [
        f"mlfbuild: needs CMake 3.22 or later, this is {_version(ran.output)}; pip install cmake"
    ]


def _version(output: str) -> str:
    return output.partition("this is ")[2].partition(";")[0]
