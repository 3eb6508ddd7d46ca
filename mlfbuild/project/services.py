"""Services and people that a project relies on: the sections ``jobs``, ``cache`` and ``trust``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mlfbuild.cache import DEFAULT_LIMIT, CacheSettings, remote_problem
from mlfbuild.core import Mistake, Trust, in_quotes
from mlfbuild.core.keys import NOT_EMPTY, Keys, ProjectPath, Rule, Size, one_of
from mlfbuild.project.engines import DASK, ENGINES, HERE

if TYPE_CHECKING:
    from mlfbuild.project.document import Document

_ADDRESS = r"(tcp|tls|ws|wss|ucx)://[^\s/@]+"


def _address(value: str) -> Mistake | None:
    if re.fullmatch(_ADDRESS, value):
        return None
    reason = f"{in_quotes(value)} is no address of a scheduler of Dask"
    return Mistake("no-scheduler-address", reason=reason, hint="write it as Dask prints it: tcp://farm:8786")


@dataclass(frozen=True)
class JobsKeys(Keys):
    """The engine that compiles models and runs checks."""

    TITLE = "jobs"
    SCHEMA: ClassVar[Mapping[str, Any]] = {"dependentRequired": {"scheduler": ["engine"]}}

    engine: Annotated[str, one_of("engine", ENGINES)] = HERE
    """here: processes on this machine; dask: a cluster of Dask."""
    scheduler: Annotated[str, Rule(_address, {"pattern": f"^{_ADDRESS}$"})] = ""
    """Address of Dask's scheduler: tcp://farm:8786. Default: DASK_SCHEDULER_ADDRESS, else a cluster on this machine for
    `mlfbuild`, and no cluster for SCons and CMake."""

    @property
    def address(self) -> str:
        """The scheduler that compiles: that of the file, else of Dask's own variable; empty for this machine."""
        return (self.scheduler or os.environ.get("DASK_SCHEDULER_ADDRESS", "")) if self.engine == DASK else ""


@dataclass(frozen=True)
class ResultCacheKeys(Keys):
    """The cache of compiled archives."""

    TITLE = "cache"
    SCHEMA: ClassVar[Mapping[str, Any]] = {"dependentRequired": {"push": ["remote"]}}

    limit: Size = DEFAULT_LIMIT
    """Size of the folder on this machine; 0 keeps nothing there. Default: 2 GiB."""
    remote: Annotated[str, Rule(remote_problem, {"format": "uri"})] = ""
    """Server with the HTTP protocol of Bazel's caches, which all machines share: https://cache.example.com/mlf"""
    push: Annotated[str, one_of("push", ("never", "ci", "always"))] = "ci"
    """Machines that write to `remote`: never, always, or ci, those whose environment has CI. Default: ci."""

    def settings(self) -> CacheSettings:
        """Return the keys as the cache reads them."""
        return CacheSettings(None, self.limit, self.remote, self.push)


ARCHIVES, BLOBS = "archives", "parameters"
SIGNED = (ARCHIVES, BLOBS)
"""Kinds of files that a project may require to be signed."""


@dataclass(frozen=True)
class TrustKeys(Keys):
    """People whose signatures a project requires."""

    TITLE = "trust"

    signers: ProjectPath
    """File of allowed signers, as Git has it for commits: identities and a public key on each line (ssh-keygen)."""
    require: Annotated[tuple[Annotated[str, one_of("requirement", SIGNED)], ...], NOT_EMPTY]
    """Files that one of them must sign: archives, every source that is one, but not those that a build makes;
    parameters, every blob that a command reads."""

    def of(self, kind: str) -> Trust | None:
        """Return who must have signed files of this ``kind``, one of ``SIGNED``; ``None`` if anyone may have made them.

        Whoever reads such a file calls ``core.check_signed`` with its bytes before it parses them.
        """
        return Trust(self.signers) if kind in self.require else None


def check_services(document: Document) -> None:
    """Add keys of ``jobs`` and ``cache`` that mean nothing without another one to the problems of ``document``."""
    jobs, cache = document.mapping("jobs"), document.mapping("cache")
    if "scheduler" in jobs and jobs.get("engine") != DASK:
        hint = "add engine: dask, or remove scheduler"
        document.report(("jobs", "scheduler"), "misplaced-key", "has no effect without engine: dask", hint, at_key=True)
    if "push" in cache and "remote" not in cache:
        hint = "add remote, or remove push"
        document.report(("cache", "push"), "misplaced-key", "has no effect without remote", hint, at_key=True)
