"""Work trees of Git as dependencies: whether one is at the version that the project states.

A checkout that somebody left at another tag compiles, links and computes garbage. So where Git knows the release that
is checked out, the project has to state that one; an edited work tree is its owner's business.
"""

from __future__ import annotations

from pathlib import Path

from mlfbuild.core import MlfError, ProjectFileError, listed, printable
from mlfbuild.project import Provision
from mlfbuild.requirements.git_program import git
from mlfbuild.requirements.versions import is_commit, release, same_version


def check_work_tree(folder: Path, provision: Provision) -> None:
    """Raise ``ProjectFileError`` where Git says that ``folder`` is another version than ``provision`` states.

    That is where the folder is the top of a work tree, its commit has tags that are releases, and the stated version is
    neither one of them nor the commit. Nothing is checked where no version is stated, and where there is no Git.
    """
    if not provision.version:
        return
    try:
        if not (folder / ".git").exists():
            return
        repository = folder / ".git"
        commit = git("rev-parse", "--verify", "HEAD", repository=repository).strip()
        names = ("for-each-ref", "--points-at=HEAD", "--format=%(refname:strip=2)", "refs/tags")
        tags = git(*names, repository=repository).split("\n")
    except (MlfError, OSError):  # no Git, or a repository that cannot be read
        return
    releases = [tag for tag in tags if release(tag) is not None]
    stated = provision.version
    if not releases or stated in tags or any(same_version(stated, tag) for tag in releases):
        return
    if is_commit(stated) and commit.startswith(stated.lower()):
        return
    found = listed([printable(tag) for tag in releases])
    there = f"{provision.place} is stated to be {stated}, but {found} is checked out there"
    raise ProjectFileError(
        [f"{provision.where or provision.name}: {there}; check out {stated}, or correct the version"]
    )
