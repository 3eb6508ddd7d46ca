"""Measure the cycles of runs on a device with a counter of its core.

The test firmware of ``verify`` is built with a counter (``runtime/profile``). Runs alternate: one is timed as a whole,
in the next one the hook of the generated code notes the time before each operator. The firmware enables no interrupt
except the one that extends SysTick, and measures what taking a time costs; that is subtracted here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import OnProgress, ProcessFailedError, UsageError, listed, no_progress, read_bytes, write_atomic
from mlfbuild.jobs.tree import Subject
from mlfbuild.project import CYCLE_COUNTERS
from mlfbuild.runners import HostRun, Runner, is_emulated, opener_in
from mlfbuild.targets import Cpu, Mcu
from mlfbuild.verify.device import Connection
from mlfbuild.verify.semihosting_io import case_size, exchange_names, flaws, interleaved, read_runs

Array = npt.NDArray[Any]

# From the technical reference manuals: Armv6-M and the baseline of Armv8-M have no cycle counter in the DWT, Armv8.1-M
# has a PMU.
_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "cortex-m0plus": ("systick",),
    "cortex-m0": ("systick",),
    "cortex-m23": ("systick",),
    **dict.fromkeys(("cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33"), ("dwt", "systick")),
    **dict.fromkeys(("cortex-m55", "cortex-m85"), ("pmu", "dwt", "systick")),
}
"""Counters of each core; the first is the default."""
# A run that is refused without need can be measured again with mcu; one that wrapped around unnoticed would be a wrong
# figure.
_FASTEST = {"cortex-m7": 10**9, "cortex-m55": 10**9, "cortex-m85": 10**9}
_FAST = 400_000_000
"""No part with the core has a higher clock, in Hz; other cores are below the second number."""
_WRAP = 1 << 32
_EXIT_COUNTER, _SAMPLES, _PACE_ROUNDS = 16, 8, 10_000  # of mlf_profile.h
_REGISTERS = {"DEMCR": 0xE000EDFC, "DAUTHSTATUS": 0xE000EFB8}
_OF_COUNTER = {
    "dwt": {"DWT_CTRL": 0xE0001000, "DWT_CYCCNT": 0xE0001004},
    "pmu": {"PMU_TYPE": 0xE0003E00, "PMU_CTRL": 0xE0003E04, "PMU_CCNTR": 0xE000307C, "PMU_AUTHSTATUS": 0xE0003FB8},
    "systick": {"SYST_CSR": 0xE000E010, "SYST_RVR": 0xE000E014, "SYST_CVR": 0xE000E018},
}
"""Registers that the debugger reads to explain a counter that does not count."""


@dataclass(frozen=True)
class Spread:
    """Figures of several runs."""

    least: int
    median: int
    most: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        """Return the minimum, the median (the lower one of two) and the maximum of ``values``.

        ``values`` are counts of cycles. The lower median is one that was measured, not a mean of two. Raises
        ``ValueError`` without values.
        """
        return cls(min(values), statistics.median_low(values), max(values))


@dataclass(frozen=True)
class CycleRuns:
    """Cycles that a device measured."""

    device: str
    """The device: ``gdb localhost:3333``."""
    counter: str
    """One of ``CYCLE_COUNTERS``."""
    emulated: bool
    """Whether QEMU emulates the device: its counters show the time of the emulator, not cycles of a core."""
    runs: int
    total: Spread
    """Whole runs, without hooks."""
    operators: tuple[Spread, ...]
    """Operators, in the order of the hook's calls; empty if the module calls no hook."""
    overhead: int
    """Cycles of one call of the hook, which are subtracted from each operator."""
    registers: Mapping[int, int] = field(default_factory=dict)
    """The words at the addresses of the part's control registers after the runs; empty if they are unknown."""

    @property
    def exactness(self) -> str:
        """The words that accompany every figure: ``measured (DWT)``."""
        counter = CYCLE_COUNTERS[self.counter]
        return f"emulated: {counter} counts the time of QEMU, not cycles" if self.emulated else f"measured ({counter})"

    @property
    def title(self) -> str:
        """The origin of the figures: ``measured on gdb localhost:3333 (DWT)``."""
        how = "emulated" if self.emulated else "measured"
        return f"{how} on {self.device} ({CYCLE_COUNTERS[self.counter]})"


def chosen_counter(cpu: Cpu, wanted: str | None, place: str) -> str:
    """Return the counter for cores ``cpu``: the ``wanted`` one, or the usual one.

    Raises ``UsageError`` if the core does not have it; ``place`` is that of the runner's keys.
    """
    known = _COUNTERS.get(cpu.core, ())
    if wanted is None and known:
        return known[0]
    if wanted is not None and wanted in known:
        return wanted
    has = f"has {listed([CYCLE_COUNTERS[each] for each in known])}" if known else "has no counter that mlfbuild reads"
    raise UsageError(
        "counter-not-in-core",
        place=f"{place}.counter",
        reason=f"cycles cannot be measured with {CYCLE_COUNTERS[wanted] if wanted else 'a counter'}: {cpu.title} {has}",
        hint=f"choose counter: {known[-1]}" if known else "measure with a Cortex-M core",
    )


def measure_cycles(
    connection: Connection,
    image: Path,
    subject: Subject,
    inputs: Sequence[Array],
    runs: int,
    counter: str,
    workdir: Path,
    timeout: float,
    clock: int | None = None,
    on_progress: OnProgress = no_progress,
) -> CycleRuns:
    """Measure ``runs`` runs of the test firmware ``image``, built with ``counter``, on one case of ``inputs``.

    ``inputs`` are arrays (1, elements) in call order. Each run may take ``timeout`` seconds; files are in ``workdir``.
    ``clock`` is the highest clock of the part in Hz, if it is known: with it, longer runs are accepted before a counter
    of 32 bits may overflow. The result is in cycles, with the cost of reading the counter subtracted.

    Raises ``ProcessFailedError`` if the counter does not count (the reason has its registers), if it may have
    overflowed, or if a run fails; and as the methods of ``Runner``.
    """
    taken, written = exchange_names()
    # Two for each run: one that is timed as a whole, one with the hook, whose calls would lengthen a whole run.
    write_atomic(workdir / taken, interleaved(inputs) * (2 * runs))
    (workdir / written).unlink(missing_ok=True)
    on_progress("measuring", 0, 2 * runs)
    calls, last, longest = 0, time.monotonic(), 0.0

    def served() -> None:
        nonlocal calls, last, longest
        now = time.monotonic()
        calls, longest, last = calls + 1, max(longest, now - last), now

    host = connection.calls(image, opener_in(workdir), [taken, written], on_progress)
    last = time.monotonic()
    ended = host.run(timeout, served)
    check_counted(connection.runner, counter, ended, subject.name)
    found = _records(workdir, subject, 2 * runs)
    fastest = clock or _FASTEST.get(connection.device.cpu.core, _FAST)
    # The counter has 32 bits and no overflow flag that all cores have, so the time on the host is the evidence.
    if longest * fastest >= _WRAP:
        raise ProcessFailedError(
            "counter-overflow",
            place=connection.name,
            reason=f"a run took up to {longest:.1f} s, in which a counter of 32 bits may overflow",
            hint="measure a smaller model, or add the mcu of the target, whose clock may be lower",
        )
    return _evaluated(found, connection, counter, runs)


def _records(workdir: Path, subject: Subject, cases: int) -> Array:
    """Return the words about cycles of each run, without those that failed."""
    size, written = case_size(subject, 1), len(read_bytes(workdir / exchange_names()[1], "results"))
    words, left = divmod(written // cases - size, 4)
    if written % cases or left or words < 2 * (_SAMPLES + 1) + 4:
        raise ProcessFailedError("run-failed", place=subject.name, reason="the firmware ended before all cases had run")
    found = read_runs(workdir, subject, 1, words)["run0"]
    for run in found:
        for flaw in flaws(subject, run):
            raise ProcessFailedError("run-failed", place=subject.name, reason=flaw)
    return np.asarray(found["cycles"], np.int64)


def _evaluated(found: Array, connection: Connection, counter: str, runs: int) -> CycleRuns:
    first = found[0]
    pace = int(first[1])
    reads, hooks = (first[2 + at * (_SAMPLES + 1) :][: _SAMPLES + 1] for at in (0, 1))
    # The median, because a sample may contain the interrupt that extends SysTick.
    read, hook = (statistics.median_low([int(each) for each in np.diff(times) % _WRAP]) for times in (reads, hooks))
    began, ended = (found[:, 2 + 2 * (_SAMPLES + 1) + at] for at in (0, 1))
    wholes = [_less(int(each), read) for each in (ended - began)[0::2] % _WRAP]
    hooked = found[1::2]
    count = int(hooked[0][0])
    marks = hooked[:, 4 + 2 * (_SAMPLES + 1) :][:, :count]
    times = np.concatenate([marks, ended[1::2, None]], axis=1)
    operators = np.diff(times, axis=1) % _WRAP
    emulated = is_emulated(connection.runner)
    if not all(wholes) or (count and not operators.any()):
        raise _refused(connection.runner, counter, _REFUSALS[-1])
    check_pace(connection.runner, counter, pace)
    return CycleRuns(
        connection.name, counter, emulated, runs, Spread.of(wholes),
        tuple(Spread.of([_less(int(each), hook) for each in column]) for column in operators.T), hook,
    )  # fmt: skip


def control_registers(runner: Runner, mcu: Mcu | None) -> dict[int, int]:
    """Return the words at the addresses of the control registers of ``mcu``.

    Empty if the part names none, if QEMU emulates the device, which has no such flash, or if one cannot be read.
    """
    if mcu is None or mcu.control is None or is_emulated(runner):
        return {}
    found: dict[int, int] = {}

    def word(address: int) -> int:
        if address not in found:
            found[address] = int.from_bytes(runner.read(address, 4), "little")
        return found[address]

    try:
        mcu.as_set(word)
    except ProcessFailedError:
        return {}
    return found


def check_counted(runner: Runner, counter: str, ended: HostRun, place: str) -> None:
    """Raise ``ProcessFailedError`` if firmware with ``counter`` has not ``ended`` well.

    ``place`` is the model or the program in messages. An exit status of ``mlf_cycles_refusal`` becomes the error with
    its reason and the registers of the counter; any other status but 0, and a fault, becomes ``run-failed`` with the
    output.
    """
    status = ended.exit_status
    if status is not None and _EXIT_COUNTER < status <= _EXIT_COUNTER + len(_REFUSALS):
        raise _refused(runner, counter, _REFUSALS[status - _EXIT_COUNTER - 1])
    if status != 0:
        why = ended.stopped or f"the firmware ended with exit status {status}"
        reason, _, output = why.partition("\n")
        raise ProcessFailedError("run-failed", output or ended.output, place=place, reason=reason)


def check_pace(runner: Runner, counter: str, pace: int) -> None:
    """Raise ``ProcessFailedError`` if ``counter`` advances by ``pace`` in a loop that takes more cycles.

    ``pace`` is what the counter advanced in ``_PACE_ROUNDS`` rounds, which take at least a cycle each. A counter of a
    slower clock would give figures that look right but are too small. An emulator may be slower.
    """
    if pace == 0:
        raise _refused(runner, counter, _REFUSALS[-1])
    # A counter of a slower clock, such as SysTick with an external reference, would give figures that look right but
    # are too small.
    if pace < _PACE_ROUNDS and not is_emulated(runner):
        raise ProcessFailedError(
            "counter-not-of-core",
            place=runner.name,
            reason=f"{CYCLE_COUNTERS[counter]} advances by {pace:,} in {_PACE_ROUNDS:,} rounds of a loop, which take "
            "at least a cycle each, so it does not count cycles of the core",
            hint="choose another counter, or check whether the device is an emulator",
        )


def _less(cycles: int, overhead: int) -> int:
    # An operator without code is a call of the hook alone, whose cost may vary by a cycle.
    return max(cycles - overhead, 0)


_FORBIDDEN = "debug authentication may forbid non-invasive debug, or the clock of the unit is off"
_NO_TRACE = "the core has no trace unit, or its debug authentication forbids it"
_REFUSALS = (
    ("counter-trace-disabled", "tracing cannot be enabled (DEMCR.TRCENA stays 0)", _NO_TRACE),
    ("counter-absent", "the core has no such counter", "it was left out of this part"),
    ("counter-disabled", "the counter cannot be enabled", _FORBIDDEN),
    ("counter-stopped", "the counter does not advance", _FORBIDDEN),
)
"""Code, reason and likely cause of each refusal of ``mlf_cycles_refusal``."""


def _refused(runner: Runner, counter: str, refusal: tuple[str, str, str]) -> ProcessFailedError:
    code, reason, cause = refusal
    why = "QEMU does not emulate it" if is_emulated(runner) else cause
    other = "measure on another device" if counter == "systick" else "use counter: systick, which every Cortex-M has"
    return ProcessFailedError(
        code,
        place=runner.name,
        reason=f"cycles cannot be measured with {CYCLE_COUNTERS[counter]}: {reason}; {why} ({_seen(runner, counter)})",
        hint=other,
    )


def _seen(runner: Runner, counter: str) -> str:
    """Return the registers of the counter as the debugger reads them."""
    registers = {**_OF_COUNTER[counter], **_REGISTERS}
    return ", ".join(f"{name} {_word(runner, address)}" for name, address in registers.items())


def _word(runner: Runner, address: int) -> str:
    try:
        return f"{int.from_bytes(runner.read(address, 4), 'little'):#010x}"
    except ProcessFailedError:
        return "unreadable"
