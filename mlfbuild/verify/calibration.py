"""Find the wait states of a device's memories from the cycles of small kernels.

    runtime/profile/calibrate.c -> [device with a counter] -> measured cycles of each kernel  \
                                -> [QEMU, cycle model]     -> modelled cycles for wait states -> the best wait states

The kernels load from RAM and from flash, in a row and apart, and execute straight code, jumps and loops. The cycle
model runs the same kernels for candidates of a microcontroller: wait states of both memories, prefetch, caches on or
off. The best candidate has the least difference; what makes no difference is reported as not identifiable.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlfbuild.core import (
    OnProgress,
    ProcessFailedError,
    UsageError,
    make_folder,
    no_progress,
)
from mlfbuild.runners import is_emulated, opener_in, read_firmware
from mlfbuild.targets import RUNTIME, Board, Mcu
from mlfbuild.verify.cycles import check_counted, check_pace
from mlfbuild.verify.device import Connection
from mlfbuild.verify.emulator.counter import OUTSIDE, REST, Counting
from mlfbuild.verify.emulator.harness import run_cmake, runtime_definitions
from mlfbuild.verify.emulator.qemu import run_elf

KERNELS = (
    "nothing", "loop", "ram_loads", "ram_apart", "flash_loads", "flash_apart", "straight", "jumps", "long_loop",
)  # fmt: skip
"""The kernels of ``calibrate.c``, in the order of their calls."""
# What the first pass leaves in caches and buffers shows in the second; both are compared with the model.
_PASSES = 2
# More than any part of the table: they only bound the search.
# The search is a bisection for the flash and a scan for the RAM, so these cost a few model runs each.
_MOST_WAITS, _MOST_RAM_WAITS = 31, 4
_LARGEST_RESIDUAL = 15.0
"""Difference of a kernel in per cent beyond which no candidate explains the measurement: that of the worst core model
besides the Cortex-M55."""
_WRITTEN = "cycles.bin"
_SECONDS = 120.0

Kernels = tuple[int, ...]
"""Cycles of each kernel in each pass, without those of the empty one."""


@dataclass(frozen=True)
class Calibration:
    """The memories of a microcontroller that explain a measurement best."""

    mcu: Mcu
    """The microcontroller with these memories."""
    residual: float
    """The largest difference of a kernel between model and measurement, in per cent."""
    unknown: tuple[str, ...]
    """Settings that the measurement does not determine; they have the values of the table."""

    def changed(self) -> dict[str, dict[str, int | bool | str]]:
        """Return the keys of ``timing.memories`` for the project file.

        Settings that the measurement does not determine are left out, so that those of the table stay in effect. An
        empty cache name means that the memory has no cache.
        """
        first, second, *_ = self.mcu.memories
        flash, ram = self.mcu.memories[first], self.mcu.memories[second]
        keys: dict[str, int | bool | str] = {"waits": flash.waits}
        if "prefetch" not in self.unknown:
            keys["prefetch"] = flash.prefetch
        if "caches" not in self.unknown and not flash.fetch_cache and not flash.read_cache:
            keys |= {"fetch-cache": "", "read-cache": ""}
        return {first: keys, second: {"waits": ram.waits}}


def solve(measured: Kernels, modelled: Callable[[Mcu], Kernels], base: Mcu) -> Calibration:
    """Return the candidate of ``base`` whose ``modelled`` cycles are closest to those ``measured``.

    ``modelled`` gives the cycles of each kernel for a microcontroller, as ``modelled_kernels`` returns it; ``base`` is
    the part as the table has it, with the flash as its first memory and the RAM as its second. Closest is the least sum
    of relative differences, so that a short kernel counts as much as a long one.

    Raises ``ProcessFailedError`` (code ``calibration-inconsistent``) if a kernel of the best candidate differs by more
    than 15 %.
    """
    modelled = _remembered(modelled)

    def misfit(mcu: Mcu) -> float:
        return sum(_differences(measured, modelled(mcu)))

    # Each wait state of the RAM gets its own best flash: both stretch the same kernels, so neither can be fixed first.
    candidates = (
        min((_fitted(measured, modelled, form) for form in _forms(_with_ram(base, waits))), key=misfit)
        for waits in range(_MOST_RAM_WAITS + 1)
    )
    best = next(candidates)
    # As soon as one fits worse, more wait states only take longer.
    while misfit(best) > 0 and (found := next(candidates, best)) is not best and misfit(found) <= misfit(best):
        best = min(best, found, key=misfit)
    # The largest single difference, not the sum: one kernel that is far off shows a mechanism that the model lacks.
    residual = 100 * max(_differences(measured, modelled(best)), default=0.0)
    if residual > _LARGEST_RESIDUAL:
        raise ProcessFailedError(
            "calibration-inconsistent",
            place=base.name,
            reason=f"no wait states explain the measured cycles: a kernel differs by {residual:.0f} % at least",
            hint="check mcu, the clock and what mlf_board_setup sets up, or describe the caches in timing",
        )
    return Calibration(best, residual, tuple(_not_identifiable(best, modelled)))


def _remembered(modelled: Callable[[Mcu], Kernels]) -> Callable[[Mcu], Kernels]:
    found: dict[str, Kernels] = {}

    def of(mcu: Mcu) -> Kernels:
        # Each model run starts QEMU, and the search asks for the same memories several times.
        key = repr(mcu.memories)
        if key not in found:
            found[key] = modelled(mcu)
        return found[key]

    return of


def _differences(measured: Kernels, modelled: Kernels) -> list[float]:
    return [abs(one - other) / one for one, other in zip(measured, modelled, strict=True) if one]


def _fitted(measured: Kernels, modelled: Callable[[Mcu], Kernels], form: Mcu) -> Mcu:
    """Return ``form`` with the wait states of flash whose cycles are closest; more wait states take longer."""
    wanted, low, high = sum(measured), 0, _MOST_WAITS
    while low < high:
        middle = (low + high) // 2
        if sum(modelled(_with_flash(form, waits=middle))) < wanted:
            low = middle + 1
        else:
            high = middle
    # The sum decides between neighbours only roughly: one kernel with a large share may pull it past the better one.
    near = [_with_flash(form, waits=waits) for waits in (low - 1, low) if waits >= 0]
    return min(near, key=lambda mcu: sum(_differences(measured, modelled(mcu))))


def _forms(mcu: Mcu) -> Iterator[Mcu]:
    """Yield ``mcu`` as the table has it, then with the other prefetch, and both without the caches of the flash."""
    flash = next(iter(mcu.memories.values()))
    for prefetch in (flash.prefetch, not flash.prefetch):
        yield _with_flash(mcu, prefetch=prefetch)
    if flash.fetch_cache or flash.read_cache:
        for prefetch in (flash.prefetch, not flash.prefetch):
            yield _with_flash(mcu, prefetch=prefetch, fetch_cache="", read_cache="")


def _with_flash(mcu: Mcu, **changes: Any) -> Mcu:
    first = next(iter(mcu.memories))
    # Further accesses of a line take no longer than the first.
    if "waits" in changes and mcu.memories[first].burst >= 0:
        changes["burst"] = min(changes["waits"], mcu.memories[first].burst)
    return replace(mcu, memories={**mcu.memories, first: replace(mcu.memories[first], **changes)})


def _with_ram(mcu: Mcu, waits: int) -> Mcu:
    second = list(mcu.memories)[1]
    return replace(mcu, memories={**mcu.memories, second: replace(mcu.memories[second], waits=waits)})


def _not_identifiable(best: Mcu, modelled: Callable[[Mcu], Kernels]) -> Iterator[str]:
    """Yield what could be different without another number of cycles."""
    first, second = list(best.memories)[:2]
    flash, ram = best.memories[first], best.memories[second]
    cycles = modelled(best)
    if modelled(_with_flash(best, prefetch=not flash.prefetch)) == cycles:
        yield "prefetch"
    if (flash.fetch_cache or flash.read_cache) and modelled(_with_flash(best, fetch_cache="", read_cache="")) == cycles:
        yield "caches"
    if modelled(_with_flash(best, waits=flash.waits + 1)) == cycles:
        yield f"wait states of {first}"
    if modelled(_with_ram(best, ram.waits + 1)) == cycles:
        yield f"wait states of {second}"


# Images --------------------------------------------------------------------------------------------------------------


def _build(folder: Path, toolchain: Path | None, definitions: Mapping[str, str], on_progress: OnProgress) -> Path:
    make_folder(folder)
    build = folder / "build"
    # --fresh: CMake evaluates another toolchain file only in a folder that was not configured before.
    run_cmake(["--fresh"], RUNTIME / "profile", build, runtime_definitions(toolchain, definitions), on_progress)
    return build / "calibrate.elf"


def modelled_kernels(
    board: Board, toolchain: Path | None, folder: Path, on_progress: OnProgress = no_progress
) -> Callable[[Mcu], Kernels]:
    """Return a function that models the cycles of the kernels on a microcontroller, with runs on ``board``.

    Raises as ``Counting`` and ``run_elf``.
    """
    image = _build(folder, toolchain, {"MLF_BOARD": board.name}, on_progress)
    extents = read_firmware(image).functions
    # `run_all` calls the kernels and is not a kernel itself; what it executes between them is counted apart.
    named = {"main": OUTSIDE, "run_all": REST, **{f"kernel_{name}": at for at, name in enumerate(KERNELS, 1)}}
    table = [(extents[name][0], sum(extents[name]) - 1, number) for name, number in named.items()]

    def modelled(mcu: Mcu) -> Kernels:
        on_progress("modelling", 0, 0)
        counting = Counting(image, table, folder, board=board, mcu=mcu)
        run_elf(image, board, plugin=counting.plugin, timeout=_SECONDS)
        calls = [call for call in counting.calls() if call.number != REST]
        return _without_empty([call.cycles.total for call in calls if call.cycles is not None])

    return modelled


def measured_kernels(
    connection: Connection, toolchain: Path | None, folder: Path, counter: str, on_progress: OnProgress = no_progress
) -> Kernels:
    """Return the cycles of the kernels on the device of ``connection``.

    Raises ``ProcessFailedError`` if the counter does not count cycles of a core, also because QEMU emulates the device,
    and ``UsageError`` if the device executes code only from RAM.
    """
    device = connection.device
    if device.flash is None:
        reason = "images are loaded into RAM, so that the wait states of flash cannot be measured"
        hint = "add memory with flash to the runner"
        raise UsageError("calibration-without-flash", place=device.place, reason=reason, hint=hint)
    make_folder(folder)
    # The counter is chosen at compile time, so that reading it costs the same few cycles in each kernel.
    definitions = {**device.definitions(folder.resolve()), "MLF_COUNTER": counter.upper()}
    image = _build(folder, toolchain, definitions, on_progress)
    on_progress("measuring", 0, 0)
    ended = connection.calls(image, opener_in(folder), [_WRITTEN], on_progress).run(_SECONDS)
    # Before the file is read: if the counter does not work, the firmware has ended without writing it.
    check_counted(connection.runner, counter, ended, "calibrate")
    pace, _, *cycles = struct.unpack(f"<{2 + _PASSES * len(KERNELS)}I", (folder / _WRITTEN).read_bytes())
    check_pace(connection.runner, counter, pace)
    if is_emulated(connection.runner):
        raise ProcessFailedError(
            "calibration-on-emulator",
            place=connection.name,
            reason="QEMU emulates the device: its memories have no wait states, and its counter shows no cycles",
            hint="calibrate on a device",
        )
    return _without_empty(cycles)


def _without_empty(cycles: Sequence[int]) -> Kernels:
    """Return the cycles of each kernel without those of the empty one in the same pass."""
    count = len(KERNELS)
    if len(cycles) != _PASSES * count:
        raise ProcessFailedError("run-failed", place="calibrate", reason="the kernels did not all run")
    passes = [cycles[at : at + count] for at in range(0, len(cycles), count)]
    return tuple(max(each - first, 0) for first, *others in passes for each in others)
