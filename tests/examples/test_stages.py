"""The example of three machines: B builds without Python, C verifies without the project, and changes are refused."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core import sha256
from support import warm
from support.labgrid_farm import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
STAGES = EXAMPLES / "stages"
TOOLS_OF_B = ("sh", "cat", "cp", "grep", "tar", "tee", "sha256sum", "cmake", "ninja", "arm-none-eabi-gcc")
BINUTILS = ("ar", "ranlib", "nm", "objcopy", "objdump", "strip", "ld", "as", "readelf", "size", "addr2line", "g++")
HASH = re.compile(r"\b[0-9a-f]{64}\b")


def stage(script: str, *words: str, path: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(STAGES / script), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env={"PATH": path})


class Machines:
    """Folders of three machines, and what the scripts printed there."""

    def __init__(self, root: Path, tool: Callable[..., str]) -> None:
        self.root = root
        self.printed: dict[str, str] = {}
        self.path = f"{warm.programs()}{os.pathsep}{os.environ['PATH']}"
        without = root / "without-python"
        without.mkdir()
        for name in (*TOOLS_OF_B, *(f"arm-none-eabi-{each}" for each in BINUTILS)):
            (without / name).symlink_to(tool(name))
        self.without_python = str(without)

    def device(self) -> tuple[str, ...]:
        """Return the options with which C reaches its device, which is QEMU."""
        port = free_port()
        start = f'[qemu-system-arm, -M, netduinoplus2, -S, -gdb, "tcp:127.0.0.1:{port}", -display, none]'
        return ("--runner", f"gdb=localhost:{port}", "--runner", f"start={start}")


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Machines:
    """Return the folders after A and B."""
    tool("qemu-system-arm", "gdb-multiarch")
    made = Machines(tmp_path_factory.mktemp("machines"), tool)
    root = made.root
    shutil.copytree(EXAMPLES / "boards", root / "boards", ignore=shutil.ignore_patterns("build"))
    done = stage("a.sh", str(root / "boards"), str(root / "a"), path=made.path)
    assert done.returncode == 0, done.stderr
    made.printed["a"] = done.stdout
    (root / "b").mkdir()
    for name in ("firmware.tar", "a.sha256"):
        shutil.copy(root / "a" / name, root / "b")
    assert not {each.name for each in Path(made.without_python).iterdir() if "python" in each.name}
    done = stage("b.sh", str(root / "b"), path=made.without_python)
    assert done.returncode == 0, done.stdout + done.stderr
    made.printed["b"] = done.stdout
    (root / "c").mkdir()
    for name in ("a/digits.mlfbundle", "a/a.sha256", "b/nucleo.elf", "b/b.sha256"):
        shutil.copy(root / name, root / "c")
    return made


def test_the_printed_hashes_connect_the_machines(machines: Machines) -> None:
    done = stage("c.sh", str(machines.root / "c"), *machines.device(), path=machines.path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^digits: \d+ cases right on gdb localhost", done.stdout, re.MULTILINE)
    a, b, c = ({*HASH.findall(text)} for text in (machines.printed["a"], machines.printed["b"], done.stdout))
    model = sha256((machines.root / "boards/models/digits.tflite").read_bytes())
    image = sha256((machines.root / "b/nucleo.elf").read_bytes())
    bundle = sha256((machines.root / "a/digits.mlfbundle").read_bytes())
    archive = sha256(next((machines.root / "boards").rglob("digits.tar")).read_bytes())
    assert a & b & c == {model}
    assert a & c == {model, bundle, archive}
    assert b & c == {model, image}


@pytest.mark.parametrize(("name", "status"), [("digits.mlfbundle", 1), ("nucleo.elf", 1)], ids=["bundle", "image"])
def test_c_refuses_changed_files(machines: Machines, tmp_path: Path, name: str, status: int) -> None:
    folder = tmp_path / "c"
    shutil.copytree(machines.root / "c", folder)
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    done = stage("c.sh", str(folder), path=machines.path)
    assert done.returncode == status
    assert f"{name}: FAILED" in done.stdout


@pytest.mark.parametrize("changed", ["firmware.tar", "firmware/mlf/digits/codegen/host/src/digits_lib0.c"])
def test_b_refuses_changed_files(machines: Machines, tmp_path: Path, changed: str) -> None:
    folder = tmp_path / "b"
    shutil.copytree(machines.root / "b", folder)
    with (folder / changed).open("ab") as file:
        file.write(b"\n")
    done = stage("b.sh", str(folder), path=machines.without_python)
    assert done.returncode == 1
    assert f"{changed.removeprefix('firmware/')}: FAILED" in done.stdout
