"""The program ``git``, isolated from other repositories of the user.

Commands that access the network honour the user's configuration: proxies, certificates, credentials and mirrors
(``url.<base>.insteadOf``). Commands that read a mirror ignore it. Neither runs hooks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mlfbuild.core import (
    MlfError,
    OnProgress,
    ProcessFailedError,
    StorageError,
    UsageError,
    disk_problem,
    find_tool,
    no_progress,
    pipe_of,
    printable,
    run,
    running,
    shown,
)
from mlfbuild.library import CHUNK
from mlfbuild.project import git_problem

_KEPT_FROM_ENVIRONMENT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_PROXY_COMMAND",
                          "GIT_ALLOW_PROTOCOL", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
                          "GIT_EXEC_PATH")  # fmt: skip
"""Variables of Git that stay; others name a repository of the caller, such as the one whose hook runs this build."""
_KEPT_PREFIXES = ("GIT_SSL_", "GIT_HTTP_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_COUNT")
_OPTIONS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false", "-c", "gc.auto=0",
    "-c", "maintenance.auto=false", "-c", "protocol.ext.allow=never", "-c", "http.lowSpeedLimit=1",
    "-c", "http.lowSpeedTime=60", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true",
    "-c", "transfer.fsckObjects=true", "-c", "fetch.fsck.zeroPaddedFilemode=ignore",
    "-c", "fetch.fsck.badTimezone=ignore", "-c", "fetch.fsck.missingSpaceBeforeDate=ignore",
)  # fmt: skip
"""``fsckObjects`` refuses trees with names such as ``.git`` or ``..``; mistakes of old versions of Git are accepted."""
_SECRET = re.compile(r"(?<=://)[^/?#\s]*@")
_PROGRESS = re.compile(r"(?:remote: )?([A-Z][a-z]+ing [a-z]+): +\d+% \((\d+)/(\d+)\)")
_SHOWN = 50
"""Lines of Git's output in an error."""


def check_address(url: str) -> None:
    """Raise ``UsageError`` for an address that Git would take for an option or a program."""
    problem = git_problem(url)
    if problem is not None:
        raise UsageError("git-address-invalid", place="git", reason=problem.reason, hint=problem.hint)


def shown_address(url: str) -> str:
    """Return ``url`` for messages, without a user name and password."""
    return _SECRET.sub("", shown(url))


def git(*words: str | Path, repository: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run Git on a repository of this machine and return its output.

    Raises ``ToolNotFoundError``, ``StorageError`` for a full disk, and ``ProcessFailedError`` with the output.
    """
    fixed = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, **(environment or {})}
    kept = {key: value for key, value in _environment().items() if not key.startswith("GIT_CONFIG")}
    try:
        return run(_command(*words, repository=repository), env=kept | fixed)
    except ProcessFailedError as error:
        raise _disk_error(str(repository), error.output) or error from None


def git_fetch(
    url: str, command: str, *words: str | Path, repository: Path | None = None, on_progress: OnProgress = no_progress
) -> None:
    """Run ``git <command>``, which accesses ``url``; ``on_progress`` gets its progress.

    Raises ``ToolNotFoundError``, ``StorageError`` for a full disk, and ``ProcessFailedError`` with Git's output.
    """
    lines: list[str] = []
    line = _command(command, "--progress", *words, repository=repository)
    with running([str(word) for word in line], env=_environment()) as process:
        for printed in _lines(pipe_of(process.stdout).fileno()):
            step = _PROGRESS.match(printed)
            if step is not None:
                on_progress(step[1].lower(), int(step[2]), int(step[3]))
            else:
                lines.append(printed)
    if process.returncode != 0:
        raise _failed(url, process.returncode, [each for each in lines if each.strip()])


def _lines(descriptor: int) -> Iterator[str]:
    """Yield lines as they are printed; progress lines end with a carriage return."""
    rest = b""
    while chunk := os.read(descriptor, CHUNK):
        *parts, rest = re.split(rb"[\r\n]", rest + chunk)
        yield from (part.decode(errors="replace") for part in parts)
    yield rest.decode(errors="replace")


def _failed(url: str, status: int, lines: Sequence[str]) -> MlfError:
    return _disk_error(shown_address(url), "\n".join(lines)) or ProcessFailedError(
        "git-failed",
        "\n".join(_SECRET.sub("", printable(line)) for line in lines[-_SHOWN:]),  # servers choose the text
        place=shown_address(url),
        reason=f"the repository cannot be fetched: git failed with exit status {status}",
        hint="see its output below",
    )


def _disk_error(place: str, output: str) -> StorageError | None:
    problem = disk_problem(output)
    if not problem:
        return None
    return StorageError(
        "cache-disk-full",
        place=place,
        reason=f"git cannot write to the cache: {problem}",
        hint="check free space and permissions of the cache folder",
    )


def _command(*words: str | Path, repository: Path | None) -> Sequence[str | Path]:
    place = [f"--git-dir={repository}"] if repository is not None else []
    return [find_tool("git"), *place, *_OPTIONS, *words]


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or _is_kept(key)}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}


def _is_kept(key: str) -> bool:
    return key in _KEPT_FROM_ENVIRONMENT or key.startswith(_KEPT_PREFIXES)
