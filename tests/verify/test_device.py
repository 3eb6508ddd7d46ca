"""Verification on devices: QEMU's GDB stub is the debugger, and the firmware makes no semihosting calls."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core import ProcessFailedError, UnsupportedModelError, UsageError
from mlfbuild.project import RunnerKeys, TargetMemory
from mlfbuild.targets import BOARDS, MCUS, DeviceMemoryKeys, RegionKeys, toolchain_file
from mlfbuild.verify.device import Connection, connected, device_of
from mlfbuild.verify.module import VerifyReport, verify_image, verify_module
from support.devices import MEAN, PLACE, SUM, A, B, target
from support.errors import raises
from support.examples import first_on_push
from support.hand_written_library import write_library
from support.processes import wait_for

KIB = 1024


@pytest.fixture(scope="module", autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm", "gdb-multiarch")


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("device")


def on_server(board: str, *, in_ram: bool, flash: int = 256 * KIB, ram: int = 128 * KIB) -> RunnerKeys:
    """Return the keys of a GDB server that runs ``board``, with less memory than it has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    regions = BOARDS[board]
    memory = DeviceMemoryKeys(
        ram=RegionKeys(origin=regions.ram.origin, size=ram),
        flash=None if in_ram else RegionKeys(origin=regions.flash.origin, size=flash),
    )
    start = ("qemu-system-arm", "-M", board, "-S", "-gdb", f"tcp:127.0.0.1:{port}", "-display", "none")
    start += ("-monitor", "none", "-serial", "none")
    return RunnerKeys(gdb=f"127.0.0.1:{port}", start=start, memory=memory)


@pytest.fixture(scope="module")
def desk() -> Iterator[Connection]:
    with connected(device_of(target("cortex-m4", RunnerKeys(qemu="mps2-an386")), PLACE)) as connection:
        yield connection


def verify(workdir: Path, connection: Connection, wrong: str = "", **options: object) -> VerifyReport:
    module = write_library(workdir / "tree", wrong)
    path = workdir / "vectors.npz"
    np.savez(path, in0=A, in1=B, out0=SUM, out1=MEAN)
    toolchain = toolchain_file(connection.device.cpu)
    folder = workdir / connection.device.cpu.name
    return verify_module(
        workdir / "tree", module, None, path, folder, toolchain=toolchain, connection=connection, **options
    )


def test_correct_model_passes_and_its_memory_is_measured(workdir: Path, desk: Connection) -> None:
    reported: list[str] = []
    report = verify(workdir, desk, on_progress=lambda doing, done=0, of=0: reported.append(f"{doing} {done}/{of}"))
    assert report.passed, report.text()
    assert re.fullmatch(
        r"net: 3 cases right on qemu mps2-an386, arena 48 of 64 bytes used, stack \d+ bytes", report.text()
    )
    assert re.fullmatch(r"running \([\d.]+ cases a second\) 3/3", reported[-1])
    assert [line for line in reported if line.startswith("loading")]
    reported.clear()
    assert verify(workdir, desk, on_progress=lambda doing, *_: reported.append(doing)).passed
    assert "loading" not in reported, "the device holds the image"
    image = workdir / "cortex-m4/build/verify.elf"
    with raises(UsageError, "image-for-a-device", place=str(image)):
        verify_image(image, workdir / "vectors.npz", workdir)


WRONG = {
    "an output is off by one": ("if (a[0] < 0) sum[2]++;",
     r"net: case 1, output 0 \(sum\), element 2: expected 102, got 103 \(1 of 4 elements differ\)"),
    "it changes an input": ("if (a[2] == 100) a[1]++;", r"net: case 1: changed input 0"),
    "it leaves the arena": ("workspace[64] = 0;", r"(net: case \d: wrote outside the workspace of 64 bytes\n?){3}"),
    "it executes an undefined instruction": (
        'if (a[0] == 9) __asm__ volatile(".inst.n 0xde00");',
        (
            r"net: case 2: the firmware faulted\nHardFault: undefined instruction\n"
            r"  pc 0x\w{8} in run \(net_lib0\.c:16\)\n  lr 0x\w{8}.*\n"
            r"  CFSR 0x00010000  HFSR 0x40000000  .*"
        ),
    ),
    "its stack overflows": (
        "if (a[0] == 9) { volatile char deep[65536]; for (int i = 65535; i >= 0; i--) deep[i] = 1; }",
        r"net: case 2: the firmware faulted\nHardFault: access to protected .*\n  the stack pointer .*\n.*",
    ),
    "it hangs": ("while (a[0] == -5 && runs) { }",
     r"net: case 1: no result after 1 s, so it was stopped in run \(net_lib0\.c:\d+\)"),
    "it resets the device": ("if (a[0] == 9) { *(volatile unsigned *)0xE000ED0C = 0x05FA0004; for (;;) { } }",
     r"net: case 2: the device was reset, for example by a watchdog or a dip of its supply"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "found"), first_on_push(WRONG.values(), len(WRONG) - 1), ids=WRONG)
def test_faults_are_reported(workdir: Path, desk: Connection, wrong: str, found: str) -> None:
    report = verify(workdir, desk, wrong, timeout=1)
    assert re.fullmatch(found, report.text()), report.text()
    assert verify(workdir, desk).passed, "the device still works"


WITH_CORTEX_M = [name for name, board in BOARDS.items() if board.cpu.startswith("cortex-m")]


@pytest.mark.parametrize(
    ("board", "in_ram"),
    first_on_push([(board, in_ram) for board in ("mps2-an386", *WITH_CORTEX_M) for in_ram in (True, False)]),
)
def test_every_core_behind_a_gdb_server(workdir: Path, board: str, in_ram: bool) -> None:
    keys = on_server(board, in_ram=in_ram)
    device = device_of(target(BOARDS[board].cpu, keys), PLACE)
    with connected(device) as connection:
        report = verify(workdir, connection)
        assert report.passed, report.text()
        assert report.board == f"gdb {keys.gdb}"
        fault = verify(workdir, connection, 'if (a[0] == 9) __asm__ volatile(".inst.n 0xde00");').text()
        assert "HardFault: undefined instruction\n  pc 0x" in fault, fault
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(keys.gdb.split(":")[1]))):
        pass  # the server that was started has been stopped


@pytest.mark.sweep
def test_server_that_ends_while_vectors_run(workdir: Path) -> None:
    keys = on_server("mps2-an386", in_ram=False)
    with connected(device_of(target("cortex-m4", keys), PLACE)) as connection:

        def kill(doing: str, done: int = 0, _of: int = 0) -> None:
            if doing.startswith("running") and done == 1:
                server = subprocess.run(
                    ["pgrep", "-f", f"qemu-system-arm.*tcp:{keys.gdb}"], stdout=subprocess.PIPE, text=True, check=True
                )
                os.kill(int(server.stdout.split()[0]), signal.SIGKILL)

        with raises(ProcessFailedError, "connection-lost"):
            verify(workdir, connection, on_progress=kill)


def test_memories_of_a_device() -> None:
    device = device_of(target("cortex-m4", RunnerKeys(gdb=":1"), "stm32l4r5"), PLACE)
    assert "FLASH (rx) : ORIGIN = 0x08000000, LENGTH = 2097152\n" in device.linker_script()
    assert (device.stack_size, device.ram.size) == (64 * KIB, 640 * KIB)
    device = device_of(target("cortex-m0plus", RunnerKeys(gdb=":1"), "rp2040"), PLACE)
    assert 'REGION_ALIAS("FLASH", RAM)\n' in device.linker_script()
    memories = [
        TargetMemory(name, KIB, at, f".{name}", name.upper())
        for name, at in (("dtcm", 0x30000000), ("sram2", 0x20001000))
    ]
    placed = replace(target("cortex-m4", RunnerKeys(gdb=":1"), "stm32l4r5"), memories=tuple(memories))
    script = device_of(placed, PLACE).linker_script()
    assert "DTCM (rw) : ORIGIN = 0x30000000, LENGTH = 1024\n" in script and 'ALIAS("DTCM"' not in script
    assert 'REGION_ALIAS("SRAM2", RAM)\n' in script
    with raises(UsageError, "device-memory-unknown", place=f"{PLACE}.memory"):
        device_of(target("cortex-m4", RunnerKeys(gdb=":1")), PLACE)
    with raises(UsageError, "device-memory-not-aligned"):
        ram = RegionKeys(origin=0x20000010, size=KIB)
        device_of(target("cortex-m4", RunnerKeys(gdb=":1", memory=DeviceMemoryKeys(ram=ram))), PLACE)
    with raises(UsageError, "runner-cannot"):
        device_of(target("cortex-m4", RunnerKeys(run=("flash", "{elf}"))), PLACE)
    for cpu, board in (("cortex-a9", "vexpress-a9"), ("rv32imc", "virt")):
        with raises(UsageError, "device-core-unsupported", place=PLACE) as caught:
            device_of(target(cpu, RunnerKeys(qemu=board)), PLACE)
        assert board in caught.value.hint


def test_memory_maps_are_of_known_parts_and_no_larger() -> None:
    for name, mcu in MCUS.items():
        found, memories = mcu.memory, mcu.memories
        if found is None:
            continue
        assert found.ram.size <= sum(each.size for key, each in memories.items() if key in {"sram", "dtcm"}), name
        assert found.flash is None or found.flash.size <= memories["flash"].size, name
        assert found.source


@pytest.mark.sweep
def test_image_that_exceeds_the_memory_is_refused(workdir: Path) -> None:
    keys = on_server("mps2-an386", in_ram=False, flash=2 * KIB)
    device = device_of(target("cortex-m4", keys), PLACE)
    with connected(device) as connection, raises(UnsupportedModelError, "board-too-small", place="net"):
        verify(workdir, connection)


@pytest.mark.sweep
def test_a_case_stops_the_device_once_for_each_input_and_once_for_its_results(
    workdir: Path, desk: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """450 cases over one connection; each of them runs twice."""
    stops: list[int] = []
    go = desk.runner.go

    def counted(addresses: Sequence[int], timeout: float) -> int:
        stops.append(go(addresses, timeout))
        return stops[-1]

    monkeypatch.setattr(desk.runner, "go", counted)
    module = write_library(workdir / "tree")
    many = {"in0": A, "in1": B, "out0": SUM, "out1": MEAN}
    np.savez(workdir / "many.npz", **{name: np.tile(array, (150, 1)) for name, array in many.items()})
    toolchain = toolchain_file(desk.device.cpu)
    folder = workdir / desk.device.cpu.name
    report = verify_module(
        workdir / "tree", module, None, workdir / "many.npz", folder, toolchain=toolchain, connection=desk
    )
    assert (report.passed, report.ran) == (True, 450)
    assert 3 * 450 < len(stops) < 3 * 450 + 20


@pytest.mark.sweep
def test_the_next_command_does_not_load_the_image_again(workdir: Path) -> None:
    keys = on_server("mps2-an386", in_ram=False)
    again = replace(keys, start=(), server="qemu")
    with subprocess.Popen(keys.start) as server:
        try:
            _wait_for(keys.gdb)
            loaded = []
            for _ in range(2):
                reported: list[str] = []
                with connected(device_of(target("cortex-m4", again), PLACE)) as connection:
                    verify(workdir, connection, on_progress=lambda doing, *_, reported=reported: reported.append(doing))
                loaded.append("loading" in reported)
        finally:
            server.kill()
    assert loaded == [True, False]


def _wait_for(address: str) -> None:
    port = f":{int(address.rpartition(':')[2]):04X} "
    wait_for(lambda: port in Path("/proc/net/tcp").read_text())  # a connection would end QEMU's wait for GDB
