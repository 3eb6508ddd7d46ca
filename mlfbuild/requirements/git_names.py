"""Names of versions in a Git repository: tags, branches and commits."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from mlfbuild.core import UsageError, listed, quoted
from mlfbuild.requirements.git_command import shown_address

_FULL = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.IGNORECASE)
_ABBREVIATED = re.compile(r"[0-9a-f]{7,63}", re.IGNORECASE)
_NO_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/]|[/.]$|\.lock$|\.lock/|(?:^|/)\.")
"""Names that ``git help check-ref-format`` forbids, and names that Git would read as an option."""


def check_version(version: str, url: str) -> None:
    """Raise ``UsageError`` for a text that cannot be a tag, a branch or a commit."""
    if not version or not version.isprintable() or _NO_NAME.search(version):
        raise UsageError(
            "git-version-invalid",
            place=shown_address(url),
            reason=f"version {quoted(version)} is not a valid name of a tag, a branch or a commit",
            hint="correct the version",
        )


def full_commit(version: str) -> str:
    """Return ``version`` in lower case if it is a commit in full length, else an empty text."""
    return version.lower() if _FULL.fullmatch(version) else ""


def is_abbreviated(version: str) -> bool:
    """Return whether ``version`` can be the beginning of a commit."""
    return bool(_ABBREVIATED.fullmatch(version)) and not full_commit(version)


def nearest_names(version: str, names: Sequence[str]) -> str:
    """Return a hint with the names most similar to ``version``."""
    near = difflib.get_close_matches(version, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(map(quoted, near))}?"
    return f"choose one of {listed(list(names)[::-1])}" if names else "check the address, the repository is empty"
