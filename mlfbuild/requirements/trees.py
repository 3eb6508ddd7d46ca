"""Trees of files that are known by one hash: Git's, so that a commit's tree is named as Git names it.

A folder of the cache has ``files``, the tree, and ``list``, which says of each file its mode and its hash. The list is
right where the hash of the tree comes out of it, and a file where its own does. Nothing else is believed, neither
permissions, which copying loses, nor times.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mlfbuild.archive.tar import MAX_MEMBERS, Paths, name_fault
from mlfbuild.core import InputFileError, quoted, real_place
from mlfbuild.library import CHUNK

FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
_FOLDER = "40000"
_FILES, _LIST = "files", "list"
SHA256_DIGITS = 64
_MAX_TARGET = 4095  # bytes of a link


class Entry(NamedTuple):
    """What a tree says of one path; folders follow from the paths."""

    mode: str
    """Of Git, octal."""
    hash: str
    """Of Git's blob; of a submodule the commit."""
    path: str


def blob_hash(parts: Iterable[bytes], size: int, algorithm: str) -> str:
    """Return Git's hash of a file of ``size`` bytes; ``algorithm`` is ``sha1`` or ``sha256``."""
    digest = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def algorithm_of(tree: str) -> str:
    """Return the algorithm that a hash of Git is of."""
    return "sha256" if len(tree) == SHA256_DIGITS else "sha1"


def tree_hash(entries: Iterable[Entry], algorithm: str) -> str:
    """Return Git's hash of the tree of ``entries``, whose paths are sound.

    A tree object has ``<mode> <name>``, a zero byte and the hash in bytes of each entry, sorted as if the names of
    folders ended with a slash (Git's tree.c, base_name_compare).
    """
    here: list[tuple[bytes, bytes, bytes]] = []
    below: dict[str, list[Entry]] = {}
    for entry in entries:
        name, slash, rest = entry.path.partition("/")
        if slash:
            below.setdefault(name, []).append(entry._replace(path=rest))
        else:
            here.append((name.encode(), entry.mode.encode(), bytes.fromhex(entry.hash)))
    for name, inner in below.items():
        here.append((name.encode() + b"/", _FOLDER.encode(), bytes.fromhex(tree_hash(inner, algorithm))))
    content = b"".join(mode + b" " + name.rstrip(b"/") + b"\0" + digest for name, mode, digest in sorted(here))
    return hashlib.new(algorithm, b"tree %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def checked(entries: Iterable[Entry], where: str) -> Iterator[Entry]:
    """Yield ``entries``; raises ``InputFileError`` for paths that lead elsewhere or are one on some disk.

    Nor may anything be called ``.git``: programs that look for a repository would believe what its config says.
    """
    paths = Paths()
    for count, entry in enumerate(entries):
        if count == MAX_MEMBERS:
            raise InputFileError(f"{where}: has more than {MAX_MEMBERS} files, refused; choose a smaller version")
        fault = name_fault(entry.path) or paths.fault(entry.path)
        if fault is None and any(part.casefold() in {".git", "git~1"} for part in entry.path.split("/")):
            fault = "would be taken for a Git repository"
        if fault is None and entry.mode not in {FILE, PROGRAM, LINK, SUBMODULE}:
            fault = f"has the unknown mode {entry.mode}"
        if fault is not None:
            raise InputFileError(f"{where}: {quoted(entry.path)}: {fault}, refused; choose another version of it")
        yield entry


# Writing -------------------------------------------------------------------------------------------------------------


def write_tree(entries: Iterable[tuple[Entry, Iterable[bytes]]], folder: Path, where: str) -> str:
    """Write files, links and empty folders of submodules to ``folder``, and the list of them; returns the tree's hash.

    ``is_sound`` tells whether the contents are those of the entries' hashes. ``where`` names the origin in messages.
    Raises ``InputFileError`` for a link that leads out of the tree, and ``OSError``.
    """
    root = folder / _FILES
    root.mkdir(parents=True)
    written: list[Entry] = []
    links: list[tuple[Path, bytes]] = []
    for entry, parts in entries:
        path = root / entry.path
        written.append(entry)
        if entry.mode == SUBMODULE:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.mode == LINK:
            links.append((path, b"".join(parts)))
        else:
            _write_file(path, parts)
    for path, target in links:  # last, so that no file is written through one
        if not target or b"\0" in target or len(target) > _MAX_TARGET:
            raise InputFileError(f"{where}: {_name(path, root)}: is a link to no path, refused; choose another version")
        path.symlink_to(os.fsdecode(target))
    _check_links(root, [path for path, _ in links], where)
    (folder / _LIST).write_text("".join(f"{mode} {digest} {path}\n" for mode, digest, path in written), "utf-8")
    return tree_hash(written, algorithm_of(written[0].hash)) if written else ""


def _write_file(path: Path, parts: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(parts)


def _check_links(root: Path, links: Iterable[Path], where: str) -> None:
    inside = real_place(root)
    for link in links:
        target = link.readlink()
        real = real_place(link)
        if target.is_absolute() or not (real == inside or inside in real.parents):
            raise InputFileError(
                f"{where}: {_name(link, root)}: is a link that leads out of it, to {quoted(str(target))}, refused; "
                "choose another version"
            )


def _name(path: Path, root: Path) -> str:
    return quoted(path.relative_to(root).as_posix())


# Checking ------------------------------------------------------------------------------------------------------------


def files_of(folder: Path) -> Path:
    """Return where the files of the tree lie that ``write_tree`` wrote to ``folder``."""
    return folder / _FILES


def is_sound(folder: Path, tree: str) -> bool:
    """Whether ``folder`` holds exactly the files of ``tree``, byte for byte; every one of them is read."""
    try:
        entries = list(_listed(folder))
        if tree_hash(entries, algorithm_of(tree)) != tree:
            return False
        wanted = {entry.path: entry for entry in checked(entries, "")}
        root = folder / _FILES
        found = dict(_walk(root, ""))
        return found.keys() == wanted.keys() and all(_is_right(wanted[path], at) for path, at in found.items())
    except (OSError, ValueError, InputFileError):
        return False


def _listed(folder: Path) -> Iterator[Entry]:
    for line in (folder / _LIST).read_text("utf-8").split("\n")[:-1]:
        mode, digest, path = line.split(" ", 2)
        yield Entry(mode, digest, path)


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield all files, links and empty folders."""
    with os.scandir(folder) as entries:
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                inner = list(_walk(Path(entry.path), f"{path}/"))
                yield from inner or [(path, entry)]
            else:
                yield path, entry


def _is_right(wanted: Entry, found: os.DirEntry[str]) -> bool:
    status = found.stat(follow_symlinks=False)
    if wanted.mode == SUBMODULE:
        return stat.S_ISDIR(status.st_mode)
    algorithm = algorithm_of(wanted.hash)
    if wanted.mode == LINK:
        target = os.readlink(os.fsencode(found.path))  # noqa: PTH115  # a Path would change "a//b"
        return blob_hash([target], len(target), algorithm) == wanted.hash
    if not stat.S_ISREG(status.st_mode):
        return False
    with Path(found.path).open("rb") as file:
        return blob_hash(iter(lambda: file.read(CHUNK), b""), status.st_size, algorithm) == wanted.hash
