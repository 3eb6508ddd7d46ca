"""Check that an output file replaces only a file of the same kind, never an input or another document."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

from mlfbuild.archive.tar import is_plain_tar
from mlfbuild.core import ConflictError, UsageError


def check_output(output: Path, *sources: Path, what: str = "archive") -> None:
    """Raise ``ConflictError`` if ``output`` is one of ``sources`` or exists and is not a plain tar.

    Raises ``UsageError`` if it is a folder. Messages name the file ``what``.
    """
    # An empty file is what mktemp or a shell redirection leaves, so it may be replaced.
    check_replaced(output, sources, what, "plain tar", lambda path: not path.stat().st_size or is_plain_tar(path))


def check_arrays_output(output: Path, *sources: Path) -> None:
    """Check an ``.npz`` file as ``check_output``.

    A file that is a ZIP archive may be replaced, whatever is in it.
    """
    check_replaced(output, sources, "file", ".npz file", zipfile.is_zipfile)


def check_replaced(
    output: Path, sources: tuple[Path, ...], what: str, kind: str, may_be_replaced: Callable[[Path], bool]
) -> None:
    """Check as ``check_output`` a file named ``what`` in messages, which may only replace a file of this ``kind``.

    ``may_be_replaced`` gets the path of an existing file that is none of ``sources``; nothing is checked if ``output``
    does not exist. Raises ``UsageError`` for a folder and ``ConflictError`` otherwise.
    """
    if output.is_dir():
        raise UsageError("output-is-folder", place=output, reason="is a folder", hint=f"name the {what} with -o")
    if not output.is_file():
        return
    # By device and inode: the same file may be named by a link, or in other letters on a disk that ignores case.
    if any(source.exists() and output.samefile(source) for source in sources):
        raise ConflictError(
            "output-is-input", place=output, reason="is also the input", hint="choose another file for -o"
        )
    if not may_be_replaced(output):
        raise ConflictError(
            "output-of-another-kind",
            place=output,
            reason=f"exists and is not a {kind}",
            hint="remove it, or choose another file for -o",
        )
