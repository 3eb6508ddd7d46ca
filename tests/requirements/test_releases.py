"""Copies of a library whose headers belong to another release than the stated one."""

import shutil
from pathlib import Path

import pytest

from mlfbuild.core import Diagnostic, ProjectFileError
from mlfbuild.library.requirement import CMSIS_NN
from mlfbuild.project import Provider
from mlfbuild.requirements.folder import folder_library

WHERE = "mlfbuild.yml:9:3: d"
RELEASES = list(CMSIS_NN.revisions)


def copy_of(folder: Path, release: str, **others: str) -> Path:
    """Write a library with the headers of ``release``; ``others`` have another revision, by name without suffix."""
    (folder / "Include").mkdir(parents=True)
    (folder / "Source").mkdir()
    (folder / "Source/a.c").write_text("int a;\n")
    for name, revision in CMSIS_NN.revisions[release].items():
        text = f"/*\n * $Date: today\n * $Revision:    {others.get(name.removesuffix('.h'), revision)}\n */\n"
        (folder / "Include" / name).write_text(text)
    return folder


def state(folder: Path, version: str, kind: str = "path") -> None:
    lists = {"sources": ("Source/**/*.c",), "include_dirs": ("Include",)}
    folder_library(folder, Provider("cmsis-nn", **{kind: "../CMSIS-NN"}, version=version, where=WHERE, **lists))


def refused(folder: Path, version: str, kind: str = "path") -> None:
    with pytest.raises(ProjectFileError) as caught:
        state(folder, version, kind)
    (problem,) = caught.value.problems
    assert isinstance(problem, Diagnostic)
    assert (problem.code, problem.place) == ("release-other-headers", WHERE)


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_is_recognised(tmp_path: Path, release: str) -> None:
    folder = copy_of(tmp_path / "nn", release)
    for stated in RELEASES:
        if stated == release:
            state(folder, stated.removeprefix("v"))
            continue
        refused(folder, stated)


@pytest.mark.parametrize("kind", ["url", "git"])
def test_fetched_files_are_checked(tmp_path: Path, kind: str) -> None:
    refused(copy_of(tmp_path / "nn", "v7.0.0"), "v4.1.0", kind)


@pytest.mark.parametrize("stated", ["", "main", "v7.0.1", "22080c68d040c98139e6cb1549473e3149735f4d"])
def test_versions_with_unknown_headers(tmp_path: Path, stated: str) -> None:
    state(copy_of(tmp_path / "nn", "v4.1.0"), stated)


def test_headers_between_two_releases_are_accepted(tmp_path: Path) -> None:
    state(copy_of(tmp_path / "newer", "v7.0.0", arm_nn_types="V.3.6.0"), "v4.1.0")
    folder = copy_of(tmp_path / "less", "v7.0.0")
    (folder / "Include/arm_nn_types.h").unlink()
    state(folder, "v4.1.0")


def test_releases_of_the_real_library(cmsis_nn_4: Path, cmsis_nn_7: Path, tmp_path: Path) -> None:
    for folder, release, other in ((cmsis_nn_4, "v4.1.0", "v7.0.0"), (cmsis_nn_7, "v7.0.0", "v4.1.0")):
        copy = shutil.copytree(folder, tmp_path / release, ignore=shutil.ignore_patterns(".git", "Tests"))
        state(copy, release)
        refused(copy, other)
