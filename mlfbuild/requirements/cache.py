"""The folder that fetched dependencies lie in, shared by all projects and builds of a user.

    git/<commit>.git     a bare repository that has at least this commit
    archives/<sha256>    a downloaded archive
    trees/<tree>/        files of a commit or an archive, see ``trees``
    found/<hash>.json    what a tag or branch was when it was last fetched, or what an archive held
    locks/, tmp/         who works on what, and what is not whole yet

Everything but ``found`` is named by the hash of what it holds, which is computed before it gets this name, by one
rename, and again before it is used. So nothing half-made is ever seen, and nothing damaged is believed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import StorageError, Tell, make_folder, sha256, storage_error, tell_nobody, write_atomic

VARIABLE = "MLFBUILD_CACHE"
"""Of the environment: the folder, in place of the one in the user's cache folder."""


def default_cache() -> Cache:
    """Return the cache of this user: ``$MLFBUILD_CACHE``, else ``mlfbuild`` in ``$XDG_CACHE_HOME`` or ``~/.cache``.

    Raises ``StorageError`` for a user who has no home folder.
    """
    chosen = os.environ.get(VARIABLE)
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = base if base.is_absolute() else Path("~/.cache")  # as the XDG Base Directory Specification has it
    try:
        return Cache((Path(chosen) if chosen else base / "mlfbuild").expanduser().absolute())
    except RuntimeError:
        raise StorageError(f"the user has no home folder for a cache; set {VARIABLE} to a folder for it") from None


@dataclass(frozen=True)
class Cache:
    """A cache folder, which need not be there yet."""

    root: Path

    def repository(self, commit: str) -> Path:
        """Return where the bare repository that has ``commit`` lies."""
        return self.root / "git" / f"{commit}.git"

    def archive(self, digest: str) -> Path:
        """Return where the archive with the SHA-256 ``digest`` lies."""
        return self.root / "archives" / digest

    def tree(self, tree: str) -> Path:
        """Return where the files of ``tree`` lie, and the list of them."""
        return self.root / "trees" / tree

    def recall(self, *key: str) -> Mapping[str, str]:
        """Return what was remembered by ``key``; nothing where nothing was, or it cannot be read."""
        try:
            found = json.loads(self._record(key).read_bytes())
            return {str(name): str(value) for name, value in found.items()}
        except (OSError, ValueError, AttributeError, RecursionError):
            return {}

    def remember(self, values: Mapping[str, str], *key: str) -> None:
        """Remember ``values`` by ``key``; raises ``StorageError``."""
        if self.recall(*key) != values:
            write_atomic(self._record(key), json.dumps(values, sort_keys=True).encode())

    def _record(self, key: tuple[str, ...]) -> Path:
        return self.root / "found" / f"{sha256(json.dumps(key).encode())}.json"

    @contextlib.contextmanager
    def work(self, key: str, tell: Tell = tell_nobody) -> Iterator[Path]:
        """Hand out an empty folder for what becomes ``key``, a file name, while nobody else on this machine makes it.

        What was left by others, who were killed, is removed first. Raises ``StorageError``.
        """
        with self._locked(key, tell):
            folder = self.root / "tmp" / f"{key}.{os.urandom(6).hex()}"
            make_folder(folder.parent)
            for left in folder.parent.glob(f"{key}.*"):
                shutil.rmtree(left, ignore_errors=True)
            try:
                folder.mkdir()
                yield folder
            except OSError as error:
                raise storage_error(Path(error.filename or folder), error) from None
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _locked(self, key: str, tell: Tell) -> Iterator[None]:
        """Hold the lock ``key``, waiting for it where need be.

        It is ``flock``'s, which the system gives back when a process ends, however it ends: no lock is ever stale.
        The file stays, as removing it would let two processes lock two files of one name.
        """
        path = self.root / "locks" / key
        make_folder(path.parent)
        try:
            file = path.open("ab")  # Python's files are not inherited: no program that we start holds the lock on
        except OSError as error:
            raise storage_error(path, error) from None
        with file:
            try:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    tell("waiting for another mlfbuild", 0, 0)
                    fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                raise StorageError(
                    f"{path}: cannot be locked: {error.strerror}; set {VARIABLE} to a folder on a local disk"
                ) from None
            yield


def put(made: Path, place: Path) -> None:
    """Move the folder or file ``made``, which is whole, to ``place``; what is there goes away. Raises ``StorageError``.

    ``made`` lies in a folder of ``Cache.work``, on the same disk as ``place``.
    """
    make_folder(place.parent)
    try:
        if os.path.lexists(place):  # no rename takes the place of a folder that holds something
            with contextlib.suppress(FileNotFoundError):  # somebody else has just done so
                place.rename(made.with_name(f"{made.name}.old"))
        made.replace(place)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            return  # somebody else has put the same there, from another lock
        raise storage_error(place, error) from None
