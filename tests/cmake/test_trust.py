"""Signed archives in CMake: a change of a signature is noticed by the build, which stops if it is not accepted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.usecases import sign_files
from support.cmake_repo import CMakeRepo
from support.errors import assert_printed
from support.libraries import native_library
from support.signing import make_key, signer_line

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models: {tiny: {source: tiny.tar}}
trust: {signers: signers, require: [archives]}
"""


@pytest.mark.sweep
def test_signatures(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "gcc", "ssh-keygen")
    repo = CMakeRepo(tmp_path)
    alice, bob, eve = (make_key(tmp_path / name) for name in ("alice", "bob", "eve"))
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("src/main.c", "int main(void) { return 0; }\n")
    archive = repo.write("tiny.tar", pack_archive(native_library("tiny")))
    repo.write("signers", signer_line(alice, "alice@x") + signer_line(bob, "bob@x"))
    refused = repo.configure()
    assert refused.status != 0
    assert_printed(refused.output, "signature-missing", "tiny.tar")
    sign_files([archive], alice)
    repo.configure(status=0)
    assert repo.build().archives == {"tiny"}
    assert repo.build().written == set()
    sign_files([archive], bob)
    signed = repo.build()
    assert (signed.archives, signed.trees, signed.objects) == ({"tiny"}, set(), set())
    sign_files([archive], eve)
    refused = repo.run_build()
    assert refused.status != 0
    assert_printed(refused.output, "signer-unknown", "tiny.tar")
    assert not refused.archives
