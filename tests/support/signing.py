"""Keys of ssh-keygen and files of allowed signers."""

import subprocess
from pathlib import Path


def make_key(path: Path) -> Path:
    """Make a private key without a passphrase at ``path``, and its public key beside it."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", path]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path


def signer_line(key: Path, identity: str, options: str = "") -> str:
    """Return the line that allows the owner of ``key`` to sign as ``identity``."""
    kind, public, _ = key.with_suffix(".pub").read_text().split()
    return " ".join(filter(None, [identity, options, kind, public])) + "\n"
