"""Files below an untrusted folder: links are followed only inside of it, contents are read when needed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import InputFileError, quoted, real_place
from mlfbuild.library import Content, LazyBytes
from mlfbuild.requirements.patterns import matches

MOST_FILES = 20_000
MOST_BYTES = 256 * 1024 * 1024
_DEEPEST = 64


class FolderFile(LazyBytes):
    """The content of a file on disk, which is open only while it is read."""

    __slots__ = ("_path", "_size")

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``; raises ``InputFileError`` if they can no longer be read."""
        wanted = max(0, min(size, self._size - offset))
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                data = file.read(wanted)
        except OSError as error:
            raise _unreadable(self._path, error) from None
        if len(data) != wanted:
            raise InputFileError(
                "file-changed", place=self._path, reason="the file became shorter while it was read", hint="try again"
            )
        return data


@dataclass(frozen=True)
class _Folder:
    path: Path
    name: str
    """Relative to the top, empty for the top itself."""
    around: frozenset[Path]
    """Real paths of it and of the folders that contain it."""


class Listing:
    """Files of ``top`` in the folders that were listed, each once.

    Names that begin with a dot are left out, and with them ``.git``. ``title`` is the place for messages.
    """

    def __init__(self, top: Path, title: str) -> None:
        self._top = top
        self._real_top = real_place(top)
        self._title = title
        self._bytes = 0
        self._found: dict[str, Content] = {}

    @property
    def files(self) -> dict[str, Content]:
        """All files found so far, sorted by path."""
        return dict(sorted(self._found.items()))

    def has_folder(self, name: str) -> bool:
        """Return whether ``name`` is a folder in exactly this spelling, inside of the top."""
        path = self._top
        for part in name.split("/") if name else ():
            if part not in _entries(path):
                return False
            path /= part
        return os.path.isdir(path) and self._inside(real_place(path))  # noqa: PTH112 - that of a path raises errors

    def below(self, name: str) -> list[str]:
        """Return the paths of all files in the folder ``name`` and below it, sorted.

        Raises ``InputFileError`` for unreadable and special files, links that lead out or in circles, names that a
        build cannot use, and more files than a library has.
        """
        path = self._top / name
        real = real_place(path)
        above = frozenset(real_place(self._top / folder) for folder in _parents(name))
        if not self._inside(real):
            raise self._refused(name, "is a link that leads out of the folder")
        return sorted(self._walk(_Folder(path, name, above | {real})))

    def at_top(self, patterns: Sequence[str]) -> list[str]:
        """Return the names of the files at the top that match any of ``patterns``; raises as ``below``."""
        names = [name for name in _entries(self._top) if any(matches(pattern, name) for pattern in patterns)]
        return [name for name in names if not name.startswith(".") and not self._take(name)]

    def _walk(self, folder: _Folder) -> Iterator[str]:
        if len(folder.around) > _DEEPEST:
            raise self._refused(folder.name, f"is nested deeper than {_DEEPEST} folders")
        for name in _entries(folder.path):
            path = f"{folder.name}/{name}" if folder.name else name
            if name.startswith("."):
                continue
            if not self._take(path):
                yield path
                continue
            real = real_place(self._top / path)
            if real in folder.around:
                raise self._refused(path, "is a link to a folder that it is in")
            yield from self._walk(_Folder(self._top / path, path, folder.around | {real}))

    def _take(self, path: str) -> bool:
        """Return whether ``path`` is a folder; a file is added to those found."""
        mode, size = self._status(path)
        if stat.S_ISREG(mode):
            self._add(path, size)
        return stat.S_ISDIR(mode)

    def _status(self, path: str) -> tuple[int, int]:
        """Return mode and size of ``path``, following links that stay inside."""
        if not path.isprintable() or "\\" in path:
            raise self._refused(path, "has a name with control characters or a backslash")
        place = self._top / path
        try:
            if place.is_symlink() and not self._inside(real_place(place)):
                raise self._refused(path, "is a link that leads out of the folder")
            status = place.stat()
        except OSError as error:
            raise _unreadable(place, error) from None
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise self._refused(path, "is neither a file nor a folder")
        return status.st_mode, status.st_size

    def _add(self, path: str, size: int) -> None:
        if path in self._found:
            return
        self._bytes += size
        if len(self._found) >= MOST_FILES:
            raise self._too_much(f"{MOST_FILES:,} files")
        if self._bytes > MOST_BYTES:
            raise self._too_much(f"{MOST_BYTES >> 20} MiB")
        self._found[path] = FolderFile(self._top / path, size)

    def _inside(self, real: Path) -> bool:
        return real == self._real_top or self._real_top in real.parents

    def _refused(self, path: str, reason: str) -> InputFileError:
        return InputFileError(
            "library-file-refused",
            place=self._title,
            reason=f"{quoted(path)} in {self._top} {reason}",
            hint="remove it, or name other folders in `sources` and `include-dirs`",
        )

    def _too_much(self, limit: str) -> InputFileError:
        return InputFileError(
            "library-too-large",
            place=self._title,
            reason=f"{self._top} has more than {limit}",
            hint="name only the folders of the library in `sources` and `include-dirs`",
        )


def _parents(name: str) -> Iterable[str]:
    """Return the folders that contain the folder ``name``, with the top."""
    names = name.split("/") if name else []
    return ["/".join(names[:count]) for count in range(len(names))]


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: Path, error: OSError) -> InputFileError:
    return InputFileError(
        "library-unreadable",
        place=path,
        reason=f"cannot be read: {error.strerror or error}",
        hint="check the path and its permissions",
    )
