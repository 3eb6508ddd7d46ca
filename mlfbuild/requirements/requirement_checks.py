"""Untrusted statements of archives about required libraries: kinds, names, versions and origins."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlfbuild.core import quoted, shown
from mlfbuild.library import ARCHIVE_FOLDER, NAME, URL_TYPES, Requirement
from mlfbuild.requirements.versions import range_problem

USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
# `git@host:path`, Git's own spelling of SSH; without `(?!/)`, `https://host` would also match.
_SSH = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!/)(.+)")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?([^/:]*)(?::\d*)?(.*)")

_LONGEST = 2000


def without_secret(url: str) -> str:
    """Return ``url`` for messages, without a user name, password or token.

    ``https://user:token@host/nn`` becomes ``https://host/nn``. Addresses of archives are not checked like those of
    project files, so use it wherever one is printed or written.
    """
    return shown(USER_INFO.sub("", url))


def unsound(requirement: Requirement) -> str | None:
    """Return which member of ``requirement`` is invalid and why, ``None`` if it is valid.

    The names are those of the metadata: ``version_spec``, ``url``, ``url_type``. Requirements that were recognised by
    headers come from mlfbuild's own table and are always valid.
    """
    for key, text in (("version_spec", requirement.version), ("url", requirement.url)):
        if len(text) > _LONGEST or not text.isprintable():
            return f"{key} {quoted(text)} has control characters or more than {_LONGEST} characters"
    if not re.fullmatch(NAME, requirement.name):
        return "the name is invalid (allowed: letters, digits, '.', '-' and '_')"
    if requirement.url_type and requirement.url_type not in URL_TYPES:
        return f"url_type {quoted(requirement.url_type)} is not one of {', '.join(URL_TYPES)}"
    reason = range_problem(requirement.version)
    return reason and f"version_spec {quoted(requirement.version)} {reason}"


def two_upstreams(requirements: Iterable[Requirement]) -> tuple[Requirement, Requirement] | None:
    """Return two of ``requirements``, all of one name, with different origins; ``None`` if all agree.

    Folders, in archives or on the machine that exported them, are not origins.
    """
    public = [one for one in requirements if one.url.strip() and one.url_type not in {"path", ARCHIVE_FOLDER}]
    return next(((public[0], one) for one in public if not _same_upstream(public[0], one)), None)


def _same_upstream(one: Requirement, other: Requirement) -> bool:
    """Return whether both have the same origin: one repository in any spelling, or a file of it."""
    places = sorted((_place(one), _place(other)), key=len)
    # The address of a download names a file of the repository, such as .../archive/v4.1.0.tar.gz.
    exact = one.url_type != "url" and other.url_type != "url"
    return places[0] == (places[1] if exact else places[1][: len(places[0])])


def _place(requirement: Requirement) -> tuple[str, ...]:
    """Return host and folders of the address of ``requirement`` in lower case, without the protocol."""
    url = requirement.url.strip().lower()
    found = _ADDRESS.fullmatch(url) or _SSH.fullmatch(url)
    host, path = (found[1], found[2]) if found else ("", url)
    names = tuple(name for name in path.removesuffix("/").removesuffix(".git").split("/") if name)
    return (host, *(names[:-1] if requirement.url_type == "url" else names))
