"""Origins of components: public URLs without credentials, and package URLs."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from packageurl import PackageURL

_SCP = re.compile(r"[\w.-]+@([\w.-]+):(?!//)(.+)")
"""Git's short form of ssh: git@github.com:owner/name."""
_FORGES = {"github.com": "github", "bitbucket.org": "bitbucket"}
"""Types of package URLs by host."""


def public_address(address: str) -> str:
    """Return ``address`` as a public URL, without user, password and query.

    Empty for addresses that are local: a folder, or ``file://``.
    """
    short = _SCP.fullmatch(address)
    if short:
        return f"ssh://{short[1]}/{short[2]}"
    # urlsplit raises ValueError for ports and brackets that are not valid.
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    if not host or parts.scheme in {"", "file"}:
        return ""
    # Without user and query, where tokens are: the document is given to customers.
    return urlunsplit((parts.scheme, host + port, parts.path, "", ""))


def pypi(name: str, version: str, folder: str = "") -> str:
    """Return the package URL of a release on PyPI, or of a folder in it.

    For example, ``pkg:pypi/mlfbuild@1.0#kernels`` for the folder ``kernels``.
    """
    return PackageURL("pypi", None, name, version or None, subpath=folder or None).to_string()


def generic(name: str, version: str = "", **qualifiers: str) -> str:
    """Return a generic package URL with the qualifiers ``checksum``, ``vcs_url`` or ``download_url``.

    Empty if ``name``, which may come from an archive, has only blanks and slashes.
    """
    if not name.strip(" /"):
        return ""
    said = {key: value for key, value in qualifiers.items() if value}
    return PackageURL("generic", None, name, version or None, said).to_string()


def with_version(purl: str, version: str) -> str:
    """Return the package URL ``purl``, which has no version, with ``version``."""
    parts = PackageURL.from_string(purl)
    return PackageURL(parts.type, parts.namespace, parts.name, version or None, parts.qualifiers).to_string()


def of_repository(name: str, address: str, version: str, commit: str = "") -> str:
    """Return the package URL of release ``version`` of the Git repository ``address``.

    It has the type of the forge if there is one, otherwise it is a generic one called ``name``.
    """
    public = public_address(address)
    # The address may be empty, if it is local; then there is no host and the package URL is generic.
    parts = urlsplit(public)
    path = parts.path.strip("/").removesuffix(".git").split("/")
    forge = _FORGES.get(parts.hostname or "")
    if forge and len(path) == 2 and all(path):
        return PackageURL(forge, path[0], path[1], version or None).to_string()
    place = f"git+{public}" if public else ""
    return generic(name, version, vcs_url=f"{place}@{commit}" if place and commit else place)
