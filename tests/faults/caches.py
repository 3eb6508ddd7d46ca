"""A cache of fetched libraries that another user can write, and poisons (needs root)."""

import argparse
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from faults.servers import _GOOD, _archive
from faults.tally import Tally
from mlfbuild.core import MlfError
from mlfbuild.requirements.archives import archive_root, fetch_archive
from mlfbuild.requirements.cache import Cache, tree_sha256
from mlfbuild.requirements.git import fetch_version, git_root
from support.git_remote import Remote

_OTHER_USER = 12345
_BAD = b"int evil;\n"
_POISONED = _archive(("lib/a.c", _BAD, "file"))
Poison = Callable[[Cache, str], None]


def _file(cache: Cache, name: str) -> None:
    _write(cache.tree(name) / "a.c", _BAD)


def _file_and_hash(cache: Cache, name: str) -> None:
    _file(cache, name)
    _write(cache.root / f"trees/{name}.sha256", tree_sha256(cache.tree(name)).encode())


def _new_file_and_hash(cache: Cache, name: str) -> None:
    _write(cache.tree(name) / "b.c", _BAD)
    _write(cache.root / f"trees/{name}.sha256", tree_sha256(cache.tree(name)).encode())


def _link(cache: Cache, name: str) -> None:
    other = cache.root / "other"
    shutil.copytree(cache.tree(name), other)
    _write(other / "a.c", _BAD)
    shutil.rmtree(cache.tree(name))
    cache.tree(name).symlink_to(other)
    _write(cache.root / f"trees/{name}.sha256", tree_sha256(other).encode())


def _all(cache: Cache, name: str) -> None:
    _file_and_hash(cache, name)
    if cache.archive(name).exists():
        _write(cache.archive(name), _POISONED)


def _no_tree(cache: Cache, name: str) -> None:
    _all(cache, name)
    shutil.rmtree(cache.tree(name))


def _pipe(cache: Cache, name: str) -> None:
    (cache.tree(name) / "a.c").unlink()
    os.mkfifo(cache.tree(name) / "a.c")


def _write(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    os.chown(path, _OTHER_USER, _OTHER_USER)


_POISONS: Mapping[str, Poison] = {
    "a file": _file, "a file and its hash": _file_and_hash, "a new file and the hash": _new_file_and_hash,
    "a link to another folder": _link, "the archive, a file and its hash": _all,
    "the archive, without its files": _no_tree, "a pipe": _pipe,
}  # fmt: skip


def campaign(root: Path, _chosen: str, _options: argparse.Namespace) -> Iterator[Tally]:
    """Poison the cache: a build uses the right files, or ends with an error."""
    if os.geteuid() != 0:
        return
    tally = Tally("a shared cache that another user poisoned")
    archive = root / "lib.tar"
    archive.write_bytes(_GOOD)
    digest = hashlib.sha256(_GOOD).hexdigest()
    remote = Remote(root / "remote.git")
    remote.commit({"a.c": b"int a;\n"})
    for number, (what, poison) in enumerate(_POISONS.items()):
        cache = Cache(root / f"archive{number}")
        fetch_archive(archive.as_uri(), digest, cache)
        poison(cache, digest)
        _judge(tally, f"archive: {what}", lambda cache=cache: archive_root(archive.as_uri(), digest, cache))  # type: ignore[misc]
        cache = Cache(root / f"git{number}")
        pin, _ = fetch_version(remote.url, "main", cache)
        poison(cache, pin.commit)
        _judge(tally, f"locked commit: {what}", lambda cache=cache, pin=pin: git_root(remote.url, pin, cache))  # type: ignore[misc]
    yield tally


def _judge(tally: Tally, what: str, use: Callable[[], Path]) -> None:
    try:
        folder = use()
    except MlfError as error:
        tally.end(what, error.exit_code, "")
        return
    tally.end(what, 0, "")
    if any(path.is_file() and path.read_bytes() == _BAD for path in folder.rglob("*")):
        tally.escaped.append(f"{what}: the poison is used")
    elif (folder / "a.c").read_bytes() != b"int a;\n":
        tally.wrong.append(what)
