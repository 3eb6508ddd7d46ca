"""Targets that are built one after another: an archive of one is copied for the next if it is up to date."""

import json
from pathlib import Path

import pytest

from mlfbuild.jobs import load, target_jobs
from mlfbuild.usecases.build import build_project as build
from support import warm
from support.firmware_repo import FirmwareRepo, tiny_network

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


def test_model_whose_compiler_is_missing_fails_as_a_job_and_others_are_finished(tmp_path: Path) -> None:
    repo = FirmwareRepo(tmp_path)
    repo.replace("mlfbuild.yml", "beta.tflite}", "beta.tflite, compiler: tvm, python: no-such-python}")
    done = warm.run("mlfbuild", "build", "-j2", "--format", "json", cwd=tmp_path)
    events = [json.loads(line) for line in (done.stdout + done.stderr).splitlines()]
    titles = {event["job"]: event["title"] for event in events if event["event"] == "job-started"}
    ended = {titles[event["job"]]: event["status"] for event in events if event["event"] == "job-finished"}
    assert (done.returncode, ended) == (3, {"alpha for m4": "done", "beta for m4": "failed"})
