"""Check an archive against the rules of Model Library Format."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.archive import tar
from mlfbuild.archive.validate import Report, validate
from mlfbuild.core import open_binary


def validate_archive(path: Path) -> Report:
    """Return the findings about the archive ``path``; raises ``InputFileError`` if it cannot be read."""
    return validate(tar.members(open_binary(path, "archive"), str(path)), str(path))
