"""Keep a local cache below its limit, and measure, check and empty it.

**The limit.** Measuring a folder of 100,000 files takes a second, so it is not done for each store. Processes share a
counter instead: to the file ``.added``, each store appends one byte for each 4 KiB that it writes. Appending needs no
lock, and the size of the file is the count. If it exceeds an eighth of the limit, the process that notices sets it back
to zero, measures the folder, and removes the oldest files until seven eighths of the limit remain. The folder therefore
never exceeds its limit by more than what is being written at that moment. If a process ends early, the count is too
high, which costs an early measurement. The file ``.hits`` counts results that were found, in the same way.

Files whose names are not digests do not belong to the cache and are neither counted nor removed, except temporary files
of ``write_atomic`` that a killed process left.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mlfbuild.cache.action_result import MAX_MESSAGE, ActionResult
from mlfbuild.core import SHA256, StorageError, file_sha256, locked, make_folder, storage_error

_COUNTER = ".added"
_HITS = ".hits"
_LOCK = ".lock"
_UNIT = 4096
"""Bytes for which the counter has one: a block of most file systems, the least that a file takes."""
_SHARES = 8
"""The folder is measured when an eighth of its limit was written."""
_TEMPORARY = re.compile(r"\.[0-9a-f]{64}\.[0-9a-f]+\.tmp")
_ABANDONED = 3600
"""Seconds after which a temporary file belongs to a process that was killed."""


def entry_path(folder: Path, kind: str, digest: str) -> Path:
    """Return the path of an entry; ``kind`` is ``ac`` for a result and ``cas`` for a blob."""
    return folder / kind / digest[:2] / digest


class Entry(NamedTuple):
    """A file of the cache; entries are in the order in which they are removed, results before blobs of their time."""

    modified: int
    """Nanoseconds since 1970."""
    kind: str
    digest: str
    size: int
    path: str


@dataclass(frozen=True)
class CacheContent:
    """The size of a local cache."""

    folder: Path
    results: int
    blobs: int
    bytes: int
    """Of all files, without what file systems add to each."""
    hits: int
    """Results that were found since the cache was emptied."""


@dataclass(frozen=True)
class CacheFaults:
    """The damaged and incomplete entries of a local cache, which have been removed."""

    folder: Path
    checked: int
    """Number of entries."""
    damaged: tuple[str, ...]
    """``ac/<key>`` or ``cas/<digest>`` of entries that are not what was written."""
    incomplete: tuple[str, ...]
    """``ac/<key>`` of results without one of their blobs."""


def entries(folder: Path) -> Iterator[Entry]:
    """Yield the files of the cache ``folder``; those that vanish meanwhile are left out."""
    for kind in ("ac", "cas"):
        for file in _files(folder / kind):
            if SHA256.fullmatch(file.name):
                with contextlib.suppress(OSError):
                    status = file.stat(follow_symlinks=False)
                    yield Entry(status.st_mtime_ns, kind, file.name, status.st_size, file.path)


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files in the subfolders of ``folder`` whose names begin as those of the subfolders."""
    with contextlib.suppress(OSError):
        for subfolder in os.scandir(folder):
            if len(subfolder.name) == 2 and subfolder.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    files = os.scandir(subfolder)
                    yield from (file for file in files if file.name.lstrip(".").startswith(subfolder.name))


def add_to_counter(folder: Path, size: int, limit: int) -> bool:
    """Count ``size`` more bytes; return whether the folder should be measured. Raises ``OSError``, ``StorageError``."""
    make_folder(folder)
    descriptor = os.open(folder / _COUNTER, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, bytes(size // _UNIT + 1))
        return os.fstat(descriptor).st_size * _UNIT > limit // _SHARES
    finally:
        os.close(descriptor)


def count_hit(folder: Path) -> None:
    """Count that a result was found; errors are ignored, as in a folder that this user can only read."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder / _HITS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, b"\0")
        finally:
            os.close(descriptor)


def _hits(folder: Path) -> int:
    with contextlib.suppress(OSError):
        return (folder / _HITS).stat().st_size
    return 0


def prune(folder: Path, limit: int) -> None:
    """Remove the least recently used entries until seven eighths of ``limit`` remain.

    Does nothing if another process is doing it. Errors are ignored: files that cannot be removed stay.
    """
    others: list[int | None] = []

    def busy(process: int | None) -> bool:
        others.append(process)
        return False  # do not wait

    with contextlib.suppress(StorageError, OSError), locked(folder / _LOCK, busy, patience=0):
        if others:
            return
        # Before measuring: what others write meanwhile may be counted twice, but is not forgotten.
        os.truncate(folder / _COUNTER, 0)
        _remove_abandoned(folder)
        found = sorted(entries(folder))
        excess = sum(entry.size for entry in found) - (limit - limit // _SHARES)
        for entry in found:
            if excess <= 0:
                break
            with contextlib.suppress(OSError):
                # Used since it was measured?
                if os.lstat(entry.path).st_mtime_ns == entry.modified:
                    Path(entry.path).unlink()
                    excess -= entry.size


def _remove_abandoned(folder: Path) -> None:
    for kind in ("ac", "cas"):
        for file in _files(folder / kind):
            if _TEMPORARY.fullmatch(file.name):
                with contextlib.suppress(OSError):
                    if time.time() - file.stat(follow_symlinks=False).st_mtime >= _ABANDONED:
                        Path(file.path).unlink()


def cache_content(folder: Path) -> CacheContent:
    """Return the numbers and sizes of the entries in ``folder``, which need not exist."""
    found = list(entries(folder))
    results = sum(entry.kind == "ac" for entry in found)
    return CacheContent(folder, results, len(found) - results, sum(entry.size for entry in found), _hits(folder))


def clear_cache(folder: Path) -> CacheContent:
    """Remove all entries of the cache ``folder`` and return what they were; other files and folders stay.

    Builds that run meanwhile find nothing and go on. Raises ``StorageError`` if a file cannot be removed.
    """
    removed = [entry for entry in entries(folder) if _removed(Path(entry.path))]
    _remove_abandoned(folder)
    results, hits = sum(entry.kind == "ac" for entry in removed), _hits(folder)
    _removed(folder / _HITS)
    return CacheContent(folder, results, len(removed) - results, sum(entry.size for entry in removed), hits)


def verify_cache(folder: Path) -> CacheFaults:
    """Read every entry of the cache ``folder`` and remove those that are damaged or lack a blob.

    Raises ``StorageError`` if such an entry cannot be removed.
    """
    found = sorted(entries(folder), key=lambda entry: entry.kind, reverse=True)  # blobs first
    damaged: list[str] = []
    incomplete: list[str] = []
    for entry in found:
        fault = _fault(folder, entry)
        if fault and _removed(Path(entry.path)):
            (damaged if fault == "damaged" else incomplete).append(f"{entry.kind}/{entry.digest}")
    return CacheFaults(folder, len(found), tuple(sorted(damaged)), tuple(sorted(incomplete)))


def _fault(folder: Path, entry: Entry) -> str:
    try:
        with Path(entry.path).open("rb") as file:
            if entry.kind == "cas":
                return "damaged" if file_sha256(file) != entry.digest else ""
            result = ActionResult.from_bytes(file.read(MAX_MESSAGE + 1))
        for output in result.outputs:
            blob = entry_path(folder, "cas", output.sha256)
            if output.size and not (blob.is_file() and blob.stat().st_size == output.size):
                return "incomplete"
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        return "damaged"
    return ""


def _removed(path: Path) -> bool:
    """Remove ``path``; return False if another process has done so meanwhile. Raises ``StorageError``."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(path, error) from None
    return True
