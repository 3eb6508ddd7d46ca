"""Where a project's work runs and where its results are kept: the sections ``jobs`` and ``cache``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mlfbuild.core import Mistake, in_quotes
from mlfbuild.core.keys import Keys, Rule, Size, one_of

_ADDRESS = r"(tcp|tls|ws|wss|ucx)://[^\s/@]+"
_URL = r"https?://[^\s@/]+(/[^\s@]*)?"
HERE, DASK = "here", "dask"
"""The engines that run tasks."""


def _address(value: str) -> Mistake | None:
    if re.fullmatch(_ADDRESS, value):
        return None
    reason = f"{in_quotes(value)} is no address of a scheduler of Dask"
    return Mistake("no-scheduler-address", reason=reason, hint="write it as Dask prints it: tcp://farm:8786")


def _url(value: str) -> Mistake | None:
    if re.fullmatch(_URL, value):
        return None
    if "@" in value:
        hint = "put name and password into ~/.netrc, or a token into the environment variable MLFBUILD_CACHE_TOKEN"
        return Mistake("credentials-in-url", reason="the address of the cache contains a name or password", hint=hint)
    reason = f"{in_quotes(value)} is no address of a cache"
    return Mistake("no-cache-address", reason=reason, hint="write it with the prefix: https://cache.example.com/mlf")


@dataclass(frozen=True)
class JobsKeys(Keys):
    """The engine that compiles models and runs checks."""

    TITLE = "jobs"
    SCHEMA: ClassVar[Mapping[str, Any]] = {"dependentRequired": {"scheduler": ["engine"]}}

    engine: Annotated[str, one_of("engine", (HERE, DASK))] = HERE
    """here: processes on this machine; dask: a cluster of Dask."""
    scheduler: Annotated[str, Rule(_address, {"pattern": f"^{_ADDRESS}$"})] = ""
    """Address of Dask's scheduler: tcp://farm:8786. Default: a cluster on this machine."""


@dataclass(frozen=True)
class CacheKeys(Keys):
    """The cache of compiled archives."""

    TITLE = "cache"
    SCHEMA: ClassVar[Mapping[str, Any]] = {"dependentRequired": {"push": ["remote"]}}

    limit: Size = 2 << 30
    """Size of the folder on this machine; 0 keeps nothing there. Default: 2 GiB."""
    remote: Annotated[str, Rule(_url, {"pattern": f"^{_URL}$"})] = ""
    """Server with the HTTP protocol of Bazel's caches, which all machines share: https://cache.example.com/mlf"""
    push: Annotated[str, one_of("push", ("never", "ci", "always"))] = "ci"
    """Who writes to `remote`: never, always, or ci, machines whose environment has CI. Default: ci."""
