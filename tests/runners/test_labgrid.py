"""Places of labgrid: a real coordinator and exporter on loopback."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlfbuild.core import ConflictError, ToolNotFoundError, UsageError, running
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import open_runner
from mlfbuild.runners.labgrid import acquired
from support.labgrid_farm import Farm, farm, free_port
from support.processes import wait_for


@pytest.fixture(scope="module")
def running_farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    with farm(tmp_path_factory.mktemp("farm")) as found:
        found.make_place("nucleo", "gdb=:3333", "gdb-server=openocd")
        found.make_place("bare", group="bare")
        yield found


@pytest.fixture
def board_farm(running_farm: Farm, monkeypatch: pytest.MonkeyPatch) -> Farm:
    monkeypatch.setenv("LG_COORDINATOR", running_farm.address)
    monkeypatch.setenv("LG_USERNAME", "tester")
    return running_farm


@pytest.mark.sweep
def test_a_place_is_acquired_and_released(board_farm: Farm) -> None:
    with acquired(RunnerKeys(labgrid="nucleo"), "runner") as keys:
        assert board_farm.holder("nucleo").endswith("/tester")
    assert board_farm.holder("nucleo") is None
    console = f"socket://127.0.0.1:{board_farm.serial_port}"
    assert keys == RunnerKeys(gdb="127.0.0.1:3333", server="openocd", console=console)


@pytest.mark.sweep
def test_firmware_that_a_command_flashes_is_reached_through_the_serial_port(board_farm: Farm) -> None:
    flash = ("flash-it", "{elf}")
    with acquired(RunnerKeys(labgrid="nucleo", flash=flash), "runner") as keys:
        assert keys == RunnerKeys(serial=f"socket://127.0.0.1:{board_farm.serial_port}", flash=flash)


@pytest.mark.sweep
def test_a_place_is_released_after_an_error(board_farm: Farm) -> None:
    with pytest.raises(KeyboardInterrupt), acquired(RunnerKeys(labgrid="nucleo"), "runner"):
        raise KeyboardInterrupt
    assert board_farm.holder("nucleo") is None


@pytest.mark.sweep
def test_a_place_that_was_acquired_before_stays_acquired(board_farm: Farm) -> None:
    board_farm.client("-p", "nucleo", "acquire")
    with acquired(RunnerKeys(labgrid="nucleo"), "runner"):
        pass
    assert board_farm.holder("nucleo").endswith("/tester")
    board_farm.client("-p", "nucleo", "release")


@pytest.mark.sweep
def test_a_place_of_someone_else(board_farm: Farm) -> None:
    board_farm.client("-p", "nucleo", "acquire", user="bob")
    try:
        with pytest.raises(ConflictError) as caught, acquired(RunnerKeys(labgrid="nucleo"), "targets.m4.runner"):
            raise AssertionError("entered")
    finally:
        board_farm.client("-p", "nucleo", "release", user="bob")
    assert (caught.value.code, caught.value.place) == ("place-acquired", "targets.m4.runner")
    assert "/bob" in caught.value.reason


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("place", "code"), [("nuclea", "unknown-labgrid-place"), ("bare", "labgrid-place-without-way")]
)
def test_places_that_lead_nowhere(board_farm: Farm, place: str, code: str) -> None:
    with pytest.raises(UsageError) as caught, acquired(RunnerKeys(labgrid=place), "runner"):
        raise AssertionError("entered")
    assert (caught.value.code, caught.value.exit_code) == (code, 2)
    if place == "bare":
        assert board_farm.holder("bare") is None


def test_no_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LG_COORDINATOR", f"127.0.0.1:{free_port()}")
    with pytest.raises(ToolNotFoundError) as caught, acquired(RunnerKeys(labgrid="nucleo"), "runner"):
        raise AssertionError("entered")
    assert (caught.value.code, caught.value.exit_code) == ("no-labgrid-coordinator", 3)


HOLD = """
import time
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import open_runner
from mlfbuild.runners.labgrid import acquired

with acquired(RunnerKeys(labgrid="nucleo"), "runner"):
    print("acquired", flush=True)
    time.sleep(60)
"""


@pytest.mark.sweep
def test_an_interrupt_releases_the_place(board_farm: Farm, tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, env=dict(os.environ), cwd=tmp_path)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"acquired\n"
        process.send_signal(signal.SIGINT)
        process.wait(30)
    wait_for(lambda: board_farm.holder("nucleo") is None)


def test_a_device_of_a_farm_is_driven_through_its_gdb_server(board_farm: Farm, tool: Callable[..., str]) -> None:
    """QEMU is the device at the place: its GDB stub as the server, its serial port as the NetworkSerialPort."""
    tool("qemu-system-arm", "gdb-multiarch")
    port = free_port()
    board_farm.client("-p", "nucleo", "set-tags", f"gdb=:{port}", "gdb-server=qemu")
    serial = f"tcp:127.0.0.1:{board_farm.serial_port},server=on,wait=off"
    words = ["-M", "mps2-an386", "-S", "-gdb", f"tcp:127.0.0.1:{port}", "-display", "none", "-serial", serial]
    with running(["qemu-system-arm", *words]) as qemu:
        wait_for(lambda: is_listening(port))
        with open_runner(RunnerKeys(labgrid="nucleo"), "runner") as runner:
            runner.write(0x20000000, b"farm")
            assert runner.read(0x20000000, 4) == b"farm"
            assert board_farm.holder("nucleo") is not None
        qemu.kill()
    assert board_farm.holder("nucleo") is None


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
