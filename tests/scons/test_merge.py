"""``MlfMerge``: one archive of several, made again only if one of them changes."""

import os
import time
from pathlib import Path

import pytest

from mlfbuild import open_archive
from support.examples import first_on_push
from support.firmware_repo import FirmwareRepo

SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"], MLFCPU="cortex-m4")
parts = [env.MlfArchive(f"build/{name}.tar", f"models/{name}.tflite") for name in ("alpha", "beta")]
both = env.MlfMerge("build/both", parts)
tree = env.MlfUnpack("build/tree", both, MLFNAME="both")
"""
SOURCE = "build/tree/codegen/host/src/{}_lib0.c"


@pytest.fixture
def repo(tmp_path: Path) -> FirmwareRepo:
    """A repository that has just been built."""
    repo = FirmwareRepo(tmp_path)
    repo.write("SConstruct", SCONSTRUCT)
    ran = repo.build()
    assert "Merging build/alpha.tar build/beta.tar -> build/both.tar" in ran.output
    return repo


def test_merged_archive_has_the_models_of_both(repo: FirmwareRepo) -> None:
    library = open_archive(repo.root / "build/both.tar")
    assert [module.name for module in library.modules] == ["alpha", "beta"]
    assert (repo.root / SOURCE.format("alpha")).is_file()
    assert (repo.root / SOURCE.format("beta")).is_file()


def test_unchanged_archives_are_not_merged_again(repo: FirmwareRepo) -> None:
    assert not repo.build().written - {"build/.sconsign.dblite"}
    later = time.time() + 60
    for name in ("SConstruct", "models/alpha.tflite"):
        os.utime(repo.root / name, (later, later))
    assert not repo.build().written
    repo.replace("SConstruct", '"build/both", parts', '"build/both", list(reversed(parts))')
    assert not repo.build().written, "another order is no other archive"


def test_changed_model_merges_again(repo: FirmwareRepo) -> None:
    repo.write_model("alpha", seed=7)
    ran = repo.build()
    archives = {path for path in ran.written if path.endswith(".tar")}
    assert archives == {"build/alpha.tar", "build/both.tar"}
    assert SOURCE.format("alpha") in ran.written
    assert SOURCE.format("beta") not in ran.written


@pytest.mark.sweep
def test_archive_made_again_with_the_same_content_is_not_merged_again(repo: FirmwareRepo) -> None:
    (repo.root / "build/alpha.tar").unlink()
    ran = repo.build()
    assert {path for path in ran.written if path.endswith(".tar")} == {"build/alpha.tar"}


def test_worker_processes_write_the_same(repo: FirmwareRepo) -> None:
    before = repo.read("build/both.tar")
    repo.build("-c")
    assert not (repo.root / "build/both.tar").exists()
    repo.build("-j2")
    assert repo.read("build/both.tar") == before


@pytest.mark.parametrize("jobs", first_on_push(["-j2", "-j1"]))
def test_conflicting_archives_are_rejected(repo: FirmwareRepo, jobs: str) -> None:
    repo.write("SConstruct", SCONSTRUCT.replace('("alpha", "beta")]', '("alpha", "beta")]\nparts[1] = "copy.tar"'))
    repo.write("copy.tar", repo.read("build/alpha.tar"))
    ran = repo.scons(jobs, status=2)
    assert "build/alpha.tar and copy.tar: both archives have a module alpha; rename one of them" in ran.output
    assert "Traceback" not in ran.output
    assert not (repo.root / "build/both.tar").exists()


def test_printed_line(repo: FirmwareRepo) -> None:
    repo.write("SConstruct", SCONSTRUCT.replace('MLFCPU="', 'MLFMERGECOMSTR="joining $TARGET", MLFCPU="'))
    repo.write_model("beta", seed=9)
    assert "joining build/both.tar" in repo.build().output
