"""Cycles of runs on a device: a scripted GDB server stands in for the device and its firmware."""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core import ProcessFailedError, UsageError
from mlfbuild.jobs.tree import Subject
from mlfbuild.library import TensorInfo
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import open_runner
from mlfbuild.targets import CPUS, MCUS, MemoryRegion
from mlfbuild.verify import Connection, CycleRuns, Spread, chosen_counter, control_registers, measure_cycles
from mlfbuild.verify.device import Device
from support.device_firmware import device_firmware, symbols
from support.errors import raises
from support.rsp_device import ScriptedDevice

SOURCE = r"""
#include <stdint.h>
extern char __stack_top[];
volatile uint32_t mlf_host_call[3];
__attribute__((noipa)) void mlf_host_stop(void) { __asm__ volatile("nop"); }
void HardFault_Handler(void) { for (;;) { } }
void Reset_Handler(void) { mlf_host_call[0] = 1; for (;;) { mlf_host_stop(); } }
__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    __stack_top, (void *)Reset_Handler, (void *)HardFault_Handler, (void *)HardFault_Handler,
};
"""
SUBJECT = Subject("net", "gdb", (TensorInfo("x", "int8", 4, (4,)),), (TensorInfo("y", "int8", 4, (4,)),), 0, 0, False)
SCRATCH, BUFFER = 0x20100000, 0x20101000
OPEN, CLOSE, WRITE, READ, EXIT = 1, 2, 5, 6, 0x20


@dataclass(frozen=True)
class Run:
    """The cycles of a run: before each operator, and at its end, from its start."""

    marks: Sequence[int]
    end: int


@dataclass
class Script:
    """The values of the counter: ``start`` is that at the first run."""

    runs: Sequence[Run]
    start: int = 0xFFFF_FF00
    status: int = 0
    pace: int = 30_004
    clock: int | None = None
    read: int = 3
    hook: int = 20

    def records(self) -> Iterator[bytes]:
        now = self.start
        for run in self.runs:
            times = [now + mark for mark in run.marks] + [0] * 9
            words = [len(run.marks), self.pace, *(each * self.read for each in range(9))]
            words += [*(each * self.hook for each in range(9)), now, now + run.end, *times[:9]]
            yield struct.pack("<5i4s", 0, 0, 0, 0, 64, b"\1\2\3\4") + b"".join(
                struct.pack("<I", word & 0xFFFFFFFF) for word in words
            )
            now += run.end + 1000


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    tool("arm-none-eabi-gcc", "gdb-multiarch")
    return device_firmware(tmp_path_factory.mktemp("scripted"), cpu="cortex-m4", source=SOURCE)


def measured(image: Path, script: Script, folder: Path, *, counter: str = "dwt", **words: int) -> CycleRuns:
    at = symbols(image)
    call = at["mlf_host_call"]

    def firmware(device: ScriptedDevice) -> Iterator[int]:
        def ask(operation: int, *block: int) -> int:
            for index, word in enumerate(block):
                device.word(SCRATCH + 4 * index, word)
            device.word(call, operation)
            device.word(call + 4, SCRATCH)
            return at["mlf_host_stop"]

        if script.status == 0:
            files = []
            for name, mode in ((b"inputs.bin", 1), (b"outputs.bin", 5)):
                device.write(BUFFER, name)
                yield ask(OPEN, BUFFER, mode, len(name))
                files.append(device.word(call + 8))
            for record in script.records():
                yield ask(READ, files[0], BUFFER, 4)
                assert device.read(BUFFER, 4) == b"\5\6\7\x08"
                device.write(BUFFER, record)
                yield ask(WRITE, files[1], BUFFER, len(record))
            yield ask(CLOSE, files[1])
        yield ask(EXIT, 0x20026, script.status)

    steps: list[Iterator[int]] = []
    device = ScriptedDevice(lambda _: next(steps[0]))
    steps.append(firmware(device))
    device.entry = at["Reset_Handler"]
    device.word(0xE000ED00, 0x410FC241)
    for name, value in words.items():
        device.word({"ctrl": 0xE0001000, "demcr": 0xE000EDFC, "pmu": 0xE0003E04, "csr": 0xE000E010}[name], value)
    keys = RunnerKeys(gdb=f"127.0.0.1:{device.port}", server="openocd", timeout=10 * 10**9)
    ram = MemoryRegion("RAM", 0x20000000, 4 << 20)
    with device.serving(), open_runner(keys, "mlfbuild.yml: targets.desk.runner") as runner:
        connection = Connection(Device(keys, "", CPUS["cortex-m4"], ram, None), runner)
        inputs = [np.array([[5, 6, 7, 8]], np.int8)]
        return measure_cycles(
            connection, image, SUBJECT, inputs, len(script.runs) // 2, counter, folder, 10, script.clock
        )


@pytest.mark.parametrize("counter", ["dwt", pytest.param("pmu", marks=pytest.mark.sweep)])
def test_minimum_median_and_maximum_are_without_the_cost_of_taking_times(
    image: Path, tmp_path: Path, counter: str
) -> None:
    runs = [
        Run((), 1003), Run((50, 370, 400), 1120),
        Run((), 903), Run((50, 270, 300), 1020),
        Run((), 953), Run((50, 320, 330), 1000),
    ]  # fmt: skip
    found = measured(image, Script(runs), tmp_path, counter=counter)
    assert (found.device.split(":")[0], found.counter, found.runs) == ("gdb 127.0.0.1", counter, 3)
    assert not found.emulated
    assert found.title == f"measured on {found.device} ({counter.upper()})"
    assert found.total == Spread(900, 950, 1000)
    assert found.operators == (Spread(200, 250, 300), Spread(0, 10, 10), Spread(650, 700, 700))
    assert found.overhead == 20


@pytest.mark.parametrize(
    ("status", "counter", "code", "words", "seen"),
    [
        (17, "dwt", "counter-trace-disabled", {"ctrl": 0x40000000}, ["DWT_CTRL 0x40000000", "DEMCR 0x00000000"]),
        pytest.param(18, "dwt", "counter-absent", {"ctrl": 0x02000000}, ["DWT_CTRL 0x02000000"],
         marks=pytest.mark.sweep),
        pytest.param(19, "pmu", "counter-disabled", {"pmu": 2}, ["PMU_CTRL 0x00000002"], marks=pytest.mark.sweep),
        pytest.param(20, "dwt", "counter-stopped", {"ctrl": 1, "demcr": 1 << 24}, ["DEMCR 0x01000000"],
         marks=pytest.mark.sweep),
        pytest.param(20, "systick", "counter-stopped", {"csr": 7}, ["SYST_CSR 0x00000007"], marks=pytest.mark.sweep),
    ],
)  # fmt: skip
def test_a_counter_that_does_not_count_is_refused_with_what_the_debugger_reads(
    image: Path, tmp_path: Path, status: int, counter: str, code: str, words: dict[str, int], seen: list[str]
) -> None:
    with raises(ProcessFailedError, code) as caught:
        measured(image, Script([], status=status), tmp_path, counter=counter, **words)
    assert [text for text in seen if text not in caught.value.reason] == []


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("script", "code"),
    [
        (Script([Run((), 3), Run((50, 300), 1000)]), "counter-stopped"),
        (Script([Run((), 1000), Run((0, 0), 0)]), "counter-stopped"),
        (Script([Run((), 1000), Run((50, 300), 1000)], pace=9_000), "counter-not-of-core"),
        (Script([Run((), 1000), Run((50, 300), 1000)], clock=10**14), "counter-overflow"),
    ],
)
def test_figures_that_no_counter_of_cycles_shows_are_refused(
    image: Path, tmp_path: Path, script: Script, code: str
) -> None:
    with raises(ProcessFailedError, code):
        measured(image, script, tmp_path)


def test_counters_that_a_core_lacks_are_refused() -> None:
    place = "mlfbuild.yml: targets.desk.runner"
    cores = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m23", "cortex-m33", "cortex-m55")
    chosen = [chosen_counter(CPUS[core], None, place) for core in (*cores, "cortex-m85")]
    assert chosen == ["systick", "dwt", "dwt", "dwt", "systick", "dwt", "pmu", "pmu"]
    assert chosen_counter(CPUS["cortex-m55"], "systick", place) == "systick"
    for core, counter in (("cortex-m0plus", "dwt"), ("cortex-m4+nofp", "pmu"), ("cortex-a9", None)):
        with raises(UsageError, "counter-not-in-core", f"{place}.counter"):
            chosen_counter(CPUS[core], counter, place)


def test_settings_of_the_flash_are_read_from_the_device(tool: Callable[..., str]) -> None:
    tool("gdb-multiarch")
    device = ScriptedDevice(lambda _: 0)
    device.word(0xE000ED00, 0x410FD213)
    device.word(0x40022000, 0x003)
    device.word(0x40030400, 1)
    keys = RunnerKeys(gdb=f"127.0.0.1:{device.port}", server="openocd", timeout=10 * 10**9)
    mcu = MCUS["stm32u575"]
    with device.serving(), open_runner(keys, "mlfbuild.yml: targets.desk.runner") as runner:
        found = control_registers(runner, mcu)
        assert control_registers(runner, None) == control_registers(runner, MCUS["nrf5340"]) == {}
    assert found == {0x40022000: 0x003, 0x40030400: 1}
    assert mcu.as_set(found.__getitem__).settings() == "flash: 3 wait states, prefetch off, cache for code and data"
