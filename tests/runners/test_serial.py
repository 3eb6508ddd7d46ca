"""Firmware with mlf_serial.c on the UART of emulated boards, behind a line that loses and damages bytes."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from mlfbuild.core import (
    ConflictError,
    InputFileError,
    ProcessFailedError,
    StorageError,
    TimedOutError,
    ToolNotFoundError,
    UsageError,
)
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import open_runner
from mlfbuild.runners.serial import Serial
from mlfbuild.runners.serial_port import SerialConsole, SerialPort
from support.device_firmware import device_firmware, symbols
from support.errors import raises
from support.examples import first_on_push
from support.processes import wait_for
from support.serial_line import Line, Noise, board_on, flash_command, line, serial_firmware

PLACE = "mlfbuild.yml: targets.desk.runner"
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def image(tool: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    tool("arm-none-eabi-gcc", "qemu-system-arm")
    return serial_firmware(tmp_path_factory.mktemp("serial"))


@pytest.fixture(scope="module")
def other(image: Path) -> Path:
    return serial_firmware(image.parent / "other", text="const char more[] __attribute__((used)) = {1, 2};")


@pytest.fixture(scope="module")
def wire(image: Path) -> Iterator[Line]:
    """Return the line of a board that stays on."""
    flash = image.parent / "flash.elf"
    shutil.copy(image, flash)
    with line() as one, board_on(one, flash):
        yield one


@pytest.fixture
def device(wire: Line, image: Path) -> Iterator[Serial]:
    """Return the board after a reset, stopped for the first time."""
    wire.noise = Noise()
    with opened(wire) as runner:
        runner.load(image)
        assert runner.go(stops(image), 5)
        yield runner
        wire.noise = Noise()


def opened(one: Line, **keys: object) -> Serial:
    return open_runner(RunnerKeys(serial=one.url, **keys), PLACE)  # type: ignore[return-value,arg-type]


def stops(image: Path) -> list[int]:
    return [symbols(image)["mlf_serial_serve"]]


def sum_of(data: bytes) -> bytes:
    total = 0
    for byte in data:
        total = (total * 31 + byte) & 0xFFFF_FFFF
    return total.to_bytes(4, "little")


def run(runner: Serial, image: Path, data: bytes, timeout: float = 120) -> bytes:
    """Have the firmware compute the sum of ``data``."""
    at = symbols(image)
    runner.write(at["input"], data)
    assert runner.go(stops(image), timeout) == stops(image)[0]
    return runner.read(at["total"], 4)


def number(runner: Serial, image: Path, name: str) -> int:
    return int.from_bytes(runner.read(symbols(image)[name], 4), "little")


def test_firmware_computes_for_its_host(device: Serial, image: Path) -> None:
    at = symbols(image)
    assert device.console().endswith("started\n")
    assert [run(device, image, bytes([one]) * 1000) for one in (1, 0, 255)] == [
        sum_of(bytes([one]) * 1000) for one in (1, 0, 255)
    ]
    device.write(at["command"], bytes([3, 0, 0, 0]))
    data = random.Random(1).randbytes(1000)
    assert run(device, image, data) == sum_of(data)
    assert device.console() == "ran\n"
    assert device.read(at["input"] + 1, 997) == data[1:998]
    assert device.read(at["label"], 19) == b"a constant in flash"
    assert number(device, image, "runs") == 4
    device.reset()
    assert (number(device, image, "runs"), number(device, image, "starts")) == (0, 42)


def test_progress_is_told_while_the_image_is_compared(wire: Line, image: Path) -> None:
    reported: list[tuple[str, int, int]] = []
    with opened(wire) as runner:
        runner.load(image, lambda *step: reported.append(step))
    assert reported[-1] == ("comparing", reported[-1][2], reported[-1][2])
    assert reported[-1][2] > 1000


BOARDS = {
    "mps2-an385": {},
    "mps2-an500": {"cpu": "cortex-m7", "ram": 0x20000000},
    "mps2-an505": {"cpu": "cortex-m33", "flash": 0x10000000, "ram": 0x38000000},
    "mps3-an547": {"cpu": "cortex-m55", "ram": 0x31000000},
}


@pytest.mark.parametrize("board", first_on_push(BOARDS))
def test_a_terminal_serves_every_board(tmp_path: Path, board: str) -> None:
    image = serial_firmware(tmp_path, board=board, **BOARDS[board])
    with line(tty=True) as one, board_on(one, image, board), opened(one) as runner:
        runner.load(image)
        assert runner.go(stops(image), 5)
        data = random.Random(2).randbytes(1000)
        assert run(runner, image, data) == sum_of(data)


def test_the_functions_of_the_example_serve_an_stm32(tmp_path: Path) -> None:
    uart = (Path(__file__).parents[2] / "examples/boards/nucleo-f446re/uart.c").read_text()
    image = serial_firmware(tmp_path, "-Werror", "-Wconversion", cpu="cortex-m4", flash=0x08000000, uart=uart)
    with line() as one, board_on(one, image, "netduinoplus2", 1), opened(one) as runner:
        runner.load(image)
        assert runner.go(stops(image), 5)
        data = random.Random(4).randbytes(1000)
        assert run(runner, image, data) == sum_of(data)


# Bad lines ------------------------------------------------------------------------------------------------------------

RATES = [(1, 3e-3, 6), (2, 1e-3, 50), (3, 5e-3, 40), (4, 1e-2, 20)]


@pytest.mark.parametrize(("seed", "rate", "count"), first_on_push(RATES))
def test_each_run_happens_exactly_once_on_a_bad_line(
    wire: Line, device: Serial, image: Path, seed: int, rate: float, count: int
) -> None:
    choice = random.Random(seed)
    wire.noise = Noise(lost=rate, damaged=rate, doubled=rate, delayed=rate, random=choice)
    for _ in range(count):
        data = choice.randbytes(1000)
        assert run(device, image, data) == sum_of(data)
    assert number(device, image, "runs") == count


def test_work_goes_on_after_the_port_has_been_away(wire: Line, device: Serial, image: Path) -> None:
    for seed in range(5):
        data = random.Random(seed).randbytes(1000)
        wire.hang_up_after = 250 * seed + 1  # in the middle of a request, an answer, a report of a stop
        assert run(device, image, data) == sum_of(data)
    assert number(device, image, "runs") == 5
    assert number(device, image, "starts") == 42


def test_another_host_goes_on_where_the_first_one_ended(wire: Line, image: Path) -> None:
    data = random.Random(3).randbytes(1000)
    with opened(wire) as killed:
        killed.load(image)
        assert killed.go(stops(image), 5)
        killed.write(symbols(image)["input"], data)
        killed._hello = None  # it cannot reset the device any more
    with opened(wire) as runner:
        assert runner.go(stops(image), 5)  # the stop that the first one has seen
        assert runner.go(stops(image), 5)
        assert runner.read(symbols(image)["total"], 4) == sum_of(data)
        assert number(runner, image, "runs") == 1


def test_a_port_that_does_not_come_back_is_named(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlfbuild.runners.link._SECONDS_TO_RETURN", 0.3)
    with line() as one, board_on(one, image), opened(one) as runner:
        runner.load(image)
        one.close()
        with raises(ProcessFailedError, "connection-lost", PLACE):
            runner.read(symbols(image)["input"], 4)


def test_firmware_that_falls_silent_is_named(wire: Line, image: Path) -> None:
    with opened(wire, timeout=SECOND // 2) as runner:
        runner.load(image)
        wire.noise = Noise(lost=1)
        with raises(ProcessFailedError, "connection-lost", PLACE):
            runner.read(symbols(image)["input"], 4)
        wire.noise = Noise()
        assert runner.read(symbols(image)["label"], 10) == b"a constant"


def test_a_device_that_does_not_answer_is_named() -> None:
    with line() as one, opened(one, timeout=SECOND // 2) as runner, raises(TimedOutError, "serial-silent", PLACE):
        runner.go([0], 60)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [(b"Hello from the application\r\n", "Hello from"), (bytes(range(100, 256)) * 40, "defgh"), (b"\0\xff\0\1\2", "")],
    ids=["text", "noise", "damaged frames"],
)
def test_a_port_that_answers_garbage_is_named(sent: bytes, shown: str) -> None:
    with line() as one, opened(one, timeout=SECOND // 2) as runner:
        wait_for(lambda: one._host)
        one.send_to_host(sent)
        with raises(ProcessFailedError, "serial-garbage", PLACE) as error:
            runner.go([0], 60)
    assert shown in error.value.reason


# Firmware -------------------------------------------------------------------------------------------------------------


def test_a_reset_in_the_middle_is_noticed(device: Serial, image: Path) -> None:
    at = symbols(image)
    device.write(at["command"], bytes([1, 0, 0, 0]))
    with raises(ProcessFailedError, "device-reset", PLACE):
        device.go(stops(image), 10)
    assert device.go(stops(image), 5)
    device.write(at["command"], bytes([1, 0, 0, 0]))
    assert device.go([*stops(image), at["Reset_Handler"]], 10) == at["Reset_Handler"]


def test_a_late_stop_is_not_lost(device: Serial, image: Path) -> None:
    device.write(symbols(image)["command"], bytes([2, 0, 0, 0]))
    with raises(TimedOutError, "device-timed-out", PLACE):
        device.go(stops(image), 0.05)
    device.go(stops(image), 60)
    assert number(device, image, "runs") == 1


def test_another_image_is_refused_before_it_runs(wire: Line, other: Path) -> None:
    with opened(wire) as runner, raises(ProcessFailedError, "device-has-other-image", PLACE):
        runner.load(other)


def test_only_another_image_is_flashed(image: Path, other: Path, tmp_path: Path) -> None:
    flash = tmp_path / "flash.elf"
    shutil.copy(image, flash)
    with line() as one, board_on(one, flash):
        with opened(one) as runner:
            runner.load(image)
        for wanted in (image, other, other, image):
            with opened(one, flash=flash_command(flash)) as runner:
                runner.load(wanted)
                assert runner.go(stops(wanted), 5)
    assert flash.with_suffix(".log").read_text().split() == [str(other), str(image)]


def test_a_flash_command_that_does_not_flash_is_named(wire: Line, other: Path) -> None:
    command = ("true", "{elf}")
    with raises(ProcessFailedError, "device-has-other-image") as error, opened(wire, flash=command) as runner:
        runner.load(other)
    assert "flash" in error.value.hint


def test_an_image_without_the_monitor_is_refused(wire: Line, tmp_path: Path) -> None:
    image = device_firmware(tmp_path)
    with opened(wire) as runner, raises(InputFileError, "image-without-serial", str(image)):
        runner.load(image)


def test_what_the_firmware_cannot_do_is_refused(device: Serial, image: Path) -> None:
    with raises(UsageError, "runner-cannot", PLACE):
        device.registers()
    with raises(UsageError, "runner-cannot", PLACE):
        device.set_registers({"pc": 0})
    with raises(ProcessFailedError, "serial-refused", PLACE):
        device.write(symbols(image)["label"], b"x")
    device._hello = device._hello and type(device._hello)(**{**vars(device._hello), "ram_begin": 0})
    with raises(ProcessFailedError, "serial-refused", PLACE):  # by the firmware itself
        device.write(symbols(image)["label"], b"x")
    assert device.read(symbols(image)["label"], 1) == b"a"


def test_firmware_that_cannot_reset_its_device_is_named(tmp_path: Path) -> None:
    image = serial_firmware(tmp_path, "-U__ARM_ARCH_PROFILE")
    with line() as one, board_on(one, image), opened(one) as runner, raises(UsageError, "runner-cannot", PLACE):
        runner.load(image)


def test_a_reset_that_does_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlfbuild.runners.serial._BOOT_SECONDS", 0.2)
    image = serial_firmware(tmp_path, "-DMLF_SERIAL_RESET=((void)0)")
    with line() as one, board_on(one, image), opened(one) as runner:
        with raises(ProcessFailedError, "device-not-reset", PLACE):
            runner.load(image)
        assert runner.read(symbols(image)["label"], 10) == b"a constant"


def test_an_interrupted_host_leaves_the_device_reset(wire: Line, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes([1]) * 1000
    with opened(wire) as runner:
        runner.load(image)
        assert runner.go(stops(image), 5)
        assert run(runner, image, data) == sum_of(data)
        with monkeypatch.context() as patch:
            patch.setattr(SerialPort, "read", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                runner.read(symbols(image)["input"], 4)
    with opened(wire) as runner:
        assert runner.go(stops(image), 5)
        assert number(runner, image, "runs") == 0


def test_firmware_of_another_version_is_named(tmp_path: Path) -> None:
    image = serial_firmware(tmp_path, "-DMLF_SERIAL_VERSION=2")
    with (
        line() as one,
        board_on(one, image),
        opened(one) as runner,
        raises(ProcessFailedError, "serial-version", PLACE),
    ):
        runner.load(image)


# Ports ----------------------------------------------------------------------------------------------------------------


def test_two_users_of_a_device_are_kept_apart(wire: Line) -> None:
    with opened(wire), raises(ConflictError, "device-in-use", PLACE), opened(wire):
        pass


def test_a_terminal_in_use_by_another_program_is_refused() -> None:
    with line(tty=True) as one:
        first = SerialPort(one.url, 115200, PLACE)
        with raises(ConflictError, "device-in-use", PLACE):
            SerialPort(one.url, 115200, PLACE)
        first.close()


@pytest.mark.parametrize("url", ["/dev/ttyNOTHERE", "socket://127.0.0.1:1"])
def test_a_missing_port_is_named(url: str) -> None:
    with raises(ToolNotFoundError, "serial-port-not-found", PLACE):
        SerialPort(url, 115200, PLACE)


def test_a_port_without_permission_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serial.serial_for_url", Mock(side_effect=PermissionError(13, "Permission denied")))
    with raises(StorageError, "serial-port-forbidden", PLACE):
        SerialPort("/dev/ttyS0", 115200, PLACE)


def test_ports_without_a_descriptor_are_read() -> None:
    port = SerialPort("loop://", 115200, PLACE)
    port.write(b"0123456789")
    data = b""
    while len(data) < 10:
        data += port.read()
    assert (data, port.read()) == (b"0123456789", b"")
    port.close()


def test_an_address_that_is_no_port_is_refused() -> None:
    with raises(ProcessFailedError, "serial-port-refused", PLACE):
        SerialPort("nothing://x", 115200, PLACE)


def test_a_console_collects_what_a_device_prints() -> None:
    with line(tty=True) as one:
        console = SerialConsole(one.url, 115200, PLACE)
        one.send_to_host("grüße\n".encode()[:3])
        one.send_to_host("grüße\n".encode()[3:])
        text = ""
        while "\n" not in text:
            text += console.read()
        assert text == "grüße\n"
        console.close()
        console.close()
