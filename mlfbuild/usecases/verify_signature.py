"""Verify the signatures of files: who signed each, or why its signature is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import CheckFailedError, InputFileError, Signer, Trust, check_signed, open_binary, read_regular


@dataclass(frozen=True)
class SignatureCheck:
    """The signer of a file, or the reason why its signature is refused."""

    file: Path
    signer: Signer | None
    error: CheckFailedError | InputFileError | None = None

    @property
    def text(self) -> str:
        """The result as a line."""
        return str(self.error) if self.signer is None else f"{self.file}: signed by {self.signer}"


def verify_signatures(files: Sequence[Path], trust: Trust) -> list[SignatureCheck]:
    """Check the signature beside each of ``files``; a refused one is in the result.

    Raises ``InputFileError`` if the allowed signers cannot be read, and ``ToolNotFoundError``.
    """
    open_binary(trust.signers, "file of allowed signers").close()
    return [_checked(file, trust) for file in files]


def refused_signatures(checks: Sequence[SignatureCheck]) -> CheckFailedError | InputFileError | None:
    """Return the error for those of ``checks`` that are refused; ``None`` if none is.

    A file that cannot be read decides the exit status, because the others may be good.
    """
    errors = [check.error for check in checks if check.error is not None]
    if len(errors) < 2:
        return errors[0] if errors else None
    unreadable = [error for error in errors if isinstance(error, InputFileError)]
    if unreadable:
        return unreadable[0]
    return CheckFailedError(
        "signatures-refused",
        reason=f"{len(errors)} of {len(checks)} files are not signed by an allowed signer",
        hint="see the list above",
        problems=[error.diagnostic() for error in errors],
    )


def _checked(file: Path, trust: Trust) -> SignatureCheck:
    try:
        return SignatureCheck(file, check_signed(file, read_regular(file, "file"), trust))
    except (CheckFailedError, InputFileError) as error:
        return SignatureCheck(file, None, error)
