"""SCons and CMake write the same blob of parameters, once."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
models = env.MlfModels("mlfbuild.yml", target="m4")
env.MlfParameters("new.bin", "models/digits-v2.tflite", models, model="digits", number=2, self_test=1)
"""
CMAKE = f"""\
cmake_minimum_required(VERSION 3.22)
project(parameters LANGUAGES C ASM)
include({REPOSITORY}/cmake/mlfbuild-config.cmake)
mlfbuild_models(mlfbuild.yml TARGET m4)
mlfbuild_parameters(new-1.2.bin MODEL digits NEW models/digits-v2.tflite NUMBER 2 SELF_TEST 1)
"""


def run(folder: Path, *command: object) -> str:
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.sweep
def test_scons_and_cmake(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "gcc")
    folder = tmp_path / "project"
    ignored = shutil.ignore_patterns("build", "mlfbuild.lock", "__pycache__")
    shutil.copytree(REPOSITORY / "examples/field-update", folder, ignore=ignored)
    shutil.copytree(REPOSITORY / "examples/digits/site_scons", folder / "site_scons")
    (folder / "SConstruct").write_text(SCONSTRUCT)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    scons = (sys.executable, "-m", "SCons", "-Q", "new.bin")
    assert "outputs differ in" in run(folder, *scons)
    assert run(folder, *scons) == "scons: `new.bin' is up to date.\n"
    toolchain = REPOSITORY / "cmake/toolchains/cortex-m4.cmake"
    run(folder, "cmake", "-G", "Ninja", "-B", "b", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}")
    build = ("cmake", "--build", "b", "--target", "parameters-new-1.2")
    assert "outputs differ in" in run(folder, *build)
    assert run(folder, *build) == "ninja: no work to do.\n"
    assert (folder / "b/new-1.2.bin").read_bytes() == (folder / "new.bin").read_bytes()
    # The tests in a blob are vectors of the model.
    with np.load(folder / "tests/digits.npz") as arrays:
        np.savez(folder / "tests/digits.npz", **{name: array[1:] for name, array in arrays.items()})
    assert "outputs differ in" in run(folder, *scons)
    assert "outputs differ in" in run(folder, *build)
    assert (folder / "b/new-1.2.bin").read_bytes() == (folder / "new.bin").read_bytes()
