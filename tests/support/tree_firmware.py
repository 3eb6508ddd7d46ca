"""The project ``tree-firmware``: two networks in a committed tree, and builds without mlfbuild."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import SCons

from mlfbuild.cli.output.invocation import run as mlfbuild
from mlfbuild.targets import BOARDS
from mlfbuild.verify.emulator import run_elf
from support.firmware_repo import tiny_network
from support.oracle import tflite_micro_run

PROJECTS = Path(__file__).parents[1] / "projects"
PROJECT = PROJECTS / "tree-firmware"
MODELS = ("alpha", "beta")
CLEAN = {"PATH": "/usr/bin:/bin"}
"""The environment of the builds, without the folders in which mlfbuild may be installed."""


def make_repo(folder: Path, *options: str, models: str = "") -> Path:
    """Copy the project to ``folder``, write its tree, ``models``, and remove the tree's sources.

    ``models`` replaces that section of the project file.
    """
    shutil.copytree(PROJECT, folder)
    if models:
        text = (folder / "mlfbuild.yml").read_text()
        (folder / "mlfbuild.yml").write_text(text[: text.index("models:")] + models)
    (folder / "networks").mkdir()
    for seed, name in enumerate(MODELS):
        (folder / f"networks/{name}.tflite").write_bytes(tiny_network(seed))
    np.savez(folder / "alpha.npz", in0=np.zeros((1, 1, 8), np.int8), out0=np.zeros((1, 1, 4), np.int8))
    assert mlfbuild(["-C", str(folder), "-j1", "build", "--target", "m55", "--tree", "models", *options]) == 0
    for path in (folder / "networks", folder / "build"):
        shutil.rmtree(path)
    (folder / "mlfbuild.yml").unlink()
    return folder


def run(folder: Path, *command: str | Path, env: Mapping[str, str] = CLEAN) -> str:
    """Run a command that must succeed; return its output."""
    done = subprocess.run([str(word) for word in command], cwd=folder, env=env, text=True, capture_output=True)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    return text


def scons(folder: Path, *arguments: str) -> str:
    """Run SCons in a Python with only the standard library and SCons."""
    return run(folder, *scons_command(folder), *arguments)


def scons_command(folder: Path) -> list[str]:
    """Return the command that runs SCons in a Python with only the standard library and SCons."""
    alone = folder / "scons-alone"
    if not alone.is_dir():
        alone.mkdir()
        (alone / "SCons").symlink_to(Path(SCons.__file__).parent)
    main = "import sys; sys.path.insert(0, sys.argv.pop(1)); from SCons.Script import main; main()"
    return [sys.executable, "-I", "-S", "-c", main, str(alone)]


def expected() -> list[str]:
    """Return the expected output of the project's ``main.c``, from TensorFlow Lite Micro."""
    lines = []
    for case in range(3):
        inputs = np.array([[37 * case + 11 * i for i in range(8)]]).astype(np.int8)
        for seed, name in enumerate(MODELS):
            outputs = tflite_micro_run(tiny_network(seed), [inputs])[0]
            lines.append(f"{name}: {' '.join(str(value) for value in outputs.flat)}")
    return lines


def assert_right(elf: Path) -> None:
    """Run the image on QEMU and compare its output."""
    result = run_elf(elf, BOARDS["mps3-an547"], timeout=60)
    assert (result.stdout.splitlines(), result.exit_status) == (expected(), 0)


def files(folder: Path) -> set[str]:
    """Return the paths of all files in ``folder``."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
