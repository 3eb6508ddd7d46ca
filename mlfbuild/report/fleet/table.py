"""The figures of files that were read before, by the id of their content: an SQLite file in the user's cache.

A blob never changes, so its figures are read once; a later overview of the same history parses new blobs only. The
table is made again for another mlfbuild, which may read files differently, and if it is damaged.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from typing_extensions import Self

from mlfbuild.core import InputFileError, StorageError, cache_folder, package_fingerprint
from mlfbuild.report.fleet.columns import COLUMNS, INDEX, Figures, read_figures

_BATCH = 500
"""Blobs of a transaction: what is lost if the command is interrupted."""
_PATIENCE = 60.0
"""Seconds to wait for another process that writes the table."""
_SETTINGS = ("temp_store = MEMORY", "cache_size = -262144", "mmap_size = 1073741824")
"""Look-ups by id jump through the file: without memory for all of it (in KiB and bytes), each would read a page."""
_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL"}
_NAMES = ", ".join(column.name for column in COLUMNS)
_SCHEMA = f"""
CREATE TABLE mlfbuild (fingerprint TEXT);
CREATE TABLE figures (
    blob TEXT, number INTEGER, place TEXT, reason TEXT, hint TEXT,
    {", ".join(f"{column.name} {_TYPES[column.kind]}" for column in COLUMNS)},
    PRIMARY KEY (blob, number)
) WITHOUT ROWID;
"""
"""A row for each image of a blob. One without images has a row whose image is NULL: it is damaged if it has a reason,
and neither a report nor a baseline otherwise. Rows are in the order of the ids, so that sorted look-ups read the file
from its begin to its end.
"""
_MARKS = ", ".join("?" * (5 + len(COLUMNS)))
TITLE = slice(INDEX["image"], INDEX["target"] + 1)
"""The figures by which images of a file differ; of two with the same ones, the last one is kept."""
_NOTHING: Figures = (None,) * len(COLUMNS)


@dataclass(frozen=True)
class FileProblem:
    """Why a report or baseline cannot be read."""

    place: str
    """Within the file; empty if it is the whole file."""
    reason: str
    hint: str


class BlobFigures(NamedTuple):  # not a dataclass, which takes three times as long to make
    """The content of a file; the images are empty if it is neither a report nor a baseline."""

    images: dict[Figures, Figures]
    """By title, those of ``TITLE``."""
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
        for name in ("mlfbuild", "figures"):
            self._database.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self._database.execute(statement)
        self._database.execute("INSERT INTO mlfbuild VALUES (?)", (package_fingerprint(),))

    def figures(
        self, blobs: Iterable[str], contents: Callable[[list[str]], Iterable[tuple[str, bytes]]]
    ) -> Mapping[str, BlobFigures]:
        """Return what is known about each of ``blobs``; those that are not reports have no images.

        ``contents`` is called with the ids that are not in the table, each once and in their order, if there are any.
        It returns each with its content, which is parsed and added.
        """
        wanted = dict.fromkeys(blobs)
        found = self._known(sorted(wanted))
        unknown = [blob for blob in wanted if blob not in found]
        if unknown:
            found.update(self._added(contents(unknown)))
        return found

    def _known(self, blobs: list[str]) -> dict[str, BlobFigures]:
        found: dict[str, BlobFigures] = {}
        titles: dict[Figures, Figures] = {}  # so that equal ones are one object, whose hash is known
        # One parameter with all ids, because a statement has room for some thousand. CROSS fixes which side is the
        # outer loop (SQLite, "Manual Control Of Query Plans").
        columns = f"blob, place, reason, hint, {_NAMES}"
        query = f"SELECT {columns} FROM json_each(?) CROSS JOIN figures ON blob = value"  # noqa: S608 - our own names
        for row in self._database.execute(query, (json.dumps(blobs),)):
            figures = row[4:]
            title = figures[TITLE]
            images = {} if row[4] is None else {titles.setdefault(title, title): figures}
            if row[0] in found:
                found[row[0]].images.update(images)
            else:
                found[row[0]] = BlobFigures(images, None if row[2] is None else FileProblem(*row[1:4]))
        return found

    def _added(self, contents: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, BlobFigures]]:
        remaining = iter(contents)
        while batch := list(islice(remaining, _BATCH)):
            found = {blob: _parsed(data) for blob, data in batch}
            self.parsed += len(found)
            with self._database:
                # Another process may have added them meanwhile, with the same figures.
                self._database.executemany(
                    f"INSERT OR IGNORE INTO figures VALUES ({_MARKS})",  # noqa: S608 - question marks
                    (row for blob, each in found.items() for row in _rows(blob, each)),
                )
            yield from found.items()


def _rows(blob: str, found: BlobFigures) -> Iterator[tuple[str | int | float | None, ...]]:
    problem = found.problem
    reason = (problem.place, problem.reason, problem.hint) if problem else (None, None, None)
    for number, figures in enumerate(found.images.values() or [_NOTHING]):
        yield blob, number, *reason, *figures


_NO_PLACE = Path("\0")
"""Stands for the path of a blob, which may be at several paths: errors begin with it, and it is cut off."""


def _parsed(data: bytes) -> BlobFigures:
    try:
        return BlobFigures({figures[TITLE]: figures for figures in read_figures(data, _NO_PLACE)})
    except InputFileError as error:
        place = error.place.removeprefix(str(_NO_PLACE)).removeprefix(": ")
        return BlobFigures({}, FileProblem(place, error.reason, error.hint))


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
        reason = f"the cache cannot be used: {error}"
        hint = "check free space, or remove the file, which is made again"
        raise StorageError("fleet-cache-unusable", place=path, reason=reason, hint=hint) from None
