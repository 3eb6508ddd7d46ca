"""A small firmware repo, and the effects of builds."""

import functools
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from support import warm
from support.tflite_builder import Network

TWO_MODELS = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  alpha: {source: models/alpha.tflite}
  beta: {source: models/beta.tflite}
"""

PROJECT = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
models:
  alpha: {source: models/alpha.tflite}
  beta: {source: models/beta.tflite}
firmware:
  app: {cmake: ., models: [alpha, beta], targets: [m4]}
"""

SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
models = env.MlfModels("mlfbuild.yml", target="m4")
app = env.MlfFirmware("app", models=models)
"""

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C ASM)
include("${MLF_TREE}/mlf.cmake")
add_executable(app src/main.c)
target_link_libraries(app PRIVATE mlf::models mlf::board)
"""

MAIN = """\
#include "app.h"
#include "mlf_board.h"

int main(void) {
  mlf_board_puts(GREETING "\\n");
  return 0;
}
"""

HEADER = """\
#define GREETING "hello"
"""

SITE_TOOL = "from mlfbuild.scons import exists, generate\n"


@functools.cache
def tiny_network(seed: int, *, size: int = 8) -> bytes:
    """Return a network of one int8 FULLY_CONNECTED layer with weights from ``seed`` for an input of ``size``."""
    random = np.random.default_rng(seed)
    network = Network()
    source = network.input((1, size), scale=0.05, zero_point=3)
    weights = random.integers(-127, 128, (4, size), np.int8)
    bias = random.integers(-500, 500, 4, np.int32)
    return network.build([network.fully_connected(source, weights, bias, weight_scales=[0.01], scale=0.1)])


def two_layers(width: int) -> bytes:
    """Return a network like a tiny one, but with two layers and ``width`` values between them."""
    network = Network()
    random = np.random.default_rng(3)
    values = network.input((1, 8), scale=0.05, zero_point=3)
    for rows, columns in ((width, 8), (4, width)):
        weights = random.integers(-127, 128, (rows, columns), np.int8)
        bias = np.zeros(rows, np.int32)
        values = network.fully_connected(values, weights, bias, weight_scales=[0.01], scale=0.1)
    return network.build([values])


@dataclass
class Ran:
    """The effects of one build: exit status, output, and files that it wrote, removed or kept."""

    status: int
    output: str
    written: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)

    def matching(self, pattern: str) -> set[str]:
        """Return the written files whose path in the repo contains ``pattern``."""
        return {path for path in self.written if pattern in path}

    def written_below(self, folder: str) -> set[str]:
        """Return the written files below ``folder`` (which ends in a slash), relative to it."""
        return {path.removeprefix(folder) for path in self.written if path.startswith(folder)}

    @property
    def reasons(self) -> dict[str, str]:
        """The targets that SCons built, each with the reason from ``--debug=explain``."""
        return dict(
            re.findall(r"^scons: (?:re)?building `([^']*)' because:?\s*(.*(?:\n {5,}.*)*)$", self.output, re.MULTILINE)
        )

    @property
    def steps(self) -> list[str]:
        """The steps that SCons, and Ninja with ``MLFVERBOSE``, print; compiler commands are replaced by outputs."""
        return [step for line in self.output.splitlines() if (step := _step(line))]


def _step(line: str) -> str:
    if found := re.match(
        r"\[\d+/\d+\] (Building|Linking|Re-running)(.*?)(?:CMakeFiles/(\S+?)\.dir/\S*?)?([^\s/]+)$", line
    ):
        return f"{found[1]}{found[2]}{found[4]}"
    if found := re.match(r"(?:gcc|ar|ranlib) (?:.*-o |rc )?(\S+)", line):
        return f"{line.split(maxsplit=1)[0]} {found[1]}"
    return line if re.match(r"(Compiling model|Copying|Unpacking|Writing) ", line) else ""


def assert_nothing_ran(ran: Ran) -> None:
    assert (ran.reasons, ran.steps, ran.written) == ({}, [], set())
    assert ran.output == "scons: `.' is up to date.\n"


class EditedFolder:
    """A folder whose files tests write and edit."""

    root: Path

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))


class FirmwareRepo(EditedFolder):
    """A firmware repo with two models, built by SCons for one board."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("mlfbuild.yml", PROJECT)
        self.write("SConstruct", SCONSTRUCT)
        self.write("CMakeLists.txt", CMAKELISTS)
        self.write("src/main.c", MAIN)
        self.write("src/app.h", HEADER)
        self.write("site_scons/site_tools/mlf.py", SITE_TOOL)
        self.write_model("alpha", seed=1)
        self.write_model("beta", seed=2)

    def write_model(self, name: str, seed: int) -> Path:
        return self.write(f"models/{name}.tflite", tiny_network(seed))

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def snapshot(self) -> dict[str, int]:
        """Return the modification time of every file below the build folder."""
        build = self.root / "build"
        return {
            path.relative_to(self.root).as_posix(): path.stat().st_mtime_ns
            for path in build.rglob("*")
            if path.is_file()
        }

    def scons(self, *arguments: str, env: dict[str, str] | None = None, status: int | None = None) -> Ran:
        """Run SCons, and check the exit status if ``status`` is given."""
        before = self.snapshot()
        done = warm.run("SCons", *arguments, cwd=self.root, env=os.environ | (env or {}))
        assert status in {None, done.returncode}, done.stdout + done.stderr
        after = self.snapshot()
        return Ran(
            done.returncode,
            done.stdout + done.stderr,
            {path for path, time in after.items() if before.get(path) != time},
            set(before) - set(after),
        )

    def build(self, *arguments: str) -> Ran:
        return self.scons(*arguments, status=0)
