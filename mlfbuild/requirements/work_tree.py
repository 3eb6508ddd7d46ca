"""Git work trees as providers: whether the release that is checked out is the stated one.

A checkout of another release compiles and links, but computes wrong results. Edited files are not judged.
"""

from __future__ import annotations

from pathlib import Path

from mlfbuild.core import Diagnostic, MlfError, ProjectFileError, listed, printable
from mlfbuild.project import Provider
from mlfbuild.requirements.git_command import git
from mlfbuild.requirements.versions import is_commit, release, same_version


def check_work_tree(folder: Path, provider: Provider) -> None:
    """Raise ``ProjectFileError`` if Git knows ``folder`` as another release than ``provider`` states.

    That is if the folder is the top of a work tree, its commit has tags that are releases, and the stated version is
    neither one of them nor the commit. Nothing is checked if no version is stated or Git is not installed.
    """
    if not provider.version:
        return
    try:
        if not (folder / ".git").exists():
            return
        repository = folder / ".git"
        commit = git("rev-parse", "--verify", "HEAD", repository=repository).strip()
        names = ("for-each-ref", "--points-at=HEAD", "--format=%(refname:strip=2)", "refs/tags")
        tags = git(*names, repository=repository).split("\n")
    except (MlfError, OSError):  # no Git, or a damaged repository
        return
    releases = [tag for tag in tags if release(tag) is not None]
    stated = provider.version
    if not releases or stated in tags or any(same_version(stated, tag) for tag in releases):
        return
    if is_commit(stated) and commit.startswith(stated.lower()):
        return
    found = listed([printable(tag) for tag in releases])
    raise ProjectFileError(
        [
            Diagnostic(
                "work-tree-other-release",
                place=provider.where or provider.name,
                reason=f"{provider.place} is stated to be {stated}, but {found} is checked out there",
                hint=f"check out {stated}, or correct the version",
            )
        ]
    )
