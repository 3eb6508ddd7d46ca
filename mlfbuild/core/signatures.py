"""Detached signatures of files, made and verified by ``ssh-keygen``: Git signs commits in the same way.

**What.** ``kws.tar.sig`` beside ``kws.tar`` is an SSH signature (PROTOCOL.sshsig of OpenSSH): a public key, a
namespace, and a signature of namespace and content. The namespace is ``mlfbuild``, so that a signature of a commit or
of an e-mail is none of a file. Whom to trust is a file of allowed signers, which ``ssh-keygen(1)`` describes:
identities, limits and a public key on each line. Teams that sign commits have one, and it can name a certificate
authority.

**Rules.**

1. No cryptography here: ``ssh-keygen`` decides, and only its exit status 0 means that a signature is good. Its messages
   are read after a failure, to explain it.
2. The content that is checked is the ``bytes`` that the caller parses afterwards, never a file that could be replaced
   in between. The signature and the allowed signers are read once, and ``ssh-keygen`` gets copies of them.
3. A signature covers a file as it is. It says nothing about the name of the file, its date, or that it is the newest.

**Example.** ``check_signed(path, read_bytes(path, "archive"), Trust(Path("allowed_signers")))`` returns the ``Signer``
``alice@example.com`` with the key ``ED25519 SHA256:d8kk...``, or raises an error that names ``path``: exit status 1
without a good signature of an allowed signer, 5 for a damaged signature, 3 without ``ssh-keygen``.

**What it does not do.** No key is made, stored or read here: ``ssh-keygen`` reads private keys, or asks ``ssh-agent``.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core.errors import CheckFailedError, InputFileError, MlfError, ProcessFailedError, ToolNotFoundError
from mlfbuild.core.files import open_binary, read_bytes, write_atomic
from mlfbuild.core.processes import LOOK, find_tool, running
from mlfbuild.core.text import shown

NAMESPACE = "mlfbuild"
"""The namespace of signatures: ``ssh-keygen -n``."""
SIGNATURE_MARK = b"-----BEGIN SSH SIGNATURE-----"
"""The first line of a signature file."""
_TOOL = "ssh-keygen"
_KEY = re.compile(r"with (\S+) key (SHA256:\S+)")
_KEYS = (b"-----BEGIN ", b"ssh-", b"ecdsa-", b"sk-")
"""The first bytes of private and public keys."""
_DAMAGED = re.compile("invalid|missing|bad ")
"""In messages about lines that are not understood; other messages are about limits, such as a date."""
_AT_LINE = re.compile(r"^signers:(\d+): (.*)$", re.MULTILINE)
"""The message of ``ssh-keygen`` about a line of the copy of the allowed signers."""


@dataclass(frozen=True)
class Trust:
    """The accepted signers of a file."""

    signers: Path
    """File of allowed signers."""
    identity: str = ""
    """The only identity of that file that is accepted; empty for any."""


@dataclass(frozen=True)
class Signer:
    """The signer of a file."""

    identity: str
    """As the file of allowed signers has it."""
    key: str
    """Type and fingerprint of the public key: ``ED25519 SHA256:...``."""

    def __str__(self) -> str:
        return f"{self.identity} ({self.key})"


def signature_path(path: Path) -> Path:
    """Return the place of the signature of ``path``: ``kws.tar.sig`` beside ``kws.tar``."""
    return path.with_name(f"{path.name}.sig")


def sign_bytes(data: bytes, key: Path) -> bytes:
    """Return the signature file of ``data``; ``key`` is a private key, or the public key of one in ``ssh-agent``.

    ``ssh-keygen`` may ask for a passphrase in the terminal. Raises ``InputFileError`` if the file is missing or not
    a key, ``ProcessFailedError`` with its output if ``ssh-keygen`` refuses the key, and ``ToolNotFoundError``.
    """
    open_binary(key, "key").close()
    with tempfile.TemporaryDirectory(prefix="mlfbuild-sign-") as folder:
        content = Path(folder, "content")
        # A file, because `ssh-keygen` would take the content on stdin for a passphrase if there is no terminal.
        write_atomic(content, data)
        words = ["-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute()), content.name]
        status, _, printed = _ssh_keygen(words, Path(folder))
        if status != 0:
            if not read_bytes(key, "key").lstrip().startswith(_KEYS):
                hint = "name a private key of ssh-keygen, or the public key of one in ssh-agent"
                raise InputFileError("not-a-key", place=key, reason="is not a key", hint=hint)
            raise ProcessFailedError(
                "signing-failed", printed, place=key, reason="ssh-keygen cannot sign with this key", hint=LOOK
            )
        return read_bytes(signature_path(content), "signature")


def check_signed(path: Path, data: bytes, trust: Trust) -> Signer:
    """Return who has signed ``data``, the content of the file ``path``; the signature is beside it.

    Raises ``CheckFailedError`` if there is no signature, if it is not of ``data`` or not made for mlfbuild, or if
    ``trust`` does not have the signer; ``InputFileError`` if the signature or the allowed signers cannot be read; and
    ``ToolNotFoundError`` without ``ssh-keygen``.
    """
    signature = signature_path(path)
    if not signature.exists():
        if data.startswith(SIGNATURE_MARK):
            raise CheckFailedError("signature-missing", place=path, reason="is itself a signature", hint="omit it")
        reason, hint = f"is not signed: there is no {signature.name}", "get the signature, or use `mlfbuild sign`"
        raise CheckFailedError("signature-missing", place=path, reason=reason, hint=hint)
    return check_signature(path, data, read_bytes(signature, "signature"), trust)


def check_signature(place: object, data: bytes, signature: bytes, trust: Trust) -> Signer:
    """Return who made ``signature``, the content of a signature file, of ``data``; ``place`` names ``data`` in errors.

    Raises as ``check_signed``.
    """
    signers = read_bytes(trust.signers, "file of allowed signers")
    with tempfile.TemporaryDirectory(prefix="mlfbuild-verify-") as name:
        folder = Path(name)
        write_atomic(folder / "signature", signature)
        write_atomic(folder / "signers", signers)
        found, printed = [trust.identity], ""
        if not trust.identity:
            _, text, printed = _ssh_keygen(["-Y", "find-principals", "-s", "signature", "-f", "signers"], folder)
            found = text.splitlines()
        # The identities of the first line with the key; ssh-keygen looks at no other one, and neither does Git.
        for identity in found:
            words = ["-Y", "verify", "-n", NAMESPACE, "-s", "signature", "-f", "signers", "-I", identity]
            status, text, printed = _ssh_keygen(words, folder, data)
            if status == 0:
                return Signer(identity, _key(text))
        raise _refusal(place, data, folder, trust, printed)


def _refusal(place: object, data: bytes, folder: Path, trust: Trust, printed: str) -> MlfError:
    """Return why the signature in ``folder`` was refused; ``printed`` is what ``ssh-keygen`` reported."""
    words = ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", "signature"]
    status, text, problem = _ssh_keygen(words, folder, data)
    if status != 0 and "incorrect signature" in problem:
        hint = "get the file and its signature again from the same place"
        return CheckFailedError("signature-wrong", place=place, reason="is not the file that was signed", hint=hint)
    if status != 0 and "namespace" in problem:
        hint = "sign it with `mlfbuild sign`"
        return CheckFailedError("signature-of-other-use", place=place, reason="was not signed for mlfbuild", hint=hint)
    if status != 0:
        reason, hint = "its signature is damaged, or is none of ssh-keygen", "get the signature again"
        return InputFileError("signature-damaged", place=place, reason=reason, hint=hint)
    # The key is good, so the file of allowed signers refuses it. It may say why.
    limits = [f"{trust.signers}:{line}: {why}" for line, why in _AT_LINE.findall(printed) if not _DAMAGED.search(why)]
    if limits:
        hint = "let an allowed signer sign the file"
        return CheckFailedError("signer-not-allowed", place=place, reason=limits[0], hint=hint)
    if trust.identity:
        reason = f"is signed with the key {_key(text)}, which {trust.signers} does not list as {shown(trust.identity)}"
        hint = "let that person sign it, or correct --identity"
        return CheckFailedError("signer-of-other-identity", place=place, reason=reason, hint=hint)
    damaged = [line for line, why in _AT_LINE.findall(printed) if _DAMAGED.search(why)]
    reason = f"is signed with the key {_key(text)}, which {trust.signers} does not list"
    hint = f"if you trust the key, add it to {trust.signers.name}"
    if damaged:
        reason += f" (its line {damaged[0]} is damaged)"
        hint = "write an identity before each public key: me@example.com ssh-ed25519 AAAA..."
    return CheckFailedError("signer-unknown", place=place, reason=reason, hint=hint)


def _key(text: str) -> str:
    found = _KEY.search(text)
    return f"{found[1]} {found[2]}" if found else ""


def _ssh_keygen(words: Sequence[str], folder: Path, data: bytes | None = None) -> tuple[int, str, str]:
    """Run ``ssh-keygen`` in ``folder`` with ``data`` on stdin; return its exit status, stdout and stderr."""
    program = str(find_tool(_TOOL).absolute())
    pipe = None if data is None else subprocess.PIPE
    with tempfile.TemporaryFile() as errors:
        with running([program, *words], cwd=folder, stdin=pipe, stderr=errors) as process:
            output, _ = process.communicate(data)
        errors.seek(0)
        printed = errors.read().decode(errors="replace").replace("\r", "")
    if "unknown option" in printed or "illegal option" in printed:
        reason, hint = "is older than OpenSSH 8.2 and cannot sign files", "install a newer OpenSSH"
        raise ToolNotFoundError("ssh-keygen-too-old", place=program, reason=reason, hint=hint)
    return process.returncode, output.decode(errors="replace"), printed
