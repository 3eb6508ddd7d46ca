"""Targets that are built one after another: an archive of one is copied for the next if it is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlfbuild.build.project_jobs import load, target_jobs
from mlfbuild.usecases.build import build_project as build
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets:
  kit: {cpu: cortex-m4}
  product: {cpu: cortex-m4}
  small: {cpu: cortex-m0plus}
models:
  alpha: {source: alpha.tflite}
"""
ARCHIVE = "build/mlf/kit/alpha.tar"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project that was built for one target."""
    (tmp_path / "mlfbuild.yml").write_text(PROJECT)
    (tmp_path / "alpha.tflite").write_bytes(tiny_network(1))
    assert compiled(tmp_path, "kit")
    return tmp_path


def compiled(root: Path, target: str) -> bool:
    """Build one target and return whether its model was compiled."""
    project = load(root / "mlfbuild.yml")
    (result,) = build(target_jobs(project, [target]), lenders=target_jobs(project)).models
    assert result.job.archive == root / f"build/mlf/{target}/alpha.tar"
    assert (result.job.tree / "RECORD.json").is_file()
    return result.compiled


def test_archive_of_another_target_is_copied(root: Path) -> None:
    assert not compiled(root, "product")
    assert (root / "build/mlf/product/alpha.tar").read_bytes() == (root / ARCHIVE).read_bytes()
    assert not (root / "build/mlf/small").exists()


def test_archive_for_another_cpu_is_not_copied(root: Path) -> None:
    assert compiled(root, "small")


def test_archive_of_an_older_model_is_not_copied(root: Path) -> None:
    old = (root / ARCHIVE).read_bytes()
    (root / "alpha.tflite").write_bytes(tiny_network(2))
    assert compiled(root, "product")
    assert (root / ARCHIVE).read_bytes() == old, "nothing is made for who only lends"
    assert not compiled(root, "kit"), "and now it is the other way round"
    assert (root / ARCHIVE).read_bytes() != old


def test_edited_archive_is_not_copied(root: Path) -> None:
    good = (root / ARCHIVE).read_bytes()
    (root / ARCHIVE).write_bytes(good[:-1] + b"x")
    assert compiled(root, "product")
    assert (root / "build/mlf/product/alpha.tar").read_bytes() == good
