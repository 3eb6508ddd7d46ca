"""What an archive, a file of arrays or a report may be written over."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

from mlfbuild.archive.tar import is_plain_tar
from mlfbuild.core import ConflictError, UsageError


def check_output(output: Path, *sources: Path) -> None:
    """Raise ``ConflictError`` where ``output`` is one of ``sources`` or holds something that is no plain tar.

    Raises ``UsageError`` where it is a folder.
    """
    check_replaced(output, sources, "archive", "plain tar", lambda path: not path.stat().st_size or is_plain_tar(path))


def check_arrays_output(output: Path, *sources: Path) -> None:
    """As ``check_output``, for an ``.npz`` file."""
    check_replaced(output, sources, "file", ".npz file", zipfile.is_zipfile)


def check_replaced(
    output: Path, sources: tuple[Path, ...], what: str, kind: str, may_be_replaced: Callable[[Path], bool]
) -> None:
    """As ``check_output``, for a file that is a ``what``, over one of this ``kind``."""
    if output.is_dir():
        raise UsageError(f"{output}: is a folder; name the {what} to write with -o")
    if not output.is_file():
        return
    if any(source.exists() and output.samefile(source) for source in sources):
        raise ConflictError(f"{output}: is what is to be read; choose another file for -o")
    if not may_be_replaced(output):
        raise ConflictError(f"{output}: is there and is no {kind}; remove it or choose another file for -o")
