"""Devices that firmware images run on, however they are reached: one protocol, and a class for each transport.

    runner: {gdb: "localhost:3333"}  ->  open_runner  ->  Runner: load, reset, go, read, write, console, close

``types`` has the protocol. ``gdb`` drives any GDB remote server through GDB itself, ``qemu`` is an emulated board
behind such a server. ``host_calls`` serves the calls that firmware of mlfbuild makes to its host (files, output, exit
status) over any runner, so that the same test firmware runs on an emulator, behind a probe and on a serial line.

Example: read the first word of the vector table of a device::

    with open_runner(target.runner, place) as runner:
        runner.load(Path("app.elf"))
        stack_pointer = int.from_bytes(runner.read(0x08000000, 4), "little")

It knows neither models nor vectors; ``mlfbuild.verify`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.runners.calls import call_function
    from mlfbuild.runners.command import command_words
    from mlfbuild.runners.faults import describe_fault
    from mlfbuild.runners.firmware import Firmware, read_firmware
    from mlfbuild.runners.gdb_servers import gdb_server
    from mlfbuild.runners.host_calls import FileOpener, HostCalls, HostRun, opener_in, start_at_entry
    from mlfbuild.runners.image_checks import check_for_board, check_fpu
    from mlfbuild.runners.image_run import run_to_end
    from mlfbuild.runners.open import device_memory, is_emulated, needed_for, open_runner
    from mlfbuild.runners.serial_port import SerialPort
    from mlfbuild.runners.types import Runner
else:
    __getattr__ = lazy_attributes(__name__)
