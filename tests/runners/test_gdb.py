"""Devices behind GDB servers: QEMU's stub is the server, without semihosting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlfbuild.core import TimedOutError
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import Runner, open_runner
from support.device_firmware import device_firmware, symbols

PLACE = "mlfbuild.yml: targets.desk.runner"


@pytest.fixture(scope="module")
def image(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("arm-none-eabi-gcc", "qemu-system-arm", "gdb-multiarch"):
        tool(name)
    # GDB quotes paths in its own way, and so does its machine interface.
    return device_firmware(tmp_path_factory.mktemp('a "quoted" path, \\ and spaces'))


@pytest.fixture(scope="module")
def board() -> Iterator[Runner]:
    with open_runner(RunnerKeys(qemu="mps2-an385"), PLACE) as runner:
        yield runner


@pytest.fixture
def runner(image: Path, board: Runner) -> Runner:
    board.load(image)
    return board


def test_firmware_is_loaded_with_progress_and_stands_before_its_first_instruction(image: Path, board: Runner) -> None:
    told: list[tuple[str, int, int]] = []
    board.load(image, lambda *step: told.append(step))
    total = told[0][2]
    assert told[0] == ("loading", 0, total)
    assert told[-1] == ("loading", total, total)
    registers = board.registers()
    assert list(registers) == [*(f"r{number}" for number in range(13)), "sp", "lr", "pc", "xpsr"]
    assert registers["pc"] == symbols(image)["Reset_Handler"]
    assert registers["sp"] == symbols(image)["__stack_top"] == int.from_bytes(board.read(0, 4), "little")


def test_firmware_runs_from_stop_to_stop(image: Path, runner: Runner) -> None:
    at = symbols(image)
    assert runner.go([at["stop_here"]], 10) == at["stop_here"]
    assert runner.read(at["starts"], 4) == (42).to_bytes(4, "little")
    stops = [at["stop_here"], at["weighted"], at["sum"]]
    assert [runner.go(stops, 10) for _ in range(4)] == [at["weighted"], at["sum"], at["stop_here"], at["weighted"]]
    assert runner.registers()["r3"] == 4
    runner.reset()
    assert runner.registers()["pc"] == at["Reset_Handler"]
    assert runner.go([at["Reset_Handler"], at["stop_here"]], 10) == at["stop_here"]


def test_memory_and_registers_keep_what_is_written(runner: Runner) -> None:
    data = bytes(range(256)) * 400
    runner.write(0x20010000, data)
    assert runner.read(0x20010000, len(data)) == data
    assert runner.read(0x20010001, 7) == bytes(range(1, 8))
    assert runner.read(0x20010000, 0) == b""
    runner.set_registers({"r3": 0xFFFFFFFF, "sp": 0x20001000, "xpsr": 0x61000000})
    changed = runner.registers()
    assert (changed["r3"], changed["sp"], changed["xpsr"]) == (0xFFFFFFFF, 0x20001000, 0x61000000)


def test_firmware_that_hangs_is_halted_and_can_run_on(image: Path, runner: Runner) -> None:
    at = symbols(image)
    runner.go([at["stop_here"]], 10)
    runner.write(at["command"], b"\1")
    with pytest.raises(TimedOutError) as hang:
        runner.go([at["stop_here"]], 0.2)
    assert hang.value.code == "device-timed-out"
    before = runner.read(at["rounds"], 4)
    assert before != bytes(4)
    assert runner.read(at["rounds"], 4) == before  # it is halted
    runner.set_registers({"pc": at["stop_here"], "lr": at["stop_here"] | 1})
    assert runner.go([at["stop_here"]], 10) == at["stop_here"]


def test_the_console_is_what_the_serial_port_of_the_board_prints(image: Path, runner: Runner) -> None:
    at = symbols(image)
    runner.console()
    runner.go([at["stop_here"]], 10)
    assert runner.console() == "hello\n"
    assert runner.console() == ""
    runner.write(at["command"], b"\4")
    runner.go([at["stop_here"]], 10)
    assert runner.console() == "again\n"
