"""Verification over a serial line that damages bytes: firmware with mlf_serial.c on an emulated board."""

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mlfbuild
from mlfbuild.core import InputFileError, UsageError
from mlfbuild.jobs import TargetJob
from mlfbuild.project import RunnerKeys
from mlfbuild.targets import BOARDS, DeviceMemoryKeys, RegionKeys, cpu_called, toolchain_file
from mlfbuild.verify.device import Connection, connected, device_of
from mlfbuild.verify.module import VerifyReport, verify_module
from support import warm
from support.errors import raises
from support.examples import first_on_push
from support.hand_written_library import write_library
from support.serial_line import Line, Noise, board_on, flash_command, line, serial_firmware, uart_source

A = np.array([[1, 2, 3, 4], [-5, 6, 100, 8], [9, -10, 11, 12]], np.int8)
B = np.array([[1, 1, 1, 1], [2, 2, 2, 2], [-100, 3, 3, 3]], np.int8)
SUM = A + B
MEAN = (SUM[:, [0, 3]] / 2).astype(np.float32)
PLACE = "mlfbuild.yml: targets.desk.runner"
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


def target(keys: RunnerKeys) -> TargetJob:
    cpu = cpu_called("cortex-m3")
    return TargetJob("desk", cpu, None, toolchain_file(cpu), Path(), (), runner=keys)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    folder = tmp_path_factory.mktemp("device")
    (folder / "uart.c").write_text(uart_source("mps2-an385"))
    shutil.copy(serial_firmware(folder / "first"), folder / "flash.elf")
    return folder


@pytest.fixture(scope="module")
def wire(workdir: Path) -> Iterator[Line]:
    with line() as one, board_on(one, workdir / "flash.elf"):
        yield one


@pytest.fixture(scope="module")
def desk(workdir: Path, wire: Line) -> Iterator[Connection]:
    board = BOARDS["mps2-an385"]
    memory = DeviceMemoryKeys(
        ram=RegionKeys(origin=board.ram.origin, size=1 << 18), flash=RegionKeys(origin=board.flash.origin, size=1 << 20)
    )
    flash = flash_command(workdir / "flash.elf")
    keys = RunnerKeys(serial=wire.url, uart=workdir / "uart.c", flash=flash, memory=memory)
    with connected(device_of(target(keys), PLACE)) as connection:
        yield connection


def verify(workdir: Path, connection: Connection, wrong: str = "", timeout: float = 120) -> VerifyReport:
    module = write_library(workdir / "tree", wrong)
    path = workdir / "vectors.npz"
    np.savez(path, in0=A, in1=B, out0=SUM, out1=MEAN)
    toolchain = toolchain_file(connection.device.cpu)
    folder = workdir / "verify"
    return verify_module(
        workdir / "tree", module, None, path, folder, toolchain=toolchain, connection=connection, timeout=timeout
    )


def test_correct_model_passes_on_a_bad_line(workdir: Path, wire: Line, desk: Connection) -> None:
    wire.noise = Noise(lost=1e-3, damaged=1e-3, doubled=1e-3, delayed=1e-3)
    report = verify(workdir, desk)
    wire.noise = Noise()
    assert report.passed, report.text()
    text = rf"net: 3 cases right on serial {wire.url}, arena 48 of 64 bytes used, stack \d+ bytes"
    assert re.fullmatch(text, report.text())


WRONG = {
    "it executes an undefined instruction": ('if (a[0] == 9) __asm__ volatile(".inst.n 0xde00");',
     r"net: case 2: the firmware faulted\nHardFault: undefined instruction\n  pc 0x\w{8} in \w+ .*\n.*\n.*"),
    "an output is off by one": ("if (a[0] < 0) sum[2]++;",
     r"net: case 1, output 0 \(sum\), element 2: expected 102, got 103 \(1 of 4 elements differ\)"),
    "its stack overflows": (
        "if (a[0] == 9) { volatile char deep[65536]; for (int i = 65535; i >= 0; i--) deep[i] = 1; }",
        r"net: case 2: the firmware faulted\nHardFault: access to protected memory at 0x\w{8}(.*\n?){3}",
    ),
    "it resets the device": ("if (a[0] == 9) { *(volatile unsigned *)0xE000ED0C = 0x05FA0004; for (;;) { } }",
     r"net: case 2: the device was reset, for example by a watchdog or a dip of its supply"),
    "it hangs": ("while (a[0] == -5 && runs) { }", r"net: case 1: no result after 2 s"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "found"), first_on_push(WRONG.values()), ids=WRONG)
def test_faults_are_reported(workdir: Path, desk: Connection, wrong: str, found: str) -> None:
    report = verify(workdir, desk, wrong, timeout=2)
    assert re.fullmatch(found, report.text()), report.text()


@contextlib.contextmanager
def digits(workdir: Path, folder: Path) -> Iterator[Line]:
    """Return the line of a board that is the device of the example's project in ``folder``."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    shutil.copy(workdir / "uart.c", folder)
    image = Path(shutil.copy(workdir / "first/app.elf", folder / "flash.elf"))
    with line() as one, board_on(one, image):
        (folder / "mlfbuild.yml").write_text(
            f"""\
mlfbuild: 1
targets:
  desk:
    cpu: cortex-m3
    runner:
      serial: "{one.url}"
      uart: uart.c
      flash: {json.dumps(flash_command(image))}
      memory: {{flash: {{origin: 0, size: 1 MiB}}, ram: {{origin: 0x20000000, size: 256 KiB}}}}
models:
  digits: {{source: models/digits.tflite, vectors: tests/digits.npz}}
"""
        )
        yield one


@pytest.mark.sweep
def test_all_digits_are_right_on_a_bad_line(workdir: Path, tmp_path: Path) -> None:
    with digits(workdir, tmp_path) as one:
        one.noise = Noise(lost=1e-3, damaged=1e-3, doubled=1e-3, delayed=1e-4)
        done = warm.run("mlfbuild", "verify", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "digits: 24 cases right on serial" in done.stdout, done.stdout


@pytest.mark.sweep
def test_host_drives_a_model_call_after_call(workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with digits(workdir, tmp_path) as one:
        archive = tmp_path / "digits.tar"
        words = ("compile", "models/digits.tflite", "--cpu", "cortex-m3", "-o", archive)
        warm.run("mlfbuild", *words, cwd=tmp_path, check=True)
        vectors = np.load(tmp_path / "tests/digits.npz")
        one.noise = Noise(lost=1e-3, damaged=1e-3, doubled=1e-3)
        with mlfbuild.load(archive, target="desk", file=tmp_path / "mlfbuild.yml") as model:
            for image, scores in zip(vectors["in0"][:8], vectors["out0"][:8], strict=True):
                (found,) = model.run({model.inputs[0].name: image}).values()
                np.testing.assert_array_equal(found, scores)


def test_test_firmware_without_the_functions_of_the_port_is_refused() -> None:
    with raises(UsageError, "serial-without-uart", PLACE):
        device_of(target(RunnerKeys(serial="/dev/ttyACM0")), PLACE)


def test_a_missing_file_with_these_functions_is_named(tmp_path: Path) -> None:
    with raises(InputFileError, "uart-missing", f"{PLACE}.uart"):
        device_of(target(RunnerKeys(serial="/dev/ttyACM0", uart=tmp_path / "uart.c")), PLACE)


def test_images_are_kept_apart_by_these_functions(desk: Connection, tmp_path: Path) -> None:
    uart = tmp_path / "uart.c"
    device = replace(desk.device, keys=replace(desk.device.keys, uart=uart))
    layouts = set()
    for name, text in [("uart.c", "1"), ("uart.c", "2"), ("pins.h", "1"), ("pins.h", "2")]:
        (tmp_path / name).write_text(text)
        layouts.add(device.layout)
    assert len(layouts) == 4
