"""Checkouts of another version than the stated one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlfbuild.core import Diagnostic, ProjectFileError
from mlfbuild.project import Provider
from mlfbuild.requirements.folder import folder_library
from support.cmsis_nn import git, write_cmsis_nn_repository

WHERE = "mlfbuild.yml:9:3: d"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a work tree at v7.0.0 of a repository that also has v4.1.0."""
    return write_cmsis_nn_repository(tmp_path_factory.mktemp("checkout") / "CMSIS-NN")


def state(folder: Path, version: str, kind: str = "path") -> None:
    lists = {"sources": ("Source/**/*.c",), "include_dirs": ("Include",)}
    folder_library(folder, Provider("cmsis-nn", **{kind: "../CMSIS-NN"}, version=version, where=WHERE, **lists))


def refused(folder: Path, version: str) -> str:
    """Return the reason."""
    with pytest.raises(ProjectFileError) as caught:
        state(folder, version)
    (problem,) = caught.value.problems
    assert isinstance(problem, Diagnostic)
    assert (problem.code, problem.place) == ("work-tree-other-release", WHERE)
    return problem.reason


@pytest.mark.parametrize("version", ["v7.0.0", "7.0.0", "7.0", ""])
def test_checked_out_version_is_accepted(checkout: Path, version: str) -> None:
    state(checkout, version)


def test_checked_out_commit_is_accepted(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    state(checkout, commit)
    state(checkout, commit[:8].upper())


@pytest.mark.parametrize("version", ["v4.1.0", "v7.0.1", "main", "0123456789abcdef"])
def test_another_version_is_refused_with_both_names(checkout: Path, version: str) -> None:
    assert "v7.0.0" in refused(checkout, version)


def test_an_edited_work_tree_is_accepted(checkout: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(checkout), "mine")
    (tmp_path / "mine/Include/arm_nnfunctions.h").write_text("/* mine */\n")
    state(tmp_path / "mine", "v7.0.0")


def test_commits_without_a_release_are_accepted(checkout: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(checkout), "mine")
    mine = tmp_path / "mine"
    git(mine, "commit", "--quiet", "--allow-empty", "--message=Mine")
    state(mine, "v4.1.0")
    git(mine, "tag", "nightly")
    state(mine, "v4.1.0")
    git(mine, "tag", "v8.0.0rc1")
    assert "v8.0.0rc1" in refused(mine, "v4.1.0")
    git(mine, "tag", "v4.1.0-mine")
    state(mine, "v4.1.0-mine")


def test_linked_work_trees_and_folders_inside_of_one(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), "v4.1.0")
    state(tmp_path / "linked", "v4.1.0")
    assert "v4.1.0" in refused(tmp_path / "linked", "v7.0.0")
    (tmp_path / "project").mkdir()
    git(tmp_path / "project", "init", "--quiet")
    git(tmp_path / "project", "commit", "--quiet", "--allow-empty", "--message=Project")
    git(tmp_path / "project", "tag", "v1.0")
    vendored = tmp_path / "project/vendor"
    git(tmp_path, "clone", "--quiet", str(checkout), str(vendored))
    (vendored / ".git").rename(tmp_path / "elsewhere")
    state(vendored, "v7.0.0")  # the tags of the enclosing project do not apply


def test_nothing_is_checked_without_git(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state(checkout, "v4.1.0", kind="git")  # its version is the fetched one
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    refused(checkout, "v4.1.0")  # a hook of another repository sets this variable
    monkeypatch.delenv("GIT_DIR")
    git(tmp_path, "clone", "--quiet", str(checkout), "mine")
    git(tmp_path / "mine", "config", "core.repositoryformatversion", "99")
    state(tmp_path / "mine", "v4.1.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    state(checkout, "v4.1.0")
