"""Findings: problems of an archive, each with a code, a place, a message and advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mlfbuild.core import Diagnostic

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One problem or note; ``code`` is a key of ``codes.CODES`` and never changes its meaning."""

    code: str
    severity: Severity
    """``error``: builds fail or the archive contradicts itself; ``warning``: a known fault of an exporter, or a problem
    for some tools; ``note``: useful to know."""
    place: str
    """A member, a member and a symbol in it, or ``metadata.json`` and the path of a key."""
    message: str
    advice: str
    """The next command or edit, in the imperative."""
    repairable: bool
    """Whether ``mlfbuild convert --repair`` corrects it; a date only if its time zone is proved."""

    def diagnostic(self, where: object) -> Diagnostic:
        """Return the finding in the form of the findings of errors; ``where`` is the archive."""
        return Diagnostic(self.code, place=f"{where}: {self.place}", reason=self.message, hint=self.advice)
