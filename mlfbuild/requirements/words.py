"""What archives want, and what to write into a project file, in words for messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlfbuild.core import listed, shown
from mlfbuild.library import Wish, known_dependency
from mlfbuild.requirements.claims import without_secret
from mlfbuild.requirements.versions import is_range

_PLAIN_IN_YAML = re.compile(r"(?!git@)[A-Za-z][A-Za-z0-9+.-]*://[\w./~+%-]+|[A-Za-z][\w.+/-]*", re.ASCII)
_WRONG = "with another one the code links and computes garbage"


def origin(wish: Wish) -> str:
    """Return who wants it."""
    return shown(wish.origin) if wish.origin else "an archive"


def title(name: str) -> str:
    """Return what people call the library ``name``."""
    known = known_dependency(name)
    return known.title if known else shown(name)


def wanted(wish: Wish) -> str:
    """Return ``kws wants v4.1.0``, and how anybody knows."""
    return f"{origin(wish)} wants {shown(wish.version)}{_tested(wish)}"


def need(wishes: Sequence[Wish]) -> str:
    """Return who needs which library in which version, and how that shows; ``wishes`` are all for one library."""
    who = list(dict.fromkeys(map(origin, wishes)))
    versions = list(dict.fromkeys(f" {shown(wish.version)}{_tested(wish)}" for wish in wishes if wish.version))
    headers = dict.fromkeys(shown(header) for wish in wishes for header in wish.headers)
    how = f"the code includes {listed(list(headers))}" if headers else "by what the archive says"
    return f"{listed(who)} need{'s' if len(who) == 1 else ''} {title(wishes[0].name)}{' and'.join(versions)} ({how})"


def _tested(wish: Wish) -> str:
    return f", what {shown(wish.exporter)} was tested with" if wish.exporter else ""


def unknown_version(wish: Wish) -> str:
    """Return that nobody knows the version, and what to do about it."""
    made_by = f" ({shown(wish.exporter)})" if wish.exporter else ""
    return f"which version the code of {origin(wish)}{made_by} is made for is not known, and {_WRONG}"


def lines_to_add(wishes: Sequence[Wish]) -> str:
    """Return what ``dependencies`` of a project file would have to have for ``wishes``, as one line of YAML."""
    name = wishes[0].name
    version = next((wish.version for wish in wishes if wish.version and not is_range(wish.version)), "VERSION")
    wish = next((wish for wish in wishes if wish.url and wish.url_type in {"git", "url"}), None)
    known = known_dependency(name)
    if wish is not None and wish.url_type == "url":
        where = f"url: {_scalar(without_secret(wish.url))}, sha256: HASH"
    elif wish is not None or known is not None:
        where = f"git: {_scalar(without_secret(wish.url) if wish else known.url if known else '')}"
    else:
        where = "path: FOLDER"
    return f"{_scalar(name)}: {{{where}, version: {_scalar(version)}}}"


def _scalar(text: str) -> str:
    """Return ``text`` as YAML reads it as text."""
    return text if _PLAIN_IN_YAML.fullmatch(text) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
