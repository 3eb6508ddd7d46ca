"""The settings of the cache, from the project file and the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mlfbuild.core import Mistake, StorageError

FOLDER_VARIABLE = "MLFBUILD_CACHE"
"""Environment variable with the folder of all caches, instead of the one in the user's cache folder."""
TOKEN_VARIABLE = "MLFBUILD_CACHE_TOKEN"  # noqa: S105 - the name of the variable, not a token
"""Environment variable with the token that the server expects (RFC 6750)."""
DISABLE_VARIABLE = "MLFBUILD_CACHE_DISABLE"
"""Environment variable that switches both caches off, as CCACHE_DISABLE does for ccache."""
DEFAULT_LIMIT = 2 << 30


@dataclass(frozen=True)
class CacheSettings:
    """The caches of action results; the fields are the keys of ``cache`` in a project file."""

    folder: Path | None = None
    """The local folder; ``None`` is ``results_folder()``."""
    limit: int = DEFAULT_LIMIT
    """Bytes in the local folder; 0 switches the local cache off."""
    remote: str = ""
    """``http(s)://host[:port]/prefix`` of a server, or empty."""
    push: str = "ci"
    """Which processes send results to ``remote``: ``never``, ``always``, or ``ci``, those with the variable ``CI``."""

    @property
    def pushes(self) -> bool:
        """Whether this process sends its results to the server."""
        ci = os.environ.get("CI", "").lower() not in {"", "0", "false"}
        return self.push == "always" or (self.push == "ci" and ci)


def caches_folder() -> Path:
    """Return the folder of this user's caches: ``$MLFBUILD_CACHE``, else ``mlfbuild`` in the system's cache folder.

    Raises ``StorageError`` for a user without a home folder.
    """
    from platformdirs import user_cache_path  # few commands use a cache

    chosen = os.environ.get(FOLDER_VARIABLE)
    try:
        return (Path(chosen) if chosen else user_cache_path("mlfbuild")).expanduser().absolute()
    except RuntimeError:
        hint = f"set {FOLDER_VARIABLE} to a folder for it"
        raise StorageError("no-home-folder", reason="there is no home folder for a cache", hint=hint) from None


def results_folder() -> Path:
    """Return the default folder of results: ``results`` in ``caches_folder``, and as that raises."""
    return caches_folder() / "results"


def remote_problem(url: str) -> Mistake | None:
    """Return why ``url`` is not an address of a cache server; ``None`` if it is one, or empty.

    The message never contains a password of ``url``.
    """
    if not url:
        return None
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # the port is parsed when it is asked for
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.username is not None or parts.password is not None:
        return Mistake(
            "cache-remote-has-credentials",
            reason="the address contains a user name or password",
            hint=f"write them into ~/.netrc, or a token into the environment variable {TOKEN_VARIABLE}",
        )
    plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    if parts.scheme not in {"http", "https"} or not host or not plain or "?" in url or "#" in url:
        return Mistake(
            "cache-remote-invalid",
            reason="is not the address of a cache server",
            hint="write http(s)://host[:port]/prefix",
        )
    return None
