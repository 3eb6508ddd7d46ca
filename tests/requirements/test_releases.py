"""Copies of a library whose headers say that they are another release than the project states."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mlfbuild.core.errors import ProjectFileError
from mlfbuild.library.known_dependencies import CMSIS_NN
from mlfbuild.project import Provision
from mlfbuild.requirements.folder import folder_source

RELEASES = list(CMSIS_NN.revisions)


def copy_of(folder: Path, release: str, **others: str) -> Path:
    """A library with the headers of ``release``; ``others`` have another revision, by name without suffix."""
    (folder / "Include").mkdir(parents=True)
    (folder / "Source").mkdir()
    (folder / "Source/a.c").write_text("int a;\n")
    for name, revision in CMSIS_NN.revisions[release].items():
        text = f"/*\n * $Date: today\n * $Revision:    {others.get(name.removesuffix('.h'), revision)}\n */\n"
        (folder / "Include" / name).write_text(text)
    return folder


def state(folder: Path, version: str, kind: str = "path") -> None:
    folder_source(folder, Provision("cmsis-nn", **{kind: "../CMSIS-NN"}, version=version, where="mlfbuild.yml:9:3: d"))


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_is_told_from_the_others(tmp_path: Path, release: str) -> None:
    folder = copy_of(tmp_path / "nn", release)
    for stated in RELEASES:
        if stated == release:
            state(folder, stated.removeprefix("v"))
            continue
        with pytest.raises(ProjectFileError) as caught:
            state(folder, stated)
        assert str(caught.value) == (
            f"mlfbuild.yml:9:3: d: ../CMSIS-NN is stated to be {stated}, but its headers are those of {release}; "
            f"correct the version, or provide {stated}"
        )


@pytest.mark.parametrize("kind", ["url", "git"])
def test_what_was_fetched_is_looked_at_too(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ProjectFileError, match=r"is stated to be v4\.1\.0, but its headers are those of v7\.0\.0"):
        state(copy_of(tmp_path / "nn", "v7.0.0"), "v4.1.0", kind)


@pytest.mark.parametrize("stated", ["", "main", "v7.0.1", "22080c68d040c98139e6cb1549473e3149735f4d"])
def test_versions_that_nobody_knows_the_headers_of(tmp_path: Path, stated: str) -> None:
    state(copy_of(tmp_path / "nn", "v4.1.0"), stated)


def test_headers_between_two_releases_say_nothing(tmp_path: Path) -> None:
    state(copy_of(tmp_path / "newer", "v7.0.0", arm_nn_types="V.3.6.0"), "v4.1.0")
    folder = copy_of(tmp_path / "less", "v7.0.0")
    (folder / "Include/arm_nn_types.h").unlink()
    state(folder, "v4.1.0")


def test_the_real_library_says_what_it_is(cmsis_nn_4: Path, cmsis_nn_7: Path, tmp_path: Path) -> None:
    for folder, release, other in ((cmsis_nn_4, "v4.1.0", "v7.0.0"), (cmsis_nn_7, "v7.0.0", "v4.1.0")):
        copy = shutil.copytree(folder, tmp_path / release, ignore=shutil.ignore_patterns(".git", "Tests"))
        state(copy, release)
        with pytest.raises(ProjectFileError, match=f"but its headers are those of {release}"):
            state(copy, other)
