"""Devices behind GDB servers: QEMU's stub is the server, without semihosting."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlfbuild.core import ProcessFailedError, TimedOutError, UsageError
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import Runner, describe_fault, open_runner, read_firmware
from mlfbuild.runners.gdb import Gdb
from mlfbuild.targets import BOARDS
from support.device_firmware import SOURCE, device_firmware, symbols
from support.device_server import free_port, qemu
from support.errors import raises
from support.processes import wait_for

pytestmark = pytest.mark.usefixtures("debugger")
UARTS = {"mps2-an505": 0x40200000, "mps3-an547": 0x49303000}
PLACE = "mlfbuild.yml: targets.desk.runner"


@pytest.fixture(scope="module")
def board() -> Iterator[Runner]:
    with open_runner(RunnerKeys(qemu="mps2-an385"), PLACE) as runner:
        yield runner


@pytest.fixture
def runner(image: Path, board: Runner) -> Runner:
    board.load(image)
    return board


def test_firmware_is_loaded_with_progress_and_stands_before_its_first_instruction(image: Path, board: Runner) -> None:
    reported: list[tuple[str, int, int]] = []
    board.reset()
    board.write(0, bytes(64))  # an image that is there already is not written again
    board.load(image, lambda *step: reported.append(step))
    total = reported[0][2]
    assert reported[0] == ("loading", 0, total)
    assert reported[-1] == ("loading", total, total)
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
    with raises(TimedOutError, "device-timed-out"):
        runner.go([at["stop_here"]], 0.2)
    before = runner.read(at["rounds"], 4)
    assert before != bytes(4)
    assert runner.read(at["rounds"], 4) == before  # it is halted
    runner.set_registers({"pc": at["stop_here"], "lr": at["stop_here"] | 1})
    assert runner.go([at["stop_here"]], 10) == at["stop_here"]


def test_functions_of_halted_firmware_are_called(image: Path, runner: Gdb) -> None:
    at = symbols(image)
    runner.go([at["stop_here"]], 10)
    before = runner.registers()
    assert runner.call(at["weighted"], [1, 2, 3, 4, 5, 6], 10) == 654321
    assert runner.call(at["weighted"], [-1, 0, 0, 0, 0, 0], 10) == 0xFFFFFFFF
    runner.write(at["buffer"], bytes(range(256)))
    assert runner.call(at["sum"] | 1, [at["buffer"], 256], 10) == sum(range(256))
    assert runner.registers() == before
    assert runner.go([at["stop_here"]], 10) == at["stop_here"]
    assert runner.read(at["rounds"], 4) == (1).to_bytes(4, "little")


def test_a_call_returns_to_an_address_that_the_function_itself_passes(image: Path, runner: Gdb) -> None:
    at = symbols(image)
    runner.go([at["sum"]], 10)
    runner.write(at["buffer"], b"\7" * 9)
    assert runner.call(at["sum"], [at["buffer"], 9], 10) == 63


def test_a_call_that_hangs_or_faults_is_an_error(image: Path, runner: Gdb) -> None:
    at = symbols(image)
    runner.go([at["stop_here"]], 10)
    with raises(TimedOutError, "device-timed-out"):
        runner.call(at["for_ever"], [], 0.2)
    runner.reset()
    runner.go([at["stop_here"]], 10)
    with raises(ProcessFailedError, "call-faulted"):
        runner.call(at["write_to"], [0xE0100000], 10)
    assert runner.registers()["pc"] == at["HardFault_Handler"]
    text = describe_fault(runner, read_firmware(image))
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "/* the fault */" in text)
    assert f"in write_to (app.c:{line})" in text


def test_a_stop_at_another_address_is_an_error(image: Path, runner: Gdb) -> None:
    """Such as at a bkpt instruction, which QEMU handles as a fault."""
    at = symbols(image)
    runner.go([at["stop_here"]], 10)
    number = runner._ask(f"-break-insert -h *{at['sum']}")["bkpt"]["number"]
    with pytest.raises(ProcessFailedError) as stop:
        runner.go([at["stop_here"]], 10)
    runner._ask(f"-break-delete {number}")
    assert stop.value.code == "device-stopped"
    assert f"{at['sum']:#010x}" in stop.value.reason


def test_the_console_is_what_the_serial_port_of_the_board_prints(image: Path, runner: Runner) -> None:
    at = symbols(image)
    runner.console()
    runner.go([at["stop_here"]], 10)
    assert runner.console() == "hello\n"
    assert runner.console() == ""
    runner.write(at["command"], b"\3")
    runner.go([at["stop_here"]], 10)
    assert runner.console() == "again\n"


@pytest.mark.sweep
def test_the_console_may_be_a_serial_port_beside_the_server(image: Path) -> None:
    at = symbols(image)
    port, console = free_port(), free_port()
    start = [*qemu(port)[:-1], f"tcp:127.0.0.1:{console},server=on,wait=off"]
    keys = RunnerKeys(gdb=f"localhost:{port}", start=tuple(start), console=f"socket://127.0.0.1:{console}")
    with open_runner(keys, PLACE) as runner:
        runner.load(image)
        runner.go([at["stop_here"]], 120)
        received: list[str] = []
        wait_for(lambda: received.append(runner.console()) or "".join(received) == "hello\n")


@pytest.mark.sweep
@pytest.mark.parametrize("board", sorted(name for name in BOARDS if BOARDS[name].cpu.startswith("cortex-m")))
def test_every_board_is_driven(board: str, tmp_path: Path) -> None:
    row = BOARDS[board]
    vectors = 0 if board == "mps3-an547" else row.flash.origin
    image = device_firmware(
        tmp_path, f"-DUART={UARTS.get(board, 0x40004000):#x}", cpu=row.cpu, flash=vectors, ram=row.ram.origin
    )
    at = symbols(image)
    with open_runner(RunnerKeys(qemu=board), PLACE) as runner:
        runner.load(image)
        assert runner.registers()["pc"] == at["Reset_Handler"]
        assert runner.go([at["stop_here"]], 10) == at["stop_here"]
        assert isinstance(runner, Gdb)
        assert runner.call(at["weighted"], [1, 2, 3, 4, 5, 6], 10) == 654321


@pytest.mark.sweep
@pytest.mark.parametrize("board", sorted(name for name in BOARDS if not BOARDS[name].cpu.startswith("cortex-m")))
def test_functions_are_only_called_on_m_profile_cores(board: str, tool: Callable[[str], str]) -> None:
    tool(BOARDS[board].emulator)
    with open_runner(RunnerKeys(qemu=board), PLACE) as runner:
        assert isinstance(runner, Gdb)
        assert {"sp", "pc"} <= runner.registers().keys()
        with pytest.raises(UsageError) as refusal:
            runner.call(0x1000, [], 1)
    assert refusal.value.code == "runner-cannot"
