"""Defaults of targets that name a board or a microcontroller: core, memories, and the command of a GDB server.

A target is completed before any check, so that all checks, jobs and files see the same keys as if they were written:

    board: nucleo-f446re   ->   mcu: stm32f446ret6
                                runner: {gdb: "localhost:3333", start: [openocd, -f, interface/stlink.cfg, ...]}
    mcu: stm32f446ret6     ->   cpu: cortex-m4, and runner.memory

A key of the project file is never replaced. One that contradicts the board is a mistake. Boards that QEMU emulates stay
as they are: they are boards of test firmware.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlfbuild import targets
from mlfbuild.core import Mistake
from mlfbuild.project.document import Document
from mlfbuild.project.problems import KeyPath
from mlfbuild.project.runner import TRANSPORTS
from mlfbuild.project.short_forms import select_board
from mlfbuild.targets import CPUS, GDB_SERVERS, PACK_MARK, DevelopmentBoard, DeviceMemoryKeys

AUTO = "auto"
"""A serial port, or a target type of pyOCD, that the board or the microcontroller determines."""
_USUAL_PORT = 3333
"""Of GDB servers without a port of their own in the table."""


def complete_targets(document: Document, root: Path) -> None:
    """Give each target what its board and its microcontroller determine, so that all other checks see it.

    Files of parts are relative to ``root``.
    """
    for name, entry in document.entries("targets"):
        if isinstance(entry, dict):
            path = ("targets", name)
            board = _board(document, path, entry)
            mcu = entry.get("mcu")
            if isinstance(mcu, str) and targets.is_part_file(mcu):
                _complete_from_file(document, path, entry, str((root / mcu).absolute()))
            elif isinstance(mcu, dict) or (isinstance(mcu, str) and targets.described_in(mcu)):
                mcu = _complete_from_pack(document, path, entry, root)
            else:
                _complete_mcu(entry)
            if isinstance(mcu, str) and isinstance(entry.get("runner"), dict):
                _complete_runner(document, (*path, "runner"), entry["runner"], mcu, board)
            select_board(entry)


def _board(document: Document, path: KeyPath, entry: dict[str, Any]) -> DevelopmentBoard | None:
    """Replace the board that a target names by what it stands for, unless the target contradicts it."""
    name = entry.get("board")
    board = targets.development_board(name) if isinstance(name, str) else None
    if board is None:
        return None
    # Not a board of test firmware, which this key selects in all other places.
    del entry["board"]
    mistake = _contradiction(board, entry.get("mcu"), entry.get("cpu"))
    if mistake is not None:
        document.add((*path, "board"), mistake)
        entry.setdefault("cpu", _core(board.mcu))
        return None
    entry.setdefault("mcu", board.mcu)
    if board.server:
        entry.setdefault("runner", {})
    return board


def _contradiction(board: DevelopmentBoard, mcu: object, cpu: object) -> Mistake | None:
    """Return why a target with ``board`` cannot have ``mcu`` or ``cpu``, which may be of any type."""
    if isinstance(mcu, str) and _core(mcu) and not _is_same_part(mcu, board.mcu):
        reason = f"{board.board} has a {board.mcu}, but the target's mcu is {mcu}"
        return Mistake("board-of-another-mcu", reason=reason, hint="remove mcu, or correct board")
    core = _core(board.mcu)
    if isinstance(cpu, str) and cpu in CPUS and CPUS[cpu].core != CPUS[core].core:
        reason = f"{board.board} has a {core}, but the target's cpu is {cpu}"
        return Mistake("board-of-another-cpu", reason=reason, hint=f"use cpu: {core}, or remove cpu")
    return None


def _core(mcu: str) -> str:
    known = targets.model_of(mcu) or targets.part_called(mcu)
    return known.cpu if known else ""


def _is_same_part(one: str, other: str) -> bool:
    """Return whether two names are of one part: one may be the beginning of the other, or of the same row."""
    one, other = one.lower(), other.lower()
    part = targets.part_called(one)
    return one.startswith(other) or other.startswith(one) or (part is not None and part == targets.part_called(other))


def _complete_from_file(document: Document, path: KeyPath, entry: dict[str, Any], file: str) -> None:
    """Give a target what the file of its microcontroller has, or report the file's mistake."""
    try:
        part = targets.part_file(file)
    except Mistake as mistake:
        document.add((*path, "mcu"), mistake)
        return
    assert part is not None
    entry["mcu"] = file
    entry.setdefault("cpu", part.cpu)
    _give_memory(entry, part.keys.memory)


def _complete_from_pack(document: Document, path: KeyPath, entry: dict[str, Any], root: Path) -> str | None:
    """Give a target what a CMSIS-Pack has about its device, and return the name of the device.

    The target's ``mcu`` becomes the path of the pack with the name. Report a mistake and return ``None`` if it has one.
    """
    keys = entry["mcu"]
    try:
        if (
            not isinstance(keys, dict)
            or {*keys} != {"pack", "device"}
            or not all(isinstance(value, str) for value in keys.values())
        ):
            reason = "is neither the name of a microcontroller nor a device in a CMSIS-Pack"
            raise Mistake("pack-invalid", reason=reason, hint="write mcu: {pack: vendor.pack, device: NAME}")
        pack = (root / keys["pack"]).absolute()
        part = targets.pack_device(pack, keys["device"])
        cpu = entry.setdefault("cpu", part.cpu)
        if isinstance(cpu, str) and cpu in CPUS and CPUS[cpu].core != CPUS[part.cpu].core:
            reason = f"{keys['device']} has a {part.cpu}, but the target's cpu is {cpu}"
            raise Mistake("mcu-of-another-cpu", reason=reason, hint=f"use cpu: {part.cpu}, or remove cpu")
    except Mistake as mistake:
        document.refuse((*path, "mcu"), mistake)
        return None
    entry["mcu"] = f"{pack}{PACK_MARK}{part.name}"
    _give_memory(entry, part.memory)
    return part.name


def _complete_mcu(entry: dict[str, Any]) -> None:
    """Give a target the CPU of its microcontroller and its runner the memories.

    A part whose name begins with that of a cycle model, such as ``stm32l4r5zi``, has this model and its own memories.
    Other models have their memories in their table (``verify/device/layout.py``).
    """
    mcu = entry.get("mcu")
    if not isinstance(mcu, str):
        return
    part = None if mcu in targets.MCUS else targets.part_called(mcu)
    model = targets.model_of(mcu) if part or mcu in targets.MCUS else None
    if model is not None:
        entry["mcu"] = model.name
    known = model or part
    if known is not None:
        entry.setdefault("cpu", known.cpu)
    _give_memory(entry, part.memory if part else None)


def _give_memory(entry: dict[str, Any], memory: DeviceMemoryKeys | None) -> None:
    """Give the runner of a target, unless it is an emulator, the ``memory`` of the part as a project file has it."""
    runner = entry.get("runner")
    if memory is not None and isinstance(runner, dict) and "qemu" not in runner:
        regions = {name: region for name, region in (("ram", memory.ram), ("flash", memory.flash)) if region}
        runner.setdefault(
            "memory", {name: {"origin": each.origin, "size": each.size} for name, each in regions.items()}
        )


def _complete_runner(
    document: Document, path: KeyPath, runner: dict[str, Any], mcu: str, board: DevelopmentBoard | None
) -> None:
    """Give a runner the command of the GDB server, if it names no other way to the device, and the values ``auto``."""
    words = targets.server_words(mcu, board)
    server = runner.get("server", board.server if board else "")
    if not {*TRANSPORTS} & {*runner} and isinstance(server, str) and server in GDB_SERVERS:
        start = _start(server, words, board, chosen="probe" in runner)
        if start:
            runner.setdefault("start", start)
            runner["gdb"] = f"localhost:{GDB_SERVERS[server].port or _USUAL_PORT}"
            runner["server"] = server
        else:
            place = (*path, "server") if "server" in runner else path
            reason = f"mlfbuild does not know the command that starts {server} for {mcu}"
            hint = f'add gdb: "localhost:{GDB_SERVERS[server].port or _USUAL_PORT}" and start'
            document.report(place, "server-command-unknown", reason, hint)
            document.refused.add(path)  # that it has no way to the device follows
    auto = {"pyocd": words.get("pyocd", ""), "console": _port(board), "serial": _port(board)}
    for key, value in auto.items():
        if runner.get(key) == AUTO and value:
            runner[key] = value
        elif runner.get(key) == AUTO:
            what = "pyOCD's target type" if key == "pyocd" else "the serial port"
            reason = f"mlfbuild does not know {what} of {board.board if board else mcu}"
            document.add((*path, key), Mistake("value-not-known", reason=reason, hint="write its name"))


def _start(server: str, words: Mapping[str, str], board: DevelopmentBoard | None, *, chosen: bool) -> list[str] | None:
    """Return the command that starts ``server``, ``None`` if a name in it is not known.

    With ``chosen`` it gets the serial number of the debugger, which is replaced when it runs.
    """
    keys = GDB_SERVERS[server]
    debugger = keys.debuggers.get((board.debugger if board else "") or "cmsis-dap", ())
    try:
        filled = [word.format(**words) for word in keys.start]
    except KeyError:
        return None
    return [*filled[:1], *debugger, *filled[1:], *(keys.select if chosen else ())]


def _port(board: DevelopmentBoard | None) -> str:
    """Return the URL with which pyserial opens the first serial port of the board's debugger, empty without one."""
    return f"hwgrep://{board.usb}" if board and board.usb else ""
