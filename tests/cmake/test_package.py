"""mlfbuild as a CMake package: found by its folder; it includes a tree by name."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.jobs.tree import unpack, write_target_tree
from mlfbuild.targets import CPUS, cmake_folder
from mlfbuild.usecases.init import init_cmake
from support.cmake_repo import error_lines, mlfbuild_command
from support.examples import first_on_push
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
def project(tmp_path: Path, tool: Callable[..., str]) -> Path:
    tool("cmake", "ninja", "gcc")
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


@pytest.mark.parametrize(
    ("name", "damage"),
    first_on_push([
        ("tiny/codegen/host/src/tiny_lib0.c", "was edited"), ("tiny/mlf.cmake", "is missing"), ("mlf.mk", "was edited"),
        ("tiny/codegen/host/src/tiny_lib0.c", "is missing"), ("tiny/mlf.cmake", "was edited"), ("mlf.mk", "is missing"),
    ], 3),
)  # fmt: skip
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


# Toolchains that hide packages of the host ---------------------------------------------------------------------------

HIDING = ("-G", "Ninja", "-DCMAKE_FIND_ROOT_PATH=/nowhere", "-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY")
"""What the toolchain files of pico-sdk set."""


@pytest.fixture
def repository(tmp_path: Path, tool: Callable[..., str]) -> Path:
    tool("cmake", "ninja")
    init_cmake(tmp_path)
    lines = ["cmake_minimum_required(VERSION 3.22)", "project(app LANGUAGES NONE)", "include(cmake/mlfbuild.cmake)"]
    lines += ["if(NOT COMMAND mlfbuild_models)", "  message(FATAL_ERROR missing)", "endif()"]
    lines += ['message(STATUS "${MLFBUILD_TOOLCHAIN_DIR}|${MLFBUILD_COMMAND}")']
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines))
    return tmp_path


def without_mlfbuild(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def test_included_package_is_found_with_any_toolchain(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(mlfbuild_command()).parent}:/usr/bin:/bin")
    configured = cmake(repository, "-B", "build", *HIDING)
    assert f"-- {cmake_folder()}/toolchains|{mlfbuild_command()}\n" in configured.stdout, configured.stderr
    (repository / "CMakeLists.txt").write_text("project(app LANGUAGES NONE)\nfind_package(mlfbuild CONFIG REQUIRED)")
    found = cmake(repository, "-B", "other", *HIDING, f"-DCMAKE_PREFIX_PATH={sys.prefix}")
    assert found.returncode != 0 and "mlfbuild-config.cmake" in found.stderr


@pytest.mark.parametrize(
    "option", ["-DCMAKE_PREFIX_PATH={prefix}", "-DMLFBUILD_COMMAND={prefix}/bin/mlfbuild", "-Dmlfbuild_DIR={package}"]
)
def test_installation_that_is_not_in_path(option: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_mlfbuild(monkeypatch)
    prefix = Path(mlfbuild_command()).parents[1]
    configured = cmake(repository, "-B", "build", *HIDING, option.format(prefix=prefix, package=cmake_folder()))
    assert f"-- {cmake_folder()}/toolchains|" in configured.stdout, configured.stderr


def test_virtual_environment_of_the_repository_is_found(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_mlfbuild(monkeypatch)
    (repository / ".venv/bin").mkdir(parents=True)
    (repository / ".venv/bin/mlfbuild").symlink_to(mlfbuild_command())
    assert cmake(repository, "-B", "build", *HIDING).returncode == 0


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ((), "mlfbuild: program not found; activate its virtual environment, or set MLFBUILD_COMMAND to its path"),
        (("-DMLFBUILD_COMMAND=/no/mlfbuild",), "/no/mlfbuild: cannot be run (No such file or directory)"),
        (("-DMLFBUILD_COMMAND=/bin/false",), "/bin/false: cannot be run (1)"),
    ],
)
def test_missing_program_is_an_error(
    option: tuple[str, ...], message: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_mlfbuild(monkeypatch)
    configured = cmake(repository, "-B", "build", *HIDING, *option)
    assert configured.returncode != 0
    (line,) = error_lines(configured.stderr)
    assert line.startswith(message)


def test_missing_tree_error_names_the_command_that_makes_it(project: Path) -> None:
    configured = configure(project)
    assert configured.returncode != 0
    assert "models of mine holds no mlf.cmake; run scons or `mlfbuild build` first\n" in configured.stderr


def test_lists_of_a_plan_keep_every_text(tmp_path: Path, tool: Callable[..., str]) -> None:
    script = tmp_path / "lists.cmake"
    for items in ([], ["", "a, b"], ["/a b/c.d", "é"], ['"a"', "b\\c", "é"]):
        text = json.dumps({"at": {"x": items}}, indent=1)
        script.write_text(
            f'include("{cmake_folder()}/mlfbuild-models.cmake")\n_mlfbuild_list(found [=[{text}]=] at x)\n'
            'message(STATUS "found <${found}>")\n'
        )
        done = subprocess.run([tool("cmake"), "-P", script], capture_output=True, text=True, check=True)
        assert done.stdout == f"-- found <{';'.join(items)}>\n"
