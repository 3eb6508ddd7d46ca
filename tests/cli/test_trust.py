"""The project key ``trust``: a build stops at an archive that no allowed signer has signed, before it is parsed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild import archive
from mlfbuild.archive import pack_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core import Trust, check_signed, sha256
from mlfbuild.library import CompileRequest
from mlfbuild.targets import CPUS
from support.command import Folder
from support.libraries import graph_library, native_library
from support.signing import make_key, signer_line

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  tiny: {source: tiny.tar}
trust: {signers: signers, require: [archives]}
"""
JUNK = b"no archive at all " * 100


@pytest.fixture
def project(folder: Folder, tool: Callable[..., str]) -> Folder:
    """Return a project with a signed archive and the keys of alice and bob, who are allowed, and of eve."""
    tool("ssh-keygen")
    folder.write("mlfbuild.yml", PROJECT)
    folder.write("tiny.tar", pack_archive(native_library("tiny")))
    alice, bob, _ = (make_key(folder.root / name) for name in ("alice", "bob", "eve"))
    folder.write("signers", signer_line(alice, "alice@x") + signer_line(bob, "bob@x"))
    sign(folder, "alice")
    return folder


def sign(project: Folder, key: str, file: str = "tiny.tar") -> None:
    project.run("sign", file, "--key", key, status=0)


def inputs_that_changed(project: Folder) -> list[str]:
    """Build; return the inputs for which the archive was made again, or an empty list if nothing was done."""
    made = project.run("build", status=0)
    if "nothing to build" in made.err:
        return []
    record = json.loads((project.root / "build/mlf/pc/.tiny.tar.key").read_bytes())
    return [name for name, *_ in record["because"]] or ["all"]


@pytest.mark.parametrize("verb", ["build", "plan", "lock", "generate"])
def test_nothing_is_parsed_without_a_signature(project: Folder, verb: str) -> None:
    project.write("tiny.tar", JUNK)
    assert project.refused(verb) == (1, "signature-wrong", "tiny.tar")
    (project.root / "tiny.tar.sig").unlink()
    assert project.refused(verb) == (1, "signature-missing", "tiny.tar")
    sign(project, "eve")
    assert project.refused(verb) == (1, "signer-unknown", "tiny.tar")
    assert not (project.root / "build/mlf/pc/tiny").exists()
    # A signature does not make it an archive.
    sign(project, "bob")
    assert project.run(verb).status == 5


def test_check_and_doctor(project: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.run("check", status=0).err == ""
    sign(project, "eve")
    ((code, place),) = project.mistakes("check")
    assert (code, place.rpartition(" ")[2]) == ("signer-unknown", "models.tiny.source")
    monkeypatch.setenv("MLFBUILD_SSH_KEYGEN", "no-such-program")
    assert project.run("check").status == 3
    assert "openssh-client" in project.run("doctor").out
    assert project.refused("build") == (3, "program-not-found", "no-such-program")


def test_the_bytes_that_were_checked_are_parsed(project: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def replaced_meanwhile(path: Path, data: bytes, trust: Trust) -> None:
        check_signed(path, data, trust)
        path.write_bytes(JUNK)

    monkeypatch.setattr(archive.load, "check_signed", replaced_meanwhile)
    project.write("tiny.tar", pack_archive(graph_library("tiny")))  # which records no source of its own
    sign(project, "bob")
    digest = sha256((project.root / "tiny.tar").read_bytes())
    trust = Trust(project.root / "signers")
    request = CompileRequest("tiny", project.root / "tiny.tar", CPUS["host"], trust=trust)
    (module,) = compiler_called("archive").compile(request).modules
    assert (module.name, module.source_sha256) == ("tiny", digest)
    assert (project.root / "tiny.tar").read_bytes() == JUNK


def test_changes_of_signature_signers_and_key(project: Folder) -> None:
    tree = project.root / "build/mlf/pc/tiny/RECORD.json"
    assert inputs_that_changed(project) == ["all"]
    assert inputs_that_changed(project) == []
    time = tree.stat().st_mtime_ns
    sign(project, "bob")
    assert inputs_that_changed(project) == ["signature"]
    signers = (project.root / "signers").read_text()
    project.write("signers", signers.splitlines()[0])
    assert project.refused("build") == (1, "signer-unknown", "tiny.tar")
    assert project.run("why", "--format", "json").status == 0
    project.write("signers", signers.splitlines()[1])
    assert inputs_that_changed(project) == ["allowed signers"]
    project.write("mlfbuild.yml", (project.root / "mlfbuild.yml").read_text().partition("trust:")[0])
    assert inputs_that_changed(project) == ["signature", "allowed signers"]
    assert inputs_that_changed(project) == []
    assert tree.stat().st_mtime_ns == time, "the archive has the same bytes, and its tree stays"


def test_other_build_systems_watch_signature_and_signers(project: Folder) -> None:
    files = {str(project.root / name) for name in ("tiny.tar", "tiny.tar.sig", "signers")}
    (model,) = project.run("plan", "--format", "json", status=0).json["models"]
    assert {str(project.root / path) for path in model["watched"]} == files
    project.run("generate", "--stamp", "stamp", "--depfile", "stamp.d", status=0)
    assert {*(project.root / "stamp.d").read_text().split()[1:]} == files


def test_a_commit_that_requires_signatures_affects_the_models(project: Folder) -> None:
    (entry,) = project.run("plan", "--format", "json", status=0).json["models"]
    project.write("mlfbuild.yml", (project.root / "mlfbuild.yml").read_text().partition("trust:")[0])
    (before,) = project.run("plan", "--format", "json", status=0).json["models"]
    assert entry["settings"] != before["settings"]


def test_archives_of_the_build_need_no_signature(project: Folder) -> None:
    project.write("made.tar", (project.root / "tiny.tar").read_bytes())
    models = "models:\n  alpha: {source: models/alpha.tflite}\n"
    models += "  tiny: {source: made.tar, compiler: command, command: [cp, '{source}', '{output}']}\n"
    project.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: host}}\n" + models + PROJECT.splitlines()[-1])
    project.run("build", status=0)


def test_update_replaces_the_signature_as_well(project: Folder) -> None:
    project.run("build", status=0)
    new = project.write("new/tiny.tar", pack_archive(native_library("tiny"), version=5))
    assert project.refused("update", "tiny", "new/tiny.tar") == (1, "signature-missing", "new/tiny.tar")
    sign(project, "bob", "new/tiny.tar")
    project.run("update", "tiny", "new/tiny.tar", status=0)
    assert (project.root / "tiny.tar").read_bytes() == new.read_bytes()
    project.run("verify-signature", "tiny.tar", "--signers", "signers", "--identity", "bob@x", status=0)


def test_add_requires_a_signature(project: Folder) -> None:
    project.write("more.tar", pack_archive(native_library("more")))
    assert project.refused("add", "more.tar") == (1, "signature-missing", "more.tar")
    sign(project, "alice", "more.tar")
    project.run("add", "more.tar", status=0)


@pytest.mark.parametrize(
    ("trust", "mistake"),
    [
        ("{signers: gone, require: [archives]}", ("no-such-file", "trust.signers")),
        ("{signers: signers, require: [archive]}", ("unknown-requirement", "trust.require[0]")),
        ("{signers: signers, require: [firmware]}", ("unknown-requirement", "trust.require[0]")),
        ("{signers: signers, require: []}", ("empty-collection", "trust.require")),
        ("{signers: signers}", ("missing-key", "trust")),
        ("{require: [archives]}", ("missing-key", "trust")),
        ("signers", ("wrong-type", "trust")),
    ],
)
def test_mistakes_in_the_key(project: Folder, trust: str, mistake: tuple[str, str]) -> None:
    text = (project.root / "mlfbuild.yml").read_text()
    project.write("mlfbuild.yml", f"{text.partition('trust:')[0]}trust: {trust}\n")
    ((code, place),) = project.mistakes("check")
    assert (code, place.rpartition(" ")[2]) == mistake
