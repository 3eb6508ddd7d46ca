"""Whether a file is an archive, told by its first bytes: names like ``kws.model-lib`` say little."""

from __future__ import annotations

from pathlib import Path

_TAR_MAGIC = (257, b"ustar")
_COMPRESSED = (b"\x1f\x8b", b"BZh")


def looks_like_archive(path: Path) -> bool:
    """Whether the file ``path`` starts as a tar does, plain or in gzip or bzip2; False where it cannot be read."""
    offset, magic = _TAR_MAGIC
    try:
        with path.open("rb") as file:
            start = file.read(offset + len(magic))
    except OSError:
        return False
    return start.startswith(_COMPRESSED) or start[offset:] == magic
