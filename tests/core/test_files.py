"""Files that are written whole: what stands for a device or a pipe stays one."""

import os
import stat
import threading
from pathlib import Path

from mlfbuild.core import write_atomic


def test_a_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, [b"one ", b"two"])
    reader.join()
    assert got == [b"one two"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
