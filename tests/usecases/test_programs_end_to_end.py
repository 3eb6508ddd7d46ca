"""A firmware repository with networks of external compilers, from the project file to correct numbers.

One network is compiled by a command, which is mlfbuild itself, and one by a stand-in for TVM.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import cmake_folder
from support import warm
from support.exporters import python_with_tvm
from support.firmware_repo import SITE_TOOL

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
PROJECT = f"""\
mlfbuild: 1
targets:
  pc: {{cpu: host}}
  m4: {{cpu: cortex-m4, board: mps2-an386}}
models:
  kws:
    source: models/digits.tflite
    compiler: command
    command: >-
      "{sys.executable}" -m mlfbuild compile -q {{source}} --cpu {{cpu}} --name {{name}}
      -O memory=smallest -o {{output}}
    vectors: digits.npz
  vww:
    source: models/digits.tflite
    compiler: tvm
    python: .venv-tvm/bin/python
    options: {{target: c, pass-config: tir.usmp.enable=1}}
    vectors: digits.npz
firmware:
  app: {{sources: [main.c], targets: [pc]}}
"""
MAIN = """\
#include "tvmgen_kws.h"
#include "tvmgen_vww.h"

int main(void)
{
    static int8_t image[64], one[10], other[10];
    struct tvmgen_kws_inputs kws_inputs = {image};
    struct tvmgen_kws_outputs kws_outputs = {one};
    struct tvmgen_vww_inputs vww_inputs = {image};
    struct tvmgen_vww_outputs vww_outputs = {other};
    int wrong = tvmgen_kws_run(&kws_inputs, &kws_outputs) != 0 || tvmgen_vww_run(&vww_inputs, &vww_outputs) != 0;
    for (int i = 0; i < 10; ++i) {
        wrong |= one[i] != other[i];
    }
    return wrong;
}
"""
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
models = env.MlfModels("mlfbuild.yml", target="pc")
env.Alias("app", env.MlfFirmware("app", models=models))
env.Alias("verify", env.MlfVerify(models))
"""
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET pc)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::models)
"""


@pytest.fixture
def root(tmp_path: Path, tool: Callable[..., str]) -> Path:
    tool("gcc", "cmake", "ninja")
    root = tmp_path / "my firmware"
    (root / "models").mkdir(parents=True)
    (root / "site_scons/site_tools").mkdir(parents=True)
    shutil.copy(DIGITS / "models/digits.tflite", root / "models")
    shutil.copy(DIGITS / "tests/digits.npz", root)
    files = {"mlfbuild.yml": PROJECT, "main.c": MAIN, "SConstruct": SCONSTRUCT, "CMakeLists.txt": CMAKELISTS}
    for name, text in {**files, "site_scons/site_tools/mlf.py": SITE_TOOL}.items():
        (root / name).write_text(text)
    python_with_tvm(root / ".venv-tvm/bin/python", "0.14.0", root / "tvmc.txt")
    return root


def run(root: Path, *command: str) -> str:
    """Run ``command`` in the repository, assert that it succeeds, and return its output."""
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def runs_of_tvm(root: Path) -> int:
    return len((root / "tvmc.txt").read_text().splitlines())


@pytest.mark.sweep
def test_mlfbuild_builds_and_verifies(root: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm")
    run(root, sys.executable, "-m", "mlfbuild", "build", "-q")
    run(root, str(root / "build/pc/app/app"))
    report = run(root, sys.executable, "-m", "mlfbuild", "verify")
    assert report.count(" cases") >= 4, "two networks on two targets"
    assert runs_of_tvm(root) == 2, "one run a CPU, and none to verify"


@pytest.mark.sweep
def test_scons_and_cmake_build_the_same_as_mlfbuild(root: Path) -> None:
    run(root, sys.executable, "-m", "SCons", "-Q", "app", "verify")
    run(root, str(root / "build/pc/app/app"))
    assert len(list(root.glob("build/verify/pc/*/report.txt"))) == 2
    assert runs_of_tvm(root) == 1
    package = (f"-Dmlfbuild_DIR={cmake_folder()}", f"-DMLFBUILD_COMMAND={warm.command('mlfbuild')}")
    run(root, "cmake", "-S", ".", "-B", "out", "-G", "Ninja", *package)
    run(root, "cmake", "--build", "out")
    run(root, str(root / "out/app"))
    for name in ("kws.tar", "vww.tar"):
        made = (root / "out/mlf/pc" / name).read_bytes()
        assert made == (root / "build/mlf/pc" / name).read_bytes(), "the same bytes, whichever build makes them"
