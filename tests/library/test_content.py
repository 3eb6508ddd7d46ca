"""Contents that stay in their file: the same bytes as in memory, and documented errors."""

import io
import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core.errors import InputFileError, StorageError
from mlfbuild.library import CHUNK, chunks, content as content_module, spooled, text_of
from mlfbuild.library.content import Stored, StoredFile
from support.errors import raises

DATA = bytes(range(256)) * 20


def stored(begin: int, end: int) -> Stored:
    return Stored(StoredFile(io.BytesIO(DATA), "a.bin"), begin, end - begin)


@given(st.integers(0, len(DATA)), st.integers(0, len(DATA)), st.integers(0, 6000), st.integers(0, 6000))
def test_a_stored_slice_equals_its_bytes(first: int, second: int, offset: int, size: int) -> None:
    begin, end = sorted((first, second))
    content = stored(begin, end)
    assert len(content) == end - begin and bytes(content) == DATA[begin:end]
    assert content.read(offset, size) == DATA[begin:end][offset : offset + size]
    assert b"".join(chunks(content)) == DATA[begin:end]


def test_contents_with_equal_bytes_are_equal() -> None:
    assert stored(0, 300) == DATA[:300] and DATA[:300] == stored(0, 300)
    assert stored(0, 256) == stored(256, 512)
    assert stored(0, 256) != stored(0, 257)
    assert stored(0, 256) != stored(1, 257)
    assert stored(0, 2) != "\0\1"
    with pytest.raises(TypeError, match="unhashable"):
        hash(stored(0, 1))


def test_the_repr_of_a_content_shows_its_size() -> None:
    assert repr(stored(1, 301)) == "<Stored: 300 bytes>"


def test_chunks_are_of_one_size(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(2 * CHUNK + 5))
    content = Stored(StoredFile(path.open("rb"), "a.bin"), 1, 2 * CHUNK + 3)
    assert [len(chunk) for chunk in chunks(content)] == [CHUNK, CHUNK, 3]


def test_text() -> None:
    file = StoredFile(io.BytesIO("x é \ufffe".encode() + b"\xff"), "a.txt")
    assert text_of(Stored(file, 2, 3)) == "é "
    assert text_of(Stored(file, 0, file.size)) == "x é \ufffe\ufffd"


def test_threads_share_a_file() -> None:
    contents = [stored(i, i + 256) for i in range(256)]
    wrong: list[int] = []

    def check() -> None:
        for index, content in enumerate(contents):
            if bytes(content) != DATA[index : index + 256]:
                wrong.append(index)

    threads = [threading.Thread(target=check) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_pipe_cannot_be_read() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with raises(InputFileError, "file-unreadable", at="a pipe"):
        StoredFile(os.fdopen(reading, "rb", buffering=0), "a pipe")


# Spooled -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "kind"), [(0, bytes), (99, bytes), (100, bytes), (101, Stored), (5000, Stored)])
def test_large_content_is_spooled_to_a_file(size: int, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_module, "_IN_MEMORY", 100)
    for step in (1, 7, 6000):
        made = spooled(DATA[at : min(size, at + step)] for at in range(0, size, step))
        assert isinstance(made, kind) and made == DATA[:size]


@pytest.fixture
def small_files() -> Iterator[None]:
    """Limit files to 64 KiB, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_large_content_without_disk_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_module, "_IN_MEMORY", 100)
    with raises(StorageError, "temporary-file-not-written", at="temporary file"):
        spooled([DATA] * 100)
