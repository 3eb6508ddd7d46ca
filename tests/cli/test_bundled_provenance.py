"""A statement of provenance in a bundle: it must be about the image, and with --signers it must be signed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core import Trust, sha256
from mlfbuild.report.provenance import Artifact, Provenance
from mlfbuild.usecases import received_image
from support.command import Folder
from support.signing import make_key, signer_line

IMAGE = ("--bundle", "b.mlfbundle", "--in", "app.elf")


@pytest.fixture
def folder(folder: Folder, tool: Callable[..., str]) -> Folder:
    """Return a folder with an archive, what is an image of it, a statement about both, and keys of ci and of eve."""
    tool("ssh-keygen")
    (folder.root / "mlfbuild.yml").unlink()
    folder.run("compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "alpha.tar", "-q", status=0)
    folder.write("app.elf", f"mlf:alpha:{sha256((folder.root / 'models/alpha.tflite').read_bytes())}:1.0\0")
    folder.write("signers", signer_line(make_key(folder.root / "ci"), "ci@example.com"))
    make_key(folder.root / "eve")
    write_statement(folder, "app.elf", "alpha.tar")
    return folder


def write_statement(folder: Folder, *files: str, key: str = "ci") -> None:
    subjects = tuple(Artifact(file, sha256((folder.root / file).read_bytes())) for file in files)
    statement = Provenance(subjects, {"target": "m4"}, (), "https://ci.example.com/runner", "1.0")
    folder.write("app.json", statement.to_text())
    if key:
        folder.run("sign", "app.json", "--key", key, status=0)
    else:
        (folder.root / "app.json.sig").unlink()


def bundle(*more: str) -> tuple[str, ...]:
    words = ("bundle", "alpha.tar", "--vectors", "alpha=alpha.npz", "--board", "mps2-an386", "-o", "b.mlfbundle")
    return (*words, "--provenance", "app.json", *more)


def test_the_receiver_sees_builder_and_signer(folder: Folder) -> None:
    folder.run(*bundle("--elf", "app.elf"), status=0)
    elf, path = Path("app.elf"), Path("b.mlfbundle")
    received = received_image(path, elf, trust=Trust(Path("signers")))
    assert received.builder == "https://ci.example.com/runner"
    assert received.signer is not None and received.signer.identity == "ci@example.com"
    assert received_image(path, elf).signer is None
    folder.run(*bundle("--elf", "app.elf"), status=0)
    assert received_image(path, elf).bundle_sha256 == received.bundle_sha256, "the same input gives the same bytes"


def test_signatures_of_others_are_refused(folder: Folder) -> None:
    folder.run(*bundle(), status=0)
    folder.write("others", signer_line(folder.root / "eve", "eve@example.com"))
    place = "b.mlfbundle: provenance.json"
    assert folder.refused("verify", *IMAGE, "--signers", "others") == (1, "signer-unknown", place)
    assert folder.refused("flash", *IMAGE[:2], "--elf", "app.elf", "--signers", "others")[:2] == (1, "signer-unknown")
    assert folder.refused("verify", *IMAGE, "--signers", "gone") == (5, "no-such-input", "gone")


def test_what_is_not_signed_is_refused(folder: Folder) -> None:
    for words in (bundle()[:-2], bundle()):
        write_statement(folder, "app.elf", "alpha.tar", key="")
        folder.run(*words, status=0)
        refused = folder.refused("verify", *IMAGE, "--signers", "signers")
        assert refused == (1, "provenance-not-signed", "b.mlfbundle")
        folder.run("sign", "app.json", "--key", "ci", status=0)


def test_statements_about_other_files_are_refused(folder: Folder) -> None:
    write_statement(folder, "app.elf")
    assert folder.refused(*bundle()) == (5, "provenance-of-another-image", "app.json")
    write_statement(folder, "alpha.tar")
    assert folder.refused(*bundle("--elf", "app.elf")) == (5, "provenance-of-another-image", "app.json")
    assert not (folder.root / "b.mlfbundle").exists()
    # Without --elf, the image is known on the other machine only.
    folder.run(*bundle(), status=0)
    refused = folder.refused("verify", *IMAGE, "--signers", "signers")
    assert refused == (5, "provenance-of-another-image", "b.mlfbundle: provenance.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("_type", "https://in-toto.io/Statement/v0.1"),
        ("predicateType", "https://slsa.dev/provenance/v0.2"),
        ("subject", []),
        ("subject", [{"name": "app.elf", "digest": {"sha256": "x"}}]),
        ("subject", [{"name": "app.elf"}]),
        ("predicate", {}),
        ("predicate", {"buildDefinition": {"buildType": "b", "externalParameters": {}}, "runDetails": {"builder": {}}}),
        ("predicate", {"buildDefinition": {"buildType": "b"}, "runDetails": {"builder": {"id": "b"}}}),
    ],
)
def test_damaged_statements(folder: Folder, path: str, value: object) -> None:
    statement = json.loads((folder.root / "app.json").read_bytes())
    folder.write("app.json", json.dumps({**statement, path: value}))
    status, _, place = folder.refused(*bundle())
    assert (status, place.partition(":")[0]) == (5, "app.json")


def test_signers_mean_nothing_without_a_bundle(folder: Folder) -> None:
    for verb in ("verify", "flash"):
        assert folder.refused(verb, "--signers", "signers") == (2, "option-needs-another", "--signers")
