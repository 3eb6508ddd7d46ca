"""A board that QEMU emulates, behind QEMU's GDB stub: driven like a device, without semihosting."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mlfbuild.project import RunnerKeys
from mlfbuild.runners.gdb import ANSWER_SECONDS, Gdb
from mlfbuild.targets import BOARDS, GDB_SERVERS, Board, MemoryRegion


class EmulatedBoard(Gdb):
    """A board that runs in QEMU for as long as it is connected."""

    def __init__(
        self, board: Board, place: str, memory: Sequence[MemoryRegion] = (), timeout: float = ANSWER_SECONDS
    ) -> None:
        # Memories of the target's microcontroller win, because they may be smaller than those of the board.
        regions = tuple(memory) or tuple(board.regions.values())
        server = GDB_SERVERS["qemu"]
        super().__init__(f"qemu {board.name}", place, server, memory=regions, timeout=timeout, console=self._printed)
        self._board = board
        # For the file of the console, which QEMU writes until it ends.
        self._folder = tempfile.TemporaryDirectory(prefix="mlfbuild-qemu-")
        self._shown = 0

    def start(self) -> None:
        """Start QEMU, halted before the first instruction, and connect to it."""
        port = _free_port()
        try:
            self.connect(
                f"127.0.0.1:{port}",
                [
                    # -S halts the core before its first instruction. The serial port goes to a file because a pipe that
                    # is not read would stop the emulated core.
                    self._board.emulator, *self._board.machine, "-S", "-gdb", f"tcp:127.0.0.1:{port}",
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


def connect(keys: RunnerKeys, place: str, memory: Sequence[MemoryRegion]) -> Gdb:
    """Return the emulated board of ``keys``."""
    seconds = ANSWER_SECONDS if keys.timeout is None else keys.timeout / 1e9
    board = EmulatedBoard(BOARDS[keys.address], place, memory, seconds)
    board.start()
    return board


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        # Another program may take the port before QEMU listens there: GDB would then fail to connect, or meet a server
        # that _check_kind refuses. QEMU does not report a port that the system chose.
        return int(server.getsockname()[1])
