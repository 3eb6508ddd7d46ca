"""Open the device that a project file describes."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence

from mlfbuild.project import RunnerKeys
from mlfbuild.runners.types import Runner
from mlfbuild.targets import BOARDS, MemoryRegion

_MODULES = {"run": "command"}
"""Modules of transports whose names differ from their keys."""


@contextlib.contextmanager
def open_runner(keys: RunnerKeys, place: str, memory: Sequence[MemoryRegion] = ()) -> Iterator[Runner]:
    """Connect to the device of ``keys`` for the block; it is reset and released at the end, also after an error.

    ``place`` locates ``keys`` in messages: ``mlfbuild.yml: targets.nucleo.runner``. ``memory`` are the memories of the
    target's microcontroller; those of ``keys`` win. Raises ``ToolNotFoundError`` if a program, a package or the server
    of the probe is missing, ``ConflictError`` if another process has the device, and ``ProcessFailedError`` if the
    server or the device does not answer as expected.
    """
    # Only one transport is used, and each imports its own library.
    if keys.labgrid is not None:
        from mlfbuild.runners.labgrid import acquired

        with acquired(keys, place) as reached, open_runner(reached, place, memory) as found:
            yield found
        return
    # The key of the project file names the module, so that most transports need no entry here.
    module = importlib.import_module(f"mlfbuild.runners.{_MODULES.get(keys.transport, keys.transport)}")
    runner: Runner = module.connect(keys, place, device_memory(keys) or tuple(memory))
    try:
        yield runner
    finally:
        runner.close()


def is_emulated(runner: Runner) -> bool:
    """Return whether an emulator is known to be behind ``runner``; a serial line does not reveal that.

    Cycles that are counted there are not those of hardware, and counters that QEMU does not emulate are no fault of the
    device.
    """
    return bool(getattr(runner, "emulated", False))


def needed_for(keys: RunnerKeys) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the programs, and the extras of Python packages, that reach the device of ``keys``.

    ``(("gdb-multiarch", "openocd"), ("gdb", "serial"))`` for a GDB server that is started, and a console. Nothing is
    looked for or imported: ``doctor`` checks them.
    """
    # gdb-multiarch is Debian's name for a GDB of all architectures.
    debugger = () if keys.over_serial or keys.pyocd or keys.run else ("gdb-multiarch",)
    emulator = () if keys.qemu is None else (BOARDS[keys.qemu].emulator,)
    extras = {
        "labgrid": keys.labgrid is not None,
        "gdb": bool(debugger),
        "pyocd": keys.pyocd is not None,
        "serial": keys.over_serial or keys.console is not None,
    }
    own = (words[0] for words in (keys.start, keys.flash, keys.run) if words)
    return (*debugger, *emulator, *own), tuple(extra for extra, used in extras.items() if used)


def device_memory(keys: RunnerKeys) -> tuple[MemoryRegion, ...]:
    """Return the memories that ``keys`` describes, none without ``memory``.

    Their names are ``FLASH`` and ``RAM``, as in mlfbuild's linker scripts, in this order.
    """
    if keys.memory is None:
        return ()
    regions = {"FLASH": keys.memory.flash, "RAM": keys.memory.ram}
    return tuple(MemoryRegion(name, each.origin, each.size) for name, each in regions.items() if each is not None)
