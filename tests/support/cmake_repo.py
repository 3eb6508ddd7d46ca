"""A firmware repo that CMake builds with mlfbuild's package, and the effects of builds."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mlfbuild.targets import cmake_folder
from support import warm
from support.firmware_repo import EditedFolder, tiny_network

GENERATORS = ("Ninja", "Unix Makefiles")
MOSTLY_NINJA = ("Ninja", pytest.param("Unix Makefiles", marks=pytest.mark.sweep))
"""Ninja on each push and both generators in the sweep; ``test_rebuild`` also has a test of Makefiles for each push."""

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
  pc2: {cpu: host}
  m4: {cpu: cortex-m4, board: mps2-an386}
models:
  alpha: {source: models/alpha.tflite}
  beta: {source: models/beta.tflite}
  gamma: {source: models/gamma.tflite, targets: [m4]}
"""

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET pc)
add_executable(app src/main.c)
target_link_libraries(app PRIVATE mlf::models)
"""

MAIN = """\
#include "app.h"
#include "tvmgen_alpha.h"
#include "tvmgen_beta.h"

int main(void) { return tvmgen_alpha_run(0, 0) == tvmgen_beta_run(0, 0) ? STATUS : 1; }
"""


@dataclass
class Ran:
    """The effects of one build: exit status, output, and written files, relative to the build folder."""

    status: int
    output: str
    written: set[str] = field(default_factory=set)

    @property
    def steps(self) -> list[str]:
        """The steps that ran, as printed by Ninja and Make, sorted, without counters and folders."""
        found = re.findall(r"^\[.+?\] ((?:Making|Checking|Comparing|Building|Linking) .+)$", self.output, re.MULTILINE)
        return sorted(re.sub(r"(CMakeFiles/\S+?\.dir/)\S*/", "", step) for step in found)

    @property
    def archives(self) -> set[str]:
        return {Path(path).stem for path in self.written if path.endswith(".tar")}

    @property
    def trees(self) -> set[str]:
        """The models whose unpacked tree changed."""
        return {Path(path).parts[2] for path in self.written if re.match(r"mlf/\w+/\w+/", path)}

    @property
    def objects(self) -> set[str]:
        return {Path(path).name for path in self.written if path.endswith(".o")}

    @property
    def linked(self) -> bool:
        return "app" in self.written

    @property
    def causes(self) -> set[str]:
        """The files that caused steps, because they were newer than a result, or missing; requires ``explain``."""
        missing = r"explain: (?:output )?(.+?)(?: of phony edge with no inputs)? (?:doesn't exist|is missing)"
        ninja = rf"older than most recent input (.+?)(?: \(|$)|{missing}"
        make = r"Prerequisite '(.+)' is newer than target|File '(.+)' does not exist"
        found = re.findall(f"{ninja}|{make}", self.output, re.MULTILINE)
        names = {Path(path).name for paths in found for path in paths if path}
        return {name for name in names if "." in name}  # Make also lists its phony targets

    @property
    def configured(self) -> bool:
        return "Configuring done" in self.output


class CMakeRepo(EditedFolder):
    """A firmware repo with two models for this machine; the folder's name has a space."""

    def __init__(self, folder: Path, generator: str = "Ninja", cmake: str = "cmake") -> None:
        self.folder = folder
        self.root = folder / "my firmware"
        self.build_dir = self.root / "build"
        self.generator = generator
        self.cmake = cmake
        self.write_all()

    def write_all(self) -> None:
        """Restore every file of the repo that changed."""
        self.write("mlfbuild.yml", PROJECT)
        self.write("CMakeLists.txt", CMAKELISTS)
        self.write("src/main.c", MAIN)
        self.write("src/app.h", "#define STATUS 0\n")
        for seed, name in enumerate(("alpha", "beta", "gamma")):
            self.write_model(name, seed)

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        data = text.encode() if isinstance(text, str) else text
        return path if path.is_file() and path.read_bytes() == data else super().write(name, data)

    def write_model(self, name: str, seed: int) -> Path:
        return self.write(f"models/{name}.tflite", tiny_network(seed))

    def configure(self, *arguments: str, env: dict[str, str] | None = None, status: int | None = None) -> Ran:
        """Configure, and check the exit status if ``status`` is given."""
        ran = self._run(
            self.cmake, "-S", ".", "-B", "build", "-G", self.generator,
            f"-Dmlfbuild_DIR={cmake_folder()}", f"-DMLFBUILD_COMMAND={warm.command('mlfbuild')}", *arguments, env=env,
        )  # fmt: skip
        assert status in {None, ran.status}, ran.output
        return ran

    def build(self, *arguments: str, env: dict[str, str] | None = None, explain: bool = False) -> Ran:
        """Configure if needed, build, and assert success.

        With ``explain``, Ninja or Make prints why each step runs.
        """
        if not (self.build_dir / "CMakeCache.txt").exists():
            self.configure(env=env, status=0)
        reasons = ("--", *(("-d", "explain") if self.generator == "Ninja" else ("--debug=b",))) if explain else ()
        ran = self.run_build(*arguments, *reasons, env=env)
        assert ran.status == 0, ran.output
        return ran

    def run_build(self, *arguments: str, env: dict[str, str] | None = None) -> Ran:
        return self._run(self.cmake, "--build", "build", *arguments, env=env)

    def ninja(self, *arguments: str) -> str:
        """Run Ninja in the build folder and return its output."""
        return subprocess.run(
            ["ninja", "-C", self.build_dir, *arguments], capture_output=True, text=True, check=True
        ).stdout

    def mlfbuild(self, *arguments: str) -> None:
        """Run the mlfbuild command that CMake runs, in the repo."""
        warm.run("mlfbuild", *arguments, cwd=self.root, check=True)

    def _run(self, *command: str, env: dict[str, str] | None) -> Ran:
        before = self._times()
        environment = {
            name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "CMAKE_PREFIX_PATH"}
        }
        done = subprocess.run(
            command, cwd=self.root, env=environment | (env or {}), text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        after = self._times()
        return Ran(done.returncode, done.stdout, {path for path, time in after.items() if before.get(path) != time})

    def _times(self) -> dict[str, int]:
        paths = (path for path in self.build_dir.rglob("*") if path.is_file())
        return {path.relative_to(self.build_dir).as_posix(): path.stat().st_mtime_ns for path in paths}


def mlfbuild_command() -> str:
    """Return the command of the mlfbuild under test, which is in the folder of this Python."""
    beside = Path(sys.executable).with_name("mlfbuild")
    return str(beside) if beside.exists() else shutil.which("mlfbuild") or "mlfbuild"


def error_lines(output: str) -> list[str]:
    """Return the indented lines of CMake's errors."""
    return [line[4:] for line in output.splitlines() if line.startswith("    ")]
