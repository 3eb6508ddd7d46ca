"""A committed tree builds and runs with no mlfbuild and no Python packages: CMake, Make, SCons and RT-Thread's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import SCons

from mlfbuild.cli.run import run as mlfbuild
from mlfbuild.emulator import run_elf
from mlfbuild.firmware import tree_damage
from mlfbuild.targets import BOARDS
from support.firmware_repo import tiny_network
from support.oracle import tflite_micro_run

PROJECT = Path(__file__).parents[1] / "projects/tree-firmware"
MODELS = ("alpha", "beta")
CLEAN = {"PATH": "/usr/bin:/bin"}
"""The whole environment of the builds: where mlfbuild may be installed is not in it."""


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    """The project with its committed tree; its networks, project file and build folder are gone."""
    for name in ("arm-none-eabi-gcc", "qemu-system-arm"):
        tool(name)
    folder = tmp_path_factory.mktemp("tree") / "repo"
    shutil.copytree(PROJECT, folder)
    (folder / "networks").mkdir()
    for seed, name in enumerate(MODELS):
        (folder / f"networks/{name}.tflite").write_bytes(tiny_network(seed))
    np.savez(folder / "alpha.npz", in0=np.zeros((1, 1, 8), np.int8), out0=np.zeros((1, 1, 4), np.int8))
    assert mlfbuild(["-C", str(folder), "-j1", "build", "--target", "m55", "--tree", "models"]) == 0
    for path in (folder / "networks", folder / "build"):
        shutil.rmtree(path)
    (folder / "mlfbuild.yml").unlink()
    return folder


@pytest.fixture(autouse=True)
def _back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)


@pytest.fixture
def work(repo: Path, tmp_path: Path) -> Path:
    """A copy of the repository somewhere else: the tree does not know where it was made."""
    return Path(shutil.copytree(repo, tmp_path / "moved"))


def run(folder: Path, *command: str | Path, env: Mapping[str, str] = CLEAN) -> str:
    done = subprocess.run([str(word) for word in command], cwd=folder, env=env, text=True, capture_output=True)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    return text


def scons(folder: Path, *arguments: str) -> str:
    """Run SCons in a Python that has nothing but its standard library and SCons."""
    alone = folder / "scons-alone"
    if not alone.is_dir():
        alone.mkdir()
        (alone / "SCons").symlink_to(Path(SCons.__file__).parent)
    main = "import sys; sys.path.insert(0, sys.argv.pop(1)); from SCons.Script import main; main()"
    return run(folder, sys.executable, "-I", "-S", "-c", main, str(alone), *arguments)


def expected() -> list[str]:
    lines = []
    for case in range(3):
        inputs = np.array([[37 * case + 11 * i for i in range(8)]]).astype(np.int8)
        for seed, name in enumerate(MODELS):
            outputs = tflite_micro_run(tiny_network(seed), [inputs])[0]
            lines.append(f"{name}: {' '.join(str(value) for value in outputs.flat)}")
    return lines


def assert_right(elf: Path) -> None:
    result = run_elf(elf, BOARDS["mps3-an547"], timeout=60)
    assert (result.stdout.splitlines(), result.exit_status) == (expected(), 0)


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_no_mlfbuild_is_in_reach_of_the_scons_that_tests_use(work: Path) -> None:
    (work / "SConstruct").write_text("import importlib.util as u; print('found', u.find_spec('mlfbuild'))\n")
    assert "found None" in scons(work, "-Q")


def test_cmake(work: Path, tool: Callable[[str], str]) -> None:
    tool("ninja")
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=arm-none-eabi.cmake"
    run(work, tool("cmake"), "-B", "build", "-G", "Ninja", toolchain)
    run(work, tool("cmake"), "--build", "build")
    assert_right(work / "build/app.elf")


def test_make(work: Path, tool: Callable[[str], str]) -> None:
    make, before = tool("make"), files(work / "models")
    run(work, make, "-j2")
    assert_right(work / "build/make/app.elf")
    assert files(work / "models") == before, "objects go outside the tree"
    assert "up to date" in run(work, make), "the first rule is still the makefile's own"
    header = work / "models/alpha/codegen/host/include/tvmgen_alpha.h"
    os.utime(header)
    again = run(work, make)
    assert "alpha_lib0.c.o" in again and "libmlf_alpha.a" in again and "main.o" in again
    assert "-o build/make/mlf/beta" not in again and "-o build/make/mlf/board" not in again


def test_make_with_rules_of_its_own(work: Path, tool: Callable[[str], str]) -> None:
    makefile = (
        "include models/mlf.mk\n"
        "OBJECTS := $(addprefix out/,$(notdir $(MLF_SOURCES:.c=.o)))\n"
        "vpath %.c $(sort $(dir $(MLF_SOURCES)))\n"
        "all: $(OBJECTS)\n"
        "out/%.o: %.c ; @mkdir -p out; arm-none-eabi-gcc -mcpu=cortex-m55 $(MLF_INCLUDES_alpha) $(MLF_INCLUDES_beta) "
        "-c $< -o $@\n"
    )
    (work / "own.mk").write_text(makefile)
    run(work, tool("make"), "-f", "own.mk", "all")
    assert files(work / "out") == {"alpha_lib0.o", "beta_lib0.o"}


def test_scons(work: Path) -> None:
    before = files(work / "models")
    scons(work, "-Q", "-j2")
    assert_right(work / "build/scons/app.elf")
    assert files(work / "models") == before, "objects go to the variant folder"
    assert "is up to date" in scons(work, "-Q")
    script = work / "models/board/mlf_board.ld"
    script.write_text(script.read_text() + "/* changed */\n")
    assert "app.elf" in scons(work, "-Q")


def test_scons_leaves_the_environment_alone(work: Path) -> None:
    text = (work / "SConstruct").read_text()
    at = text.index("models = ")
    watched = "before = env.Dump()\n" + text[at:].replace(
        "env.VariantDir", "assert env.Dump() == before\nenv.VariantDir"
    )
    (work / "SConstruct").write_text(text[:at] + watched)
    scons(work, "-Q", "-n")


def test_rt_thread(work: Path) -> None:
    bsp = work / "rt-thread"
    (bsp / "applications").mkdir()
    shutil.copy(work / "src/main.c", bsp / "applications")
    shutil.copytree(work / "models", bsp / "packages/models")
    before = files(bsp / "packages/models")
    scons(bsp, "-Q")
    assert_right(bsp / "build/app.elf")
    assert files(bsp / "packages/models") == before


def test_the_tree_is_as_it_was_written(repo: Path) -> None:
    damage = [line for folder in ("", *MODELS) for line in tree_damage(repo / "models" / folder)]
    assert damage == []
    text = "".join(path.read_text(errors="replace") for path in (repo / "models").rglob("*") if path.is_file())
    assert str(repo) not in text and sys.prefix not in text


def test_make_says_that_it_cannot_hold_spaces(work: Path, tool: Callable[[str], str]) -> None:
    (work / "models").rename(work / "my models")
    (work / "own.mk").write_text("include my\\ models/mlf.mk\nall: ;\n")
    done = subprocess.run([tool("make"), "-f", "own.mk"], cwd=work, text=True, capture_output=True)
    assert done.returncode == 2
    assert "the path of its folder has spaces, which make cannot hold" in done.stderr
