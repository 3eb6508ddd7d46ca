"""Signed archives in SCons: those of a project with the key ``trust``, and those of ``MLFSIGNERS``."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.usecases import sign_files
from support.firmware_repo import FirmwareRepo
from support.libraries import native_library
from support.signing import make_key, signer_line

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models: {tiny: {source: tiny.tar}}
trust: {signers: signers, require: [archives]}
"""
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"], MLFSIGNERS="signers")
if ARGUMENTS.get("of") == "project":
    env.MlfModels("mlfbuild.yml")
else:
    made = env.MlfArchive("build/one.tar", "one.tar")
    env.MlfUnpack("build/tree", env.MlfMerge("build/both.tar", [made, "two.tar"]), MLFNAME="both")
    env.MlfUnpack("build/two", "two.tar")
"""


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[..., str]) -> FirmwareRepo:
    """A repository of three archives and the keys of alice, who is allowed, of bob, who is too, and of eve."""
    tool("ssh-keygen")
    repo = FirmwareRepo(tmp_path)
    alice, bob, _ = (make_key(tmp_path / name) for name in ("alice", "bob", "eve"))
    for name in ("tiny", "one", "two"):
        repo.write(f"{name}.tar", pack_archive(native_library(name)))
    repo.write("signers", signer_line(alice, "alice@x") + signer_line(bob, "bob@x"))
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("SConstruct", SCONSTRUCT)
    return repo


def sign(repo: FirmwareRepo, key: str, *names: str) -> None:
    sign_files([repo.root / f"{name}.tar" for name in names], repo.root / key)


def test_archives_of_a_project(repo: FirmwareRepo) -> None:
    sign(repo, "alice", "tiny")
    assert "build/mlf/pc/tiny/RECORD.json" in repo.build("-Q", "of=project").written
    assert repo.build("-Q", "of=project").written <= {"build/.sconsign.dblite"}
    sign(repo, "bob", "tiny")
    assert repo.build("-Q", "of=project").steps == ["Compiling model tiny.tar -> build/mlf/pc/tiny.tar"]
    sign(repo, "eve", "tiny")
    refused = repo.scons("-Q", "of=project", status=2)
    assert "tiny.tar: is signed with the key" in refused.output
    assert refused.written <= {"build/.sconsign.dblite"}


@pytest.mark.sweep
def test_archives_without_a_project(repo: FirmwareRepo) -> None:
    sign(repo, "alice", "one")
    refused = repo.scons("-Q", "-k", status=2)
    assert refused.output.count("two.tar: is not signed") == 2
    assert refused.matching(".tar") == {"build/one.tar"}
    sign(repo, "alice", "two")
    assert {"build/tree/RECORD.json", "build/two/RECORD.json"} <= repo.build("-Q").written
    assert repo.build("-Q").written <= {"build/.sconsign.dblite"}
    sign(repo, "bob", "one")
    assert repo.build("-Q").matching(".tar") == {"build/one.tar"}
    sign(repo, "eve", "two")
    refused = repo.scons("-Q", "-k", status=2)
    assert refused.output.count("two.tar: is signed with the key") == 2
