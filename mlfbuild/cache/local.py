"""The cache of this machine: a folder with the layout of Bazel's ``--disk_cache``, for many processes at once.

    ac/ab/abcd...    the action result of the key abcd...
    cas/01/0123...   the blob with the SHA-256 0123...
    .added           a counter of what was stored since the size was last measured (upkeep)
    .hits            a counter of results that were found

No process has to wait for another one. Files get their names by one rename when they are complete, blobs never change,
and the last writer of a result wins. What another process removes in between counts as missing.

**Order of use.** The modification time of a file is when it was last used, as in Bazel's cache: times of access are
switched off on many systems, and change when a backup reads. ``upkeep`` removes the oldest files first, so a result
must not be newer than any of its blobs, or it would stay without them:

- ``store`` renews blobs that exist already, and sets the time of a result to that of its oldest blob;
- ``fetch`` renews the result first and its blobs after it, all or none.

They are renewed once an hour at most: a build that finds a thousand results in the cache should not write to the disk a
thousand times, and for the order in which days-old files are removed an hour is nothing.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from mlfbuild.cache.action_result import MAX_BLOBS, MAX_MESSAGE, ActionResult
from mlfbuild.cache.upkeep import add_to_counter, count_hit, entry_path, prune
from mlfbuild.core import StorageError, sha256, trusted_owners, write_atomic

_RENEWAL = 3600
"""Seconds for which a file counts as used after it was renewed."""


class LocalCache:
    """The folder of results on this machine, which need not exist yet."""

    def __init__(self, folder: Path, limit: int, notify: Callable[[str], None]) -> None:
        """Use ``folder`` for at most ``limit`` bytes; ``notify`` gets a line if it cannot be written."""
        self._folder = folder
        self._limit = limit
        self._notify = notify
        self._writable = True

    def fetch(self, key: str) -> tuple[ActionResult, dict[str, bytes]] | None:
        """Return the result of ``key`` with all its outputs; ``None`` if anything is missing or damaged."""
        path = entry_path(self._folder, "ac", key)
        data = self._read(path, MAX_MESSAGE, trusted=True)
        if data is None:
            return None
        try:
            result = ActionResult.from_bytes(data)
        except ValueError:
            _remove(path)
            return None
        renew = self._renewed(path)
        outputs = {}
        for output in result.outputs:
            content = self.blob(output.sha256, output.size, renew=renew) if output.size else b""
            if content is None:
                _remove(path)
                return None
            outputs[output.path] = content
        count_hit(self._folder)
        return result, outputs

    def blob(self, digest: str, size: int | None = None, *, renew: bool | None = None) -> bytes | None:
        """Return the content with this SHA-256, and this size if it is known; ``None`` if it is missing or damaged."""
        path = entry_path(self._folder, "cas", digest)
        content = self._read(path, MAX_BLOBS)
        if content is None:
            return None
        if sha256(content) != digest or size not in {None, len(content)}:
            _remove(path)
            return None
        if renew is None:
            self._renewed(path)
        elif renew:
            _touch(path)
        return content

    def store(self, key: str, result: ActionResult, outputs: Mapping[str, bytes]) -> None:
        """Keep ``result``, whose outputs have the contents ``outputs``, for ``key``."""
        if sum(map(len, outputs.values())) > self._limit // 2:
            self._notify(
                f"cache: {self._folder}: outputs of more than half the limit of {self._limit:,} bytes are not kept"
            )
            return
        if not all(self.put_blob(output.sha256, outputs[output.path]) for output in result.outputs):
            return
        blobs = [entry_path(self._folder, "cas", output.sha256) for output in result.outputs if output.size]
        with contextlib.suppress(FileNotFoundError):  # another process has just removed one
            # Their times, not that of a clock: a file server has its own.
            oldest = min((blob.stat().st_mtime_ns for blob in blobs), default=None)
            self._write(entry_path(self._folder, "ac", key), result.to_bytes(), oldest)

    def put_blob(self, digest: str, content: bytes) -> bool:
        """Keep ``content``, whose SHA-256 is ``digest``; return whether it is there."""
        if not content:
            return True
        if len(content) > self._limit // 2:
            return False
        path = entry_path(self._folder, "cas", digest)
        with contextlib.suppress(OSError):
            # Its bytes are not compared here: the reader does that, and removes it if it is damaged.
            if path.lstat().st_size == len(content):
                os.utime(path)
                return True
        return self._write(path, content)

    def _write(self, path: Path, data: bytes, modified: int | None = None) -> bool:
        if not self._writable:
            return False
        try:
            # Counted first: a process that is killed in between leaves a count that is too high, not too low.
            full = add_to_counter(self._folder, len(data), self._limit)
            write_atomic(path, data)
            if modified is not None:
                os.utime(path, ns=(modified, modified))
        except FileNotFoundError:  # another process has just removed it
            return False
        except (StorageError, OSError) as error:
            reason = error.reason if isinstance(error, StorageError) else f"cannot write: {error.strerror}"
            self._notify(f"cache: {self._folder}: {reason}; results of this run are not kept on this machine")
            self._writable = False
            return False
        if full:
            prune(self._folder, self._limit)
        return True

    def _read(self, path: Path, most: int, *, trusted: bool = False) -> bytes | None:
        """Return the content of a regular file of at most ``most`` bytes; ``trusted``: one of a user who is trusted."""
        try:
            status = path.lstat()
            # Others may write to a folder that several users share. No hash protects the result of a key.
            owners = {*trusted_owners(), self._folder.stat().st_uid} if trusted else {status.st_uid}
            if not stat.S_ISREG(status.st_mode) or status.st_size > most or status.st_uid not in owners:
                return None
            return path.read_bytes()
        except OSError:
            return None

    def _renewed(self, path: Path) -> bool:
        """Renew a file that was not used for an hour; return whether it was one."""
        with contextlib.suppress(OSError):
            if abs(time.time() - path.lstat().st_mtime) < _RENEWAL:
                return False
        _touch(path)
        return True


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only folder, or a file of another user
        os.utime(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
