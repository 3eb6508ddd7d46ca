"""Compile on one machine, build on a second without Python, and verify on a third; only results are copied."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.cli.output.invocation import run as mlfbuild
from support.firmware_repo import tiny_network
from support.oracle import tflite_micro_run
from support.tree_firmware import make_repo, run, scons

TOOLS = {
    "arm": ("arm-none-eabi-gcc", "arm-none-eabi-ar", "arm-none-eabi-ranlib", "cmake", "ninja", "make"),
    "host": ("gcc", "ar", "as", "ld", "make", "tar"),
}
SHELL = ("sh", "mkdir", "rm")

VERIFY_BY_SCONS = """
check = app.Clone()
check.Append(CPPPATH=["models/alpha/verify/alpha"], CPPDEFINES=["MEASURE_STACK=1"], LIBS=["m"])
check.Program("build/alpha_verify.elf", check.Object("build/verify.o", "models/alpha/verify/verify.c"))
"""

MAIN = """\
#include <stdio.h>
#include "tvmgen_alpha.h"

int main(void)
{
    int8_t in[8] = {1, -2, 3, -4, 5, -6, 7, -8}, out[4];
    struct tvmgen_alpha_inputs inputs = {in};
    struct tvmgen_alpha_outputs outputs = {out};
    const int32_t status = tvmgen_alpha_run(&inputs, &outputs);

    printf("%d %d %d %d\\n", out[0], out[1], out[2], out[3]);
    return (int)status;
}
"""


@pytest.fixture(autouse=True)
def _back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)


def second_machine(folder: Path, kind: str, tool: Callable[[str], str]) -> dict[str, str]:
    """The environment of a machine with only a toolchain: no Python, no mlfbuild."""
    folder.mkdir()
    for name in (*TOOLS[kind], *SHELL):
        (folder / name).symlink_to(tool(name))
    for name in ("python", "python3", "mlfbuild", "scons"):
        assert shutil.which(name, path=str(folder)) is None
    return {"PATH": str(folder)}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The firmware repository after the first machine: a tree with test firmware, without network and project file."""
    return make_repo(tmp_path_factory.mktemp("first") / "repo", "--with-verify")


@pytest.mark.parametrize("way", ["cmake", "make", "scons"])
def test_tree_is_built_on_the_second_and_verified_on_the_third_machine(
    first: Path, tmp_path: Path, tool: Callable[[str], str], capfd: pytest.CaptureFixture[str], way: str
) -> None:
    tool("qemu-system-arm")
    env = second_machine(tmp_path / "bin", "arm", tool)
    repo = Path(shutil.copytree(first, tmp_path / "second"))
    if way == "cmake":
        run(repo, tool("cmake"), "-B", "build", "-G", "Ninja", "-DCMAKE_TOOLCHAIN_FILE=arm-none-eabi.cmake", env=env)
        run(repo, tool("cmake"), "--build", "build", "--target", "mlf_alpha_verify", env=env)
    elif way == "make":
        run(repo, tool("make"), "-j2", "BUILD=build", "MLF_BUILD=build", "build/alpha_verify.elf", env=env)
        assert "up to date" in run(
            repo, tool("make"), "BUILD=build", "MLF_BUILD=build", "build/alpha_verify.elf", env=env
        )
    else:  # SCons is Python; its Python has no mlfbuild
        with (repo / "SConstruct").open("a") as file:
            file.write(VERIFY_BY_SCONS)
        scons(repo, "-Q", "build/alpha_verify.elf")
    third = tmp_path / "third"
    third.mkdir()
    shutil.copy(repo / "build/alpha_verify.elf", third)
    shutil.rmtree(repo)
    inputs = np.random.default_rng(3).integers(-128, 128, (4, 1, 8), np.int8)
    outputs = np.stack([tflite_micro_run(tiny_network(0), [case])[0] for case in inputs])
    np.savez(third / "alpha.npz", in0=inputs, out0=outputs)
    capfd.readouterr()
    assert mlfbuild(["-C", str(third), "verify", "--elf", "alpha_verify.elf", "--vectors", "alpha.npz"]) == 0
    assert capfd.readouterr().out.startswith("alpha: 4 cases right on mps3-an547, ")


@pytest.mark.parametrize("way", ["tar", "unpack"])
def test_archive_is_enough_for_the_second_machine(tmp_path: Path, tool: Callable[[str], str], way: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    (one / "alpha.tflite").write_bytes(tiny_network(0))
    assert mlfbuild(["-C", str(one), "compile", "alpha.tflite", "--cpu", "host", "-o", "alpha.tar"]) == 0
    shutil.move(one / "alpha.tar", two)
    shutil.rmtree(one)
    env = second_machine(tmp_path / "bin", "host", tool)
    (two / "main.c").write_text(MAIN)
    if way == "tar":  # an archive of the native compiler needs nothing but a C compiler
        run(two, tool("tar"), "xf", "alpha.tar", env=env)
        sources = [*(two / "codegen/host/src").glob("*.c")]
        run(two, tool("gcc"), "-std=c99", "-Icodegen/host/include", "main.c", *sources, "-o", "app", "-lm", env=env)
    else:  # unpacking needs Python; afterwards the tree is enough
        assert mlfbuild(["-C", str(two), "unpack", "alpha.tar", "-o", "tree"]) == 0
        (two / "alpha.tar").unlink()
        rule = "app: main.c $(MLF_LIBRARIES)\n\t$(CC) $(MLF_INCLUDES) -o $@ $^ -lm\n"
        (two / "Makefile").write_text(f"include tree/mlf.mk\nCC := gcc\n{rule}")
        run(two, tool("make"), "app", env=env)
    printed = subprocess.run([two / "app"], capture_output=True, text=True, check=True).stdout
    (expected,) = tflite_micro_run(tiny_network(0), [np.array([[1, -2, 3, -4, 5, -6, 7, -8]], np.int8)])
    assert printed.split() == [str(value) for value in expected.flat]
