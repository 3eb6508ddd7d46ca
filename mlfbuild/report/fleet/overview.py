"""The overview: each image of each report, with its figures in each commit that changed them.

There may be some 100,000 versions and changes: they are tuples, which are made three times as fast as dataclasses.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from mlfbuild.core import printable, read_bytes, sha256, walk_visible
from mlfbuild.report.fleet.columns import COLUMNS, INDEX, Figures, Value
from mlfbuild.report.fleet.git_history import Commit, FileChange, contents, history
from mlfbuild.report.fleet.table import TITLE, BlobFigures, FigureTable, FileProblem

_PLOTTED = [(index, column.name) for index, column in enumerate(COLUMNS) if column.plotted]


class Version(NamedTuple):
    """The figures of an image from one commit on, until the next version."""

    commit: Commit | None
    """``None`` if the report is a file of a folder."""
    figures: Figures

    def value(self, column: str) -> Value:
        """Return the figure of this name."""
        return self.figures[INDEX[column]]

    @property
    def date(self) -> str:
        """The commit's date and time in UTC, as ``2026-11-28T14:57:31Z``; empty without a commit."""
        return self.commit.date if self.commit else ""


@dataclass(frozen=True)
class FleetImage:
    """An image for a target in one report."""

    report: str
    """The path of the report, or of the baseline."""
    versions: tuple[Version, ...]
    """At least one, the oldest first; two that follow each other differ."""
    removed: Commit | None = None
    """The commit that removed it, if it is not there any more."""

    @property
    def now(self) -> Version:
        """The last version."""
        return self.versions[-1]

    @property
    def title(self) -> str:
        """Such as ``app for m4``."""
        return " for ".join(str(each) for each in self.now.figures[TITLE] if each)

    def growth(self, column: str) -> int | None:
        """Return the change of a figure from the first to the last version; ``None`` if one of them lacks it."""
        first, last = self.versions[0].value(column), self.now.value(column)
        return last - first if isinstance(first, int) and isinstance(last, int) else None

    @cached_property
    def changes(self) -> tuple[FigureChange, ...]:
        """Each change of a plotted figure that both versions have, the oldest first."""
        found, title = [], self.title
        for (_, before), (commit, now) in zip(self.versions, self.versions[1:], strict=False):
            for index, name in _PLOTTED:
                old, new = before[index], now[index]
                if old != new and isinstance(old, int) and isinstance(new, int) and commit:
                    found.append(FigureChange(self.report, title, name, commit, old, new))
        return tuple(found)


class FigureChange(NamedTuple):
    """A commit that changed a figure of an image."""

    report: str
    title: str
    """Of the image."""
    column: str
    commit: Commit
    before: int
    now: int


@dataclass(frozen=True)
class Unreadable:
    """A report or baseline that cannot be read."""

    problem: FileProblem
    """Its place begins with the path."""
    commit: Commit | None
    current: bool
    """Whether it is the present state of the file; otherwise, a later commit replaced or removed it."""


@dataclass(frozen=True)
class Fleet:
    """All images that were found."""

    images: tuple[FleetImage, ...]
    """By path of the report, then in its order; those that a commit removed are included."""
    commits: tuple[Commit, ...] = ()
    """The commit before the range, and those that change a report; the oldest first, empty for folders."""
    unreadable: tuple[Unreadable, ...] = ()
    files: int = 0
    """JSON files that were looked at."""
    shallow: bool = False
    """Whether older commits are missing in the clone."""

    @cached_property
    def present(self) -> tuple[FleetImage, ...]:
        """The images that are there at the end of the range."""
        return tuple(image for image in self.images if image.removed is None)

    @cached_property
    def changes(self) -> tuple[FigureChange, ...]:
        """The changes of plotted figures, newest commit first, and the largest first in each commit."""
        at = {commit.id: index for index, commit in enumerate(self.commits)}
        found = (change for image in self.images for change in image.changes)

        def newest_and_largest(change: FigureChange) -> tuple[int, float]:
            *_, commit, before, now = change
            return -at[commit.id], -abs(now - before) / max(before, 1)

        return tuple(sorted(found, key=newest_and_largest))

    @cached_property
    def repeated(self) -> dict[str, list[str]]:
        """The titles of images that several reports have, each with the paths."""
        paths: dict[str, list[str]] = defaultdict(list)
        for image in self.present:
            paths[image.title].append(image.report)
        return {title: found for title, found in paths.items() if len(found) > 1}


def fleet_of_folders(folders: Sequence[Path], table: FigureTable) -> Fleet:
    """Return the images of all reports and baselines in ``folders``, also in folders below, and in files named there.

    Hidden folders are left out. Raises ``InputFileError`` for a path that does not exist or cannot be read.
    """
    paths = dict.fromkeys(path for folder in folders for path in _json_files(folder))
    # Read twice if they are new, because all of them may not fit into memory.
    blobs = {path: _blob(read_bytes(path, "report")) for path in paths}
    places = {blob: path for path, blob in blobs.items()}

    def contents_of(unknown: list[str]) -> Iterator[tuple[str, bytes]]:
        new = (read_bytes(places[blob], "report") for blob in unknown)
        return ((_blob(data), data) for data in new)

    figures = table.figures(blobs.values(), contents_of)
    states = _States()
    for path, blob in blobs.items():
        states.set(None, FileChange(path.as_posix(), blob), figures.get(blob, BlobFigures({})))
    return states.fleet((), files=len(blobs))


def _blob(data: bytes) -> str:
    """Return the id that Git gives a content in a repository with SHA-256."""
    return sha256((b"blob %d\0" % len(data), data))


def _json_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        yield folder
        return
    for parent, names in walk_visible(folder):
        yield from (parent / name for name in names if name.endswith(".json"))


def fleet_of_commits(revisions: str, pattern: str, table: FigureTable) -> Fleet:
    """Return the images of all committed reports and baselines in ``revisions``, with the commits that changed them.

    The arguments and errors are those of ``history``. Contents that ``table`` has are not read.
    """
    found = history(revisions, pattern)
    figures = table.figures(found.blobs, contents)
    states = _States()
    for commit, changes in ((found.start, found.files), *found.commits):
        for change in changes:
            states.set(commit, change, figures.get(change.blob or "", BlobFigures({})))
    commits = (*([found.start] if found.start else []), *(commit for commit, _ in found.commits))
    return states.fleet(commits, len(figures), shallow=found.shallow)


@dataclass
class _States:
    """The images of each file while the commits are gone through, the oldest first."""

    files: dict[str, dict[Figures, list[Version]]] = field(default_factory=dict)
    """By path and title."""
    removed: dict[tuple[str, Figures], Commit | None] = field(default_factory=dict)
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    """The files whose present content cannot be read."""
    replaced: list[Unreadable] = field(default_factory=list)
    """Those that another commit replaced."""

    def set(self, commit: Commit | None, change: FileChange, found: BlobFigures) -> None:
        """Add what a file has from ``commit`` on."""
        path = printable_path(change.path)
        if path in self.unreadable:
            self.replaced.append(replace(self.unreadable.pop(path), current=False))
        if found.problem is not None:
            # Its images stay as they were: a report that was damaged once is not one whose images are gone.
            place = ": ".join(filter(None, (path, found.problem.place)))
            self.unreadable[path] = Unreadable(replace(found.problem, place=place), commit, current=True)
            return
        now = found.images
        images = self.files.setdefault(path, {})
        if self.removed or images.keys() != now.keys():
            self._set_removed(path, now, commit)
        for title, figures in now.items():
            versions = images.get(title)
            if versions is None:
                images[title] = [Version(commit, figures)]
            elif versions[-1].figures != figures:
                versions.append(Version(commit, figures))

    def _set_removed(self, path: str, now: Container[Figures], commit: Commit | None) -> None:
        for title in self.files[path]:
            if title in now:
                self.removed.pop((path, title), None)
            else:
                self.removed.setdefault((path, title), commit)

    def fleet(self, commits: tuple[Commit, ...], files: int, *, shallow: bool = False) -> Fleet:
        """Return the result; ``commits`` may have some that changed other files."""
        images = [
            FleetImage(path, tuple(versions), self.removed.get((path, title)))
            for path, found in sorted(self.files.items())
            for title, versions in found.items()
        ]
        unreadable = (*self.unreadable.values(), *self.replaced)
        named = [*(each.commit for each in unreadable), *(image.removed for image in images)]
        named += (version.commit for image in images for version in image.versions)
        told = {commit.id for commit in named if commit is not None}
        return Fleet(
            tuple(images), tuple(commit for commit in commits if commit.id in told), unreadable, files, shallow
        )


@cache
def printable_path(path: str) -> str:
    """Return a path as text that every output can have: bytes that are not UTF-8 and control characters as escapes."""
    return printable(os.fsencode(path).decode(errors="backslashreplace"))
