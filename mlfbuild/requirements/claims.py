"""What archives claim about dependencies, which nobody vouches for: kinds, names, versions and whose library it is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlfbuild.core import quoted, shown
from mlfbuild.library import ARCHIVE_FOLDER, URL_TYPES, Wish
from mlfbuild.project import NAME
from mlfbuild.requirements.versions import range_problem

_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
_SSH = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!/)(.+)")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?([^/:]*)(?::\d*)?(.*)")

_LONGEST = 2000


def without_secret(url: str) -> str:
    """Return ``url`` for messages, without the user name, password or token that it may have."""
    return shown(_USER_INFO.sub("", url))


def unsound(wish: Wish) -> str | None:
    """Return what in ``wish`` nobody understands, ``None`` where it is sound."""
    for key, text in (("version_spec", wish.version), ("url", wish.url)):
        if len(text) > _LONGEST or not text.isprintable():
            return f"{key} {quoted(text)} has control characters, or more than {_LONGEST} characters"
    if not re.fullmatch(NAME, wish.name):
        return "no name for one (letters, digits, ., - and _)"
    if wish.url_type and wish.url_type not in URL_TYPES:
        return f"url_type {quoted(wish.url_type)} is unknown (known: {', '.join(URL_TYPES)})"
    reason = range_problem(wish.version)
    return reason and f"version_spec {quoted(wish.version)} {reason}"


def two_upstreams(wishes: Iterable[Wish]) -> tuple[Wish, Wish] | None:
    """Return two of ``wishes``, all of one name, that say that it is another library's; ``None`` where they agree.

    Folders of archives and of the machine that exported them say nothing of where a library comes from.
    """
    public = [wish for wish in wishes if wish.url.strip() and wish.url_type not in {"path", ARCHIVE_FOLDER}]
    return next(((public[0], wish) for wish in public if not _same_upstream(public[0], wish)), None)


def _same_upstream(one: Wish, other: Wish) -> bool:
    """Whether both have a library from one place: the same repository, however it is spelt, or a file of it."""
    places = sorted((_place(one), _place(other)), key=len)
    exact = one.url_type != "url" and other.url_type != "url"
    return places[0] == (places[1] if exact else places[1][: len(places[0])])


def _place(wish: Wish) -> tuple[str, ...]:
    """Return host and folders of the address of ``wish``, by whatever protocol and in lower case."""
    url = wish.url.strip().lower()
    found = _ADDRESS.fullmatch(url) or _SSH.fullmatch(url)
    host, path = (found[1], found[2]) if found else ("", url)
    names = tuple(name for name in path.removesuffix("/").removesuffix(".git").split("/") if name)
    return (host, *(names[:-1] if wish.url_type == "url" else names))
