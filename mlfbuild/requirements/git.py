"""Requirements from Git repositories: the program ``git`` fetches one commit, whose files the cache keeps.

``fetch_version`` asks the server which commit a tag, a branch or ``HEAD`` is (``git ls-remote``), fetches that commit
without its history, and writes its files to the cache; ``fetch_commit`` does so for a locked commit. ``git_root``
returns these files to builds: it hashes them, runs no program and does not access the network.

Files are the bytes of the commit: attributes, filters, line-end conversion and hooks are switched off. A submodule is
an empty folder. Commands that access the network honour the user's configuration: proxies, certificates, credentials
and mirrors (``url.<base>.insteadOf``). Commands that write files ignore it.

There is no clone: the repository that Git needs for the objects is new for each commit and removed afterwards, so that
no settings of it can be manipulated between two runs. Damaged files are therefore fetched again, not restored offline.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from mlfbuild.core import (
    COMMIT,
    InputFileError,
    NotFetchedError,
    OnProgress,
    ProcessFailedError,
    StorageError,
    UsageError,
    disk_problem,
    find_tool,
    git_environment,
    listed,
    make_folder,
    no_progress,
    printable,
    quoted,
    run,
    sha256,
    suggestion,
    write_if_changed,
)
from mlfbuild.project import git_problem
from mlfbuild.requirements.cache import Cache, leading_out
from mlfbuild.requirements.requirement_checks import USER_INFO, without_secret

HEAD = "HEAD"
"""The version that is the repository's default branch."""
_ATTRIBUTES = "* -text -eol -filter -ident -working-tree-encoding -export-ignore -export-subst\n"
"""The attributes of the repository for objects; they take precedence over the ``.gitattributes`` of commits."""
_KEPT = (
    "GIT_SSH", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_ALLOW_PROTOCOL", "GIT_EXEC_PATH", "GIT_SSL_", "GIT_HTTP_",
)  # fmt: skip
"""Prefixes of Git's variables that stay; others name a repository of the caller, such as that of a running hook."""
_CONFIGURATION = tuple(
    f"GIT_CONFIG_{name}" for name in ("GLOBAL", "SYSTEM", "NOSYSTEM", "KEY_", "VALUE_", "COUNT")
)  # fmt: skip
"""Prefixes of variables with the user's configuration, which stay in commands that access the network."""
# hooksPath, fsmonitor and the protocol ext name programs that Git would run; http.lowSpeed* gives up after 60 s in
# which a server sends nothing; protectHFS and protectNTFS refuse names that other file systems take for .git.
_OPTIONS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false", "-c", "gc.auto=0",
    "-c", "maintenance.auto=false", "-c", "protocol.ext.allow=never", "-c", "http.lowSpeedLimit=1",
    "-c", "http.lowSpeedTime=60", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true",
    "-c", "transfer.fsckObjects=true", "-c", "fetch.fsck.zeroPaddedFilemode=ignore",
    "-c", "fetch.fsck.badTimezone=ignore", "-c", "fetch.fsck.missingSpaceBeforeDate=ignore",
)  # fmt: skip
"""``fsckObjects`` refuses trees with names such as ``.git`` or ``..``; mistakes of old versions of Git are accepted."""
_ABBREVIATED = re.compile(r"[0-9a-f]{7,63}", re.IGNORECASE)
_REF = re.compile(r"^([0-9a-f]{40}|[0-9a-f]{64})\t(HEAD|refs/\S+)$", re.MULTILINE)
_SHOWN = 50
"""Lines of Git's output in an error."""


class GitPin(NamedTuple):
    """A commit and the content hash of its files: the lock file's facts about a repository."""

    commit: str
    """Hexadecimal, 40 or 64 digits."""
    tree: str
    """SHA-256, see ``tree_sha256``."""


def fetch_version(url: str, version: str, cache: Cache, on_progress: OnProgress = no_progress) -> tuple[GitPin, bool]:
    """Fetch the commit that the tag, branch or commit ``version`` of the repository ``url`` is now.

    ``url`` is the address of a provider; a local path is absolute. Returns the commit, and whether it is new in the
    cache. A full commit that the cache has needs no network. Raises ``UsageError`` if there is no such version,
    ``InputFileError`` for a link that leads out of the tree, ``ProcessFailedError`` with Git's output,
    ``ToolNotFoundError`` and ``StorageError``.
    """
    problem = git_problem(url)
    if problem is not None:
        raise UsageError("git-address-invalid", place="git", reason=problem.reason, hint=problem.hint)
    # A full commit cannot move, so the server need not be asked what it is.
    if COMMIT.fullmatch(version.lower()):
        return _fetched(url, version.lower(), cache.written_hash(version.lower()), cache, on_progress)
    commit = _commit_of(url, version)
    found = _fetched(url, commit, cache.written_hash(commit), cache, on_progress)
    make_folder(_record(url, version, cache).parent)
    write_if_changed(_record(url, version, cache), f"{commit}\n".encode())
    return found


def fetch_commit(url: str, version: str, pin: GitPin, cache: Cache, on_progress: OnProgress = no_progress) -> bool:
    """Fetch the commit of ``pin``, at which ``version`` is locked; returns whether it is new in the cache.

    Raises as ``fetch_version``, ``UsageError`` if the repository no longer has the commit, and ``InputFileError`` if
    its files are not those of the pin.
    """
    try:
        found, new = _fetched(url, pin.commit, pin.tree, cache, on_progress)
    except UsageError:
        raise UsageError(
            "git-commit-gone",
            place=without_secret(url),
            reason=f"the repository no longer has commit {pin.commit}, at which {version} is locked",
            hint=f"run `mlfbuild lock` to use the present {version}",
        ) from None
    if found != pin:
        raise _mismatch(pin, found.tree)
    return new


def git_root(url: str, pin: GitPin, cache: Cache) -> Path:
    """Return the folder with the files of ``pin``; all of them are hashed. Does not access the network.

    Raises ``NotFetchedError`` if the cache does not have the commit or its files were changed, and ``InputFileError``
    if the commit has other files than the pin.
    """
    # Hashing costs about as much as reading the files once, which the build does anyway.
    if cache.is_intact(pin.commit, pin.tree):
        return cache.tree(pin.commit)
    written = cache.written_hash(pin.commit)
    if written != pin.tree and cache.is_intact(pin.commit, written):
        raise _mismatch(pin, written)
    raise NotFetchedError(
        "commit-not-fetched",
        place=without_secret(url),
        reason=f"commit {pin.commit} is missing or damaged in {cache.root}",
        hint="run `mlfbuild fetch`",
    )


def fetched_pin(url: str, version: str, cache: Cache) -> GitPin | None:
    """Return what ``version`` was when it was fetched last, ``None`` if it was not; uses no network.

    A full commit stands for itself. The files are not hashed here, which ``git_root`` does.
    """
    commit = version.lower() if COMMIT.fullmatch(version.lower()) else cache.trusted_text(_record(url, version, cache))
    tree = cache.written_hash(commit) if COMMIT.fullmatch(commit) else ""
    return GitPin(commit, tree) if tree else None


def _record(url: str, version: str, cache: Cache) -> Path:
    return cache.root / "git" / sha256(f"{url}\0{version}".encode())


def _mismatch(pin: GitPin, tree: str) -> InputFileError:
    reason = f"its files have the hash {tree}, but {pin.tree} is locked"
    hint = "restore the lock file from version control, or run `mlfbuild lock`"
    return InputFileError("commit-other-files", place=f"commit {pin.commit}", reason=reason, hint=hint)


def _commit_of(url: str, version: str) -> str:
    """Return the commit that the tag, the branch or the beginning of a commit ``version`` is on the server now."""
    refs = {name: commit for commit, name in _REF.findall(_git("ls-remote", "--", url, url=url))}
    # A tag comes before a branch of the same name, as in Git's own rules for revisions (gitrevisions).
    names = (
        # The commit of an annotated tag: the name without ^{} is that of the tag object.
        f"refs/tags/{version}^{{}}",
        f"refs/tags/{version}",
        f"refs/heads/{version}",
        *([HEAD] * (version == HEAD)),
    )
    commit = next((refs[name] for name in names if name in refs), "")
    # `ls-remote` lists only commits with a name, so only the tip of a branch or a tag can be found by its first digits.
    if not commit and _ABBREVIATED.fullmatch(version):
        commit = next((each for each in refs.values() if each.startswith(version.lower())), "")
    return commit or _no_version(
        url, version, [name.split("/", 2)[2] for name in refs if re.match("refs/(tags|heads)/[^^]*$", name)]
    )


def _no_version(url: str, version: str, names: list[str]) -> str:
    near = suggestion(version, names).strip(" ()")
    hint = f"choose one of {listed(names[::-1])}" if names else "check the address, the repository is empty"
    if _ABBREVIATED.fullmatch(version):
        near = "write all digits of a commit: servers find no commit by its first ones"
    raise UsageError(
        "git-version-unknown",
        place=without_secret(url),
        reason=f"the repository has no tag, branch or commit {quoted(version)}",
        hint=near or hint,
    )


def _fetched(url: str, commit: str, tree: str, cache: Cache, on_progress: OnProgress) -> tuple[GitPin, bool]:
    """Return the commit with its files in the cache, and whether they were fetched now: not if their hash is ``tree``.

    Raises ``UsageError`` if the repository does not have the commit.
    """
    if cache.is_intact(commit, tree):
        return GitPin(commit, tree), False
    with cache.work(commit, on_progress) as work:
        tree = tree or cache.written_hash(commit)
        if cache.is_intact(commit, tree):  # another process fetched it while this one waited
            return GitPin(commit, tree), False
        repository = work / "repository"
        hashes = "sha256" if len(commit) == 64 else "sha1"
        # An empty template: the user's own could bring hooks and attributes.
        # The kind of hash must be known when the repository is made; the length of the commit tells it.
        _git("init", "-q", "--bare", "--template=", f"--object-format={hashes}", repository)
        (repository / "info").mkdir(exist_ok=True)
        (repository / "info/attributes").write_text(_ATTRIBUTES)
        on_progress("receiving", 0, 0)
        options = ("fetch", "-q", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
        try:
            _git(*options, "--depth=1", url, commit, repository=repository, url=url)
        # Old servers and those of plain files give branches and tags only, with their history.
        except ProcessFailedError:
            _git(*options, url, "+refs/*:refs/*", repository=repository, url=url)
        on_progress("checking out", 0, 0)
        return GitPin(commit, _written(repository, commit, without_secret(url), cache)), True


def _written(repository: Path, commit: str, where: str, cache: Cache) -> str:
    """Write the files of ``commit`` to the cache, byte for byte, and return their content hash."""
    folder = repository.with_name("tree")
    folder.mkdir()
    try:
        _git("read-tree", f"{commit}^{{commit}}", repository=repository)
    except ProcessFailedError:
        _no_version(where, commit, [])
    # Not `git checkout`: this only writes files, without hooks, branches and submodules.
    _git(f"--work-tree={folder}", "checkout-index", "--all", "--force", repository=repository)
    # Before the files get into the cache: a build that follows such a link would read files of the user.
    link = leading_out(folder)
    if link:
        raise InputFileError(
            "link-leads-out",
            place=f"{where}: commit {commit}",
            reason=f"the link {link!a} leads out of the repository to {os.readlink(folder / link)!a}",  # noqa: PTH115 - as it is written
            hint="choose another version",
        )
    if not any(folder.iterdir()):
        raise InputFileError(
            "commit-without-files",
            place=f"{where}: commit {commit}",
            reason="the commit has no files",
            hint="choose another version",
        )
    shutil.rmtree(repository, ignore_errors=True)
    return cache.put_tree(folder, commit)


def _git(*words: str | Path, repository: Path | None = None, url: str = "") -> str:
    """Run Git and return its output; with ``url``, which it accesses, by the user's configuration.

    Raises ``ToolNotFoundError``, ``StorageError`` for a full disk, and ``ProcessFailedError`` with the output.
    """
    # No command may wait for a password.
    environment = git_environment((*_KEPT, *_CONFIGURATION) if url else _KEPT) | {"GIT_TERMINAL_PROMPT": "0"}
    if not url:
        environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    place = [f"--git-dir={repository}"] if repository is not None else []
    try:
        return run([find_tool("git"), *place, *_OPTIONS, *words], env=environment)
    except ProcessFailedError as error:
        problem = disk_problem(error.output)
        if problem:
            raise StorageError(
                "cache-disk-full",
                place=without_secret(url) or str(repository),
                reason=f"git cannot write to the cache: {problem}",
                hint="check free space and permissions of the cache folder",
            ) from None
        if not url:
            raise
        lines = [line for line in error.output.splitlines() if line.strip()][-_SHOWN:]
        raise ProcessFailedError(
            "git-failed",
            "\n".join(USER_INFO.sub("", printable(line)) for line in lines),  # servers choose the text
            place=without_secret(url),
            reason=f"the repository cannot be fetched: git {error.reason}",
            hint="see its output below",
        ) from None
