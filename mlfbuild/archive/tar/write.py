"""Write tar files reproducibly: equal files give equal bytes."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from mlfbuild.archive.tar.paths import first_fault
from mlfbuild.library import Content, chunks

_BLOCK = tarfile.BLOCKSIZE


def pack(files: Mapping[str, Content], mtime: int) -> Iterator[bytes]:
    """Yield an uncompressed tar of ``files`` (relative path -> content) and their folders, part by part.

    Members have TVM's names (``.``, ``./codegen``, ``./codegen/host``, ...) and are sorted, owned by root, with modes
    644 and 755 and the time ``mtime`` (seconds since 1970), so that equal files give equal bytes. Raises
    ``ValueError``, before the first part, for paths that ``members`` would refuse.
    """
    fault = first_fault(files)
    if fault is not None:
        raise ValueError(f"a file called {fault[0]!a} cannot be written: it {fault[1]}")
    return _parts(files, mtime)


def _parts(files: Mapping[str, Content], mtime: int) -> Iterator[bytes]:
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    members: list[tuple[str, Content | None]] = [*((folder, None) for folder in folders), *files.items()]
    written = 0
    # By parts instead of by text: a folder then comes before its files, and `a-b` not between `a` and `a/c`.
    for path, content in sorted(members, key=lambda member: PurePosixPath(member[0]).parts):
        # PAX adds an extended header only for fields that ustar cannot hold, such as a long name.
        header = _header(path, content, mtime).tobuf(tarfile.PAX_FORMAT)
        yield header
        if content is not None:
            yield from chunks(content)
        padding = bytes(-len(content or b"") % _BLOCK)
        yield padding
        written += len(header) + len(content or b"") + len(padding)
    # Two empty blocks end the archive, which is padded to a record of 20 blocks, as tar programs do.
    yield bytes(2 * _BLOCK + (-written - 2 * _BLOCK) % tarfile.RECORDSIZE)


def _header(path: str, content: Content | None, mtime: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo("." if path == "." else f"./{path}")
    header.type, header.mode = (tarfile.DIRTYPE, 0o755) if content is None else (tarfile.REGTYPE, 0o644)
    header.size = len(content or b"")
    header.mtime = mtime
    # The numeric owner is 0 by default; unpacking as another user ignores both.
    header.uname = header.gname = "root"
    return header
