"""What a verb may write over."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.errors import ConflictError, UsageError

_TAR_MAGIC = (257, b"ustar")


def check_output(output: Path, *sources: Path) -> None:
    """Raise ``ConflictError`` where ``output`` is one of ``sources`` or holds something that is no plain tar."""
    if output.is_dir():
        raise UsageError(f"{output}: is a folder; -o names the archive to write")
    if not output.is_file():
        return
    if any(source.exists() and output.samefile(source) for source in sources):
        raise ConflictError(f"{output}: is what is to be read; choose another file for -o")
    offset, magic = _TAR_MAGIC
    with output.open("rb") as file:
        start = file.read(offset + len(magic))
    if start and not start.endswith(magic):
        raise ConflictError(f"{output}: is there and is no plain tar; remove it or choose another file for -o")
