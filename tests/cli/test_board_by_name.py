"""A board that people own, named in the project file: what runs on it, on QEMU in its place, and by which command."""

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import PROJECT, Folder
from support.labgrid_farm import free_port


@pytest.fixture(autouse=True)
def _tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm", "gdb-multiarch")


def use(folder: Folder, target: str) -> None:
    folder.write("mlfbuild.yml", PROJECT.replace("pc: {cpu: host}", f"desk: {{{target}}}"))


def test_test_firmware_runs_in_the_memories_of_the_board(folder: Folder) -> None:
    """QEMU's machine has the flash and RAM of the STM32F40x at their addresses."""
    port = free_port()
    machine = f'[qemu-system-arm, -M, netduinoplus2, -S, -gdb, "tcp:127.0.0.1:{port}", -display, none]'
    use(folder, f'board: disco-f407vg, runner: {{server: qemu, gdb: "localhost:{port}", start: {machine}}}')
    (report,) = folder.run("verify", "--format", "json").json
    assert (report["board"], report["passed"], report["cases"]) == (f"gdb localhost:{port}", True, 3)


@pytest.mark.parametrize("target", ["board: adafruit-feather-m0", "mcu: stm32f446re"])
def test_emulated_board_with_the_core_stands_in_for_a_board_without_debugger(folder: Folder, target: str) -> None:
    use(folder, target)
    (report,) = folder.run("verify", "--format", "json").json
    assert report["passed"] and report["board"].startswith("mps2-an38")


def test_emulated_board_is_used_on_request(folder: Folder) -> None:
    use(folder, "board: nucleo-f446re")
    (report,) = folder.run("verify", "--emulator", "--format", "json").json
    assert (report["board"], report["passed"]) == ("mps2-an386", True)


def test_missing_server_is_reported_once_and_leads_to_the_emulator(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(folder, "board: nucleo-f446re")
    text = (folder.root / "mlfbuild.yml").read_text()
    again = "  gamma: {source: models/alpha.tflite, vectors: alpha.npz}\n  beta:"
    folder.write("mlfbuild.yml", text.replace("  beta:", again))
    monkeypatch.setenv("MLFBUILD_OPENOCD", "/nowhere/openocd")
    ended = folder.run("verify")
    assert (ended.status, ended.err.count("/nowhere/openocd")) == (3, 1)
    assert "--emulator" in ended.err


def test_command_of_the_server_is_what_runs(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    programs = tmp_path_factory.mktemp("bin")
    log = programs / "log"
    for name in ("openocd", "probe-rs"):
        write_recorder(programs / name, log)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    commands = {
        "board: nucleo-f446re, runner: {probe: A1, timeout: 1 s}": (
            "openocd -f interface/stlink.cfg -f target/stm32f4x.cfg -c adapter serial A1"
        ),
        "mcu: stm32f407vgt6, runner: {server: probe-rs, timeout: 1 s}": "probe-rs gdb --chip STM32F407VG",
    }
    for target, command in commands.items():
        use(folder, target)
        assert folder.run("verify").status != 0
        assert " ".join(json.loads(log.read_text())) == command


def write_recorder(program: Path, log: Path) -> None:
    """Write a program that records its command line and ends."""
    program.write_text(
        "#!/usr/bin/env python3\nimport json, pathlib, sys\n"
        f"pathlib.Path({str(log)!r}).write_text(json.dumps([{program.name!r}, *sys.argv[1:]]))\nsys.exit(1)\n"
    )
    program.chmod(0o755)


def test_board_that_is_not_emulated_is_refused_where_qemu_runs(folder: Folder) -> None:
    use(folder, "cpu: cortex-m4, board: mps2-an386")
    assert folder.run("compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "alpha.tar", "-q").status == 0
    arguments = ("run", "alpha.tar", "--board", "nucleo-f446re", "--inputs", "alpha.npz", "-o", "out.npz")
    assert folder.refused(*arguments) == (2, "board-not-emulated", "nucleo-f446re")


@pytest.mark.parametrize(
    ("target", "mcu", "flash"),
    [
        ("mcu: part.toml", None, 256 << 10),
        ("board: adafruit-feather-m0", None, 256 << 10),
        ("board: nrf52840dk", "nrf52840", None),
    ],
)
def test_bundle_has_the_memories_that_another_machine_cannot_know(
    folder: Folder, target: str, mcu: str | None, flash: int | None
) -> None:
    folder.write(
        "part.toml",
        """title = "Our part"
cpu = "cortex-m4"
clock = "64 MHz"
memories = {flash = {size = "256 KiB", waits = 2}, sram = {size = "64 KiB"}}
[memory]
flash = {origin = 0, size = "256 KiB"}
ram = {origin = 0x20000000, size = "64 KiB"}
source = "data sheet"
""",
    )
    use(folder, target)
    assert folder.run("bundle", "-o", "b.mlfbundle", "-q").status == 0
    with tarfile.open(folder.root / "b.mlfbundle") as bundle:
        manifest = bundle.extractfile("./bundle.json")
        assert manifest is not None
        found = json.load(manifest)["target"]
    assert found["mcu"] == mcu
    assert (found["memory"]["flash"]["size"] if found["memory"] else None) == flash
