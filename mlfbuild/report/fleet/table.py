"""The figures of files that were read before, by the id of their content: an SQLite file in the user's cache.

A blob never changes, so its figures are read once; a later overview of the same history parses new blobs only. The
table is made again for another mlfbuild, which may read files differently, and if it is damaged.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from typing_extensions import Self

from mlfbuild.core import InputFileError, StorageError, cache_folder, package_fingerprint
from mlfbuild.report.fleet.columns import COLUMNS, Figures
from mlfbuild.report.fleet.reading import read_figures

_BATCH = 500
"""Blobs of a transaction: what is lost if the command is interrupted."""
_PATIENCE = 60.0
"""Seconds to wait for another process that writes the table."""
_SETTINGS = ("temp_store = MEMORY", "cache_size = -262144", "mmap_size = 1073741824")
"""Look-ups by id jump through the file: without memory for all of it (in KiB and bytes), each would read a page."""
_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL"}
_MARKS = ", ".join("?" * (1 + len(COLUMNS)))
_SCHEMA = f"""
CREATE TABLE mlfbuild (fingerprint TEXT);
CREATE TABLE blobs (id TEXT PRIMARY KEY, place TEXT, reason TEXT, hint TEXT) WITHOUT ROWID;
CREATE TABLE figures (blob TEXT, {", ".join(f"{column.name} {_TYPES[column.kind]}" for column in COLUMNS)});
CREATE INDEX of_blob ON figures (blob);
"""
"""A blob with a reason is damaged, and one without figures is neither a report nor a baseline."""


@dataclass(frozen=True)
class FileProblem:
    """Why a report or baseline cannot be read."""

    place: str
    """Within the file; empty if it is the whole file."""
    reason: str
    hint: str


@dataclass(frozen=True)
class BlobFigures:
    """What is known about the content of a file; the images are empty if it is neither a report nor a baseline."""

    images: tuple[Figures, ...] = ()
    problem: FileProblem | None = None


class FigureTable:
    """The table of one cache file; use it in a ``with`` block, which closes it.

    ``parsed`` counts the blobs that were not in the table and had to be parsed.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the table in the file ``path``; ``None`` is a table in memory that nothing remembers.

        A file that cannot be opened or written, or is locked for a minute, is left alone: the table is in memory then.
        """
        self.parsed = 0
        try:
            self._open(path)
        except sqlite3.OperationalError:
            self._open(None)
        except sqlite3.DatabaseError:  # not a database, or half a file
            assert path is not None
            self._database.close()
            path.unlink()
            self._open(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def _open(self, path: Path | None) -> None:
        self._database = sqlite3.connect(path or ":memory:", timeout=_PATIENCE)
        for setting in _SETTINGS:
            self._database.execute(f"PRAGMA {setting}")
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")  # two first commands at a time make one table
            found = self._database.execute("SELECT name FROM sqlite_master WHERE name = 'mlfbuild'").fetchone()
            known = found and self._database.execute("SELECT fingerprint FROM mlfbuild").fetchone()
            if known != (package_fingerprint(),):
                self._make()

    def _make(self) -> None:
        for name in ("mlfbuild", "blobs", "figures"):
            self._database.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self._database.execute(statement)
        self._database.execute("INSERT INTO mlfbuild VALUES (?)", (package_fingerprint(),))

    def unknown(self, blobs: Iterable[str]) -> list[str]:
        """Return those of ``blobs`` that are not in the table, each once, in their order."""
        wanted = dict.fromkeys(blobs)
        self._want(wanted)
        known = {row[0] for row in self._database.execute("SELECT id FROM blobs JOIN wanted USING (id)")}
        return [blob for blob in wanted if blob not in known]

    def add(self, contents: Iterable[tuple[str, bytes]]) -> None:
        """Parse the contents of blobs that the table does not have, each with its id, and keep their figures."""
        remaining = iter(contents)
        while batch := list(islice(remaining, _BATCH)):
            found = {blob: _parsed(data) for blob, data in batch}
            self.parsed += len(found)
            with self._database:
                self._database.executemany(
                    "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?, ?)",
                    ((blob, *_fields(each.problem)) for blob, each in found.items()),
                )
                self._database.executemany("DELETE FROM figures WHERE blob = ?", ((blob,) for blob in found))
                self._database.executemany(
                    f"INSERT INTO figures VALUES ({_MARKS})",  # noqa: S608 - question marks
                    ((blob, *figures) for blob, each in found.items() for figures in each.images),
                )

    def figures(self, blobs: Iterable[str]) -> Mapping[str, BlobFigures]:
        """Return what is known about each of ``blobs``; those that are no reports have no images."""
        self._want(dict.fromkeys(blobs))
        images: dict[str, list[Figures]] = {}
        for blob, *figures in self._database.execute(
            "SELECT figures.* FROM wanted JOIN figures ON blob = id ORDER BY figures.rowid"
        ):
            images.setdefault(blob, []).append(tuple(figures))
        found = {blob: BlobFigures(tuple(each)) for blob, each in images.items()}
        damaged = "SELECT id, place, reason, hint FROM wanted JOIN blobs USING (id) WHERE reason IS NOT NULL"
        return found | {
            blob: BlobFigures(problem=FileProblem(*fields)) for blob, *fields in self._database.execute(damaged)
        }

    def _want(self, blobs: Iterable[str]) -> None:
        """Put ``blobs`` into a temporary table, because a statement has room for some thousand values only."""
        with self._database:
            self._database.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (id TEXT PRIMARY KEY) WITHOUT ROWID")
            self._database.execute("DELETE FROM wanted")
            self._database.executemany("INSERT INTO wanted VALUES (?)", ((blob,) for blob in sorted(blobs)))


def _fields(problem: FileProblem | None) -> tuple[str | None, ...]:
    return (problem.place, problem.reason, problem.hint) if problem else (None, None, None)


_NO_PLACE = Path("\0")
"""Stands for the path of a blob, which may be at several paths: errors begin with it, and it is cut off."""


def _parsed(data: bytes) -> BlobFigures:
    try:
        return BlobFigures(read_figures(data, _NO_PLACE))
    except InputFileError as error:
        place = error.place.removeprefix(str(_NO_PLACE)).removeprefix(": ")
        return BlobFigures(problem=FileProblem(place, error.reason, error.hint))


@contextlib.contextmanager
def figure_table() -> Iterator[FigureTable]:
    """Yield the table in the user's cache, or one in memory if there is no permission for it.

    Raises ``StorageError`` if the table turns out to be damaged, or if the disk is full.
    """
    try:
        path: Path | None = cache_folder("fleet") / "figures.sqlite"
    except StorageError:
        path = None
    try:
        with FigureTable(path) as table:
            yield table
    except sqlite3.Error as error:
        raise StorageError(
            "fleet-cache-unusable",
            place=path,
            reason=f"the cache cannot be used: {error}",
            hint="check free space, or remove the file, which is made again",
        ) from None
