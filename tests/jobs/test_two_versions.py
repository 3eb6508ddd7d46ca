"""Trees of two versions of mlfbuild in one build: each model is compiled with its own kernel headers."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.jobs.tree.adapters.package import model_files
from mlfbuild.jobs.tree.target_tree import unpack
from mlfbuild.library import Library
from support import warm
from support.libraries import OTHER_KERNEL, native_module

MAIN = """\
#include <stdio.h>
#include "tvmgen_one.h"
#include "tvmgen_two.h"

int main(void)
{
    signed char x[4] = {1, 2, 3, 4}, y[4], z[4];
    struct tvmgen_one_inputs in_one = {x};
    struct tvmgen_two_inputs in_two = {x};
    struct tvmgen_one_outputs out_one = {y};
    struct tvmgen_two_outputs out_two = {z};
    tvmgen_one_run(&in_one, &out_one);
    tvmgen_two_run(&in_two, &out_two);
    printf("%d %d\\n", y[3], z[3]);
    return 0;
}
"""
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
include(one/mlf.cmake)
include(two/mlf.cmake)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::one mlf::two)
"""
SCONSTRUCT = """\
env = Environment()
for name in ("one", "two"):
    env.Append(**SConscript(f"{name}/SConscript", exports="env", variant_dir=f"build/{name}", duplicate=False))
env.Program("build/app", "main.c")
"""
MAKEFILE = """\
MLF_BUILD := build
all: build/app
include one/mlf.mk two/mlf.mk
build/app: main.c $(MLF_LIBRARIES)
	$(CC) $(MLF_INCLUDES) main.c $(MLF_LIBRARIES) -o $@
"""
BUILDS = {
    "cmake": ("CMakeLists.txt", CMAKELISTS, (["cmake", "-G", "Ninja", "-B", "build"], ["cmake", "--build", "build"])),
    "scons": ("SConstruct", SCONSTRUCT, (["scons", "-Q"],)),
    "make": ("Makefile", MAKEFILE, (["make"],)),
}


@pytest.fixture
def trees(tmp_path: Path, tool: Callable[..., str]) -> Path:
    """A folder with the trees of two models; the kernels of the second one return larger results."""
    tool("gcc", "cmake", "ninja", "make")
    unpack(Library((native_module("one"),)), tmp_path / "one", archive_id="a")
    unpack(Library((native_module("two", kernel=OTHER_KERNEL),)), tmp_path / "two", archive_id="b")
    (tmp_path / "main.c").write_text(MAIN)
    return tmp_path


@pytest.mark.parametrize("system", BUILDS)
def test_each_tree_uses_its_own_kernels(trees: Path, system: str) -> None:
    name, text, commands = BUILDS[system]
    (trees / name).write_text(text)
    environment = {**os.environ, "PATH": f"{warm.programs()}{os.pathsep}{os.environ['PATH']}"}
    for command in commands:
        subprocess.run(command, cwd=trees, env=environment, check=True, capture_output=True, text=True)
    assert subprocess.run([trees / "build/app"], capture_output=True, text=True, check=True).stdout == "7 107\n"


def test_firmware_does_not_see_the_kernels(trees: Path) -> None:
    """The private include path of the model has the folder, and neither interface includes a file of it."""
    fragment = (trees / "one/mlf.cmake").read_text()
    assert 'target_include_directories(mlf_one PRIVATE "${CMAKE_CURRENT_LIST_DIR}/codegen/host/src")' in fragment
    public = next(line for line in fragment.splitlines() if "PUBLIC" in line)
    assert "codegen/host/include" in public and "host/src" not in public
    assert '"private_include_dirs": ["codegen/host/src"]' in (trees / "one/SConscript").read_text()
    command = ["gcc", "-MM", "main.c", "-Ione/codegen/host/include", "-Itwo/codegen/host/include"]
    read = subprocess.run(command, cwd=trees, capture_output=True, text=True, check=True).stdout.split()
    assert "one/codegen/host/include/tvmgen_one.h" in read
    assert not [path for path in read if "mlfbuild" in path]


def test_packages_for_other_systems_use_the_folder(trees: Path) -> None:
    assert model_files(trees, "one").private_include_dirs == ("one/codegen/host/src",)
