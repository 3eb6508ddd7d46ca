"""What an archive may be written over."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.archive.tar import is_plain_tar
from mlfbuild.errors import ConflictError, UsageError


def check_output(output: Path, *sources: Path) -> None:
    """Raise ``ConflictError`` where ``output`` is one of ``sources`` or holds something that is no plain tar.

    Raises ``UsageError`` where it is a folder.
    """
    if output.is_dir():
        raise UsageError(f"{output}: is a folder; -o names the archive to write")
    if not output.is_file():
        return
    if any(source.exists() and output.samefile(source) for source in sources):
        raise ConflictError(f"{output}: is what is to be read; choose another file for -o")
    if output.stat().st_size and not is_plain_tar(output):
        raise ConflictError(f"{output}: is there and is no plain tar; remove it or choose another file for -o")
