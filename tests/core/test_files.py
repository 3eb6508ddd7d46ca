"""Files that are written whole, where what stands for a device or a pipe stays one; and folders."""

import os
import stat
import threading
from pathlib import Path

import pytest

from mlfbuild.core import make_folder, write_atomic


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


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, mkdir = tmp_path / "made", Path.mkdir
    attempts: list[Path] = []

    def removed_at_first(path: Path, *arguments: bool, **keywords: bool) -> None:
        # As pathlib behaves if the folder exists when it makes it, and is gone when it looks at it.
        attempts.append(path)
        if len(attempts) == 1:
            raise FileExistsError(path)
        mkdir(path, 0o777, *arguments, **keywords)

    monkeypatch.setattr(Path, "mkdir", removed_at_first)
    make_folder(made)
    assert made.is_dir() and len(attempts) == 2
