"""mlfbuild as a CMake package: found by its folder; it includes a tree by name."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.build.tree import unpack, write_target_tree
from mlfbuild.targets import CPUS, cmake_folder
from support.cmake_repo import error_lines
from support.libraries import native_library

PROJECT = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
if(NOT EXISTS "${MLFBUILD_TOOLCHAIN_DIR}/cortex-m4.cmake")
  message(FATAL_ERROR "no toolchain files in ${MLFBUILD_TOOLCHAIN_DIR}")
endif()
mlfbuild_tree("models of mine")
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::models)
"""

MAIN = """\
#include "tvmgen_tiny.h"

int main(void) { return tvmgen_tiny_run(0, 0) == 0; }
"""


@pytest.fixture
def project(tmp_path: Path, tool: Callable[[str], str]) -> Path:
    for name in ("cmake", "ninja", "gcc"):
        tool(name)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "main.c").write_text(MAIN)
    return tmp_path


def cmake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["cmake", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def configure(folder: Path) -> subprocess.CompletedProcess[str]:
    return cmake(folder, "-B", "build", "-G", "Ninja", f"-Dmlfbuild_DIR={cmake_folder()}")


def test_tree_builds(project: Path) -> None:
    tree = project / "models of mine"
    unpack(native_library("tiny"), tree / "tiny", archive_id="0" * 64)
    write_target_tree(tree, ["tiny"], None, CPUS["host"])
    configured = configure(project)
    assert configured.returncode == 0, configured.stderr
    built = cmake(project, "--build", "build")
    assert built.returncode == 0, built.stdout
    assert (project / "build/app").is_file()


@pytest.mark.parametrize("name", ["tiny/codegen/host/src/tiny_lib0.c", "tiny/mlf.cmake", "mlf.mk"])
@pytest.mark.parametrize("damage", ["was edited", "is missing"])
def test_edited_tree_is_rejected(project: Path, name: str, damage: str) -> None:
    tree = project / "models of mine"
    unpack(native_library("tiny"), tree / "tiny", archive_id="0" * 64)
    write_target_tree(tree, ["tiny"], None, CPUS["host"])
    if damage == "is missing":
        (tree / name).unlink()
    else:
        (tree / name).write_bytes((tree / name).read_bytes() + b"\n")
    configured = configure(project)
    assert configured.returncode != 0
    advice = "`mlfbuild build --tree` or `mlfbuild unpack` writes it anew"
    (line,) = error_lines(configured.stderr)
    assert line == (
        f"mlfbuild_tree: {tree}/{name}: {damage}; {advice}, and include({tree}/mlf.cmake) takes the tree as it is"
    )


def test_files_of_the_user_in_a_tree_are_ignored(project: Path) -> None:
    unpack(native_library("tiny"), project / "models of mine", archive_id="0" * 64)
    (project / "models of mine/NOTES.md").write_text("mine")
    project.joinpath("CMakeLists.txt").write_text(PROJECT.replace("mlf::models", "mlf::tiny"))
    assert configure(project).returncode == 0


def test_missing_tree_error_names_the_command_that_makes_it(project: Path) -> None:
    configured = configure(project)
    assert configured.returncode != 0
    assert "models of mine holds no mlf.cmake; run scons or `mlfbuild build` first\n" in configured.stderr
