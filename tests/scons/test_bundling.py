"""``bundle: true`` with SCons: an archive is made again if a file of its bundled library changes."""

import shutil
from pathlib import Path

import pytest

from mlfbuild.archive import open_archive
from mlfbuild.library import bundles
from support.firmware_repo import FirmwareRepo

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4}}
models: {kws: {source: kws.tar}}
dependencies:
  cmsis-nn: {path: cmsis-nn, version: v4.1.0, bundle: true}
"""
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
env.MlfModels("mlfbuild.yml", target="m4")
"""
ARCHIVE = "build/mlf/m4/kws.tar"


@pytest.fixture
def repo(tmp_path: Path, shared: Path, stub_cmsis_nn_4: Path) -> FirmwareRepo:
    repo = FirmwareRepo(tmp_path)
    shutil.copyfile(shared / "archives" / "kws_int8-cmsisnn_m4.tar", tmp_path / "kws.tar")
    shutil.copytree(stub_cmsis_nn_4, tmp_path / "cmsis-nn")
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("SConstruct", SCONSTRUCT)
    return repo


@pytest.mark.sweep
def test_changed_library_makes_the_archive_again(repo: FirmwareRepo) -> None:
    assert ARCHIVE in repo.build("-Q").written
    assert bundles(open_archive(repo.root / ARCHIVE), ARCHIVE).keys() == {"cmsis-nn"}
    softmax = "cmsis-nn/Source/SoftmaxFunctions/arm_softmax_s8.c"
    (repo.root / softmax).touch()
    assert ARCHIVE not in repo.build("-Q").written
    repo.write(softmax, repo.read(softmax).decode() + "\n")
    again = repo.build("-Q")
    assert ARCHIVE in again.written
    assert repo.read(softmax) in (repo.root / ARCHIVE).read_bytes()


def test_missing_library_is_reported_in_one_line(repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", PROJECT.replace("cmsis-nn, version", "cmsis-nn, sources: [src/*.c], version"))
    ran = repo.scons("-Q")
    assert ran.status == 2 and "Traceback" not in ran.output
    assert "dependencies.cmsis-nn.sources: 'src/*.c' matches no file in cmsis-nn; " in ran.output
