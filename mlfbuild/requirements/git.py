"""Requirements from Git repositories: a mirror for each repository, and the files of a commit.

``fetch_version`` and ``fetch_commit`` update the mirror with ``git fetch`` and write the files of the commit to the
cache. ``git_root`` returns these files to builds. It does not access the network, and runs Git only if the files were
damaged and have to be written again from the mirror.

Files are the bytes of the commit: attributes, filters, line-end conversion and hooks are switched off. A submodule is
an empty folder.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from mlfbuild.core import (
    InputFileError,
    MlfError,
    NotFetchedError,
    OnProgress,
    ProcessFailedError,
    UsageError,
    no_progress,
)
from mlfbuild.requirements.cache import Cache, put
from mlfbuild.requirements.git_command import check_address, git, git_fetch, shown_address
from mlfbuild.requirements.git_names import check_version, full_commit, is_abbreviated, nearest_names
from mlfbuild.requirements.tree_hash import leading_out

_ATTRIBUTES = "* -text -eol -filter -ident -working-tree-encoding -export-ignore -export-subst\n"
"""The attributes of each mirror; they take precedence over the ``.gitattributes`` of commits."""
_SETTINGS = ("config", "config.worktree", "commondir", "info/attributes", "objects/info/alternates")
"""Files of a mirror that can make Git run programs."""
HEAD = "HEAD"
"""The version that is the repository's default branch."""
_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


class GitPin(NamedTuple):
    """A commit and the content hash of its files: the lock file's facts about a repository."""

    commit: str
    """Hexadecimal, 40 or 64 digits."""
    tree: str
    """SHA-256, see ``tree_hash``."""


def fetch_version(url: str, version: str, cache: Cache, on_progress: OnProgress = no_progress) -> tuple[GitPin, bool]:
    """Fetch the commit that the tag, branch or commit ``version`` of the repository ``url`` is now.

    ``url`` is the address of a provider; a local path is absolute. Returns the commit, and whether it is new in the
    cache. A full commit that the cache has needs no network. Raises ``UsageError`` if there is no such version,
    ``InputFileError`` for a link that leads out of the tree, ``ProcessFailedError`` with Git's output,
    ``ToolNotFoundError`` and ``StorageError``.
    """
    check_address(url)
    check_version(version, url)
    commit = full_commit(version)
    known = cache.written_hash(commit) if commit else ""
    if known and cache.is_intact(commit, known):
        return GitPin(commit, known), False
    mirror = cache.mirror(url)
    with cache.work(mirror.stem, on_progress) as work:
        if mirror.is_dir() and not _is_safe(mirror, cache):
            shutil.rmtree(mirror)
        if not (commit and _commit(mirror, commit)):
            _update(mirror, url, version, work, on_progress)
        return _files(url, version, _resolved(mirror, version, url), cache, work, on_progress)


def fetch_commit(url: str, version: str, pin: GitPin, cache: Cache, on_progress: OnProgress = no_progress) -> bool:
    """Fetch the commit of ``pin``, at which ``version`` is locked; returns whether it is new in the cache.

    Raises as ``fetch_version``, ``UsageError`` if the repository no longer has the commit, and ``InputFileError`` if
    its files are not those of the pin.
    """
    if cache.is_intact(pin.commit, pin.tree):
        return False
    for _ in range(2):
        try:
            found, _ = fetch_version(url, pin.commit, cache, on_progress)
        except UsageError:
            raise UsageError(
                "git-commit-gone",
                place=shown_address(url),
                reason=f"the repository no longer has commit {pin.commit}, at which {version} is locked",
                hint=f"run `mlfbuild lock` to use the present {version}",
            ) from None
        if found == pin:
            return True
        with cache.work(cache.mirror(url).stem, on_progress):  # the cache was changed, or else the lock file
            for damaged in (cache.mirror(url), cache.tree(pin.commit)):
                shutil.rmtree(damaged, ignore_errors=True)
    raise _mismatch(pin, found.tree)


def git_root(url: str, pin: GitPin, cache: Cache) -> Path:
    """Return the folder with the files of ``pin``; all of them are hashed. Does not access the network.

    Damaged files are written again from the mirror, which takes Git. Raises ``NotFetchedError`` if the cache does not
    have the commit, and ``InputFileError`` if its files are not those of the pin.
    """
    if not cache.is_intact(pin.commit, pin.tree):
        mirror = cache.mirror(url)
        if not _is_safe(mirror, cache):
            raise _not_fetched(url, pin, cache)
        with cache.work(mirror.stem) as work:
            # Another build may have written the files while this one waited, and may be reading them.
            if cache.is_intact(pin.commit, pin.tree):
                return cache.tree(pin.commit)
            try:
                found = _exported(mirror, pin.commit, shown_address(url), cache, work)
            except ProcessFailedError:
                raise _not_fetched(url, pin, cache) from None
        if found != pin:
            raise _mismatch(pin, found.tree)
    return cache.tree(pin.commit)


def mirrored_pin(url: str, version: str, cache: Cache) -> GitPin | None:
    """Return what ``version`` was when the repository was fetched last, ``None`` if it was not; uses no network."""
    mirror = cache.mirror(url)
    if not _is_safe(mirror, cache):
        return None
    try:
        commit = _resolved(mirror, version, url)
    except MlfError:
        return None
    tree = cache.written_hash(commit)
    return GitPin(commit, tree) if tree else None


def _not_fetched(url: str, pin: GitPin, cache: Cache) -> NotFetchedError:
    return NotFetchedError(
        "commit-not-fetched",
        place=shown_address(url),
        reason=f"commit {pin.commit} is missing or damaged in {cache.root}",
        hint="run `mlfbuild fetch`",
    )


def _mismatch(pin: GitPin, tree: str) -> InputFileError:
    return InputFileError(
        "commit-other-files",
        place=f"commit {pin.commit}",
        reason=f"its files have the hash {tree}, but {pin.tree} is locked",
        hint="restore the lock file from version control, or run `mlfbuild lock`",
    )


def _is_safe(mirror: Path, cache: Cache) -> bool:
    """Whether the mirror exists, and no other user who can write to the cache changed its settings."""
    found = [mirror / name for name in _SETTINGS if os.path.lexists(mirror / name)]
    return mirror.is_dir() and all(map(cache.is_trusted, found))


# Mirrors -------------------------------------------------------------------------------------------------------------


def _update(mirror: Path, url: str, version: str, work: Path, on_progress: OnProgress) -> None:
    """Bring all branches and tags of ``mirror`` up to date; makes it if need be."""
    _remove_leftovers(mirror)
    if mirror.is_dir():
        try:
            git_fetch(
                url,
                "fetch",
                "--prune",
                "--no-recurse-submodules",
                url,
                *_REFS,
                repository=mirror,
                on_progress=on_progress,
            )
            _fetch_unnamed(mirror, url, version, on_progress)
            return
        except ProcessFailedError:
            if _is_sound(mirror):
                raise
    git_fetch(url, "clone", "--bare", "--template=", "--", url, str(work / "mirror"), on_progress=on_progress)
    (work / "mirror/info").mkdir(exist_ok=True)
    (work / "mirror/info/attributes").write_text(_ATTRIBUTES)
    _fetch_unnamed(work / "mirror", url, version, on_progress)
    put(work / "mirror", mirror)


def _fetch_unnamed(mirror: Path, url: str, version: str, on_progress: OnProgress) -> None:
    """Fetch the commit ``version`` if no branch or tag leads to it; many servers give such commits, too."""
    commit = full_commit(version)
    if commit and not _commit(mirror, commit):
        try:
            git_fetch(url, "fetch", "--no-tags", url, commit, repository=mirror, on_progress=on_progress)
        except ProcessFailedError:
            return  # the caller reports that the commit is missing


def _remove_leftovers(mirror: Path) -> None:
    """Remove the lock files and unfinished packs of a Git that was killed; this process has the lock of the mirror."""
    for left in (*mirror.glob("*.lock"), *mirror.glob("refs/**/*.lock"), *mirror.glob("objects/pack/tmp_*")):
        left.unlink(missing_ok=True)


def _is_sound(mirror: Path) -> bool:
    try:
        git("fsck", "--connectivity-only", "--no-dangling", repository=mirror)
    except ProcessFailedError:
        return False
    return True


def _commit(mirror: Path, name: str) -> str:
    """Return the commit ``name`` of ``mirror``, empty if it does not have one."""
    try:
        found = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", repository=mirror)
    except ProcessFailedError:
        return ""
    return found.split()[-1] if found.split() else ""


def _resolved(mirror: Path, version: str, url: str) -> str:
    """Return the commit that ``version`` is in ``mirror``: a full commit, a tag, a branch or an abbreviated commit.

    Raises ``UsageError`` with similar names if there is none.
    """
    names = [full_commit(version)] if full_commit(version) else [f"refs/tags/{version}", f"refs/heads/{version}"]
    names += [version.lower()] if is_abbreviated(version) else [HEAD] if version == HEAD else []
    commit = next(filter(None, (_commit(mirror, name) for name in names)), "")
    if commit:
        return commit
    output = git("for-each-ref", "--format=%(refname:strip=2)", "refs/tags", "refs/heads", repository=mirror)
    raise UsageError(
        "git-version-unknown",
        place=shown_address(url),
        reason=f"the repository has no tag, branch or commit {version!a}",
        hint=nearest_names(version, output.split()),
    )


# Files ---------------------------------------------------------------------------------------------------------------


def _files(
    url: str, version: str, commit: str, cache: Cache, work: Path, on_progress: OnProgress
) -> tuple[GitPin, bool]:
    """Write the files of ``commit`` to the cache unless they are there; fetches a damaged repository anew."""
    tree = cache.written_hash(commit)
    if cache.is_intact(commit, tree):
        return GitPin(commit, tree), False
    mirror = cache.mirror(url)
    on_progress("checking out", 0, 0)
    try:
        return _exported(mirror, commit, shown_address(url), cache, work), True
    except ProcessFailedError:
        shutil.rmtree(mirror, ignore_errors=True)
    _update(mirror, url, version, work, on_progress)
    return _exported(mirror, commit, shown_address(url), cache, work), True


def _exported(mirror: Path, commit: str, where: str, cache: Cache, work: Path) -> GitPin:
    """Write the files of ``commit`` to the cache, byte for byte.

    Raises ``ProcessFailedError`` if the mirror is damaged, and ``InputFileError`` for a link that leads out or a
    commit without files.
    """
    folder = work / "tree"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    index = {"GIT_INDEX_FILE": str(work / "index")}
    git("read-tree", commit, repository=mirror, environment=index)
    git(f"--work-tree={folder}", "checkout-index", "--all", "--force", repository=mirror, environment=index)
    link = leading_out(folder)
    if link:
        raise InputFileError(
            "link-leads-out",
            place=f"{where}: commit {commit}",
            reason=f"the link {link!a} leads out of the repository to {os.readlink(folder / link)!a}",  # noqa: PTH115
            hint="choose another version",
        )
    if not any(folder.iterdir()):
        raise InputFileError(
            "commit-without-files",
            place=f"{where}: commit {commit}",
            reason="the commit has no files",
            hint="choose another version",
        )
    return GitPin(commit, cache.put_tree(folder, commit))
