"""Addresses that dependencies are fetched from: which are accepted, and how one is shown.

Addresses are committed with the project and with its lock file, and programs that fail print them: one that holds a
user name with a password, or a token in its place, is refused and never shown.
"""

from __future__ import annotations

import re

from mlfbuild.project.problems import quoted

GIT_SCHEMES = ("https", "http", "ssh", "file")
ARCHIVE_SCHEMES = ("https", "http", "file")
GIT_PATTERN = (
    r"^(?![-\s])(?!https?://[^/]*@)(?!ssh://[^/@]*:[^/]*@)(?![A-Za-z0-9+.-]*::)(?!(?!https?:|ssh:|file:)\w*://)"
)
"""What JSON Schema says about the address of a repository."""
ARCHIVE_PATTERN = r"^(https?://(?![^/]*@)[^/\s]|file:///)\S+$"
"""What JSON Schema says about the address of an archive."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_USER_INFO = re.compile(r"(?<=://)[^/?#]*@")
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
"""``ext::COMMAND``: Git would run the command."""


def is_local_path(address: str) -> bool:
    """Whether ``address`` of a repository is a folder of this machine, absolute or from the project file's on."""
    return ":" not in address.partition("/")[0]  # git@host:path is SSH in Git's own spelling


def shown(address: str) -> str:
    """Return ``address`` in quotes for a message, without user name, password or token."""
    return quoted(_USER_INFO.sub("", address))


def git_problem(address: str) -> str | None:
    """Return why no repository is fetched from ``address``, ``None`` where one can be."""
    if not address.strip():
        return "an address must not be empty"
    if address.startswith("-") or _HELPER.match(address):
        return f"{shown(address)} would be an option or a command to Git; write {_choices(GIT_SCHEMES)}"
    if is_local_path(address):
        return None
    return _problem(address, GIT_SCHEMES, f"{_choices(GIT_SCHEMES)}, git@host:path or a folder")


def archive_problem(address: str) -> str | None:
    """Return why no archive is downloaded from ``address``, ``None`` where one can be."""
    if not address.strip():
        return "an address must not be empty"
    return _problem(address, ARCHIVE_SCHEMES, _choices(ARCHIVE_SCHEMES))


def _problem(address: str, schemes: tuple[str, ...], choices: str) -> str | None:
    found = _SCHEME.match(address)
    scheme = found[1].lower() if found else ""
    if re.search(r"\s", address):
        return f"{shown(address)} holds a blank; write %20 for it"
    if found is None:
        return None if schemes is GIT_SCHEMES else f"{shown(address)} has no scheme; write {choices}"
    if scheme not in schemes:
        return f"{shown(address)}: nothing is fetched by {scheme}; write {choices}"
    rest = address[found.end() :]
    if scheme == "file":
        return (
            None if rest.startswith("/") and rest.strip("/") else f"{shown(address)} names no file; write file:///PATH"
        )
    if not re.match(r"[^/?#-][^/?#]*", rest):
        return f"{shown(address)} names no host; write {choices}"
    return _secret(address, scheme)


def _secret(address: str, scheme: str) -> str | None:
    """Return why the user of ``address`` is refused; of SSH a name alone is none of a secret, and it is needed."""
    user = _USER_INFO.search(address)
    if user is None or (scheme == "ssh" and ":" not in user[0]):
        return None
    advice = "leave it to Git's credential helper" if scheme == "ssh" else "leave it to ~/.netrc or a credential helper"
    return f"{shown(address)} has a user name, password or token before its host, which would be committed; {advice}"


def _choices(schemes: tuple[str, ...]) -> str:
    return ", ".join(f"{scheme}://" for scheme in schemes)
