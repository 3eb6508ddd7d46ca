"""A small project that mlfbuild, SCons and CMake can build, and the files of a clean build."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.targets import cmake_folder
from support.command import MAIN_C, PROJECT
from support.firmware_repo import tiny_network

PATIENCE = 180.0
"""Seconds that a command may take on a busy machine."""
_SCONSTRUCT = """\
import os
env = Environment(ENV=os.environ, tools=["default", "mlf"])
env.MlfFirmware("app", models=env.MlfModels("mlfbuild.yml", target="pc"))
"""
_CMAKE = """\
cmake_minimum_required(VERSION 3.22)
project(app C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET pc)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::models m)
"""
_SCRIPT = 'cmake -S . -B build -G Ninja -Dmlfbuild_DIR="$1" && cmake --build build -j 2'
TOOLS: Mapping[str, list[str]] = {
    "mlfbuild build": [sys.executable, "-m", "mlfbuild", "build", "-j", "2"],
    "scons -j2": [sys.executable, "-m", "SCons", "-j", "2"],
    "cmake --build": ["sh", "-c", _SCRIPT, "sh", str(cmake_folder())],
}
_IMAGES = {"mlfbuild build": "build/pc/app/app", "scons -j2": "build/pc/app/app", "cmake --build": "build/app"}


@dataclass(frozen=True)
class Ended:
    """How a command ended; the status is ``None`` if it took too long."""

    status: int | None
    output: str
    seconds: float


class Site:
    """The project in ``root``, built by ``tool``."""

    def __init__(self, root: Path, tool: str) -> None:
        self.root = root
        self.tool = tool
        root.mkdir(parents=True)
        (root / "models").mkdir()
        (root / "site_scons/site_tools").mkdir(parents=True)
        (root / "site_scons/site_tools/mlf.py").write_text("from mlfbuild.scons import exists, generate\n")
        (root / "mlfbuild.yml").write_text(PROJECT.replace(", vectors: alpha.npz", ""))
        (root / "main.c").write_text(MAIN_C)
        (root / "SConstruct").write_text(_SCONSTRUCT)
        (root / "CMakeLists.txt").write_text(_CMAKE)
        self.change(0)

    def change(self, version: int) -> None:
        """Give the models the weights of ``version``."""
        for seed, name in enumerate(("alpha", "beta")):
            (self.root / f"models/{name}.tflite").write_bytes(tiny_network(2 * version + seed))

    def clean(self) -> None:
        """Remove everything that was built."""
        shutil.rmtree(self.root / "build", ignore_errors=True)
        (self.root / ".sconsign.dblite").unlink(missing_ok=True)

    def start(self, prepare: Callable[[], None] | None = None, **environment: str) -> subprocess.Popen[bytes]:
        """Start a build in a separate session; its output goes to the file ``output``."""
        with (self.root / "output").open("wb") as output:
            return subprocess.Popen(
                TOOLS[self.tool], cwd=self.root, env={**os.environ, **environment}, preexec_fn=prepare,  # noqa: PLW1509

                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def ended(self, process: subprocess.Popen[bytes]) -> Ended:
        """Wait for the end of a build."""
        began = time.monotonic()
        try:
            status: int | None = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            status = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Ended(status, self.output(), time.monotonic() - began)

    def output(self) -> str:
        """What the last build printed."""
        return (self.root / "output").read_text(errors="replace")

    def build(self, prepare: Callable[[], None] | None = None, **environment: str) -> Ended:
        """Build to the end."""
        return self.ended(self.start(prepare, **environment))

    def products(self) -> dict[str, bytes]:
        """Return archives, trees and the image, by path; without what belongs to CMake and Ninja."""
        image = self.root / _IMAGES[self.tool]
        return {**self.trees(), image.relative_to(self.root).as_posix(): image.read_bytes()}

    def trees(self) -> dict[str, bytes]:
        """Return archives and trees, by path."""
        trees = [path for path in (self.root / "build/mlf").rglob("*") if path.is_file() and ".cmake" not in path.parts]
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in trees}

    def difference(self, expected: Mapping[str, bytes]) -> str:
        """Return how a build that nothing disturbs differs from a clean one; empty if it does not."""
        healed = self.build()
        # CMake writes its cache in place, and says to remove it.
        if self.tool.startswith("cmake") and "Parse error in cache file" in healed.output:
            (self.root / "build/CMakeCache.txt").unlink()
            healed = self.build()
        if healed.status != 0:
            return f"the next build ended with {healed.status}: {healed.output[-2000:]}"
        found = self.products()
        other = [path for path in sorted({*found, *expected}) if found.get(path) != expected.get(path)]
        return f"{other} differ" if other else ""


def left_in(session: int) -> list[str]:
    """Return the command lines of the processes in a session that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, of = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return found
