"""A new project has all of its files or none, wherever it is interrupted."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core.errors import ConflictError, StorageError
from mlfbuild.usecases.init.staging import staged
from support.errors import raises

FILES = ("a.txt", "src/b.c", "src/deep/c.c", "z.txt")


def fill(stage: Path) -> None:
    for name in FILES:
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).write_text(name)


def make(folder: Path, then: Callable[[], object] = lambda: None) -> None:
    with staged(folder) as stage:
        fill(stage)
        then()


def found(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.parametrize("place", ["there", "new", "new/er"])
def test_all_files_are_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "there").mkdir()
    with staged(tmp_path / place) as stage:
        fill(stage)
        assert not set(FILES) & found(tmp_path / place)
    assert found(tmp_path / place) == {*FILES, "src", "src/deep"}
    assert found(tmp_path) == {"there", place, *(f"{place}/{name}" for name in found(tmp_path / place))} | (
        {"new"} if place == "new/er" else set()
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, ConflictError, OSError])
def test_failing_block_leaves_no_file(tmp_path: Path, error: type[BaseException]) -> None:
    def stop() -> None:
        raise error("stop") if error is not ConflictError else ConflictError("stopped-here", reason="stop")

    with pytest.raises(error):
        make(tmp_path / "new", stop)
    assert found(tmp_path) == set()


@pytest.mark.parametrize("after", range(len(FILES) + 1))
def test_interrupted_move_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Ctrl-C comes directly after a rename, before it is recorded in a variable."""
    (tmp_path / "fw/src").mkdir(parents=True)
    (tmp_path / "fw/src/mine.c").write_text("mine")
    before = found(tmp_path)
    rename, moved = Path.rename, []

    def interrupted(self: Path, target: Path) -> Path:
        if len(moved) == after:
            raise KeyboardInterrupt
        moved.append(rename(self, target))
        if len(moved) == after:
            raise KeyboardInterrupt
        return moved[-1]

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "fw")
    assert len(moved) == min(after, len(FILES))
    assert found(tmp_path) == before


def test_failing_move_is_undone(tmp_path: Path) -> None:
    """A folder of the project is a link to another file system, to which files cannot be renamed."""
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is no other file system here")
    place = other / f"mlfbuild-{os.getpid()}"
    place.mkdir()
    try:
        (tmp_path / "fw").mkdir()
        (tmp_path / "fw/src").symlink_to(place)
        with pytest.raises(StorageError, match=r"src/b\.c: cannot write: Invalid cross-device link"):
            make(tmp_path / "fw")
        assert found(tmp_path) == {"fw", "fw/src"}
        assert list(place.iterdir()) == []
    finally:
        place.rmdir()


def test_file_that_appears_in_the_meantime_stays(tmp_path: Path) -> None:
    (tmp_path / "fw").mkdir()
    with raises(ConflictError, "project-file-exists", at=str(tmp_path / "fw/z.txt")):
        make(tmp_path / "fw", lambda: (tmp_path / "fw/z.txt").write_text("theirs"))
    assert found(tmp_path) == {"fw", "fw/z.txt"}
    assert (tmp_path / "fw/z.txt").read_text() == "theirs"
