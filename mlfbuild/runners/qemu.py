"""A board that QEMU emulates, behind QEMU's GDB stub: driven like a device, without semihosting."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mlfbuild.project import RunnerKeys
from mlfbuild.runners.gdb import Gdb
from mlfbuild.targets import BOARDS, GDB_SERVERS, MemoryRegion


class EmulatedBoard(Gdb):
    """A board that runs in QEMU for as long as it is connected."""

    def __init__(self, keys: RunnerKeys, place: str, memory: Sequence[MemoryRegion]) -> None:
        """Start QEMU, halted before the first instruction, and connect to it.

        Raises ``ToolNotFoundError`` without QEMU or GDB, ``ConflictError`` if another process has taken the port
        meanwhile, and ``ProcessFailedError`` if they do not connect.
        """
        board = BOARDS[keys.address]
        # Memories of the target's microcontroller win, because they may be smaller than those of the board.
        super().__init__(keys, place, tuple(memory) or tuple(board.regions.values()), GDB_SERVERS["qemu"])
        # For the file of the console, which QEMU writes until it ends.
        self._folder = tempfile.TemporaryDirectory(prefix="mlfbuild-qemu-")
        self._shown = 0
        self.console = self._printed
        port = _free_port()
        try:
            self.connect(
                f"127.0.0.1:{port}",
                [
                    # -S halts the core before its first instruction. The serial port goes to a file because a pipe that
                    # is not read would stop the emulated core.
                    board.emulator, *board.machine, "-S", "-gdb", f"tcp:127.0.0.1:{port}",
                    "-display", "none", "-monitor", "none", "-serial", f"file:{self._output}",
                ],
            )  # fmt: skip
        except BaseException:
            self._folder.cleanup()
            raise

    def close(self) -> None:
        """Stop QEMU."""
        super().close()
        self._folder.cleanup()

    @property
    def _output(self) -> Path:
        return Path(self._folder.name, "console")

    def _printed(self) -> str:
        with self._output.open("rb") as file:
            file.seek(self._shown)
            data = file.read()
        self._shown += len(data)
        return data.decode(errors="replace")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        # Another program may take the port before QEMU listens there: GDB would then fail to connect, or meet a server
        # that _check_kind refuses. QEMU does not report a port that the system chose.
        return int(server.getsockname()[1])


connect = EmulatedBoard
