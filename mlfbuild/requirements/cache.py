"""The cache of fetched repositories and archives, shared by all projects and builds of a user.

    git/<hash>            the commit that a version of a repository was when it was fetched last
    archives/<sha256>     a downloaded archive
    trees/<id>/           the files of a commit, or of an archive by its SHA-256
    trees/<id>.sha256     the content hash of these files when they were written
    locks/, tmp/          locks of programs that write, and their unfinished files

Folders of ``trees`` get their names by one rename when they are complete, and are hashed before each use.
The content hash of a folder is one SHA-256 of the names and contents of all files and links in it; ``mlfbuild lock``
records it for each repository. Permissions and times do not count, because copying a cache to another machine loses
them; nor do empty folders.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mlfbuild.cache import FOLDER_VARIABLE, caches_folder
from mlfbuild.core import (
    OnProgress,
    StorageError,
    file_sha256,
    locked,
    make_folder,
    no_progress,
    real_place,
    sha256,
    storage_error,
    trusted_owners,
    write_if_changed,
)


def default_cache() -> Cache:
    """Return the cache of this user, in the folder of all of them; raises as ``caches_folder``."""
    return Cache(caches_folder())


@dataclass(frozen=True)
class Cache:
    """A cache folder, which need not exist yet."""

    root: Path

    def archive(self, digest: str) -> Path:
        """Return the path of the archive with the SHA-256 ``digest``.

        It need not exist, and its hash must be checked when it is read.
        """
        return self.root / "archives" / digest

    def tree(self, name: str) -> Path:
        """Return the folder with the files of the commit or archive ``name``.

        It need not exist; ``is_intact`` returns whether its files are those that were written.
        """
        return self.root / "trees" / name

    def written_hash(self, name: str) -> str:
        """Return the content hash that the files of ``name`` had when they were written, empty if there are none.

        It counts only if this user, root or the owner of the cache wrote it: others may also have changed the files.
        """
        return self.trusted_text(self._hash_file(name))

    def trusted_text(self, path: Path) -> str:
        """Return the line in the file ``path``; empty if it is missing, or of a user who is not trusted.

        White space around it is removed. A file that is not ASCII counts as missing.
        """
        try:
            # A folder for all users of a machine, such as one in /var/cache, is writable by some of them.
            trusted = path.lstat().st_uid in {*trusted_owners(), self.root.stat().st_uid}
            return path.read_text("ascii").strip() if trusted else ""
        except (OSError, ValueError):
            return ""

    def is_intact(self, name: str, tree: str) -> bool:
        """Return whether the files of ``name`` have the content hash ``tree``; reads all of them.

        An empty ``tree`` is never intact, so that the result of ``written_hash`` can be passed unchecked.
        """
        return bool(tree) and tree_sha256(self.tree(name)) == tree

    def put_tree(self, made: Path, name: str) -> str:
        """Move the folder ``made`` into the cache as the files of ``name``; returns its content hash.

        Raises ``StorageError``.
        """
        tree = tree_sha256(made)
        # The files before their hash: files without one, or with that of the files they replaced, are not intact and
        # are fetched again. In the other order, a process that ends in between would leave a hash without files.
        put(made, self.tree(name))
        write_if_changed(self._hash_file(name), f"{tree}\n".encode())
        return tree

    def _hash_file(self, name: str) -> Path:
        return self.root / "trees" / f"{name}.sha256"

    @contextlib.contextmanager
    def work(self, key: str, on_progress: OnProgress = no_progress) -> Iterator[Path]:
        """Yield an empty folder for what becomes ``key``, a file name, while this process has the lock ``key``.

        Files that killed processes left are removed first. Raises ``StorageError``.
        """
        path = self.root / "locks" / f"{key}.lock"

        def busy(_owner: int | None) -> bool:
            on_progress("waiting for another mlfbuild", 0, 0)
            return True

        def without_locks() -> NoReturn:
            raise StorageError(
                "lock-refused",
                place=path,
                reason="the file cannot be locked: its file system has no locks",
                hint=f"set {FOLDER_VARIABLE} to a folder on a local disk",
            ) from None

        # Without patience, so that the message appears as soon as there is something to wait for.
        with locked(path, busy, 0, without_locks):
            # On the same disk as the trees, so that the rename at the end is atomic.
            folder = self.root / "tmp" / f"{key}.{os.urandom(6).hex()}"
            make_folder(folder.parent)
            # Only processes that were killed can have left these: this one has the lock of the key.
            for left in folder.parent.glob(f"{key}.*"):
                shutil.rmtree(left, ignore_errors=True)
            try:
                folder.mkdir()
                yield folder
            except OSError as error:
                raise storage_error(Path(error.filename or folder), error) from None
            finally:
                shutil.rmtree(folder, ignore_errors=True)


def put(made: Path, place: Path) -> None:
    """Move the folder or file ``made``, which is complete, to ``place`` and replace what is there.

    ``made`` is in a folder of ``Cache.work``, on the same disk as ``place``. Raises ``StorageError``.
    """
    make_folder(place.parent)
    try:
        if os.path.lexists(place):  # a rename does not replace a folder with files
            with contextlib.suppress(FileNotFoundError):
                place.rename(made.with_name(f"{made.name}.old"))
        made.replace(place)
    except OSError as error:
        raise storage_error(place, error) from None


def tree_sha256(folder: Path) -> str:
    """Return the content hash of ``folder``, empty if it is missing or cannot be read.

    It is the SHA-256 of one line per file or link, sorted by path as bytes: ``f`` or ``l``, the SHA-256 of the content
    or of the link's target, and the path, separated by blanks and ended by a zero byte.
    """
    try:
        # By path, which follows the kind, the 64 digits and two blanks: scandir's order differs between file systems.
        lines = sorted(_lines(os.fsencode(folder), b""), key=lambda line: line[67:])
    except OSError:
        return ""
    return sha256(line + b"\0" for line in lines) if lines else ""


def _lines(folder: bytes, prefix: bytes) -> Iterator[bytes]:
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _lines(entry.path, path + b"/")
        # Links are hashed as links: following them could leave the folder or never end.
        elif entry.is_symlink():
            yield b"l %s %s" % (sha256(os.readlink(entry.path)).encode(), path)  # noqa: PTH115 - the name may be any bytes
        elif entry.is_file():
            with open(entry.path, "rb") as file:  # noqa: PTH123 - the name may be any bytes
                yield b"f %s %s" % (file_sha256(file).encode(), path)
        else:
            # A device or a pipe has no content that could be hashed; the caller takes any error for a wrong hash.
            raise OSError(f"{path!r}: neither a file nor a folder")


def leading_out(folder: Path) -> str:
    """Return the first link in ``folder`` that leads out of it, empty if there is none.

    The path is relative to ``folder``. Absolute links count, even if they lead into the folder: it will be moved.
    """
    inside = real_place(folder)
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *files)):
            absolute = path.is_symlink() and path.readlink().is_absolute()
            if absolute or (path.is_symlink() and not real_place(path).is_relative_to(inside)):
                return str(path.relative_to(folder))
    return ""
