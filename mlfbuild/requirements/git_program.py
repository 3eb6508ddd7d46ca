"""The program ``git``: how it is run so that nothing around it changes what is fetched.

What goes out honours the user's configuration, which knows proxies, certificates, credentials and mirrors
(``url.<base>.insteadOf``); what reads objects knows none. Neither runs a hook, a filter or a merge of line ends: trees
are taken out of the object database byte for byte.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

from mlfbuild.core import (
    LOOK,
    MlfError,
    ProcessFailedError,
    StorageError,
    Tell,
    UsageError,
    find_tool,
    printable,
    run,
    running,
    shown,
    tell_nobody,
)
from mlfbuild.library import CHUNK
from mlfbuild.project import git_problem

_OF_A_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INDEX_VERSION", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE", "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS", "GIT_TEMPLATE_DIR", "GIT_DEFAULT_HASH", "GIT_DEFAULT_REF_FORMAT", "GIT_QUARANTINE_PATH",
)  # fmt: skip
"""Variables that a hook of Git, or a shell around one, has set for another repository than ours."""
_ALWAYS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
    "-c", "protocol.ext.allow=never", "-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60",
    "-c", "fetch.unpackLimit=1", "-c", "transfer.unpackLimit=1",
)  # fmt: skip
_SECRET = re.compile(r"(?<=://)[^/?#\s]*@")
_PROGRESS = re.compile(r"(?:remote: )?([A-Z][a-z]+ing [a-z]+): +\d+% \((\d+)/(\d+)\)")
_SHOWN = 50
"""Lines of what Git printed, where it fails."""
_FULL_DISK = "No space left on device"


def check_address(url: str) -> None:
    """Raise ``UsageError`` for what Git would take for an option, or for the name of a program that it runs."""
    problem = git_problem(url)
    if problem is not None:
        raise UsageError(f"git: {problem}")


def shown_address(url: str) -> str:
    """Return ``url`` for messages, without the name and password that it may have."""
    return _SECRET.sub("", shown(url))


def git(*words: str | Path, repository: Path | None = None) -> str:
    """Run Git on what is on this machine and return what it printed; raises as ``process.run``."""
    return run(_command(*words, repository=repository), env=_local())


def git_out(url: str, *words: str | Path, repository: Path | None = None, tell: Tell = tell_nobody) -> str:
    """Run Git, which goes out to ``url``, and return what it printed, without its progress, which ``tell`` gets.

    Raises ``ToolNotFoundError``, ``StorageError`` where the disk is full, and ``ProcessFailedError`` where it fails.
    """
    lines: list[str] = []
    with running([str(word) for word in _command(*words, repository=repository)], env=_environment()) as process:
        assert process.stdout is not None
        for line in _lines(process.stdout.fileno()):
            step = _PROGRESS.match(line)
            if step is not None:
                tell(step[1].lower(), int(step[2]), int(step[3]))
            else:
                lines.append(line)
    if process.returncode != 0:
        raise _failed(url, process.returncode, [line for line in lines if line.strip()])
    return "\n".join(lines)


def _lines(descriptor: int) -> Iterator[str]:
    """Yield lines as they come; one that is drawn over ends with a carriage return."""
    for line in _parts(descriptor, re.compile(rb"[\r\n]")):
        yield line.decode(errors="replace")


def _parts(descriptor: int, end: re.Pattern[bytes]) -> Iterator[bytes]:
    """Yield what stands before each ``end``, and what is left behind the last one."""
    rest = b""
    while chunk := os.read(descriptor, CHUNK):
        *parts, rest = end.split(rest + chunk)
        yield from parts
    if rest:
        yield rest


def _failed(url: str, status: int, lines: Sequence[str]) -> MlfError:
    if any(_FULL_DISK in line for line in lines):
        return StorageError(f"{shown_address(url)}: cannot be fetched: {_FULL_DISK}; free space in the cache's folder")
    return ProcessFailedError(
        f"{shown_address(url)}: cannot be fetched: git failed with exit status {status}; {LOOK}",
        "\n".join(_SECRET.sub("", printable(line)) for line in lines[-_SHOWN:]),  # what a server says is untrusted
    )


def _command(*words: str | Path, repository: Path | None) -> Sequence[str | Path]:
    # A folder that is named is taken, and not looked for: nobody else's repository around it, nor who owns it, matters.
    place = [f"--git-dir={repository}"] if repository is not None else []
    return [find_tool("git"), *place, *_ALWAYS, *words]


def _environment() -> dict[str, str]:
    """Return this process's environment for a Git that goes out, without what is said of other repositories."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    fixed = {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    return kept | fixed


def _local() -> Mapping[str, str]:
    """Return the environment for a Git that only reads: no configuration of the user or the system is its business."""
    kept = {name: value for name, value in _environment().items() if not name.startswith(("GIT_CONFIG", "GIT_TRACE"))}
    return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def blobs(repository: Path, hashes: Sequence[str]) -> Generator[bytes, None, None]:
    """Yield the content of each blob of ``hashes``, in order; raises ``ProcessFailedError`` where one is missing.

    A content is held whole: the largest is what a file of sources is.
    """
    command = [str(word) for word in _command("cat-file", "--batch", repository=repository)]
    with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as complaints:
        wanted.write("".join(f"{name}\n" for name in hashes).encode())
        wanted.seek(0)
        with running(command, env=_local(), stdin=wanted, stderr=complaints) as process:
            assert process.stdout is not None
            for name in hashes:
                header = process.stdout.readline().split()
                if len(header) != 3 or header[:2] != [name.encode(), b"blob"]:
                    complaints.seek(0)
                    reason = complaints.read(CHUNK).decode(errors="replace")
                    raise ProcessFailedError(f"{repository}: git cannot read {name}; run `mlfbuild fetch`", reason)
                yield process.stdout.read(int(header[2]))
                process.stdout.read(1)


def listing(repository: Path, tree: str) -> Iterator[tuple[str, str, int, str]]:
    """Yield mode, hash, size in bytes (0 for a submodule) and path of all that ``tree`` has, in Git's order.

    Raises ``ProcessFailedError`` where objects of it are missing or damaged.
    """
    command = [str(word) for word in _command("ls-tree", "-r", "-l", "-z", "--full-tree", tree, repository=repository)]
    with tempfile.TemporaryFile() as complaints:
        with running(command, env=_local(), stderr=complaints) as process:
            assert process.stdout is not None
            for record in _parts(process.stdout.fileno(), re.compile(b"\0")):
                about, _, path = record.partition(b"\t")
                mode, _kind, name, size = about.decode().split()
                yield mode, name, int(size) if size.isdigit() else 0, os.fsdecode(path)
        if process.returncode != 0:
            complaints.seek(0)
            reason = complaints.read(CHUNK).decode(errors="replace")
            raise ProcessFailedError(f"{repository}: git cannot list {tree}; run `mlfbuild fetch`", reason)
