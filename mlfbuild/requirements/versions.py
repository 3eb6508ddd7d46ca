"""Versions of libraries: those that a project states, and those that archives require.

A version is a text: a tag, a branch, a commit or a release. Two are the same if they are equal apart from a
leading ``v``, if they are the same release (``7.0`` and ``v7.0.0``), or if they are one commit, in full or abbreviated.
An archive may also require a range in the form of pip (``>=6,<8``, ``~=7.0``, ``7.*``), which only releases satisfy.
"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_COMMIT = re.compile(r"(?=[0-9]*[a-f])[0-9a-f]{7,64}|[0-9]{40}|[0-9]{64}")
"""At least as many hexadecimal digits as Git abbreviates to; a few decimal digits are rather a date."""
_LEADING_V = re.compile(r"[vV](?=\d)")
_ANY_OF = re.compile(r"\s*v?\d+(\.\d+)*\.\*\s*")
"""``7.*``, which pip writes with ``==`` before it."""


def is_range(wanted: str) -> bool:
    """Return whether ``wanted`` is a range of versions rather than one of them.

    The signs of pip's specifiers decide, and ``^``, which pip does not have: ``range_problem`` refuses it as a range
    instead of taking it for a tag.
    """
    return bool(re.search(r"[<>=!~^,*]", wanted))


def range_problem(wanted: str) -> str | None:
    """Return why ``wanted`` is not a valid range; ``None`` for a version and for a valid range.

    The reason follows the name of the version in a sentence. Syntax only: a range that no release satisfies is valid.
    """
    if not is_range(wanted):
        return None
    try:
        _specifiers(wanted)
    except InvalidSpecifier:
        return "is neither a version nor a range in the form of pip (>=6,<8)"
    return None


def is_commit(version: str) -> bool:
    """Return whether ``version`` can be the name of a commit of Git, long or short.

    A tag of seven or more hexadecimal digits with a letter, such as ``deadbeef``, also counts.
    """
    return bool(_COMMIT.fullmatch(version.lower()))


def release(version: str) -> Version | None:
    """Return the release that ``version`` is, ``None`` for a branch, a commit or anything else.

    The form is that of pip (PEP 440), so ``v7.0.0`` and ``7.0`` are releases, and ``main`` and commits are not.
    """
    try:
        return Version(version)
    except InvalidVersion:
        return None


def same_version(one: str, other: str) -> bool:
    """Return whether both texts name the same version.

    Besides equal texts, ``7.0`` and ``v7.0.0`` are the same, and so are ``1a2b3c4`` and the commit that begins with it.
    A tag and the commit that it names are not: only Git knows that.
    """
    one, other = _LEADING_V.sub("", one.strip(), count=1), _LEADING_V.sub("", other.strip(), count=1)
    if one == other:
        return True
    # Before releases: a commit of digits only is also a valid release number for pip.
    if is_commit(one) and is_commit(other):
        shorter, longer = sorted((one.lower(), other.lower()), key=len)
        return longer.startswith(shorter)
    releases = release(one), release(other)
    return releases[0] is not None and releases[0] == releases[1]


def satisfies(stated: str, wanted: str) -> bool:
    """Return whether the version ``stated`` satisfies ``wanted``: it is the same, or a release in the range.

    ``satisfies("v7.0.0", ">=6,<8")`` is true; ``satisfies("main", ">=6")`` is false, because a branch has no place in
    an order. A range must be valid, which ``range_problem`` checks; pre-releases are in it.
    """
    if not is_range(wanted):
        return same_version(stated, wanted)
    found = release(stated)
    # A project may state a pre-release on purpose, which pip's specifiers exclude by default.
    return found is not None and _specifiers(wanted).contains(found, prereleases=True)


def _specifiers(wanted: str) -> SpecifierSet:
    # `7.*` alone is not a specifier of PEP 440, but its meaning is clear and archives contain it.
    parts = (f"=={part.strip()}" if _ANY_OF.fullmatch(part) else part for part in wanted.split(","))
    return SpecifierSet(",".join(parts))
