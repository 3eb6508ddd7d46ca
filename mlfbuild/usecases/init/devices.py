"""The devices that a new project is built for: boards that QEMU emulates, and microcontrollers of the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlfbuild import targets
from mlfbuild.core import UsageError
from mlfbuild.project import device_problem
from mlfbuild.usecases.init.templates import QEMU
from mlfbuild.verify import linker_script

_LARGEST_STACK = 16 << 10


@dataclass(frozen=True)
class ProjectDevice:
    """A target of a new project."""

    target: str
    """Its name in the project file."""
    cpu: targets.Cpu
    board: targets.Board
    """The board that QEMU emulates, or the name and the memories of the microcontroller."""
    is_emulated: bool = True

    @property
    def keys(self) -> str:
        """The keys of the target in the project file."""
        if self.is_emulated:
            return f"{{cpu: {self.cpu.name}, board: {self.board.name}}}"
        return f"{{{'board' if targets.development_board(self.target) else 'mcu'}: {self.target}}}"

    @property
    def script(self) -> str:
        """The linker script of a microcontroller, with its memories and a stack of at most a quarter of its RAM."""
        board = self.board
        flash = None if board.flash == board.ram else board.flash
        place = "" if flash else " Its flash is another chip: a debugger loads the image into RAM."
        text = linker_script(f"The memories of {self.target}, with {self.cpu.title}.{place}", board.ram, flash)
        stack = min(_LARGEST_STACK, board.ram.size // 4 // 8 * 8)
        return text.replace("INCLUDE mlf_board.ld", f"MLF_STACK_SIZE = {stack};\nINCLUDE mlf_board.ld")


def project_devices(boards: Sequence[str], cpus: Sequence[str], mcus: Sequence[str]) -> tuple[ProjectDevice, ...]:
    """Return the devices with these names, microcontrollers first; if none is emulated, also one that is.

    Raises ``UsageError`` for an unknown name, and for a core whose code no emulated board runs.
    """
    found = [_microcontroller(name, f"--mcu {name}") for name in mcus]
    found += map(_on_board, boards)
    found += [ProjectDevice("", cpu, _board_of(cpu)) for cpu in map(_core, cpus)]
    if found and not any(device.is_emulated for device in found):
        found.append(ProjectDevice(QEMU, found[0].cpu, _board_of(found[0].cpu)))
    return tuple(_named(found))


def _named(devices: Sequence[ProjectDevice]) -> list[ProjectDevice]:
    """Return ``devices``, each once, with names of cores for those that have none, or of boards if a core has two."""
    named: dict[str, ProjectDevice] = {}
    for index, device in enumerate(devices):
        if device in devices[:index]:
            continue
        core = re.sub("[^a-z0-9]", "-", device.cpu.name.removeprefix("cortex-"))
        target = device.target or (device.board.name if core in named else core)
        named[target] = replace(device, target=target)
    return list(named.values())


def _on_board(name: str) -> ProjectDevice:
    """Return the device for ``--board``: a board that the user owns stands for its microcontroller."""
    own = targets.development_board(name)
    if own is not None:
        return replace(_microcontroller(own.mcu, f"--board {name}"), target=own.board)
    _check_option("board", name)
    if name not in targets.BOARDS:
        _refuse_unknown(name, f"--board {name}")
    board = targets.board_called(name)
    return ProjectDevice("", targets.CPUS[board.cpu], board)


def _microcontroller(name: str, place: str) -> ProjectDevice:
    _refuse_unknown(name, place)
    _check_option("mcu", name)
    cpu, memory = targets.memory_of(name)
    if memory is None:
        raise UsageError(
            "mcu-without-memory",
            place=place,
            reason="its memory map is not known",
            hint=f"use --cpu {cpu}, and write a linker script",
        )
    ram = targets.MemoryRegion("RAM", memory.ram.origin, memory.ram.size)
    flash = targets.MemoryRegion("FLASH", memory.flash.origin, memory.flash.size) if memory.flash else ram
    return ProjectDevice(name, targets.CPUS[cpu], targets.Board(name, cpu, flash, ram), is_emulated=False)


def _refuse_unknown(name: str, place: str) -> None:
    """Raise ``UsageError`` if ``name`` is not a core, board or microcontroller, with those that are close to it."""
    mistake = device_problem(name)
    if mistake is not None:
        code = "unknown-board" if place.startswith("--board") else mistake.code
        # The word of a project file, where a core stands beside it.
        hint = "write --cpu instead, whose board QEMU emulates" if name == QEMU else mistake.hint
        raise UsageError(code, place=place, reason=mistake.reason, hint=hint)


def _core(name: str) -> targets.Cpu:
    _check_option("cpu", name)
    return targets.cpu_called(name)


def _check_option(option: str, name: str) -> None:
    """Raise ``UsageError`` if ``name`` is a device that belongs to another option; unknown names pass."""
    keys = targets.keys_of_device(name) or {option: name}
    right = next(key for key in ("mcu", "board", "cpu") if key in keys)
    if right != option:
        reason = f"this is the name of a{' microcontroller' if right == 'mcu' else f' {right}'}"
        raise UsageError("device-of-another-option", place=f"--{option} {name}", reason=reason, hint=f"write --{right}")


def _board_of(cpu: targets.Cpu) -> targets.Board:
    board = targets.emulated_board(cpu)
    if board is None:
        fitting = [name for name, each in targets.CPUS.items() if targets.emulated_board(each)]
        raise UsageError(
            "cpu-without-board",
            place=f"--cpu {cpu.name}",
            reason="QEMU emulates no board that runs its code, and the project would not run",
            hint=f"choose one of {', '.join(fitting)}",
        )
    return board
