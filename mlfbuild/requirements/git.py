"""Dependencies that come from Git repositories.

For each commit that was fetched the cache has a bare repository of its own, which has been whole since it got its name
and is never written again: there is no clone that a killed fetch could leave half-updated, and no ref whose move could
change what a build gets. It holds one commit without its history, where the server gives that. ``trees`` has what is
checked out of it.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import InputFileError, NotFetchedError, ProcessFailedError, Tell, UsageError, tell_nobody
from mlfbuild.requirements.cache import Cache, put
from mlfbuild.requirements.git_program import blobs, git, git_out, listing, shown_address
from mlfbuild.requirements.git_versions import Wanted, check_version, full_or_abbreviated, wanted_of
from mlfbuild.requirements.trees import SHA256_DIGITS, SUBMODULE, Entry, checked, files_of, is_sound, write_tree

MAX_SIZE = 1024 * 1024 * 1024
"""Bytes that all files of a tree may have together."""
_REF = "refs/mlfbuild/fetched"


@dataclass(frozen=True)
class GitPin:
    """A commit and its tree, by their hashes: what a lock file says of a git dependency."""

    commit: str
    tree: str


def fetch_git(url: str, version: str, cache: Cache, tell: Tell = tell_nobody) -> GitPin:
    """Fetch what the tag, branch or commit ``version`` is in the repository ``url`` now; this goes out.

    ``url`` is the address of a provision; a local path is absolute. For a commit that the cache has, whole or
    abbreviated as it was when it was fetched, nobody is asked. Raises ``UsageError`` where there is no such version,
    ``InputFileError`` for a tree that no disk takes, ``ProcessFailedError`` with Git's words, ``ToolNotFoundError`` and
    ``StorageError``.
    """
    return fetch_version(url, version, cache, tell)[0]


def fetch_version(url: str, version: str, cache: Cache, tell: Tell = tell_nobody) -> tuple[GitPin, bool]:
    """Do as ``fetch_git``; returns whether anything was fetched, too."""
    check_version(version, url)
    known = fetched_pin(url, version, cache)
    # The beginning of its own hash it was called by; another name of such digits is a tag or a branch, which may move.
    if known is not None and full_or_abbreviated(version, known.commit) and _restored(known, cache, tell) is not None:
        return known, False
    pin, new = _fetched(url, wanted_of(url, version, tell), version, cache, tell)
    cache.remember({"commit": pin.commit, "tree": pin.tree}, "git", url, version)
    return pin, new


def fetch_pinned(url: str, version: str, pin: GitPin, cache: Cache, tell: Tell = tell_nobody) -> bool:
    """Fetch the commit of ``pin``, which ``version`` was when it was pinned; False where the cache has it already.

    Raises as ``fetch_git``, ``UsageError`` where the repository does not have the commit any more, and
    ``InputFileError`` where the commit has another tree than the pin says.
    """
    if _restored(pin, cache, tell) is not None:
        return False
    found, _ = _fetched(url, wanted_of(url, pin.commit, tell), version, cache, tell)
    if found != pin:
        raise _contradiction(pin, found.tree)
    return True


def _contradiction(pin: GitPin, tree: str) -> InputFileError:
    return InputFileError(
        f"commit {pin.commit} has the tree {tree}, but {pin.tree} is locked; restore the lock file from version "
        "control, or run `mlfbuild lock`"
    )


def fetched_pin(url: str, version: str, cache: Cache) -> GitPin | None:
    """Return what ``version`` was when ``fetch_git`` asked for it last, ``None`` where it never did; offline."""
    known = cache.recall("git", url, version)
    try:
        return GitPin(known["commit"], known["tree"])
    except KeyError:
        return None


def git_root(url: str, pin: GitPin, cache: Cache) -> Path:
    """Return the folder with the files of ``pin``, every one of which has been checked; offline, and without writing.

    Only where the folder was damaged it is made again, out of the cache's repository, which takes Git. Raises
    ``NotFetchedError`` where the cache does not have it.
    """
    root = _restored(pin, cache, tell_nobody)
    if root is None:
        raise NotFetchedError(
            f"{shown_address(url)}: commit {pin.commit} is not in {cache.root}, or not whole; run `mlfbuild fetch`"
        )
    return root


def _restored(pin: GitPin, cache: Cache, tell: Tell) -> Path | None:
    """Return the checked files of ``pin``, made again where need be; ``None`` where the cache does not have them.

    Raises ``InputFileError`` where the commit has another tree.
    """
    tree = _known_tree(pin.commit, cache)
    if tree is None or not is_sound(cache.tree(tree), tree):
        if not cache.repository(pin.commit).is_dir():
            return None
        with cache.work(pin.commit, tell) as work:
            tree = _known(pin.commit, cache, work)
    if tree is None:
        return None
    if tree != pin.tree:
        raise _contradiction(pin, tree)
    return files_of(cache.tree(tree))


def _known_tree(commit: str, cache: Cache) -> str | None:
    """Return the tree of ``commit``, as the cache remembers it, so that builds need no Git."""
    return cache.recall("commit", commit).get("tree")


def _known(commit: str, cache: Cache, work: Path) -> str | None:
    """Return the tree of ``commit`` where the cache's repository has it whole; its files are checked then."""
    repository = cache.repository(commit)
    if not commit or not repository.is_dir():
        return None
    try:
        tree = _tree_of(repository, commit)
        if not is_sound(cache.tree(tree), tree):
            _checked_out(repository, commit, work, f"commit {commit}")
    except (ProcessFailedError, InputFileError):  # damaged: what is fetched takes its place
        return None
    _keep_tree(commit, tree, cache, work)
    return tree


def _keep_tree(commit: str, tree: str, cache: Cache, work: Path) -> None:
    if not is_sound(cache.tree(tree), tree):  # other commits may have the same, and builds read it now
        put(work / "tree", cache.tree(tree))
    cache.remember({"tree": tree}, "commit", commit)


def _fetched(url: str, wanted: Wanted, version: str, cache: Cache, tell: Tell) -> tuple[GitPin, bool]:
    """Return the pin of what is ``wanted``, which the cache has then, and whether it had to be fetched."""
    tree = _whole(wanted.commit, cache)
    if tree is not None:
        return GitPin(wanted.commit, tree), False
    with cache.work(wanted.commit or f"abbreviated-{version.lower()}", tell) as work:
        known = _known(wanted.commit, cache, work)
        if known is not None:
            return GitPin(wanted.commit, known), False
        repository, commit = _clone(url, wanted, version, work, tell)
        tell("checking", 0, 0)
        tree = _checked_out(repository, commit, work, f"{shown_address(url)}: {version}")
        put(repository, cache.repository(commit))
        _keep_tree(commit, tree, cache, work)
        return GitPin(commit, tree), True


def _whole(commit: str, cache: Cache) -> str | None:
    """Return the tree of ``commit`` where repository and files are there and agree; locks and writes nothing."""
    tree = _known_tree(commit, cache)
    if tree is None or not cache.repository(commit).is_dir() or not is_sound(cache.tree(tree), tree):
        return None
    try:
        return tree if _tree_of(cache.repository(commit), commit) == tree else None
    except ProcessFailedError:
        return None


def _clone(url: str, wanted: Wanted, version: str, work: Path, tell: Tell) -> tuple[Path, str]:
    """Fetch what is ``wanted`` into a new bare repository in ``work``; returns that, and the commit.

    Without its history first; where a server gives no part of one, or no commit by its hash, all of it.
    """
    source = wanted.ref or wanted.commit
    if source:
        repository = _new_repository(work / "part", wanted)
        try:
            _fetch_into(repository, url, tell, "--depth=1", "--", url, f"+{source}:{_REF}")
            return repository, _commit(repository, _REF, version, url)
        except ProcessFailedError:
            tell("looking through the history", 0, 0)
    repository = _new_repository(work / "all", wanted)
    _fetch_into(repository, url, tell, "--", url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
    return repository, _commit(repository, source or version.lower(), version, url)


def _new_repository(path: Path, wanted: Wanted) -> Path:
    kind = ["--object-format=sha256"] if wanted.hash_digits == SHA256_DIGITS else []
    git("init", "-q", "--bare", "--template=", *kind, path)
    return path


def _fetch_into(repository: Path, url: str, tell: Tell, *words: str) -> None:
    fetch = ("fetch", "--progress", "--no-tags", "--no-recurse-submodules")
    git_out(url, *fetch, *words, repository=repository, tell=tell)


def _commit(repository: Path, name: str, version: str, url: str) -> str:
    """Return the commit that ``name`` is in ``repository``; raises ``UsageError`` where it is none there."""
    try:
        return _hash_of(repository, f"{name}^{{commit}}")
    except ProcessFailedError as error:
        reason = error.output
    if "ambiguous" in reason:
        raise UsageError(f"{shown_address(url)}: more than one commit begins with {version}; add digits")
    if name.startswith("refs/"):
        raise UsageError(f"{shown_address(url)}: {version} is another object than a commit; choose another version")
    if name == version.lower():
        raise UsageError(f"{shown_address(url)}: has no commit {name}, or not any more; choose another version")
    raise UsageError(
        f"{shown_address(url)}: has no commit {name} any more, at which {version} is locked (a branch was pushed over, "
        f"or a tag moved); run `mlfbuild lock` to take what {version} is now"
    )


def _tree_of(repository: Path, commit: str) -> str:
    return _hash_of(repository, f"{commit}^{{tree}}")


def _hash_of(repository: Path, name: str) -> str:
    output = git("rev-parse", "--verify", "--end-of-options", name, repository=repository)
    return output.split()[-1]  # warnings stand before it


def _checked_out(repository: Path, commit: str, work: Path, where: str) -> str:
    """Write the tree of ``commit`` to the folder ``tree`` of ``work``, byte for byte, and return its hash.

    Raises ``InputFileError`` where it cannot be, or comes out as another tree, and ``ProcessFailedError``.
    """
    tree = _tree_of(repository, commit)
    shutil.rmtree(work / "tree", ignore_errors=True)  # of a repository that proved to be damaged
    entries = list(checked(_entries(repository, tree, where), where))
    if not entries:
        raise InputFileError(f"{where}: has no files; choose another version")
    names = [entry.hash for entry in entries if entry.mode != SUBMODULE]
    with contextlib.closing(blobs(repository, names)) as contents:
        files = ((entry, () if entry.mode == SUBMODULE else (next(contents),)) for entry in entries)
        write_tree(files, work / "tree", where)
    if not is_sound(work / "tree", tree):
        raise InputFileError(f"{where}: its tree {tree} is damaged, or not as Git writes one; choose another version")
    return tree


def _entries(repository: Path, tree: str, where: str) -> Iterator[Entry]:
    total = 0
    for mode, name, size, path in listing(repository, tree):
        total += size
        if total > MAX_SIZE:
            raise InputFileError(f"{where}: has more than {MAX_SIZE >> 20} MiB, refused; choose a smaller version")
        yield Entry(mode, name, path)
