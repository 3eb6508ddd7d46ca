"""The table of boards that people own: every row agrees with the other tables, and completes a target."""

import re
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.core.errors import UsageError
from mlfbuild.project import RunnerKeys, TargetSpec, load_project
from mlfbuild.targets import (
    BOARDS,
    CPUS,
    GDB_SERVERS,
    MCUS,
    all_boards,
    board_called,
    close_boards,
    development_board,
    keys_of_device,
    part_called,
)
from support.errors import raises

OWNED = {
    "nucleo-f030r8", "nucleo-f103rb", "nucleo-f303re", "nucleo-f446re", "nucleo-f767zi", "nucleo-g071rb",
    "nucleo-g474re", "nucleo-h563zi", "nucleo-h743zi", "nucleo-l073rz", "nucleo-l476rg", "nucleo-l4r5zi",
    "nucleo-u575zi-q", "nucleo-wb55rg", "disco-f407vg", "disco-f746ng", "disco-b-u585i-iot02a", "pico", "pico2",
    "nrf52dk", "nrf52840dk", "nrf5340dk", "nrf54l15dk", "nano-33-ble", "nano-rp2040-connect", "portenta-h7", "giga-r1",
    "adafruit-feather-m0", "adafruit-feather-m4", "teensy-4.0", "teensy-4.1", "mimxrt1060-evk", "xg24-dk2601b",
    "ek-ra6m5", "ek-ra8m1", "cy8cproto-062-4343w", "max78000fthr", "max78000evkit", "sparkfun-redboard-turbo",
}  # fmt: skip


def test_boards_that_people_own_are_listed() -> None:
    assert set(all_boards()) >= OWNED
    assert not set(all_boards()) & set(BOARDS)


@pytest.mark.parametrize("board", all_boards().values(), ids=lambda board: board.board)
def test_row_agrees_with_the_other_tables(board: Any) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]+", board.board)
    part = part_called(board.mcu)
    assert part is not None and part.cpu in CPUS
    assert board.server in {"", *GDB_SERVERS}
    assert bool(board.server) == bool(board.debugger)
    assert re.fullmatch(
        r"(platformio/platform-\w[\w-]+|zephyrproject-rtos/zephyr) [0-9a-f]{8}( boards/\S+)?", board.source
    )
    if board.usb:
        re.compile(board.usb)


def target(folder: Path, keys: str) -> TargetSpec:
    file = folder / "mlfbuild.yml"
    file.write_text(f"mlfbuild: 1\ntargets:\n  t: {{{keys}}}\nmodels: {{a: {{source: a.tflite}}}}\n")
    return load_project(file).targets["t"]


def runner(folder: Path, keys: str) -> RunnerKeys:
    found = target(folder, keys).runner
    assert found is not None
    return found


def test_every_board_with_a_debugger_completes_a_target(tmp_path: Path) -> None:
    boards = {f"t{at}": board for at, board in enumerate(all_boards().values())}
    rows = "".join(f"  {name}: {{board: {board.board}}}\n" for name, board in boards.items())
    file = tmp_path / "mlfbuild.yml"
    file.write_text(f"mlfbuild: 1\ntargets:\n{rows}models: {{a: {{source: a.tflite}}}}\n")
    targets = load_project(file).targets
    for name, board in boards.items():
        found, part = targets[name], part_called(board.mcu)
        assert part is not None
        assert found.board is None and CPUS[found.cpu].core == CPUS[part.cpu].core
        if board.server:
            assert found.runner is not None
            assert found.runner.server == board.server
            assert found.runner.start and "{" not in "".join(found.runner.start)
        else:
            assert found.runner is None


@pytest.mark.parametrize("name", ["nucleo-f446re", "NUCLEO-F446RE", "nucleo_f446re", "NucleoF446RE"])
def test_spelling_of_a_board_does_not_matter(tmp_path: Path, name: str) -> None:
    found = runner(tmp_path, f"board: {name}")
    assert found.start == ("openocd", "-f", "interface/stlink.cfg", "-f", "target/stm32f4x.cfg")
    assert found.memory is not None and found.memory.flash is not None
    assert (found.memory.flash.size, found.memory.ram.size) == (512 << 10, 128 << 10)


@pytest.mark.parametrize(
    ("keys", "address", "start"),
    [
        ("board: pico2, runner: {server: probe-rs}", "localhost:1337", "probe-rs gdb --chip RP235x"),
        ("board: pico, runner: {server: openocd}", "localhost:3333",
         "openocd -f interface/cmsis-dap.cfg -c adapter speed 2000 -f target/rp2040.cfg"),
        ("mcu: STM32F407VGT6, runner: {server: probe-rs}", "localhost:1337", "probe-rs gdb --chip STM32F407VG"),
        ("mcu: stm32f407vgt6, runner: {server: pyocd}", "localhost:3333", "pyocd gdbserver --target stm32f407vgtx"),
        ("mcu: nrf52840, runner: {server: pyocd}", "localhost:3333", "pyocd gdbserver --target nrf52840"),
        ("mcu: stm32l4r5zi, runner: {server: probe-rs}", "localhost:1337", "probe-rs gdb --chip STM32L4R5ZI"),
        ('board: nrf5340dk, runner: {probe: "68"}', "localhost:2331",
         "JLinkGDBServerCLExe -device nrf5340_xxaa_app -if SWD -nogui -select usb={probe}"),
        ("board: ek-ra6m5, runner: {server: probe-rs, probe: x}", "localhost:1337",
         "probe-rs gdb --chip R7FA6M5BH --probe {probe}"),
        ("board: nrf52840dk, runner: {server: openocd}", "localhost:3333",
         "openocd -f interface/jlink.cfg -c transport select swd -f target/nrf52.cfg"),
    ],
)  # fmt: skip
def test_command_of_the_server_has_the_names_of_the_part(tmp_path: Path, keys: str, address: str, start: str) -> None:
    found = runner(tmp_path, keys)
    assert (found.gdb, " ".join(found.start)) == (address, start)


def test_keys_of_the_project_go_before_those_of_the_board(tmp_path: Path) -> None:
    own = "memory: {ram: {origin: 0x20000000, size: 64 KiB}}"
    found = runner(tmp_path, f"board: nucleo-f446re, runner: {{{own}, start: [my-server], baud: 9600}}")
    assert (found.start, found.server, found.baud) == (("my-server",), "openocd", 9600)
    assert found.memory is not None and found.memory.ram.size == 64 << 10
    assert runner(tmp_path, "board: nucleo-f446re, runner: {serial: /dev/ttyACM0}").gdb is None
    assert target(tmp_path, "board: nucleo-f446re, mcu: stm32f446re, cpu: cortex-m4+nofp").cpu == "cortex-m4+nofp"


def test_auto_is_what_the_board_has(tmp_path: Path) -> None:
    found = runner(tmp_path, "board: nucleo-f446re, runner: {pyocd: auto, console: auto}")
    assert (found.pyocd, found.gdb) == ("stm32f446retx", None)
    address = found.console or ""
    listed = "USB VID:PID=0483:374B SER=066DFF485550755187121723 LOCATION=1-1:1.2"  # as pyserial's list of ports
    assert re.search(address.removeprefix("hwgrep://"), listed)


def test_board_of_qemu_stays_one(tmp_path: Path) -> None:
    found = target(tmp_path, "cpu: cortex-m4, board: mps2-an386")
    assert (found.board, found.mcu, found.runner) == ("mps2-an386", None, None)


def test_one_word_stands_for_keys_of_a_target() -> None:
    assert keys_of_device("cortex-m4") == {"cpu": "cortex-m4"}
    assert keys_of_device("mps3-an547") == {"cpu": "cortex-m55", "board": "mps3-an547"}
    assert keys_of_device("nRF52840_DK") == {"board": "nrf52840dk"}
    assert keys_of_device("stm32f407vgt6") == {"mcu": "stm32f407vgt6"}
    assert keys_of_device("rp2040") == {"mcu": "rp2040"}
    assert keys_of_device("nucleo-f446") is None


def test_close_boards_contain_the_word_or_look_like_it() -> None:
    assert close_boards("feather-m4")[0] == "adafruit-feather-m4"
    assert "mps2-an386" in close_boards("mps2-an836")
    assert close_boards("toaster") == []


def test_emulator_names_a_board_with_the_same_core() -> None:
    with raises(UsageError, "board-not-emulated") as caught:
        board_called("nucleo-f446re")
    assert "mps2-an386" in caught.value.hint


def test_jlink_and_probe_rs_call_the_parts_alike() -> None:
    compared = 0
    for board in all_boards().values():
        part = part_called(board.mcu)
        if part and board.jlink and board.mcu.startswith(("stm32f", "stm32l4", "stm32g", "nrf52", "r7fa")):
            assert part.chip(board.mcu).lower() == board.jlink.lower()
            compared += 1
    assert compared > 80


def test_models_have_names_for_servers() -> None:
    for name in set(MCUS) & {board.mcu for board in all_boards().values()}:
        part = part_called(name)
        assert part is not None and part.chip(name)
    assert development_board("virt") is None
