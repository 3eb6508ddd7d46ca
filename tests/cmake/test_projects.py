"""Complete projects that use the CMake package, as users would write them (tests/projects/cmake-*)."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import board_called, cmake_folder
from mlfbuild.verify.emulator import run_elf
from support import warm
from support.cmake_repo import MOSTLY_NINJA
from support.examples import first_on_push
from support.firmware_repo import tiny_network

PROJECTS = Path(__file__).parents[1] / "projects"


def copy(name: str, folder: Path, *models: str) -> Path:
    """Copy the project ``name`` to a folder with a space in its name, and write its ``models``."""
    root = folder / "my project"
    shutil.copytree(PROJECTS / name, root)
    for seed, model in enumerate(models):
        (root / model).parent.mkdir(exist_ok=True)
        (root / model).write_bytes(tiny_network(seed))
    return root


def run(folder: Path, *command: str | Path) -> str:
    env = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    env |= {"MLFBUILD_CMAKE_DIR": str(cmake_folder()), "MLFBUILD_COMMAND": str(warm.command("mlfbuild"))}
    done = subprocess.run(
        command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.sweep
@pytest.mark.parametrize(("preset", "board"), first_on_push([("m4", "mps2-an386"), ("m55", "mps3-an547")]))
def test_presets(preset: str, board: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    root = copy("cmake-presets", tmp_path, "models/alpha.tflite")
    run(root, "cmake", "--preset", preset)
    run(root, "cmake", "--build", "--preset", preset)
    result = run_elf(root / f"build/{preset}/app.elf", board_called(board), timeout=60)
    assert (result.stdout, result.exit_status) == ("alpha ran\n", 0)


@pytest.mark.sweep
@pytest.mark.parametrize("generator", MOSTLY_NINJA)
def test_parts_of_a_product(generator: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "make", "gcc")
    root = copy("cmake-parts", tmp_path, "sound/models/alpha.tflite", "vision/models/beta.tflite")
    vision = (root / "vision").rename(tmp_path / "vision elsewhere")
    run(
        root, "cmake", "-S", ".", "-B", "build", "-G", generator, f"-Dmlfbuild_DIR={cmake_folder()}",
        f"-DMLFBUILD_COMMAND={warm.command('mlfbuild')}", f"-DFETCHCONTENT_SOURCE_DIR_VISION={vision}",
        f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'installed'}",
    )  # fmt: skip
    run(root, "cmake", "--build", "build")
    run(root, "cmake", "--install", "build")
    run(root, tmp_path / "installed/bin/app")
    libraries = {path.name for path in (tmp_path / "installed/lib").glob("*.a")}
    assert libraries == {"libsound.a", "libmlf_alpha.a", "libmlf_beta.a"}
    assert "parts::mlf_beta" in (tmp_path / "installed/lib/cmake/parts/parts.cmake").read_text()
    (vision / "models/beta.tflite").write_bytes(tiny_network(9))
    again = run(root, "cmake", "--build", "build")
    assert "Making model beta for camera" in again
    assert "alpha_lib0.c" not in again
    run(root, "build/app")
