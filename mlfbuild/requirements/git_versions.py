"""What a version of a git dependency is in its repository: a tag, a branch or a commit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import NamedTuple

from mlfbuild.core import Tell, UsageError, listed, quoted, tell_nobody
from mlfbuild.requirements.git_program import check_address, git_out, shown_address

_TAGS, _BRANCHES = "refs/tags/", "refs/heads/"
_PEELED = "^{}"
_LINE = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\t(refs/\S+)")
_FULL = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.IGNORECASE)
_ABBREVIATED = re.compile(r"[0-9a-f]{7,63}", re.IGNORECASE)
_NO_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/]|[/.]$|\.lock$|\.lock/|(?:^|/)\.")
"""What no tag, branch or commit is called (git help check-ref-format), and what Git would take for an option."""


class Wanted(NamedTuple):
    """What to ask a repository for."""

    commit: str
    """As far as is known: empty for an abbreviated commit, whose rest the history tells."""
    ref: str = ""
    """The tag or branch that it is, by its full name; empty for a commit that is none."""
    hash_digits: int = 40
    """Of the repository's hashes."""


def check_version(version: str, url: str) -> None:
    """Raise ``UsageError`` for what cannot be a tag, a branch or a commit."""
    if not version or not version.isprintable() or _NO_NAME.search(version):
        raise UsageError(
            f"{shown_address(url)}: version {quoted(version)} is no name of a tag, a branch or a commit; correct it"
        )


def full_commit(version: str) -> str:
    """Return the commit that ``version`` is, in lower case, empty where it is none written in full."""
    return version.lower() if _FULL.fullmatch(version) else ""


def full_or_abbreviated(version: str, commit: str) -> bool:
    """Whether ``version`` is ``commit``, written in full or as its beginning."""
    return commit == full_commit(version) or (is_abbreviated(version) and commit.startswith(version.lower()))


def is_abbreviated(version: str) -> bool:
    """Whether ``version`` can be the beginning of a commit."""
    return bool(_ABBREVIATED.fullmatch(version)) and not full_commit(version)


def wanted_of(url: str, version: str, tell: Tell = tell_nobody) -> Wanted:
    """Ask the repository ``url`` what ``version`` is.

    A full commit is always one. Of other names a tag comes before a branch, and a branch before an abbreviated commit
    (7 digits or more). Raises ``UsageError``, with names that are near, where there is no such version, and as
    ``git_out``.
    """
    check_address(url)
    check_version(version, url)
    tell("looking", 0, 0)
    refs = _refs(git_out(url, "ls-remote", "--heads", "--tags", "--", url))
    digits = len(next(iter(refs.values()), "")) or 40
    commit = full_commit(version)
    if commit:
        names = [name.removesuffix(_PEELED) for name, tip in refs.items() if tip == commit]
        return Wanted(commit, names[0] if names else "", len(commit))
    for ref in (_TAGS + version, _BRANCHES + version):
        if ref in refs:
            return Wanted(refs.get(ref + _PEELED, refs[ref]), ref, digits)
    if is_abbreviated(version):
        return Wanted("", "", digits)
    raise UsageError(f"{shown_address(url)}: has no tag, branch or commit {quoted(version)}{_hint(version, refs)}")


def _refs(output: str) -> dict[str, str]:
    """Return the hash of each tag and branch; what SSH prints beside them is passed over."""
    found = (_LINE.fullmatch(line.strip()) for line in output.splitlines())
    return {line[2]: line[1] for line in found if line}


def _hint(version: str, refs: Mapping[str, str]) -> str:
    names = [re.sub(rf"^({_TAGS}|{_BRANCHES})", "", ref) for ref in refs if not ref.endswith(_PEELED)]
    near = difflib.get_close_matches(version, names, n=3, cutoff=0.5)
    if near:
        return f" (did you mean {' or '.join(map(quoted, near))}?)"
    return f"; choose one of {listed(names[::-1])}" if names else ", it is empty; check the address"
