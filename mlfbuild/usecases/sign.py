"""Sign files: archives, bundles, lock files, statements of provenance, or any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlfbuild.core import (
    SIGNATURE_MARK,
    ConflictError,
    UsageError,
    read_bytes,
    read_regular,
    sign_bytes,
    signature_path,
    write_atomic,
)


def sign_files(files: Sequence[Path], key: Path) -> list[Path]:
    """Write a signature by ``key`` beside each of ``files``, and return the signatures, in the same order.

    An old signature is replaced. Nothing is written before all are made. Raises ``UsageError`` for a file that is
    itself a signature, ``ConflictError`` for another file in the place of one, and as ``sign_bytes``.
    """
    contents = [_content(file) for file in files]
    outputs = [signature_path(file) for file in files]
    for output in outputs:
        check_signature_output(output)
    made = [sign_bytes(content, key) for content in contents]
    for output, signature in zip(outputs, made, strict=True):
        write_atomic(output, signature)
    return outputs


def _content(file: Path) -> bytes:
    data = read_regular(file, "file")
    # `mlfbuild sign build/*` also names the signatures of the last time.
    if data.startswith(SIGNATURE_MARK):
        raise UsageError("signature-of-signature", place=file, reason="is itself a signature", hint="omit it")
    return data


def check_signature_output(path: Path) -> None:
    """Raise ``ConflictError`` if ``path`` exists and is not a signature or empty."""
    if path.exists() and (data := read_bytes(path, "signature")) and not data.startswith(SIGNATURE_MARK):
        reason, hint = "exists and is not a signature", "move it away"
        raise ConflictError("signature-in-the-way", place=path, reason=reason, hint=hint)
