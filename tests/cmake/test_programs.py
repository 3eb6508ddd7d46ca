"""Models of external compilers in CMake: archives are made at configuration, because their file lists are not known."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import cmake_folder
from support import warm
from support.cmake_repo import MOSTLY_NINJA
from support.program_repo import ProgramRepo

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET pc)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::alpha mlf::gamma)
"""
MAIN = """\
#include "tvmgen_alpha.h"
#include "tvmgen_gamma.h"

int main(void)
{
    int8_t x[4] = {1, 2, 3, 4}, y[4];
    struct tvmgen_alpha_inputs inputs = {x};
    struct tvmgen_alpha_outputs outputs = {y};
    return tvmgen_alpha_run(&inputs, &outputs) != 0 ? -1 : y[3];
}
"""


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[..., str]) -> ProgramRepo:
    tool("cmake", "ninja", "gcc")
    repo = ProgramRepo(tmp_path)
    repo.write("CMakeLists.txt", CMAKELISTS)
    repo.write("main.c", MAIN)
    return repo


def cmake(repo: ProgramRepo, *arguments: str, status: int = 0) -> str:
    """Run CMake, assert its exit status, and return its output."""
    done = subprocess.run(
        ["cmake", *arguments], cwd=repo.root, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def configure(repo: ProgramRepo, generator: str, status: int = 0) -> str:
    package = (f"-Dmlfbuild_DIR={cmake_folder()}", f"-DMLFBUILD_COMMAND={warm.command('mlfbuild')}")
    return cmake(repo, "-S", ".", "-B", "out", "-G", generator, *package, status=status)


def build(repo: ProgramRepo) -> int:
    """Build, and return the results of the program."""
    cmake(repo, "--build", "out")
    return subprocess.run([repo.root / "out/app"], check=False).returncode


@pytest.mark.sweep
@pytest.mark.parametrize("generator", MOSTLY_NINJA)
def test_changes_run_only_affected_programs(repo: ProgramRepo, generator: str) -> None:
    configure(repo, generator)
    assert repo.ran() == ["alpha host", "beta host", "tvm"]
    assert build(repo) == 7
    assert build(repo) == 7
    assert repo.ran() == [], "what was made for the configuration is used"

    for path in ("models/alpha.bin", "tools/export.py", "mlfbuild.yml"):
        os.utime(repo.root / path, (time.time() + 2, time.time() + 2))
    build(repo)
    assert repo.ran() == []
    time.sleep(2.1)  # so that touched files are in the past

    repo.write("data/new.txt", "maybe\n")
    build(repo)
    assert repo.ran() == ["alpha host"], "a file that came into a folder of inputs"

    changed = repo.root / "models/alpha.bin"
    changed.write_bytes(changed.read_bytes().replace(b"outputs->y, 4, 3)", b"outputs->y, 4, 9)"))
    assert build(repo) == 13
    assert repo.ran() == ["alpha host"]

    repo.write_model("alpha", "more")
    assert build(repo) == 7
    assert repo.ran() == ["alpha host"]
    assert (repo.root / "out/mlf/pc/alpha/codegen/host/src/more_lib0.c").is_file()
    build(repo)
    assert repo.ran() == []


def test_failing_program_stops_the_configuration(repo: ProgramRepo) -> None:
    repo.write("tools/export.py", "import sys\nprint('reading')\nsys.exit('no operator Foo')\n")
    output = configure(repo, "Ninja", status=1)
    assert "tools/export.py {source} --cpu={cpu}" in output
    assert ": failed with exit status 1" in output
    assert "no operator Foo" in output
    assert "Traceback" not in output
