"""`mlfbuild sign`: the signatures are those of ssh-keygen, which also verifies them here."""

import os
import subprocess
from collections.abc import Callable

import pytest

from support.command import Folder
from support.signing import make_key, signer_line


@pytest.fixture
def signing(folder: Folder, tool: Callable[..., str]) -> Folder:
    """Return a folder with the key ``alice``, which ``signers`` allows."""
    tool("ssh-keygen")
    folder.write("signers", signer_line(make_key(folder.root / "alice"), "alice@example.com"))
    return folder


def test_ssh_keygen_accepts_the_signatures(signing: Folder) -> None:
    for name in ("kws.tar", "mlfbuild.lock"):
        signing.write(name, b"any bytes \0 of " + name.encode())
    written = signing.run("sign", "kws.tar", "mlfbuild.lock", "--key", "alice")
    assert (written.status, written.out) == (0, "kws.tar.sig: written\nmlfbuild.lock.sig: written\n")
    for name in ("kws.tar", "mlfbuild.lock"):
        words = ["ssh-keygen", "-Y", "verify", "-n", "mlfbuild", "-f", "signers", "-I", "alice@example.com"]
        content = (signing.root / name).read_bytes()
        subprocess.run([*words, "-s", f"{name}.sig"], cwd=signing.root, input=content, check=True)


def test_an_old_signature_is_replaced(signing: Folder) -> None:
    paths = [signing.write("kws.tar", "version 1"), signing.root / "kws.tar.sig"]
    signing.run("sign", "kws.tar", "--key", "alice", status=0)
    first = paths[1].read_bytes()
    paths[0].write_text("version 2")
    assert signing.run("sign", "kws.tar", "--key", "alice", "--format", "json", status=0).json == [
        {"file": "kws.tar", "signature": "kws.tar.sig"}
    ]
    assert paths[1].read_bytes() != first


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ("kws.tar --key nobody", (5, "no-such-input", "nobody")),
        ("kws.tar --key kws.tar", (5, "not-a-key", "kws.tar")),
        ("kws.tar --key cut", (7, "signing-failed", "cut")),
        ("kws.tar pipe --key alice", (5, "input-is-pipe", "pipe")),
        ("kws.tar gone.tar --key alice", (5, "no-such-input", "gone.tar")),
        ("models --key alice", (5, "input-is-folder", "models")),
        ("kws.tar old.sig --key alice", (2, "signature-of-signature", "old.sig")),
        ("kws.tar taken --key alice", (6, "signature-in-the-way", "taken.sig")),
    ],
)
def test_mistakes_write_nothing(signing: Folder, arguments: str, refused: tuple[int, str, str]) -> None:
    for name in ("kws.tar", "taken", "taken.sig"):
        signing.write(name, "text")
    signing.write("cut", (signing.root / "alice").read_bytes()[:200])
    os.mkfifo(signing.root / "pipe")
    signing.write("old.sig", "-----BEGIN SSH SIGNATURE-----\n")
    assert signing.refused("sign", *arguments.split()) == refused
    assert not (signing.root / "kws.tar.sig").exists()


def test_without_ssh_keygen(signing: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_SSH_KEYGEN", "no-such-program")
    signing.write("kws.tar", "text")
    ended = signing.run("sign", "kws.tar", "--key", "alice", status=3)
    assert "apt-get install openssh-client" in ended.err


def test_a_passphrase_is_not_taken_from_the_file(signing: Folder) -> None:
    words = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "long secret", "-f", "alice"]
    subprocess.run(words, cwd=signing.root, check=True, capture_output=True)
    signing.write("kws.tar", "long secret\n")
    # In a session without a terminal, in which ssh-keygen cannot ask.
    words = ["sign", "kws.tar", "--key", "alice", "--format", "json"]
    ended = signing.spawn(*words, start_new_session=True)
    assert ended.status == 7
    assert not (signing.root / "kws.tar.sig").exists()
