"""`mlfbuild doctor`: output and exit status."""

import re
import sys
from pathlib import Path

import pytest

from support.command import Folder

PROJECT = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
  pc: {cpu: host}
models: {net: {source: models/alpha.tflite}}
"""


def test_a_project_whose_targets_can_be_built(folder: Folder, tool) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    folder.write("mlfbuild.yml", PROJECT)
    ended = folder.run("doctor")
    assert (ended.status, ended.err) == (0, "")
    assert re.match(r"mlfbuild [\d.]+, scons [\d.]+, python [\d.]+, system .+\n\nprograms\n  cc +\d", ended.out)
    assert re.search(r"^  arm-none-eabi-gcc +\d+\.\d+\.\d+ +/", ended.out, re.MULTILINE)
    assert ended.out.endswith(
        "targets of mlfbuild.yml\n  m4  builds and verifies (cortex-m4, mps2-an386)\n  pc  builds and verifies (host)\n"
    )
    assert folder.run("doctor", "-q").out == ""
    facts = folder.run("doctor", "--format", "json").json
    assert facts["healthy"] and [target["name"] for target in facts["targets"]] == ["m4", "pc"]


def test_a_target_that_cannot_be_built(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("mlfbuild.yml", PROJECT)
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", "/nowhere/gcc")
    ended = folder.run("doctor", status=3)
    assert ended.err.startswith("mlfbuild: mlfbuild.yml: 1 target cannot be built: m4; ")
    assert re.search("^  arm-none-eabi-gcc +missing +MLFBUILD_ARM_NONE_EABI_GCC=/nowhere/gcc$", ended.out, re.MULTILINE)
    assert "  m4  cannot be built (cortex-m4, mps2-an386): /nowhere/gcc: program not found\n" in ended.out
    assert ended.out.endswith(
        "to install what is missing\n  correct or unset the variable MLFBUILD_ARM_NONE_EABI_GCC=/nowhere/gcc\n"
    )
    event = folder.run("doctor", "--format", "json").error
    assert (event["code"], event["place"]) == ("targets-not-buildable", "mlfbuild.yml")
    assert folder.run("doctor", "--target", "pc").status == 0
    assert "cannot be built" in folder.run("doctor", "-q").out


def test_what_reaches_devices(folder: Folder, tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "gdb-multiarch")
    device = 'desk: {cpu: cortex-m4, runner: {gdb: "localhost:3333", memory: {ram: {origin: 0, size: 64k}}}}'
    folder.write("mlfbuild.yml", PROJECT.replace("pc: {cpu: host}", device))
    known = "(cortex-m4, gdb localhost:3333)"
    assert f"  desk  builds and verifies {known}\n" in folder.run("doctor").out
    folder.write("mlfbuild.yml", PROJECT.replace("pc: {cpu: host}", 'own: {cpu: cortex-m4, runner: {run: ["true"]}}'))
    assert "  own  builds (cortex-m4, run true); not verified: a command gives no access" in folder.run("doctor").out
    folder.write("mlfbuild.yml", PROJECT.replace("pc: {cpu: host}", device))
    monkeypatch.setitem(sys.modules, "pygdbmi", None)
    monkeypatch.setenv("MLFBUILD_GDB_MULTIARCH", "/nowhere/gdb")
    state = f"  desk  builds {known}; not verified: gdb-multiarch is missing, pip install 'pygdbmi"
    assert state in folder.run("doctor").out


def test_targets_that_a_build_or_a_verification_would_refuse(folder: Folder, tool) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "gdb-multiarch")
    device = 'pc: {cpu: host}\n  desk: {cpu: cortex-m4, runner: {gdb: "localhost:3333"}}'
    project = PROJECT.replace("m4: {cpu: cortex-m4, board: mps2-an386}", "m4: {cpu: cortex-m4}")
    folder.write("main.c", "int main(void) { return 0; }\n")
    folder.write(
        "mlfbuild.yml",
        project.replace("pc: {cpu: host}", device) + "firmware: {app: {sources: [main.c], targets: [m4, pc]}}\n",
    )
    facts = {target["name"]: target for target in folder.run("doctor", "--format", "json").json["targets"]}
    assert [len(facts[name]["missing"]) for name in ("m4", "pc", "desk")] == [1, 0, 0]
    assert facts["m4"]["missing"][0].startswith("firmware app: ")
    assert facts["desk"]["unverified"].startswith("test firmware cannot be linked")
    assert folder.run("doctor").status == 3
    assert folder.run("doctor", "--target", "desk").status == 0


def test_without_a_project_file(folder: Folder) -> None:
    (folder.root / "mlfbuild.yml").unlink()
    ended = folder.run("doctor")
    assert (ended.status, ended.err) == (0, "")
    assert re.search(r"^CPUs\n  cortex-m0 ", ended.out, re.MULTILINE)
    ended = folder.run("doctor", "-f", "other.yml")
    assert ended.status == 2 and ended.err.startswith("other.yml: no such project file")
    assert folder.run("doctor", "--target", "m4").status == 2


def test_packages_that_overwrite_each_other(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pyserial", "pyserial-labgrid"):
        info = tmp_path / "more" / f"{package.replace('-', '_')}-3.5.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 3.5\n")
    monkeypatch.syspath_prepend(tmp_path / "more")
    (folder.root / "mlfbuild.yml").unlink()
    shown = folder.run("doctor").out
    assert "\n\nPython packages in conflict\n  pyserial and pyserial-labgrid overwrite each other: pip " in shown
