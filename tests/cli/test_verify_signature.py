"""`mlfbuild verify-signature`: who signed a file, and each reason to refuse a signature."""

import os
import subprocess
from collections.abc import Callable

import pytest

from support.command import Folder
from support.signing import make_key, signer_line


@pytest.fixture
def signed(folder: Folder, tool: Callable[..., str]) -> Folder:
    """Return a folder with ``good`` and other signed files, and with several files of allowed signers."""
    tool("ssh-keygen")
    alice, bob = (make_key(folder.root / name) for name in ("alice", "bob"))
    folder.write("signers", signer_line(alice, "alice@example.com") + signer_line(bob, "bob@example.com"))
    folder.write("bob-only", "a damaged line\n" + signer_line(bob, "bob@example.com"))
    folder.write("expired", signer_line(alice, "alice@example.com", 'valid-before="20200101"'))
    folder.write("of-git", signer_line(alice, "alice@example.com", 'namespaces="git"'))
    folder.write("several", signer_line(alice, "*@example.com,alice@x", 'namespaces="git,mlfbuild"'))
    for name in ("good", "changed", "cut", "junk"):
        folder.write(name, f"content of {name}")
    folder.run("sign", "good", "changed", "cut", "--key", "alice", status=0)
    folder.write("changed", "another content")
    folder.write("cut.sig", (folder.root / "cut.sig").read_bytes()[:150])
    folder.write("junk.sig", "no signature")
    folder.write("unsigned", "content")
    os.mkfifo(folder.root / "pipe")
    folder.write("commit", "content")
    words = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", "alice", "commit"]
    subprocess.run(words, cwd=folder.root, check=True)
    return folder


@pytest.mark.parametrize(
    ("arguments", "identity"),
    [
        ("--signers signers", "alice@example.com"),
        ("--signers signers --identity alice@example.com", "alice@example.com"),
        ("--signers several", "*@example.com"),
        ("--signers several --identity carol@example.com", "carol@example.com"),
    ],
)
def test_good_signatures(signed: Folder, arguments: str, identity: str) -> None:
    (check,) = signed.run("verify-signature", "good", *arguments.split(), "--format", "json", status=0).json
    assert (check["file"], check["signer"]["identity"]) == ("good", identity)
    printed = signed.run("verify-signature", "good", *arguments.split(), status=0).out
    assert printed == f"good: signed by {identity} ({check['signer']['key']})\n"
    assert check["signer"]["key"].startswith("ED25519 SHA256:")


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ("unsigned --signers signers", (1, "signature-missing")),
        ("changed --signers signers", (1, "signature-wrong")),
        ("commit --signers signers", (1, "signature-of-other-use")),
        ("good --signers bob-only", (1, "signer-unknown")),
        ("good --signers alice.pub", (1, "signer-unknown")),
        ("good --signers alice", (1, "signer-unknown")),
        ("good.sig --signers signers", (1, "signature-missing")),
        ("pipe --signers signers", (5, "input-is-pipe")),
        ("good --signers expired", (1, "signer-not-allowed")),
        ("good --signers of-git", (1, "signer-not-allowed")),
        ("good --signers signers --identity bob@example.com", (1, "signer-of-other-identity")),
        ("good --signers signers --identity -Y", (1, "signer-of-other-identity")),
        ("cut --signers signers", (5, "signature-damaged")),
        ("junk --signers signers", (5, "signature-damaged")),
        ("gone --signers signers", (5, "no-such-input")),
    ],
)
def test_refused_signatures(signed: Folder, arguments: str, refused: tuple[int, str]) -> None:
    ended = signed.run("verify-signature", *arguments.split(), "--format", "json")
    assert (ended.status, ended.error["code"], ended.error["place"]) == (*refused, arguments.split(maxsplit=1)[0])
    assert ended.json[0]["signer"] is None


def test_all_files_are_checked(signed: Folder) -> None:
    ended = signed.run("verify-signature", "unsigned", "good", "changed", "--signers", "signers", "--format", "json")
    assert (ended.status, ended.error["code"]) == (1, "signatures-refused")
    assert [problem["code"] for problem in ended.error["problems"]] == ["signature-missing", "signature-wrong"]
    assert [check["signer"] is None for check in ended.json] == [True, False, True]
    # One that is damaged decides the exit status.
    assert signed.run("verify-signature", "unsigned", "junk", "--signers", "signers").status == 5


def test_without_allowed_signers(signed: Folder) -> None:
    assert signed.refused("verify-signature", "good", "--signers", "gone") == (5, "no-such-input", "gone")


def test_without_ssh_keygen(signed: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_SSH_KEYGEN", "no-such-program")
    refused = (3, "program-not-found", "no-such-program")
    assert signed.refused("verify-signature", "good", "--signers", "signers") == refused
