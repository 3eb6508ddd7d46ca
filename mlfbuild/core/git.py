"""Read a repository with the program ``git``: nothing is fetched, checked out or written.

``GitReader`` runs commands that print, with the user's configuration but without its settings that change what they
print or that run programs. ``git_environment`` is for every command of Git, also for those that fetch.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import IO

from mlfbuild.core.errors import ProcessFailedError
from mlfbuild.core.processes import find_tool, running
from mlfbuild.core.text import printable

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""The id of a commit: SHA-1, or SHA-256 in repositories of that kind."""
UNSHALLOW = "fetch it with `git fetch --unshallow`"
"""The hint for a commit that a shallow clone lacks."""
_KEPT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_EXEC_PATH", "GIT_CONFIG", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY")
"""Prefixes of Git's variables that say where the repository is; others would change what commands print."""
# Settings that would change what is printed, run programs, or fetch what a partial clone lacks.
_OPTIONS = (
    "--no-pager", "-c", "log.follow=false", "-c", "log.showSignature=false", "-c", "log.diffMerges=separate",
    "-c", "core.fsmonitor=false", "-c", "protocol.allow=never",
)  # fmt: skip
_REFETCH = "fetch them with `git fetch --refetch --filter=blob:limit=1m`, or clone without --filter"


def git_environment(kept: tuple[str, ...]) -> dict[str, str]:
    """Return the environment of a command of Git: of Git's own variables, it has those with a prefix in ``kept``.

    Messages are in English, so that they can be recognised, and other objects do not stand in for those of commits.
    """
    found = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(kept)}
    return found | {"LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1"}


@dataclass(frozen=True)
class GitReader:
    """Commands that read the repository of a folder."""

    folder: Path
    option: str
    """The option that needs the repository: the place of errors."""

    def is_shallow(self) -> bool | None:
        """Return whether the clone lacks commits before its oldest; ``None`` if the folder is in no repository."""
        try:
            return self.output("rev-parse", "--is-shallow-repository").strip() == "true"
        except ProcessFailedError as error:
            if "not a git repository" not in error.output:
                raise
            return None

    def commit(self, revision: str) -> str | None:
        """Return the id of the commit that ``revision`` is; ``None`` if the repository has none of that name."""
        if revision.startswith("-"):  # it would be an option of Git
            return None
        try:
            return self.output("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()
        except ProcessFailedError:
            return None

    def output(self, *words: str) -> str:
        """Return what a command prints; paths keep bytes that are not UTF-8 as lone surrogates.

        Raises ``ProcessFailedError`` with what it printed to stderr, and ``ToolNotFoundError``.
        """
        with self.running(*words) as process:
            output: bytes = process.communicate()[0]
        return output.decode(errors="surrogateescape")

    @contextlib.contextmanager
    def running(self, *words: str, stdin: IO[bytes] | None = None) -> Iterator[Popen[bytes]]:
        """Run a command for the ``with`` block, whose stdout is a pipe; raises as ``output`` at the block's end."""
        command = [str(find_tool("git")), *_OPTIONS, "-C", str(self.folder), *words]
        environment = git_environment(_KEPT) | {"GIT_OPTIONAL_LOCKS": "0"}
        with tempfile.TemporaryFile() as errors:
            with running(command, env=environment, stdin=stdin, stderr=errors) as process:
                yield process
            if process.returncode != 0:
                errors.seek(0)
                raise self._failed(words[0], process.returncode, errors.read().decode(errors="replace"))

    def _failed(self, verb: str, status: int, printed: str) -> ProcessFailedError:
        output = "\n".join(map(printable, printed.splitlines()))
        if "promisor remote" in output:
            reason = "the clone is partial and lacks files of these commits"
            return ProcessFailedError("git-clone-partial", output, place=self.option, reason=reason, hint=_REFETCH)
        reason, hint = f"git {verb} failed with exit status {status}", "see its output below"
        return ProcessFailedError("git-history-failed", output, place=self.option, reason=reason, hint=hint)
