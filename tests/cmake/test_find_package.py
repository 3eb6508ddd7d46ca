"""CMake finds the package after ``pip install mlfbuild``."""

import os
import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild import __version__
from mlfbuild.targets import cmake_folder
from support import warm

PREFIX_FILES = {"mlfbuild-config.cmake", "mlfbuild-config-version.cmake"}
PROJECT = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES NONE)
find_package(mlfbuild {version} CONFIG REQUIRED)
if(NOT COMMAND mlfbuild_models)
  message(FATAL_ERROR "no mlfbuild_models")
endif()
message(STATUS "version ${{mlfbuild_VERSION}}, command ${{MLFBUILD_COMMAND}}")
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A virtual environment after ``pip install``: the files of the wheel, and the command."""
    share = tmp_path / "venv/share/cmake/mlfbuild"
    share.mkdir(parents=True)
    (share / "mlfbuild-config.cmake").write_bytes((cmake_folder() / "prefix/mlfbuild-config.cmake").read_bytes())
    name = "mlfbuild-config-version.cmake"
    (share / name).write_bytes((cmake_folder() / name).read_bytes())
    command = tmp_path / "venv/bin/mlfbuild"
    command.parent.mkdir()
    program = warm.command("mlfbuild")
    command.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
    command.chmod(0o755)
    return tmp_path / "venv"


def configure(folder: Path, *arguments: str, version: str = "", path: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "CMakeLists.txt").write_text(PROJECT.format(version=version))
    command = ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", *arguments]
    env = {name: value for name, value in os.environ.items() if name != "CMAKE_PREFIX_PATH"}
    env["PATH"] = f"{path}:/usr/bin:/bin" if path else "/usr/bin:/bin"
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_prefix_of_a_virtual_environment(tmp_path: Path, prefix: Path, tool: Callable[[str], str]) -> None:
    tool("ninja")
    done = configure(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert f"version {__version__}, command {prefix}/bin/mlfbuild" in done.stdout, done.stderr


def test_active_virtual_environment(tmp_path: Path, prefix: Path) -> None:
    done = configure(tmp_path, path=f"{prefix}/bin")
    assert f"version {__version__}, command {prefix}/bin/mlfbuild" in done.stdout, done.stderr


def test_command_that_does_not_run_is_reported(tmp_path: Path, prefix: Path) -> None:
    (prefix / "bin/mlfbuild").write_text("#!/bin/sh\necho no Python here >&2\nexit 3\n")
    done = configure(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert done.returncode == 1
    assert "cannot be run (3) no Python here; install mlfbuild again" in " ".join(done.stderr.split())


@pytest.mark.parametrize(("version", "fits"), [("0.1", True), (__version__, True), ("0.2", False), ("1", False)])
def test_versions(tmp_path: Path, prefix: Path, version: str, fits: bool) -> None:
    done = configure(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", version=version)
    assert (done.returncode == 0) == fits, done.stderr


def test_package_version_is_that_of_mlfbuild() -> None:
    text = (cmake_folder() / "mlfbuild-config-version.cmake").read_text()
    assert re.findall(r"^set\(PACKAGE_VERSION (.+)\)$", text, re.MULTILINE) == [__version__]


@pytest.mark.sweep
def test_wheel_has_all_files(tmp_path: Path) -> None:
    root = cmake_folder().parent
    subprocess.run(["pip", "-q", "wheel", "--no-deps", "-w", tmp_path, root], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    shared = {Path(name).name for name in names if ".data/data/share/cmake/mlfbuild/" in name}
    assert shared == PREFIX_FILES
    assert {"mlfbuild/cmake/mlfbuild-models.cmake", "mlfbuild/cmake/mlfbuild-config.cmake"} <= set(names)
    tables = {f"mlfbuild/targets/data/{path.name}" for path in (root / "mlfbuild/targets/data").iterdir()}
    assert tables and tables <= set(names)
