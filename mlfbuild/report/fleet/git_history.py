"""Which files a range of commits has, and their contents, from ``git``: no checkout, and nothing is written.

The history is that of the first parents, so that a merge is one change of the branch it went into. ``git log`` lists
all commits with the ids of changed files in one call, and ``git cat-file --batch`` returns all contents from one
process.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple

from mlfbuild.core import (
    InputFileError,
    MlfError,
    ProcessFailedError,
    UsageError,
    find_tool,
    pipe_of,
    printable,
    quoted,
    running,
    shown,
)

_KEPT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_EXEC_PATH", "GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY")
"""Prefixes of Git's variables that say where the repository is; others would change what commands print."""
# Settings that would change what is printed, run programs, or fetch what a partial clone lacks.
_OPTIONS = (
    "--no-pager", "-c", "log.follow=false", "-c", "log.showSignature=false", "-c", "log.diffMerges=separate",
    "-c", "core.fsmonitor=false", "-c", "protocol.allow=never",
)  # fmt: skip
_EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The id of a tree without files, by the length of the repository's ids; Git knows it in every repository."""
_RANGE = re.compile(r"(?P<old>.*?)\.\.(?P<new>.*)", re.DOTALL)
_REGULAR = "100"
"""Modes of regular files begin with it; links and submodules are no reports."""
_LATEST = 253_402_300_799
"""The last second of the year 9999, the last one of Python's calendar."""
_REFETCH = "fetch them with `git fetch --refetch --filter=blob:limit=1m`, or clone without --filter"
_UNSHALLOW = "fetch it with `git fetch --unshallow`"


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
    shallow = _is_shallow()
    # Three dots are another range of Git, which has no order.
    found = None if "..." in revisions else _RANGE.fullmatch(revisions)
    new = _commit(found["new"] if found else revisions, shallow=shallow)
    old = _commit(found["old"], shallow=shallow) if found else ""
    paths = ("--", f":(glob){pattern}")
    raw = ("-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-relative")
    form = "--format=%H %ct %P%x00%s"
    walk = ("--first-parent", "-m", "--reverse", form, *raw)
    listed = list(_commits(_git("log", *walk, new, *([f"^{old}"] if old else []), *paths)))
    # The state before the first change in the range. It is the parent of that commit and not `old`, which may be on
    # another branch.
    changed = tuple((commit, changes) for commit, _, changes in listed)
    before = (listed[0][1] or [""])[0] if listed else old or new
    if not before:
        return History(None, (), changed, shallow)
    files = _git("diff-tree", *raw, _EMPTY_TREE[len(new)], before, *paths).split("\0")
    ((start, _, _),) = _commits(_git("log", "-z", "--no-walk", "--no-patch", form, old or before))
    return History(start, tuple(map(_change, files[:-1:2], files[1::2])), changed, shallow)


def _is_shallow() -> bool:
    try:
        return _git("rev-parse", "--is-shallow-repository").strip() == "true"
    except ProcessFailedError as error:
        if "not a git repository" not in error.output:
            raise
        raise InputFileError(
            "not-a-git-repository",
            place=Path.cwd(),
            reason="is not in a Git repository",
            hint="name folders with reports instead of --git, or change to the repository with -C DIR",
        ) from None


def _commit(revision: str, *, shallow: bool) -> str:
    """Return the id of the commit that ``revision`` is; empty is ``HEAD``."""
    name = revision or "HEAD"
    if not name.startswith("-"):  # it would be an option of Git
        try:
            return _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
        except ProcessFailedError:
            pass
    if name == "HEAD":
        hint = "commit a report first"
        raise InputFileError("git-without-commits", place=Path.cwd(), reason="the repository has no commit", hint=hint)
    raise UsageError(
        "git-revision-unknown",
        place="--git",
        reason=f"the repository has no commit {quoted(name)}{', and the clone is shallow' if shallow else ''}",
        hint=_UNSHALLOW if shallow else "write OLD..NEW with two commits, tags or branches, such as v1.0..HEAD",
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
    with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as errors:
        wanted.write("".join(f"{blob}\n" for blob in blobs).encode())
        wanted.seek(0)
        with running(_command("cat-file", "--batch"), env=_environment(), stdin=wanted, stderr=errors) as process:
            pipe = pipe_of(process.stdout)
            while head := pipe.readline().decode():
                name, kind, *size = head.split()
                if kind != "blob":
                    raise _missing(name)
                yield name, pipe.read(int(size[0]))
                pipe.read(1)  # the line feed behind it
        if process.returncode != 0:
            raise _failed("cat-file", process.returncode, errors)


def _missing(blob: str) -> MlfError:
    return InputFileError(
        "git-object-missing",
        place=f"object {shown(blob)}",
        reason="the repository does not have this file of a commit",
        hint="fetch it: the clone is partial, or damaged (`git fsck` shows which)",
    )


def _git(*words: str) -> str:
    """Return what a command of Git prints; paths keep bytes that are not UTF-8 as lone surrogates.

    Raises ``ProcessFailedError`` with what it printed to stderr.
    """
    with tempfile.TemporaryFile() as errors:
        with running(_command(*words), env=_environment(), stderr=errors) as process:
            output = process.communicate()[0]
        if process.returncode != 0:
            raise _failed(words[0], process.returncode, errors)
    return output.decode(errors="surrogateescape")


def _failed(verb: str, status: int, errors: IO[bytes]) -> ProcessFailedError:
    errors.seek(0)
    output = "\n".join(map(printable, errors.read().decode(errors="replace").splitlines()))
    reason = f"git {verb} failed with exit status {status}"
    if "promisor remote" in output:
        reason = "the clone is partial and lacks files of these commits"
        return ProcessFailedError("git-clone-partial", output, place="--git", reason=reason, hint=_REFETCH)
    return ProcessFailedError("git-history-failed", output, place="--git", reason=reason, hint="see its output below")


def _command(*words: str) -> list[str]:
    return [str(find_tool("git")), *_OPTIONS, *words]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    # English messages, of which one is recognised; and other objects must not stand in for those of commits.
    return kept | {"LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0"}
