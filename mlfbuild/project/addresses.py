"""Addresses that dependencies are fetched from: which are accepted, and how one is shown.

Addresses are committed with the project and with its lock file, and programs that fail print them. An address that
contains a user name with a password, or a token in its place, is refused and never shown.
"""

from __future__ import annotations

import re

from mlfbuild.core import Mistake, in_quotes
from mlfbuild.core.keys import Rule, not_blank

GIT_SCHEMES = ("https", "http", "ssh", "file")
ARCHIVE_SCHEMES = ("https", "http", "file")
# The rules of `git_problem`: no option, no password or token, no helper such as ext::, and no other scheme.
GIT_PATTERN = (
    r"^(?![-\s])(?!https?://[^/]*@)(?!ssh://[^/@]*:[^/]*@)(?![A-Za-z0-9+.-]*::)(?!(?!https?:|ssh:|file:)\w*://)"
)
"""The address of a repository as a pattern of JSON Schema."""
ARCHIVE_PATTERN = r"^(https?://(?![^/]*@)[^/\s]|file:///)\S+$"
"""The address of an archive as a pattern of JSON Schema."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Up to the last @ before the path: a password may contain one.
_USER_INFO = re.compile(r"(?<=://)[^/?#]*@")
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
"""``ext::COMMAND``: Git would run the command."""
_no_text = not_blank("an address")


def is_local_path(address: str) -> bool:
    """Return whether ``address`` of a repository is a folder of this machine, absolute or relative to the project.

    A colon before the first slash decides: ``../CMSIS-NN`` and ``/opt/nn`` are folders, ``git@host:path`` and
    ``https://host/nn`` are not.
    """
    return ":" not in address.partition("/")[0]  # git@host:path is SSH in Git's own spelling


def shown(address: str) -> str:
    """Return ``address`` in quotes for a message, without user name, password or token.

    For every message that contains an address, also of one that is refused: a password in a log is as public as one in
    the file.
    """
    return in_quotes(_USER_INFO.sub("", address))


def git_problem(address: str) -> Mistake | None:
    """Return why ``address`` is not accepted for a repository, ``None`` if it is.

    Accepted are https, http, ssh and file, Git's ``git@host:path``, and folders. Refused are a text that Git would read
    as an option or as a command (``ext::``), and a user name, password or token before the host, which would be
    committed with the file. For SSH, a user name alone is accepted.
    """
    # Before anything else: `--upload-pack=COMMAND` is not an address, but Git would run the command.
    if address.startswith("-") or _HELPER.match(address):
        return Mistake(
            "address-is-option",
            reason=f"Git would read {shown(address)} as an option or a command",
            hint=f"write {_choices(GIT_SCHEMES)}",
        )
    if is_local_path(address):
        return _no_text(address)
    return _problem(address, GIT_SCHEMES, "https://, http://, ssh://, file://, git@host:path or a folder")


def archive_problem(address: str) -> Mistake | None:
    """Return why ``address`` is not accepted for an archive, ``None`` if it is.

    Accepted are https, http and ``file:///`` with a path, without a user name, password or token.
    """
    return _no_text(address) or _problem(address, ARCHIVE_SCHEMES, _choices(ARCHIVE_SCHEMES))


def _problem(address: str, schemes: tuple[str, ...], choices: str) -> Mistake | None:
    found = _SCHEME.match(address)
    scheme = found[1].lower() if found else ""
    hint = f"write {choices}"
    if re.search(r"\s", address):
        return Mistake("address-with-blank", reason=f"{shown(address)} contains a blank", hint="write %20 for it")
    if found is None:
        # That is git@host:path, Git's own spelling of SSH.
        if schemes is GIT_SCHEMES:
            return None
        return Mistake("address-without-scheme", reason=f"{shown(address)} has no scheme", hint=hint)
    if scheme not in schemes:
        reason = f"{shown(address)} has the scheme {scheme}, which is not supported"
        return Mistake("unsupported-address-scheme", reason=reason, hint=hint)
    rest = address[found.end() :]
    if scheme == "file":
        if rest.startswith("/") and rest.strip("/"):
            return None
        return Mistake("address-without-path", reason=f"{shown(address)} names no file", hint="write file:///PATH")
    # A host that begins with a hyphen could become an option of ssh.
    if not re.match(r"[^/?#-][^/?#]*", rest):
        return Mistake("address-without-host", reason=f"{shown(address)} names no host", hint=hint)
    return _secret(address, scheme)


def _secret(address: str, scheme: str) -> Mistake | None:
    """Return why the user of ``address`` is refused; for SSH, a name without password is needed and no secret."""
    user = _USER_INFO.search(address)
    if user is None or (scheme == "ssh" and ":" not in user[0]):
        return None
    where = "Git's credential helper" if scheme == "ssh" else "~/.netrc or a credential helper"
    return Mistake(
        "address-with-secret",
        reason=f"{shown(address)} has a user name, password or token before its host, which would be committed",
        hint=f"move it to {where}",
    )


def _choices(schemes: tuple[str, ...]) -> str:
    *others, last = (f"{scheme}://" for scheme in schemes)
    return f"{', '.join(others)} or {last}"


GIT_ADDRESS = Rule(git_problem, {"pattern": GIT_PATTERN})
ARCHIVE_ADDRESS = Rule(archive_problem, {"pattern": ARCHIVE_PATTERN})
