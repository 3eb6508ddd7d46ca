"""Which files a range of commits has, and their contents, from ``git``: no checkout, and nothing is written.

The history is that of the first parents, so that a merge is one change of the branch it went into. ``git log`` lists
all commits with the ids of changed files in one call, and ``git cat-file --batch`` returns all contents from one
process.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from mlfbuild.core import UNSHALLOW, GitReader, InputFileError, MlfError, UsageError, pipe_of, printable, quoted, shown

_EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The id of a tree without files, by the length of the repository's ids; Git knows it in every repository."""
_RANGE = re.compile(r"(?P<old>.*?)\.\.(?P<new>.*)", re.DOTALL)
_REGULAR = "100"
"""Modes of regular files begin with it; links and submodules are not reports."""
_LATEST = 253_402_300_799
"""The last second of the year 9999, the last one of Python's calendar."""


@dataclass(frozen=True)
class Commit:
    """A commit of the range."""

    id: str
    time: int
    """Seconds since 1970 of the committer's date; 0 for a date that is none."""
    subject: str

    @cached_property
    def date(self) -> str:
        """The committer's date and time in UTC, as ``2026-11-28T14:57:31Z``."""
        return datetime.fromtimestamp(self.time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class FileChange(NamedTuple):  # not a dataclass: an overview has some 100,000, and this takes a third of the time
    """A file that a commit added, changed or removed."""

    path: str
    """Relative to the top of the repository, with ``/``."""
    blob: str | None
    """The id of its content; ``None`` if it was removed."""


@dataclass(frozen=True)
class History:
    """The files of a range of commits."""

    start: Commit | None
    """The commit before the range; ``None`` if the range has all commits."""
    files: tuple[FileChange, ...]
    """The files of that commit."""
    commits: tuple[tuple[Commit, tuple[FileChange, ...]], ...]
    """Commits of the range that change one of the files, the oldest first."""
    shallow: bool
    """Whether the clone lacks commits before its oldest."""

    @property
    def blobs(self) -> Iterator[str]:
        """All contents, the oldest first; the same one may be there several times."""
        changes = (change for _, changes in ((self.start, self.files), *self.commits) for change in changes)
        return (change.blob for change in changes if change.blob is not None)


def history(revisions: str, pattern: str) -> History:
    """Return the commits in ``revisions`` that change a file with the ``pattern``, in the repository of this folder.

    ``revisions`` is ``OLD..NEW``, of which either may be missing and is ``HEAD`` then, or one revision with all its
    ancestors. ``pattern`` is a glob of Git, relative to the folder, in which ``**`` stands for folders. Raises
    ``UsageError`` for an unknown revision, ``InputFileError`` without a repository or commit, ``ProcessFailedError``,
    and ``ToolNotFoundError``.
    """
    git = GitReader(Path.cwd(), "--git")
    shallow = git.is_shallow()
    if shallow is None:
        reason = "is not in a Git repository"
        hint = "name folders with reports instead of --git, or change to the repository with -C DIR"
        raise InputFileError("not-a-git-repository", place=git.folder, reason=reason, hint=hint)
    # Three dots are another range of Git, which has no order.
    found = None if "..." in revisions else _RANGE.fullmatch(revisions)
    new = _commit(git, found["new"] if found else revisions, shallow=shallow)
    old = _commit(git, found["old"], shallow=shallow) if found else ""
    paths = ("--", f":(glob){pattern}")
    raw = ("-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-relative")
    form = "--format=%H %ct %P%x00%s"
    walk = ("--first-parent", "-m", "--reverse", form, *raw)
    listed = list(_commits(git.output("log", *walk, new, *([f"^{old}"] if old else []), *paths)))
    # The state before the first change in the range. It is the parent of that commit and not `old`, which may be on
    # another branch.
    changed = tuple((commit, changes) for commit, _, changes in listed)
    before = (listed[0][1] or [""])[0] if listed else old or new
    if not before:
        return History(None, (), changed, shallow)
    files = git.output("diff-tree", *raw, _EMPTY_TREE[len(new)], before, *paths).split("\0")
    ((start, _, _),) = _commits(git.output("log", "-z", "--no-walk", "--no-patch", form, old or before))
    return History(start, tuple(map(_change, files[:-1:2], files[1::2])), changed, shallow)


def _commit(git: GitReader, revision: str, *, shallow: bool) -> str:
    """Return the id of the commit that ``revision`` is; empty is ``HEAD``."""
    name = revision or "HEAD"
    commit = git.commit(name)
    if commit is not None:
        return commit
    if name == "HEAD":
        hint = "commit a report first"
        raise InputFileError("git-without-commits", place=git.folder, reason="the repository has no commit", hint=hint)
    raise UsageError(
        "git-revision-unknown",
        place=git.option,
        reason=f"the repository has no commit {quoted(name)}{', and the clone is shallow' if shallow else ''}",
        hint=UNSHALLOW if shallow else "write OLD..NEW with two commits, tags or branches, such as v1.0..HEAD",
    )


def _commits(output: str) -> Iterator[tuple[Commit, list[str], tuple[FileChange, ...]]]:
    """Yield each commit of ``git log`` with its parents and its changed files."""
    found: list[tuple[Commit, list[str], list[FileChange]]] = []
    # Two fields belong together: the line of a commit and its subject, or an entry and its path. So neither a subject
    # nor a path can be taken for something else, whatever is in it.
    fields = (field for field in output.split("\0"))
    for field in fields:
        line = field.strip("\n")
        if line.startswith(":"):
            found[-1][2].append(_change(line, next(fields)))
        elif line:
            name, time, parents = line.split(" ", 2)
            seconds = min(int(time), _LATEST) if time.isdigit() else 0  # it is empty for a damaged date
            found.append((Commit(name, seconds, printable(next(fields))), parents.split(), []))
    return ((commit, parents, tuple(changes)) for commit, parents, changes in found)


def _change(entry: str, path: str) -> FileChange:
    """Return a change from an entry of ``--raw``: modes, ids and kind, the old ones first (git-diff-tree(1))."""
    _, mode, _, blob, kind = entry.split(" ")
    return FileChange(path, None if kind == "D" or not mode.startswith(_REGULAR) else blob)


def contents(blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield each of ``blobs`` with its content, from one process of ``git cat-file``; raises as ``history``."""
    with tempfile.TemporaryFile() as wanted:
        wanted.write("".join(f"{blob}\n" for blob in blobs).encode())
        wanted.seek(0)
        with GitReader(Path.cwd(), "--git").running("cat-file", "--batch", stdin=wanted) as process:
            pipe = pipe_of(process.stdout)
            while head := pipe.readline().decode():
                name, kind, *size = head.split()
                if kind != "blob":
                    raise _missing(name)
                yield name, pipe.read(int(size[0]))
                pipe.read(1)  # the line feed behind it


def _missing(blob: str) -> MlfError:
    return InputFileError(
        "git-object-missing",
        place=f"object {shown(blob)}",
        reason="the repository does not have this file of a commit",
        hint="fetch it: the clone is partial, or damaged (`git fsck` shows which)",
    )
